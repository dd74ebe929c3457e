"""scripts/action.sh as the GitHub Action runs it: inputs come as they are written in a workflow, whose blocks have several lines."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INCONCLUSIVE = """
[[objective]]
metric = "tps"
min = 1
"""


def wheel(folder):
    """What pip installs without a network: a command that is the one of this checkout."""
    path = folder / "plinth_here-1-py3-none-any.whl"
    info, python = "plinth_here-1.dist-info", sys.executable
    files = {
        "plinth_here.py": f"import os, sys\n\ndef main():\n    os.execv({python!r}, [{python!r}, '-m', 'plinth', *sys.argv[1:]])\n",
        f"{info}/entry_points.txt": "[console_scripts]\nplinth = plinth_here:main\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: plinth-here\nVersion: 1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def acted(project, **inputs):
    """The script with the inputs of the action, and what it says to GitHub."""
    runner = project.folder / "runner"
    runner.mkdir()
    environment = {
        "EXPERIMENT": "x.toml",
        "BASELINE": "",
        "ARGUMENTS": "",
        "FAIL_ON": "",
        "PACKAGE": str(wheel(project.folder)),
        "RUNNER_TEMP": str(runner),
        "GITHUB_OUTPUT": str(runner / "output"),
        "GITHUB_STEP_SUMMARY": str(runner / "summary"),
        **inputs,
    }
    # As the shell of a composite action is started.
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", f'"{ROOT}/scripts/action.sh"'],
        cwd=project.folder,
        env={**project.environment(), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    output = runner / "output"
    said = dict(line.split("=", 1) for line in output.read_text().splitlines()) if output.exists() else {}
    return done, said


@pytest.mark.long
@pytest.mark.parametrize("newline", ["\n", pytest.param("\r\n", marks=pytest.mark.long)])
def test_every_line_of_a_block_counts(project, newline):
    """The run is too short to decide anything, which only the second line of `fail-on` takes for a failure."""
    project.write(project.experiment + INCONCLUSIVE)
    arguments = newline.join(["--repeats 2", "", "  --duration 300ms --set", "measure.warmup=200ms", ""])
    done, said = acted(project, ARGUMENTS=arguments, FAIL_ON=newline.join(["objective", "inconclusive", ""]))
    assert done.returncode == 99, done.stderr
    experiment = json.loads((Path(said["bundle"]) / "plan.json").read_text())["experiment"]
    assert experiment["measure"]["duration_s"] == 0.3
    assert experiment["measure"]["warmup_s"] == 0.2
    assert Path(said["comment"]).read_text() == (project.folder / "runner" / "summary").read_text()


@pytest.mark.long
def test_without_findings_a_run_that_decides_nothing_passes(project):
    done, said = acted(project, ARGUMENTS="--repeats 2")
    assert done.returncode == 0, done.stderr
    assert Path(said["comment"]).read_text()


def test_the_inputs_of_the_action_are_the_variables_of_the_script():
    """A variable that the action does not set would end the script, or be another's."""
    text = (ROOT / "action.yml").read_text()
    script = (ROOT / "scripts" / "action.sh").read_text()
    for name in ("EXPERIMENT", "BASELINE", "ARGUMENTS", "FAIL_ON", "PACKAGE"):
        assert f"        {name}: ${{{{ inputs.{name.lower().replace('_', '-')} }}}}\n" in text
        assert f"${name}" in script
