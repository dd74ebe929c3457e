"""What pgbench refuses on its command line or in a script, `plinth bench` refuses with the same meaning and exit code."""

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from both import PGBENCH, Both
from plinth.bench.command_line import OPTIONS, OURS
from plinth.bench.events import EventPrinter, as_libpq
from plinth.bench.options import BenchOptions

NOWHERE = Both({"PGHOST": "/nonexistent", "PGUSER": "nobody"})
SCRIPTS = {
    "empty": "",
    "comment": "-- nothing here\n",
    "select": "select 1;\n",
    "unknown": "\\foo 1\n",
    "bad-set": "\\set\n",
    "set-no-expression": "\\set x\n",
    "set-syntax": "\\set x 1 +\n",
    "set-syntax-2": "select 1;\n\\set x (1\n",
    "set-operator": "\\set x 1 $ 2\n",
    "set-function": "\\set x nosuch(1)\n",
    "set-few": "\\set x random(1)\n",
    "set-many": "\\set x pi(1)\n",
    "set-least-none": "\\set x least()\n",
    "set-permute": "\\set x permute(1)\n",
    "set-hash": "\\set x hash()\n",
    "set-case": "\\set x case when 1 then 2\n",
    "set-big": "\\set x 9223372036854775808\n",
    "set-bigger": "\\set x 99999999999999999999\n",
    "set-double": "\\set x 1e999\n",
    "sleep-none": "\\sleep\n",
    "sleep-unit": "\\sleep 1 week\n",
    "sleep-text": "\\sleep often\n",
    "sleep-many": "\\sleep 1 ms now\n",
    "setshell-none": "\\setshell\n",
    "setshell-no-command": "\\setshell x\n",
    "shell-none": "\\shell\n",
    "else-alone": "\\else\n",
    "elif-alone": "\\elif true\n",
    "endif-alone": "\\endif\n",
    "if-open": "\\if true\nselect 1;\n",
    "else-twice": "\\if true\n\\else\n\\else\n\\endif\n",
    "elif-after-else": "\\if true\n\\else\n\\elif true\n\\endif\n",
    "if-nothing": "\\if\n\\endif\n",
    "endif-word": "\\if true\n\\endif now\n",
    "else-word": "\\if true\n\\else now\n\\endif\n",
    "gset-alone": "\\gset\n",
    "gset-first": "\\set x 1\n\\gset\n",
    "gset-words": "select 1 as a \\gset a b\n",
    "gset-twice": "select 1 as a \\gset\n\\gset\n",
    "aset-words": "select 1 as a \\aset a b\n",
    "pipeline-word": "\\startpipeline now\n\\endpipeline\n",
    "continued": "\\set x 1 + \\\n  * 2\n",
    "two-errors": "\\set x (\n\\set y )\n",
    "bad-utf8-command": "\\s\u00e4t x 1\n",
    "lone-backslash": "\\\n",
    "not-a-number": "\\set x 12abc\n",
    "comparison": "\\set x 1 <\n",
    "unbalanced": "\\set x )\n",
    "comma": "\\set x random(1,)\n",
    "string": "\\set x 'text'\n",
    "is-what": "\\set x 1 is what\n",
    "variable-missing": "\\set x :\n",
    "continued-end": "\\set x 1 + \\\n",
    "gset-in-middle": "select 1 \\gset a\\gset b\n",
}
BAD = [
    # numbers
    *(f"{option} {value}" for option in ("-c", "-j", "-t", "-T", "-P", "-s", "--aggregate-interval=1 -c") for value in ("0", "-1", "x", "1x", "2147483648", "1.5", "1e3", "0x10")),
    "-c ''", "-c ' '", "-c 99999999999999999999999", "--client=none", "--jobs=0", "--time=-5", "--progress=0",
    "-i -F 9", "-i -F 101", "-i -F x", "-i --fillfactor=", "-i -s 0", "-i --partitions=-1", "-i --partitions=many",
    "-L 0", "-L -1", "-L x", "-R 0", "-R -5", "-R fast", "-R ''", "-L 0x0", "-R 0xp1", "-R -0x1", "-l --sampling-rate=0x1.8", "--max-tries=-1",
    "-l --sampling-rate=0", "-l --sampling-rate=1.1", "-l --sampling-rate=x", "-l --aggregate-interval=0",
    # getopt
    "--nosuch", "--no", "--pro=1", "--lo", "--log=3", "--connect=yes", "-Z", "-c5Z", "-", "-V5", "-c 1 --client",
    "-c 1 -c", "--builtin", "-b", "--define", "--random-seed", "--show-script", "--in", "--pa=3", "--s=3",
    # scripts and weights
    "-b nosuch", "-b ''", "-b t@", "-b t@x", "-b t@1x", "-b t@-1", "-b t@2147483648", "-b t@99999999999999999999",
    "-f ''", "-f @3", " ".join(["-S"] * 129), " ".join(["-b si@2"] * 128 + ["-f nosuch"]), "-i " + " ".join(["-N"] * 129),
    "-b s", "-b si@0", "-S -N -b t@0 -b s@", "-f /nonexistent/script", "-f /tmp", "-f /nonexistent/script@2",
    "--show-script=", "--show-script=nosuch", "--show-script=s", "-b t@0", "-b t@0 -b si@0",
    # variables and seeds
    "-D x", "-D =1", "-D x=", "-D 1x=5", "-D 'a b=1'", "-D a-b=1", "-D 'a.b=1'", "-D ''",
    "--random-seed=never", "--random-seed=1x", "--random-seed=", "--random-seed=1.5", "--random-seed=-x", "--random-seed='1 '",
    # modes and contradictions
    "-M none", "-M ''", "-M Simple", "-M prep", "-I ''", "-I x", "-I dtgx", "-i -I -x", "-i -I ,", "-I d,t",
    "-i -c 2", "-i -S", "-i -T 5", "-i -t 5", "-i -l", "-i -C", "-i -D x=1", "-i -r", "-i -R 5", "-i -P 1", "-i --max-tries=3",
    "-i -j 2", "-i -M prepared", "-i -L 5", "-i --random-seed=5", "-i -f /dev/null", "-i -v", "-i --exit-on-abort",
    "-q", "-F 50", "-I d", "--partitions=3", "--tablespace=x", "--index-tablespace=x", "--unlogged-tables", "--foreign-keys",
    "-i --partition-method=range", "-i --partition-method=list --partitions=2", "--partition-method=hash",
    "-t 5 -T 5", "--sampling-rate=0.5", "--aggregate-interval=5", "--log-prefix=x", "-l --sampling-rate=0.5 --aggregate-interval=5",
    "-l -T 5 --aggregate-interval=6", "-l -T 5 --aggregate-interval=2", "--progress-timestamp", "--max-tries=0", "--max-tries=0 -t 5", "--max-tries=0 -L 0.0009",
    "--max-tries=x", "a b", "a b c", "-d a b c",
    # what comes first counts
    "-c x -j y", "-j y -c x", "-q -c x", "-i -S -F 5", "-t 5 -T 5 -q", "-b nosuch -c 0", "-c 0 --nosuch", "--nosuch -c 0",
    # no server
    "", "-i", "-S", "-C -c 2", "-h 127.0.0.1 -p 1", "-p 99999", "-p x", "'host=/nonexistent port=1'", "'nonsense=1'",
    "postgresql:///x?nosuch=1", "-U nobody -d x", "-h /nonexistent,127.0.0.1 -p 2,1",
]  # fmt: skip
MODES = ("simple", "prepared")


@dataclass(frozen=True)
class Refusal:
    """An exit code, and what was said on standard error."""

    code: int
    lines: tuple[str, ...]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scripts")
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("line", BAD)
def test_refuses_as_pgbench_does(line: str) -> None:
    words = shlex.split(line)
    theirs = _pgbench(words)
    assert theirs.code == 1, "the table is of what pgbench refuses"
    assert _plinth(words) == theirs


def test_every_abbreviation_means_what_it_means_to_pgbench() -> None:
    """Also where one of our own options begins with the same letters."""
    names = [option.name for option in OPTIONS]
    abbreviations = {name[:length] for name in names for length in range(1, len(name) + 1)}
    assert len(abbreviations) > 300
    others = {}
    for abbreviation in sorted(abbreviations):
        theirs, ours = (reported([f"--{abbreviation}=x"]) for reported in (_pgbench, _plinth))
        if theirs != ours:
            others[abbreviation] = (theirs, ours)
    assert not others


@pytest.mark.parametrize("name", [option.name for option in OURS])
def test_our_own_options_are_written_in_full(name: str) -> None:
    reported = _plinth([f"--{name[:-1]}=x"])
    assert reported.code == 1
    assert f"--{name}" not in reported.lines[0]


@pytest.mark.parametrize(
    ("rate", "detail"),
    [
        ("100:5,", 'Expecting RATE[..RATE][:SECONDS], got "".'),
        ("100:5,fast", 'Expecting RATE[..RATE][:SECONDS], got "fast".'),
        ("100:5s", 'Expecting RATE[..RATE][:SECONDS], got "100:5s".'),
        ("-1..5:3", 'Expecting RATE[..RATE][:SECONDS], got "-1..5:3".'),
        ("1..:3", 'Expecting RATE[..RATE][:SECONDS], got "1..:3".'),
        ("100,200", 'Only the last stage may go without seconds, and only if its rate does not change: "100".'),
        ("100:5,1..200", 'Only the last stage may go without seconds, and only if its rate does not change: "1..200".'),
        ("100:0,5", 'A stage lasts more than 0 seconds: "100:0".'),
        ("0:5,0", "Every rate is 0: nothing would ever be due."),
    ],
)
def test_a_rate_in_stages_that_cannot_be(rate: str, detail: str) -> None:
    reported = _plinth([f"--rate={rate}"])
    assert reported.code == 1
    assert reported.lines[:2] == (f' error: invalid rate limit: "{rate}"', f" detail: {detail}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-R 100 --arrivals=even", ' error: invalid arrivals, expecting "poisson" or "uniform", got: "even"'),
        ("--arrivals=uniform", " error: --arrivals is allowed only under --rate"),
        ("-R 2e9:5,1", ' error: invalid rate limit: "2e9:5,1"'),
        ("-i --arrivals=uniform", " error: some of the specified options cannot be used in initialization (-i) mode"),
    ],
)
def test_arrivals_that_cannot_be(words: str, message: str) -> None:
    reported = _plinth(words.split())
    assert (reported.code, reported.lines[0]) == (1, message)


@pytest.mark.parametrize(
    ("engine", "libpq"),
    [
        (
            "cannot connect to 127.0.0.1:5432: Connection refused (os error 111); is the server running, and does it listen there?",
            'connection to server at "127.0.0.1", port 5432 failed: Connection refused\n'
            "\tIs the server running on that host and accepting TCP/IP connections?",
        ),
        (
            "cannot connect to /tmp/.s.PGSQL.1: No such file or directory (os error 2); is the server running, and does it listen",
            'connection to server on socket "/tmp/.s.PGSQL.1" failed: No such file or directory\n'
            "\tIs the server running locally and accepting connections on that socket?",
        ),
        (
            "cannot log in at [::1]:5432: FATAL: the database system is starting up (SQLSTATE 57P03)",
            'connection to server at "::1", port 5432 failed: FATAL:  the database system is starting up',
        ),
        (
            "ERROR: duplicate (SQLSTATE 23505); detail: Key (a)=(1); exists.; hint: Don't.",
            "ERROR:  duplicate\nDETAIL:  Key (a)=(1); exists.\nHINT:  Don't.",
        ),
        ("the connection was lost: Broken pipe", "the connection was lost: Broken pipe"),
    ],
)
def test_connections_are_refused_in_the_words_of_libpq(engine: str, libpq: str) -> None:
    assert as_libpq(engine) == libpq


@pytest.mark.parametrize(
    "lost", ["the server closed the connection unexpectedly", "the connection was lost: Broken pipe"]
)
def test_a_lost_connection_is_reported_as_pgbench_does(lost: str) -> None:
    reported: list[str] = []
    printer = EventPrinter(BenchOptions(print_message=reported.append), [["SQL", "gset"]])
    event = {
        "kind": "aborted",
        "client": 3,
        "script": 0,
        "command": 1,
        "query": 0,
        "is_connecting": False,
        "in_full": None,
    }
    printer.print_events([event | {"sqlstate": None, "message": lost}], 0)
    words = "client 3 aborted in command 1 (gset) of script 0; perhaps the backend died while processing"
    assert reported == [f"error: {words}"]


@pytest.mark.parametrize("protocol", MODES)
@pytest.mark.parametrize("name", SCRIPTS)
def test_refuses_a_script_as_pgbench_does(name: str, protocol: str, folder: Path) -> None:
    words = ["-f", str(folder / name), "-M", protocol]
    theirs, ours = _pgbench(words), _plinth(words)
    assert (ours.code, ours.lines[0]) == (theirs.code, theirs.lines[0])


def test_the_line_of_an_error_is_shown(tmp_path: Path) -> None:
    """Where lines end as pgbench has it, and not also where Python's do."""
    script = tmp_path / "script"
    script.write_text("select '\f\x1c\u0085\u2028';\n\\set x (\n", encoding="utf-8")
    theirs, ours = (reported(["-f", str(script)]) for reported in (_pgbench, _plinth))
    assert (ours.code, ours.lines[:2]) == (theirs.code, theirs.lines[:2])
    assert ours.lines[1] == "\\set x ("


def test_a_command_behind_a_statement_is_shown_without_it(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("select 1 \\; select 2 \\gset a b\n")
    theirs, ours = (reported(["-f", str(script)]) for reported in (_pgbench, _plinth))
    assert (ours.code, ours.lines[:2]) == (theirs.code, theirs.lines[:2])
    assert ours.lines[1:] == ("\\gset a b", "        ^ error found here")


def test_a_database_that_is_not_utf8() -> None:
    reported = _plinth(["caf\udce9"])
    assert reported == Refusal(1, (""" error: dbname: invalid byte sequence for encoding "UTF8": b'caf\\xe9'""",))


@pytest.mark.parametrize("clients", [61, 62])
def test_more_clients_than_files_may_be_open(clients: int) -> None:
    """61 are too many for the lack of a server only."""
    said = []
    for argv in ([PGBENCH], [sys.executable, "-m", "plinth", "bench"]):
        limited = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *argv, "-c", str(clients), "-h", "/nonexistent", "x"]
        done = subprocess.run(limited, capture_output=True, text=True, check=False)
        said.append((done.returncode, _normal(done.stderr)))
    assert said[0] == said[1]
    assert said[0][0] == 1


def test_refuses_aset_more_plainly(tmp_path: Path) -> None:
    """pgbench speaks of \\gset."""
    (tmp_path / "script").write_text("\\aset\n")
    reported = _plinth(["-f", str(tmp_path / "script")])
    assert reported.code == 1
    assert "\\aset must follow an SQL command" in reported.lines[0]


def _pgbench(words: list[str]) -> Refusal:
    reported = NOWHERE.pgbench(*words)
    return Refusal(reported.code, _normal(reported.err))


def _plinth(words: list[str]) -> Refusal:
    reported = NOWHERE.plinth(*words)
    return Refusal(reported.code, _normal(reported.err))


def _normal(text: str) -> tuple[str, ...]:
    """Without the program's name."""
    text = re.sub(r"^(\S*/)?pgbench:|^plinth bench:", "", text, flags=re.MULTILINE)
    return tuple(line.rstrip() for line in text.replace("plinth bench", "pgbench").splitlines())
