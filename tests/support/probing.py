"""Probing in this process, as the command does; and places to probe."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from plinth.cli import main
from plinth.model.probe import FsyncProbe

QUICK = ("--seconds", "0.03", "--rounds", "1", "--quiet")


class Answer(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


class Command:
    """`plinth probe`, called here; every call leaves no file behind."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> Answer:
        exit_code = main(["probe", *map(str, words)])
        out, err = self._capsys.readouterr()
        for word in map(str, words):
            if Path(word).is_dir() and "is left" not in err:
                assert not left_in(Path(word)), "the probe's file is still there"
        return Answer(exit_code, out, err)

    def fsync(self, *words: object, seconds: float = 0.03) -> list[FsyncProbe]:
        """What `plinth probe fsync --json` found; it must have gone well."""
        done = self("fsync", "--json", "--quiet", "--seconds", seconds, "--rounds", 1, *words)
        assert done.exit_code == 0, done.stderr
        return [FsyncProbe.model_validate(one) for one in json.loads(done.stdout)]


def left_in(directory: Path) -> list[Path]:
    return sorted(directory.glob("plinth-probe-*"))


@contextmanager
def mounted(point: Path, *options: str) -> Iterator[Path]:
    """What mount(8) mounts with `options` on `point`."""
    point.mkdir(exist_ok=True)
    subprocess.run(["mount", *options, str(point)], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)
