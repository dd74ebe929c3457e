"""No path that is brought holds a command up: the command ends soon, in a sentence, and with little memory.

What is no file is refused by its type, before it is opened: opening a FIFO waits, and opening a device may do something.
"""

import contextlib
import os
import resource
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from prepared_plinth import PreparedProcess
from ramdisk_experiment import VALID
from small_bundles import written
from special_files import (
    NOT_FILES,
    SPECIAL,
    dangling_link,
    empty,
    endless_device,
    fifo,
    folder,
    link_loop,
    seeing_opens,
    sparse,
    unix_socket,
)

BOUND_S = 60
"""No limit of speed: what waits would wait for ever."""
MOST_BYTES = 1500 * 2**20
CODES = (1, 2, 4, 5)
Maker = Callable[[Path], None]


@dataclass(frozen=True)
class Place:
    """What the rows need besides the path: a bundle, an experiment, a log, and a folder to write to."""

    folder: Path
    bundle: Path
    experiment: Path
    log: Path

    def keyed(self, old: str, new: str) -> Path:
        """An experiment in which a text is replaced."""
        assert old in VALID
        file = self.folder / "keyed.toml"
        file.write_text(VALID.replace(old, new))
        return file


Words = Callable[[Path, Place], list[object]]


@dataclass(frozen=True)
class Row:
    """A command with a path. With `fine` kinds it may succeed; those of `skipped` it is given elsewhere."""

    words: Words
    fine: tuple[Maker, ...] = ()
    skipped: tuple[Maker, ...] = ()
    environment: Mapping[str, Callable[[Path], str]] = field(default_factory=dict)


def as_file(*words: object, fine: tuple[Maker, ...] = ()) -> Row:
    """A command that reads the file PATH."""
    return Row(lambda path, place: [_filled(word, path, place) for word in words], fine=fine)


def as_folder(*words: object, fine: tuple[Maker, ...] = ()) -> Row:
    """A command that uses the folder PATH: what it does with one is tested elsewhere."""
    return Row(lambda path, place: [_filled(word, path, place) for word in words], fine=fine, skipped=(folder,))


def as_output(*words: object) -> Row:
    """A command that writes the file PATH."""
    written_to = (empty, sparse, dangling_link)
    return Row(lambda path, place: [_filled(word, path, place) for word in words], fine=written_to)


def by_variable(name: str, *words: object, fine: tuple[Maker, ...] = (), **others: str) -> Row:
    """A command that is given PATH by an environment variable."""
    variables: dict[str, Callable[[Path], str]] = {
        name: str,
        **{key: lambda _, v=value: v for key, value in others.items()},
    }
    return Row(lambda path, place: [_filled(word, path, place) for word in words], fine=fine, environment=variables)


def by_key(old: str, new: str, fine: tuple[Maker, ...] = (), skipped: tuple[Maker, ...] = ()) -> Row:
    """`plinth plan` of an experiment that names PATH at a key."""
    return Row(lambda path, place: ["plan", place.keyed(old, _filled(new, path, place))], fine=fine, skipped=skipped)


def _filled(word: object, path: Path, place: Place) -> str:
    text = str(word)
    for name in ("bundle", "experiment", "folder", "log"):
        text = text.replace(f"{{{name}}}", str(getattr(place, name)))
    return text.replace("{path}", str(path))


TPCB = 'kind = "tpcb"\nscale = 3'
BUILTIN = 'builtin = "tpcb-like"'
DISK = ("disk", "serve", "--profile", "hdd-7200", "--size", "64MiB")
LOAD = ("durability", "load", "host=127.0.0.1", "--witness", "127.0.0.1:1", "--fingerprint", f"sha256:{'0' * 64}")
SSL = "host=127.0.0.1 port=1 sslmode=verify-full sslrootcert={path}"
ROWS: Mapping[str, Row] = {
    "plan": as_file("plan", "{path}"),
    "run": as_file("run", "{path}"),
    "run --bundle": as_folder("run", "{experiment}", "--bundle", "{path}"),
    "resume": as_folder("resume", "{path}"),
    "report": as_folder("report", "{path}"),
    "report --html --output": as_output("report", "{bundle}", "--html", "--output", "{path}"),
    "report --json --output": as_output("report", "{bundle}", "--json", "--output", "{path}"),
    "report --svg": as_folder("report", "{bundle}", "--svg", "{path}"),
    "history": as_folder("history", "{path}"),
    "serve": as_folder("serve", "{path}"),
    "compare": as_folder("compare", "{bundle}", "{path}"),
    "compare --baseline": as_file("compare", "{bundle}", "--baseline", "{path}"),
    "compare --save-baseline": Row(
        lambda path, place: ["compare", place.bundle, "--save-baseline", path],
        fine=(empty, sparse, dangling_link),
    ),
    "endurance": as_folder("endurance", "{path}"),
    "forecast": as_folder("forecast", "{path}"),
    "verify": as_folder("verify", "{path}"),
    "doctor": as_folder("doctor", "{path}", fine=(link_loop,)),  # which it says in a finding
    "storage list": as_file("storage", "list", "{path}"),
    "storage describe": as_folder("storage", "describe", "{path}", fine=SPECIAL),  # any entry has a file system
    "storage prepare": as_file("storage", "prepare", "{path}", "disk", "--dry-run"),
    "disk serve --backing": Row(
        lambda path, place: [
            *DISK,
            "--backing",
            path,
            "--mount",
            place.folder / "none",
            "--control",
            place.folder / "c",
        ]
    ),
    "disk serve --mount": as_folder(*DISK, "--backing", "{folder}/b", "--mount", "{path}", "--control", "{folder}/c"),
    "disk serve --recording": as_folder(
        *DISK, "--backing", "{folder}/b", "--mount", "{folder}/none", "--control", "{folder}/c", "--recording", "{path}"
    ),
    "disk status": as_file("disk", "status", "{path}"),
    "disk points": as_folder("disk", "points", "{path}"),
    "network status": as_file("network", "status", "{path}"),
    "host check": as_file("host", "check", "{path}"),
    "kubernetes": as_file("kubernetes", "{path}"),
    "fleet check": as_file("fleet", "check", "{path}"),
    "durability witness": as_folder("durability", "witness", "{path}", "--listen", "127.0.0.1:0"),
    "durability witness --cert": as_file(
        "durability", "witness", "{folder}/w", "--listen", "127.0.0.1:0", "--cert", "{path}", "--key", "{path}"
    ),
    "durability load --token-file": as_file(*LOAD, "--token-file", "{path}"),
    "durability verify": as_folder("durability", "verify", "{path}", "host=/nowhere"),
    "durability open": as_folder("durability", "open", "{path}", "1"),
    "durability minimise": as_folder("durability", "minimise", "{path}", "1"),
    "probe fsync": as_folder("probe", "fsync", "{path}"),
    "probe io": as_folder("probe", "io", "{path}"),
    "probe io --job-file": as_file("probe", "io", "{folder}", "--job-file", "{path}"),
    "probe backup": as_folder("probe", "backup", "{path}"),
    "bench -f": as_file("bench", "-h", "/nowhere", "-f", "{path}"),
    "bench --json": Row(lambda path, _: ["bench", "-h", "/nowhere", "--json", path]),
    "init": as_file("init", "{path}"),
    "PLINTH_STATE_DIR": by_variable("PLINTH_STATE_DIR", "clean", fine=(dangling_link, folder)),
    "PGPASSFILE of bench": by_variable("PGPASSFILE", "bench", "-h", "/nowhere"),
    "PGSERVICEFILE of bench": by_variable("PGSERVICEFILE", "bench", "-h", "/nowhere", PGSERVICE="x"),
    "sslrootcert of bench": as_file("bench", SSL),
    "HOME of bench": by_variable("HOME", "bench", "-h", "/nowhere"),
    "PGPASSFILE of durability": by_variable("PGPASSFILE", "durability", "verify", "{folder}", "host=127.0.0.1 port=1"),
    "workload.script": by_key(BUILTIN, 'script = "{path}"'),
    "storage.NAME.path": by_key('kind = "directory"', 'kind = "directory"\npath = "{path}"', skipped=(folder,)),
    "server.bindir": by_key("[dataset]", '[server]\nbindir = "{path}"\n[dataset]'),
    "dataset.schema": by_key(TPCB, 'kind = "sql"\nschema = "{path}"'),
    "server.connection sslrootcert": by_key("[dataset]", f'[server]\nconnection = "{SSL}"\n[dataset]'),
    "server.connection, service": Row(
        lambda path, place: ["plan", place.keyed("[dataset]", '[server]\nconnection = "service=x"\n[dataset]')],
        environment={"PGSERVICEFILE": str},
    ),
    "--ssh-config": Row(
        lambda path, place: [
            "plan",
            place.keyed(
                'kind = "directory"', 'kind = "directory"\nhost = "one"\n[host.one]\naddress = "ssh://nosuch.invalid"'
            ),
            "--ssh-config",
            path,
        ],
        skipped=(empty,),
    ),
}
"""Every way in which a command is given a path, by its name."""

UNREAD_LOGS = (empty, sparse)
"""A log without a statement is no error; a long one is read to its end."""
OPENED_ELSEWHERE: Mapping[str, Row] = {
    "dataset.path of a dump": by_key(TPCB, 'kind = "dump"\npath = "{path}"'),
    "dataset.path of a backup": by_key(TPCB, 'kind = "backup"\npath = "{path}"\ndatabase = "x"'),
    "dataset.globals": by_key(TPCB, 'kind = "dump"\npath = "{log}"\nglobals = "{path}"'),
    "workload.replay": by_key(BUILTIN, 'replay = "{path}"'),
    "replay check": Row(lambda path, _: ["replay", "check", path], skipped=UNREAD_LOGS),
    "replay prepare": Row(
        lambda path, place: ["replay", "prepare", path, "-o", place.folder / "o.replay"], skipped=UNREAD_LOGS
    ),
    "replay prepare -o": as_file("replay", "prepare", "{log}", "-o", "{path}"),
    "replay prepare -o --overwrite": as_file("replay", "prepare", "{log}", "-o", "{path}", "--overwrite"),
}
"""The dumps, backups, globals and logs of others, which a confined reader opens."""


@pytest.fixture(scope="module")
def bundle(module_scratch: Path) -> Path:
    return written(module_scratch / "bundle")


@pytest.fixture
def place(scratch: Path, bundle: Path) -> Place:
    (scratch / "experiment.toml").write_text(VALID)
    (scratch / "log").write_text("no log\n")
    return Place(scratch, bundle, scratch / "experiment.toml", scratch / "log")


@pytest.mark.long
@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in (ROWS | OPENED_ELSEWHERE).items()])
def test_whatever_a_path_leads_to_the_command_ends_in_a_sentence(row: Row, place: Place) -> None:
    wrong = [
        f"{make.__name__}: {what}" for make in SPECIAL if make not in row.skipped for what in _wrong(row, make, place)
    ]
    assert not wrong, "\n".join(wrong)


def _wrong(row: Row, make: Maker, place: Place) -> Iterator[str]:
    """What a command does wrong with one kind of path."""
    with tempfile.TemporaryDirectory(dir=place.folder) as parent:
        path = Path(parent, "x")
        make(path)
        before = path.lstat()
        with _watched(path, make) as was_opened:
            code, said = _ended(row, path, place)
            if was_opened():
                yield f"it was opened ({code}: {said})"
    if code is None:
        yield f"it did not end within {BOUND_S} s"
    elif "Traceback" in said or "MemoryError" in said:
        yield said
    elif code in CODES and "error: " not in said:
        yield f"no sentence: {said}"
    elif code not in CODES and not (code == 0 and make in row.fine):
        yield f"exit code {code}: {said}"
    if make in (*NOT_FILES, folder) and _type_after != stat.S_IFMT(before.st_mode):
        yield "it was replaced"


_type_after = 0


@contextlib.contextmanager
def _watched(path: Path, make: Maker) -> Iterator[Callable[[], bool]]:
    global _type_after
    is_own = make in (fifo, unix_socket, endless_device)  # others have but one for the whole machine
    with seeing_opens(path) if is_own else contextlib.nullcontext(lambda: False) as was_opened:
        yield was_opened
    _type_after = stat.S_IFMT(path.lstat().st_mode) if os.path.lexists(path) else 0


def _ended(row: Row, path: Path, place: Place) -> tuple[int | None, str]:
    """The exit code, None if it had to be killed, and what it said on stderr."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "300", "PLINTH_STATE_DIR": str(place.folder / "state")}
    environment |= {name: value(path) for name, value in row.environment.items()}
    with tempfile.TemporaryFile() as stderr:
        process = PreparedProcess(row.words(path, place), place.folder, environment, subprocess.DEVNULL, stderr)
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
        try:
            code = process.wait(BOUND_S)
        except subprocess.TimeoutExpired:
            process.kill()
            code = None
        stderr.seek(0)
        return code, stderr.read().decode(errors="replace")[:4000]
