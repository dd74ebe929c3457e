"""The log of commands in the bundle: it records them, and never makes one fail."""

import json
import subprocess

from plinth.run.run_bundle import CommandLog
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner


def test_each_command_is_a_line(tmp_path):
    runner = Runner(CommandLog(LogFile(tmp_path / "commands.jsonl"), print).record)
    runner.run(["echo", "a\u2028b"])
    runner.run(["false"], allowed_exit_codes=(1,))
    first, second = (json.loads(line) for line in (tmp_path / "commands.jsonl").read_text().split("\n")[:-1])
    assert (first["argv"], first["stdout_tail"], second["exit_code"]) == (["echo", "a\u2028b"], "a\nb", 1)


def test_a_full_disk_is_reported_once_and_fails_no_command(tmp_path, scratch):
    """Undoing is done by commands: where it failed for want of space, no space would ever come free."""
    notes = []
    small = scratch / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "plinth-test", small], check=True)
    try:
        (small / "filler").write_bytes(bytes(4096))
        runner = Runner(CommandLog(LogFile(small / "log"), notes.append).record)
        for name in ("a", "b"):
            runner.run(["mkdir", str(tmp_path / name)])
    finally:
        subprocess.run(["umount", small], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert notes == [f"{small / 'log'} cannot be written (No space left on device): some commands are missing there"]
