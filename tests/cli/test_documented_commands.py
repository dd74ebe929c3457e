"""The commands of the documentation: all are ones that the command line has, and each block of them is run, or says why not.

A block that no test can run has a comment above it: <!-- not run by tests: REASON -->
"""

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from cyclopts import CycloptsError, MissingArgumentError

from plinth.cli.application import application
from small_bundles import CONTENTS
from written_bundles import write_bundle

ROOT = Path(__file__).parents[2]
PAGES = [
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "reference" not in page.parts),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
]
BLOCK = re.compile(
    r"^(?:<!-- not run by tests: (?P<reason>[^\n]+) -->\n)?```sh\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL
)
NOT_ONES_OF_USERS = {"agent", "ray-driver"}
"""Commands that Plinth calls itself on other machines."""
PLACEHOLDERS = {"N": "1", "SHELL": "bash", "HOST:PORT": "10.0.0.5:8434"}

# Places and sizes of the documentation, by what stands for them here.
STANDS_FOR = {
    ".venv/bin/plinth": "plinth",
    "/mnt/nvme0": "nvme0",
    "/mnt/disk": "disk",
    "/var/lib/postgresql": "a",
    "/mnt/a": "a",
    "/mnt/b": "b",
    "/tank": "b",
    "64GiB": "32MiB",
    "plinth report bundles/mine": "plinth report bundles/documented-*",
    "plinth probe io /mnt/a --only device_positions": ": it reads the machine's own disk",
    "--noise 30": "--noise 1.5",
    "--seconds 60": "",
    "--seconds 5": "",
}
# Each command with what makes it short. 1: of doctor, a problem; 3: nothing could be decided; 99: --fail-on, which some blocks show.
SHORTENED = """\
plinth() {
  local more=()
  case "$*" in
    run*) more=(--repeats 1 --duration 200ms --yes) ;;
    "probe fsync"*) more=(--seconds 0.02 --quiet) ;;
    "probe backup"*) more=(--repeats 1 --size 16MiB --quiet) ;;
    "probe io"*) more=(--seconds 0.05); [[ $* == *--size* ]] || more+=(--size 16MiB) ;;
  esac
  command plinth "$@" "${more[@]}"
  local code=$?
  case "$1 $code" in "doctor 1" | *" 0" | *" 3" | *" 99") ;; *) echo "exit code $code: plinth $*" >&2; exit 1 ;; esac
}
"""
EXPERIMENT = """\
spec = 1
name = "documented"
question = "Does this run?"
storage.base = { kind = "tmpfs", size = "400MiB" }
storage.fast = { kind = "loop", on = "base", size = "300MiB", filesystem = "xfs" }
dataset = { kind = "tpcb", scale = 1 }
workload = { builtin = "select-only", clients = 1 }
matrix.storage = ["fast"]
measure = { warmup = "0s", duration = "200ms", repeats = 1, aa = false, probe = "10ms" }
"""
LOG_TEXT = "2026-11-27 12:41:01.123 UTC [7] app@shop LOG:  statement: SELECT 1\n"
LOG_LINE = """{"timestamp":"2026-11-27 12:41:01.123 UTC","session_id":"1.7","dbname":"shop","message":"statement: SELECT 1"}\n"""
LOG_RECORD = (
    '2026-11-27 12:41:01.123 UTC,"app","shop",7,"[local]",1.7,1,"",2026-11-27 12:41:00 UTC,3/7,0,LOG,00000,'
    '"statement: SELECT 1",,,,,,,,,"till"\n'
)
OBJECTIVE = """
[[objective]]
metric = "tps"
min = 1
"""
JOB_FILE = "[mine]\nrw=randread\nbs=8k\nsize=1m\nruntime=1\n"


class Documented(NamedTuple):
    """A block of commands."""

    page: Path
    number: int
    text: str
    reason: str | None

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}: {self.number}"


def blocks() -> list[Documented]:
    return [
        Documented(page, number, found["text"], found["reason"])
        for page in PAGES
        for number, found in enumerate(BLOCK.finditer(page.read_text()), start=1)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_block_is_overlooked(page: Path):
    found = [block for block in blocks() if block.page == page]
    text = page.read_text()
    assert len(found) == len(re.findall(r"^```sh$", text, re.MULTILINE))
    assert sum(block.reason is not None for block in found) == text.count("<!-- not run by tests:")


def command_lines(page: Path) -> list[str]:
    """Of its blocks, and those in the midst of a sentence."""
    text = page.read_text()
    lines = [line for found in BLOCK.finditer(text) for line in found["text"].replace("\\\n", " ").splitlines()]
    sentences = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [*lines, *re.findall(r"`(plinth [^`]+)`", sentences)]


def words_of(line: str) -> list[str]:
    """Of a command of Plinth's, without what the shell does with it; none of another program's."""
    words = shlex.split(line.rstrip(":").replace("...", ""), comments=True)
    if not words or Path(words[0]).name != "plinth":
        return []
    end = next((place for place, word in enumerate(words) if word in ("|", ">", "&", "&&")), len(words))
    return [PLACEHOLDERS.get(word, word) for word in words[1:end]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_are_ones_that_there_are(page: Path):
    """What a sentence names may lack its arguments, but has no unknown part."""
    app = application()
    for line in command_lines(page):
        words = words_of(line)
        if not words or words[0] in ("bench", "--install-completion", *NOT_ONES_OF_USERS):
            continue  # bench has pgbench's command line
        try:
            app.parse_args(words, exit_on_error=False, print_error=False)
        except MissingArgumentError:
            continue
        except CycloptsError as error:
            pytest.fail(f"{line}: {error}")


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of several days."""
    folder = tmp_path_factory.mktemp("bundles")
    for name in ("monday", "tuesday", "main", "change", "change-1", "change-2", "mine", "NAME-TIME"):
        write_bundle(folder / name, replace(CONTENTS, plan=CONTENTS.plan.model_copy(update={"run_id": name})))
    return folder


@pytest.fixture
def folder(scratch: Path, bundles: Path) -> Path:
    """What the commands are about: experiments, bundles, places, a job file."""
    for place in ("a", "b", "nvme0", "disk", "results"):
        (scratch / place).mkdir()
        (scratch / place).chmod(0o777)
    shutil.copytree(bundles, scratch / "bundles")
    (scratch / "experiments").symlink_to(ROOT / "experiments")
    (scratch / "experiment.toml").write_text(EXPERIMENT)
    (scratch / "mine.toml").write_text(EXPERIMENT + OBJECTIVE)
    (scratch / "mine.fio").write_text(JOB_FILE)
    (scratch / "log").mkdir()
    (scratch / "log/postgresql-1.json").write_text(LOG_LINE)
    (scratch / "log/postgresql-1.csv").write_text(LOG_RECORD)
    (scratch / "postgresql.log.gz").write_bytes(gzip.compress(LOG_TEXT.encode()))
    return scratch


def is_long(block: Documented) -> bool:
    """Some minutes, even when each command is shortened."""
    return block.page.name in ("experiments.md", "start.md") or "--grid" in block.text


@pytest.mark.long
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=block.name, marks=[pytest.mark.long] if is_long(block) else [])
        for block in blocks()
        if block.reason is None
    ],
)
def test_a_block_runs(block: Documented, folder: Path, state_dir: Path):
    text = block.text
    if "plinth init mine.toml" in text:
        (folder / "mine.toml").unlink()
    for said, here in STANDS_FOR.items():
        text = text.replace(said, here)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-u", "-c", SHORTENED + text],
        cwd=folder,
        env={**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
