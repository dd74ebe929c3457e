"""Scripts, words and file names in any encoding: `plinth bench` sends and prints the bytes that pgbench does."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from native_server import PASSWORD, Server

_OURS_ALONE = re.compile(rb"pgbench: warning: shell commands of scripts run as .*\n")
_LOGGED = re.compile(rb"^\S+ \S+ \S+ \[\d+\] ((?:LOG|DETAIL):  (?:statement|execute|parameters).*)$", re.MULTILINE)
_STATEMENT_NAME = re.compile(rb"execute (?:P|plinth)_[\d_]+:")
_FIGURE = re.compile(rb"\d+\.\d+")


@dataclass(frozen=True)
class Did:
    """What a program did: its exit code, output, errors, and the statements in the server's log."""

    code: int
    out: bytes
    err: bytes
    logged: list[bytes]

    @property
    def scripts(self) -> list[bytes]:
        """The lines of the report that name scripts, and those below that repeat a script's commands, without figures."""
        lines = [_FIGURE.sub(b"", line).split() for line in self.out.splitlines()]
        return [b" ".join(line) for line in lines if re.search(rb"type:|script|[\x80-\xff]", b" ".join(line))]


@dataclass(frozen=True)
class Programs:
    """The pgbench of a server's own version, and plinth bench, both with the same words on one of its databases."""

    server: Server
    database: str
    folder: Path

    def pgbench(self, *words: bytes, stdin: bytes = b"", **environment: str) -> Did:
        """What pgbench does."""
        return self._run([f"{self.server.installation.bindir}/pgbench"], words, stdin, environment)

    def plinth(self, *words: bytes, stdin: bytes = b"", **environment: str) -> Did:
        """What plinth bench does."""
        return self._run([sys.executable, "-m", "plinth", "bench"], words, stdin, environment)

    def same(self, *words: bytes, stdin: bytes = b"", **environment: str) -> Did:
        """What both do."""
        theirs, ours = (run(*words, stdin=stdin, **environment) for run in (self.pgbench, self.plinth))
        assert (ours.code, ours.err, ours.scripts) == (theirs.code, theirs.err, theirs.scripts)
        assert ours.logged == theirs.logged
        return ours

    def script(self, *lines: bytes, name: bytes = b"caf\xe9.sql") -> bytes:
        """A script's file."""
        path = os.fsencode(self.folder) + b"/" + name
        Path(os.fsdecode(path)).write_bytes(b"\n".join([*lines, b""]))
        return path

    def kept(self) -> list[bytes]:
        """What both programs' scripts have put into the table."""
        with connect(self.server, self.database) as control:
            return [row[0] for row in control.execute("select t from kept")]

    def _run(self, program: list[str], words: tuple[bytes, ...], stdin: bytes, environment: dict[str, str]) -> Did:
        place = {"PGHOST": str(self.server.folder), "PGPORT": str(self.server.port), "PGUSER": "postgres"}
        log = self.server.folder / "log"
        began = log.stat().st_size
        done = subprocess.run(
            [*map(os.fsencode, program), *words, self.database.encode()],
            env={**os.environ, **place, **environment},
            input=stdin,
            capture_output=True,
            timeout=60,
            cwd=self.folder,
        )
        logged = [_STATEMENT_NAME.sub(b"execute:", line) for line in _LOGGED.findall(log.read_bytes()[began:])]
        err = _OURS_ALONE.sub(b"", done.stderr.replace(b"plinth bench:", b"pgbench:"))
        return Did(done.returncode, done.stdout, err, logged)


def connect(server: Server, database: str) -> "psycopg.Connection[tuple[bytes]]":
    where = {"host": str(server.folder), "port": server.port, "user": "postgres", "password": PASSWORD}
    return psycopg.connect(**where, dbname=database, autocommit=True)


def programs(server: Server, encoding: str, folder: Path) -> Programs:
    name = f"bytes_{encoding.lower()}"
    with connect(server, "postgres") as control:
        control.execute(f"drop database if exists {name}".encode())
        control.execute(f"create database {name} template template0 encoding '{encoding}' locale 'C'".encode())
        control.execute(f"alter database {name} set log_statement = 'all'".encode())
    with connect(server, name) as control:
        control.execute("create table kept (t bytea)")
    return Programs(server, name, folder)


@pytest.fixture(params=["SQL_ASCII", "LATIN1"])
def both(server: Server, request: pytest.FixtureRequest, tmp_path: Path) -> Programs:
    return programs(server, request.param, tmp_path)


@pytest.fixture
def in_latin1(server: Server, tmp_path: Path) -> Programs:
    return programs(server, "LATIN1", tmp_path)


@pytest.fixture
def in_utf8(server: Server, tmp_path: Path) -> Programs:
    return programs(server, "UTF8", tmp_path)


MODES = pytest.mark.parametrize("mode", [b"simple", b"extended", b"prepared"])
WORDS = (b"-n", b"-t", b"1", b"-r", b"-D", b"w\xf6rt=na\xefve")
# The last characters of Unicode, which represent bytes within the engine, and bytes that begin no character.
BYTES = b"caf\xe9 \xff \xc3\xa9 \xf4\x8f\xbe\xa0 \xf4\x8f\xbf\xbf"


@pytest.mark.long
@MODES
def test_the_server_gets_the_same_bytes(both: Programs, mode: bytes) -> None:
    variables = b"':p\xfc_\xf6:w\xf6rt :gr\xfcn'" if mode == b"simple" else b":p\xfc_\xf6"
    script = both.script(
        b"\\set gr\xfcn 1 + 1",
        b"insert into kept values (convert_to('" + BYTES + b"', getdatabaseencoding()));",
        b"select '\xe4' as \xf6 \\gset p\xfc_",
        b"insert into kept values (convert_to(" + variables + b", getdatabaseencoding()));",
        b"\\setshell n printf %s 7 #caf\xe9 :w\xf6rt",
        b"\\shell test $(printf %s caf\xe9 :w\xf6rt | wc -c) = 9",
        b"select '\xe9', :n;",
        b"\0ignored (",
    )
    ours = both.same(*WORDS, b"-M", mode, b"-f", script)
    assert ours.code == 0, ours.err
    assert b"SQL script 1" not in ours.out and b"transaction type: " + script in ours.out
    assert any(BYTES in line for line in ours.logged)
    read = b"\xe4na\xefve 2" if mode == b"simple" else b"\xe4"
    assert both.kept() == [BYTES, read] * 2


@MODES
def test_an_encoding_of_the_client_is_converted_from(in_utf8: Programs, mode: bytes) -> None:
    script = in_utf8.script(b"insert into kept values (convert_to('caf\xe9', 'UTF8'));")
    assert in_utf8.same(*WORDS, b"-M", mode, b"-f", script, PGCLIENTENCODING="LATIN1").code == 0
    assert in_utf8.kept() == ["café".encode()] * 2


@pytest.mark.parametrize("mode", [b"simple", b"extended"])
def test_the_server_refuses_bytes_of_another_encoding(in_utf8: Programs, mode: bytes) -> None:
    script = in_utf8.script(b"insert into kept values ('caf\xe9');")
    ours = in_utf8.same(*WORDS, b"-M", mode, b"-f", script)
    assert ours.code == 2
    assert b'invalid byte sequence for encoding "UTF8": 0xe9 0x27 0x29' in ours.err


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        b"\\set caf\xe9 (",
        b"\\caf\xe9",
        b"\\set x :caf\xe9",
        b"\\set x :w\xf6rt + 1",
        b"\\sleep :w\xf6rt",
        b"\\sleep 1 \xe9",
        b"\\setshell x printf 'caf\xe9'",
        b"\\setshell x printf :caf\xe9",
        b'select 1 as "a-\xe9" \\gset',
        b"selekt 'caf\xe9';",
        b"do $$begin raise exception 'caf\xe9'; end$$;",
    ],
)
def test_errors_hold_the_same_bytes(in_latin1: Programs, text: bytes) -> None:
    theirs, ours = (run(*WORDS, b"-f", in_latin1.script(text)) for run in (in_latin1.pgbench, in_latin1.plinth))
    assert (ours.code, ours.scripts, ours.logged) == (theirs.code, theirs.scripts, theirs.logged)
    assert b"\xe9" in ours.err or b"\xf6" in ours.err
    # The caret is elsewhere: docs/guides/bench.md.
    assert [line for line in ours.err.splitlines() if b"^" not in line] == [
        line for line in theirs.err.splitlines() if b"^" not in line
    ]


@pytest.mark.parametrize(
    "words",
    [
        (b"-f", b"no\xe9"),
        (b"-f", b"caf\xe9.sql@\xe9"),
        (b"-D", b"\xe9"),
        (b"-D", b"\xe9-a=1"),
        (b"-b", b"\xe9"),
        (b"-M", b"\xe9"),
        (b"-i", b"-I", b"\xe9"),
        (b"--random-seed", b"\xe9"),
        (b"-i", b"--partition-method", b"\xe9"),
        (b"--show-script", b"\xe9"),
        (b"-l", b"-n", b"-t", b"1", b"--log-prefix", b"no/\xe9", b"-f", b"caf\xe9.sql"),
    ],
)
def test_refused_words_are_shown_byte_for_byte(in_latin1: Programs, words: tuple[bytes, ...]) -> None:
    in_latin1.script(b"select 1;")
    theirs, ours = (run(*words) for run in (in_latin1.pgbench, in_latin1.plinth))
    assert b"\xe9" in ours.err
    without_pid = [re.sub(rb"\.\d+\"", b'.PID"', did.err) for did in (theirs, ours)]
    assert (ours.code, without_pid[1]) == (theirs.code, without_pid[0])


def test_a_script_on_standard_input_is_sent_byte_for_byte(in_latin1: Programs) -> None:
    ours = in_latin1.same(*WORDS, b"-f", b"-", stdin=b"insert into kept values ('caf\xe9');\n\\shell true \xe9\n")
    assert ours.code == 0
    assert any(b"caf\xe9" in line for line in ours.logged)


def test_names_of_scripts_with_weights_are_shown_byte_for_byte(in_latin1: Programs) -> None:
    one, two = in_latin1.script(b"select '\xe9';"), in_latin1.script(b"select '\xfc';", name=b"\xfcber@x.sql")
    words = (b"-n", b"-t", b"20", b"--random-seed=1", b"-f", one + b"@3", b"-f", two + b"@2")
    theirs, ours = (run(*words) for run in (in_latin1.pgbench, in_latin1.plinth))
    named = [[line for line in did.out.splitlines() if b"SQL script" in line] for did in (theirs, ours)]
    assert named[0] == named[1] == [b"SQL script 1: " + one, b"SQL script 2: " + two]
    assert ours.logged == theirs.logged


def test_logs_progress_and_json_of_scripts_in_latin1(in_latin1: Programs) -> None:
    script = in_latin1.script(b"select '\xe9';", b"\\sleep 1200 ms")
    words = (*WORDS, b"-P", b"1", b"-l", b"--log-prefix", b"pr\xe9fixe", b"--json", b"\xe9.json", b"-f", script)
    ours = in_latin1.plinth(*words)
    assert ours.code == 0
    assert ours.err.startswith(b"progress: 1.0 s, ")
    (log,) = Path(os.fsdecode(os.fsencode(in_latin1.folder))).glob(os.fsdecode(b"pr\xe9fixe.*"))
    assert len(log.read_bytes().splitlines()) == 1
    document = json.loads((in_latin1.folder / os.fsdecode(b"\xe9.json")).read_text("utf-8"))
    assert document["scripts"][0]["name"].endswith(r"/caf\xe9.sql")


def test_verbose_errors_and_json_of_errors_in_latin1(in_latin1: Programs) -> None:
    script = in_latin1.script(b"do $$begin raise exception 'caf\xe9' using errcode = '40001'; end$$;")
    ours = in_latin1.same(b"-n", b"-t", b"1", b"--verbose-errors", b"--max-tries=2", b"-f", script)
    assert b"caf\xe9" in ours.err
    (error,) = json.loads(in_latin1.plinth(*WORDS, b"--max-tries=2", b"--json=-", b"-f", script).out)["errors"]
    assert error["message"] == r"ERROR: caf\xe9 (SQLSTATE 40001)"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
def test_bytes_do_not_depend_on_the_locale(in_latin1: Programs, locale: str) -> None:
    ours = in_latin1.same(*WORDS, b"-f", in_latin1.script(b"select '" + BYTES + b"', ':w\xf6rt';"), LC_ALL=locale)
    assert ours.code == 0


def test_tables_are_made_and_read_in_any_encoding(both: Programs) -> None:
    assert both.plinth(b"-i", b"-q", b"--partitions=2").code == 0
    done = both.plinth(b"-n", b"-t", b"3")
    assert (done.code, b"partition method: range" in done.out) == (0, True)
