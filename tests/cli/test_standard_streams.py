"""Commands that are started without standard input, output or error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from plinth.cli.standard_streams import open_standard_streams
closed = open_standard_streams()
first = os.open("/proc/self/status", os.O_RDONLY)
print("x", file=sys.stdout); print("y", file=sys.stderr)
child = os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "readlink /proc/self/fd/2 >> " + sys.argv[1])
with open(sys.argv[1], "a") as file:
    file.write(f"{','.join(closed)} {first > 2} {[os.readlink(f'/proc/self/fd/{n}') for n in range(3)].count('/dev/null')}")
"""


@pytest.mark.parametrize(
    ("redirection", "closed", "null"),
    [
        ("", "", 0),
        ("2>&-", "stderr", 1),
        ("1>&-", "stdout", 1),
        ("0<&-", "", 1),
        ("0<&- 1>&- 2>&-", "stdout,stderr", 3),
    ],
)
def test_closed_descriptors_lead_to_dev_null(tmp_path: Path, redirection: str, closed: str, null: int) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    line = f'"{sys.executable}" program.py out {redirection}'
    subprocess.run(
        ["sh", "-c", line],
        cwd=tmp_path,
        check=True,
        stdin=subprocess.PIPE,
        capture_output=True,
    )
    of_child, own = (tmp_path / "out").read_text().splitlines()
    assert own == f"{closed} True {null}", "no file that is opened later takes the number of a standard stream"
    assert (of_child == "/dev/null") is ("stderr" in closed)


@pytest.mark.parametrize("redirection", ["2>&-", "1>&-", "0<&- 2>&-", "0<&- 1>&- 2>&-"])
def test_commands_end_as_ever(tmp_path: Path, redirection: str) -> None:
    def code(words: str, redirect: str) -> int:
        command = f'"{sys.executable}" -m plinth {words} {redirect}'
        return subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            capture_output=True,
            env={**os.environ, "PLINTH_STATE_DIR": str(tmp_path)},
        ).returncode

    assert code("schema", redirection) == 0
    assert code("plan nowhere.toml", redirection) == 2
