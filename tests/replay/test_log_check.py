"""`plinth replay check`: logs that real servers have written, of which each statement is accounted for."""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from native_server import Server
from plinth.cli import main
from plinth.model.errors import PlinthError
from plinth.system.confined_task import TaskContext
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from plinth.workload.log_task import check
from plinth.workload.server_log import CheckingLog
from servers import OLD_VERSIONS, all_installations

FORMATS = {"jsonlog": "postgresql.json", "csvlog": "postgresql.csv", "stderr": "postgresql.log"}
PREFIX = "%m [%p] %c %u@%d/%a "
SETTINGS = f"""
logging_collector = on
log_directory = 'log'
log_filename = 'postgresql.log'
log_file_mode = 0644
log_timezone = 'Europe/Berlin'
log_line_prefix = '{PREFIX}'
log_connections = on
log_disconnections = on
lc_messages = 'C'
"""
WAYS = {
    "with their durations": "log_min_duration_statement = 0",
    "at their beginning": "log_statement = 'all'\nlog_duration = on",
}
PREPARED = 5
"""How often a statement that is prepared once is executed."""
SIMPLE, EXTENDED = 11, 3 + PREPARED
"""Statements of `record`, by protocol."""


def record(server: Server) -> None:
    """Send statements of every kind: SIMPLE and EXTENDED, one of each of which fails."""
    string = f"host={server.folder} port={server.port} user=postgres dbname=postgres application_name=till"
    with psycopg.connect(string, autocommit=True) as client:
        client.execute("CREATE TABLE goods (id int PRIMARY KEY, name text)")
        client.execute("INSERT INTO goods VALUES (%s, %s)", (1, 'it\'s\n\ttwo "lines", \x1b[31m'))
        client.execute("INSERT INTO goods VALUES (%s, %s)", (2, None))
        for number in range(PREPARED):
            client.execute("SELECT name FROM goods WHERE id = %b", (number,), prepare=True)
        with pytest.raises(psycopg.errors.UniqueViolation):
            client.execute("INSERT INTO goods VALUES (%s, %s)", (1, "again"))
        with pytest.raises(psycopg.errors.SyntaxError):
            client.execute("SELEC 1")
        with client.cursor() as cursor:
            with cursor.copy("COPY goods FROM STDIN") as rows:
                rows.write_row((3, "three"))
            with cursor.copy("COPY goods TO STDOUT") as rows:
                assert len(list(rows)) == 3
        client.execute("BEGIN")
        client.execute("DECLARE c CURSOR FOR SELECT *\n\tFROM goods -- all\n")
        for _ in range(2):
            client.execute("FETCH 1 FROM c")
        client.execute("COMMIT")
        client.execute("DELETE FROM goods\nWHERE id = 4")
        client.execute("SELECT 'ä', '\x1b[31m'; SELECT 2")


@pytest.fixture(
    scope="module",
    params=["18", "debian", *(pytest.param(one, marks=pytest.mark.long) for one in (*OLD_VERSIONS, "16", "17"))],
)
def version(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=WAYS)
def logs(version: str, request: pytest.FixtureRequest) -> Iterator[dict[str, Path]]:
    """The files of a log, by format."""
    owner = server_owner()
    installation = all_installations(owner, Runner())[version]
    formats = [name for name in FORMATS if name != "jsonlog" or installation.major >= 15]
    settings = f"{SETTINGS}log_destination = '{','.join(formats)}'\n{WAYS[request.param]}\n"
    server = Server(installation, owner, settings)
    try:
        server.start()
        record(server)
        server.stop()
        yield {name: server.data / "log" / FORMATS[name] for name in formats}
    finally:
        server.remove()


def checked(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    code = main(["replay", "check", *map(str, words), "--classes", "100", "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


def by_format(capsys: pytest.CaptureFixture[str], logs: dict[str, Path]) -> dict[str, dict[str, Any]]:
    options = {"stderr": ("--log-line-prefix", PREFIX)}
    return {name: checked(capsys, path, *options.get(name, ())) for name, path in logs.items()}


def of_clients(found: dict[str, Any]) -> dict[str, Any]:
    """The classes of statements of our client, and how often they came: the readiness check of the test is none of them."""
    return {one["text"]: one["count"] for one in found["classes"]}


def test_every_statement_is_counted_once_in_every_format(
    logs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, found in by_format(capsys, logs).items():
        assert [one["format"] for one in found["files"]] == [name]
        assert found["files"][0]["malformed"] == 0, found["unread"]
        (till,) = [one for one in found["applications"] if one["name"] == "till"]
        assert (till["sessions"], till["statements"]) == (1, SIMPLE + EXTENDED), name
        classes = of_clients(found)
        assert classes["insert into goods values($1, $2)"] == 3
        assert classes["select name from goods where id = $1"] == PREPARED
        assert classes["fetch $1 from c"] == 2
        assert classes["declare c cursor for select * from goods"] == 1
        assert classes["select $1, $2; select $3"] == 1
        assert classes["selec $1"] == 1
        assert classes["delete from goods where id = $1"] == 1
        statements = found["statements"]
        assert statements["extended"] == EXTENDED
        assert statements["failed"] == 2
        assert statements["with_duration"] == statements["count"] - 2
        assert found["sessions"]["with_beginning"] == found["sessions"]["count"]
        assert found["sessions"]["with_end"] == found["sessions"]["count"]
        assert found["unknown_zones"] is None and not found["is_to_the_second"]


@pytest.mark.long
def test_only_the_rows_of_copy_are_missing(logs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    for found in by_format(capsys, logs).values():
        (copy,) = found["not_replayable"]
        assert (copy["reason"], copy["count"]) == ("copy_data", 1)
        assert copy["text"] == "COPY goods FROM STDIN"
        lines = Path(copy["path"]).read_bytes().split(b"\n")
        assert b"COPY goods FROM STDIN" in lines[copy["line"] - 1]
        assert found["statements"]["replayable"] == found["statements"]["count"] - 1


def replayable(path: Path) -> set[str]:
    """The classes of the statements that a log lets replay; none of a file that is no log. In this process: hundreds are read."""
    try:
        asked = CheckingLog(files=(str(path),), log_line_prefix=PREFIX, classes=1000)
        found = check(asked, TaskContext(Runner(), lambda _: None))
    except PlinthError:
        return set()
    return {one.text for one in found.classes if one.count > one.not_replayable}


@pytest.mark.long
def test_a_log_that_is_cut_at_any_byte_of_its_end_has_no_other_statements(
    logs: dict[str, Path], tmp_path: Path
) -> None:
    for name, log in logs.items():
        whole = replayable(log)
        text = log.read_bytes()
        cut = tmp_path / name
        for at in range(text.rindex(b"DELETE FROM goods") - 200, len(text)):
            cut.write_bytes(text[:at])
            assert replayable(cut) <= whole, f"{name} cut at {at}"


@pytest.mark.parametrize(
    ("argv", "is_whole"),
    [
        (("sed", r"s/^\t/    /"), False),
        (("sed", r"s/^\t/#011/"), False),
        (("sed", r"s/^\t//"), False),
        (("sed", r"s/^\s*//"), False),
        (("sed", r"s/^\t/    /; s/$/\r/"), False),
        (("sed", r"s/$/\r/"), True),
        (("fold", "-w", "100"), False),
        (("tr", "-d", r"\t"), False),
        (("sed", r"G"), False),
        (("sed", r"5,$s/$/\r/"), False),
        (("grep", "-v", r"^\s"), False),
    ],
)
def test_a_log_that_a_collector_has_changed_has_no_other_statements(
    logs: dict[str, Path], tmp_path: Path, argv: tuple[str, ...], is_whole: bool
) -> None:
    whole = replayable(logs["stderr"])
    changed = tmp_path / "changed.log"
    with logs["stderr"].open("rb") as source, changed.open("wb") as target:
        subprocess.run(argv, stdin=source, stdout=target, check=True)
    found = replayable(changed)
    assert found <= whole
    assert ("delete from goods where id = $1" in found) == is_whole


@pytest.mark.long
def test_a_compressed_log_is_the_same(
    logs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = checked(capsys, logs["csvlog"])
    packed = tmp_path / "postgresql.csv.gz"
    packed.write_bytes(gzip.compress(logs["csvlog"].read_bytes()))
    found = checked(capsys, packed)
    assert found["files"][0]["compression"] == "gzip"
    assert (found["statements"], found["classes"]) == (plain["statements"], plain["classes"])


@pytest.mark.long
def test_nothing_of_a_log_steers_the_terminal(logs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "check", str(logs["csvlog"]), "--classes", "100"]) == 0
    out, _ = capsys.readouterr()
    assert "\x1b[31m" not in out
    assert "it's" not in out, "constants are not shown"
    assert "1: COPY FROM STDIN: its rows are not in the log" in out


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "words", "code", "said"),
    [
        (
            "what is this\n",
            (),
            2,
            "none of its first 1000 lines is of jsonlog, csvlog, or of the usual log_line_prefixes",
        ),
        ("what is this\n", ("--log-line-prefix", "%u "), 2, "it has no time"),
        ("2026-11-27 12:00:00.000 UTC [1] LOG:  checkpoint starting: time\n", (), 1, "no statement is in the log"),
        ("", (), 1, "no statement is in the log"),
        ("x", ("--classes", "-1"), 2, "--classes: got -1"),
        (b"\x1f\x8bnot gzip", (), 1, "cannot read"),
    ],
)
def test_what_cannot_be_read_has_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | bytes, words: tuple[str, ...], code: int, said: str
) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["replay", "check", str(file), *words]) == code
    out, err = capsys.readouterr()
    assert said in " ".join((out + err).split())


def test_a_pattern_without_a_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "check", str(tmp_path / "*.json")]) == 2
    assert "no file" in capsys.readouterr().err


def test_a_directory_is_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "check", str(tmp_path)]) == 2
    assert "is not a regular file" in capsys.readouterr().err


@pytest.mark.long
def test_a_line_of_any_length_takes_bounded_memory(tmp_path: Path) -> None:
    """300 MB without a line end, between two statements, with 200 MiB more than an empty log takes."""
    statement = "2026-11-27 12:00:00.000 UTC [7] LOG:  statement: SELECT 1\n"
    (tmp_path / "empty.log").write_text(statement)
    with (tmp_path / "long.log").open("w") as file:
        file.write(statement + statement.rstrip("\n"))
        for _ in range(300):
            file.write("x" * 10**6)
        file.write(f"\n{statement}")
    needed = {}
    for name in ("empty", "long"):
        code = (
            "import json, resource, sys\nfrom plinth.workload.server_log import check_log\nfrom pathlib import Path\n"
            "found = check_log([Path(sys.argv[1])], None, 1)\n"
            "print(json.dumps([found.statements.count, found.files[0].too_long,"
            " resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, tmp_path / f"{name}.log"], capture_output=True, text=True, check=True
        )
        statements, too_long, needed[name] = json.loads(done.stdout)
        assert (statements, too_long) == ((1, 0) if name == "empty" else (2, 1))
    assert needed["long"] - needed["empty"] < 200 * 2**20


def test_a_log_that_only_the_caller_can_read_has_its_own_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy is read then, whose name nobody knows; the original stays as it is."""
    log = tmp_path / "private.log"
    log.write_text("2026-11-27 12:00:00.000 UTC [7] LOG:  statement: DELETE FROM t\n WHERE id = 1\nnothing\n")
    log.chmod(0o600)
    before = (log.read_bytes(), log.stat().st_mtime_ns, log.stat().st_mode, log.stat().st_uid)
    main(["replay", "check", str(log), "--log-line-prefix", "%m [%p] ", "--quiet"])
    said = capsys.readouterr()
    assert f"{log}:1" in said.out and ".plinth-" not in said.out + said.err
    assert (log.read_bytes(), log.stat().st_mtime_ns, log.stat().st_mode, log.stat().st_uid) == before
    log.write_bytes(b"\x1f\x8b\x08 damaged")
    assert main(["replay", "check", str(log), "--quiet"]) != 0
    said = capsys.readouterr()
    assert str(log) in said.err and ".plinth-" not in said.err
