"""`plinth bench` says what pgbench says, line for line, but for the figures."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from both import Both, ProgramOutput
from native_server import PASSWORD, Server
from waiting import until


@pytest.fixture
def both(server: Server) -> Both:
    place = {"PGHOST": str(server.folder), "PGPORT": str(server.port)}
    return Both(place | {"PGUSER": "postgres", "PGDATABASE": "postgres"})


@pytest.mark.parametrize(
    "options",
    [
        "-t 5",
        "-n -S -c 4 -j 2 -t 5 -M prepared",
        "-n -c 2 -t 5 -r",
        "-n -N -c 2 -t 5 -r --max-tries=3 --failures-detailed",
        "-n -T 2 -P 1 -S -c 2",
        "-n -t 50 -R 200 -S",
        "-n -t 50 -R 200 -L 100 -S -c 2 -j 2",
        "-n -t 5 -L 100 -b tpcb",
        "-n -t 20 -c 2 -b se@3 -b si@1 --random-seed=7",
        "-n -t 20 -c 2 -b se@3 -b si@0 -b tpcb@2 -r --max-tries=2",
        "-n -C -S -t 5",
        "-n -S -s 5 -t 5",
        "-v -S -t 5",
        "-n -S -t 1 -T 1",
        "-n -S -t 3 -L 0.0009",
        "-n -S -t 3 -R 0x7p40",
        "-n -S -t 3 -R 2e9 -L 1000",
    ],
)
def test_report_has_the_lines_of_pgbench(both: Both, options: str) -> None:
    words = options.split()
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.out)) == (theirs.code, shape(theirs.out))
    assert shape(ours.err) == shape(theirs.err)


SLOW = {"pydantic", "numpy", "duckdb", "cyclopts", "rich", "sqlalchemy", "psycopg"}
"""Each takes as long to import as a transaction may be waited for."""
WATCHED = """\
import sys
import plinth._native as native
from plinth.bench import run_bench
began = native.LoadRun
def begin(config):
    print(*sys.modules, file=sys.stderr)
    return began(config)
native.LoadRun = begin
sys.exit(run_bench(sys.argv[1:]))
"""


@pytest.mark.parametrize("options", ["-t 1", "-t 1 -S -c 2 -M prepared -r -l"])
def test_the_first_transaction_waits_for_no_slow_import(server: Server, options: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", WATCHED, *options.split(), f"host={server.folder} port={server.port} user=postgres"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = next(line for line in done.stderr.splitlines() if "plinth.bench.load" in line).split()
    assert not SLOW.intersection(loaded)


def test_counts_are_exact_where_they_are_asked_for(both: Both) -> None:
    ours = both.plinth("-n", "-S", "-c", "3", "-t", "7").out
    assert "number of transactions actually processed: 21/21\n" in ours
    assert "number of failed transactions: 0 (0.000%)\n" in ours


def test_own_scripts_and_variables(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "own.sql"
    script.write_text("\\set n :rows * 2\nSELECT :n, :scale, :client_id;\n\\sleep 1 ms\n")
    words = ("-n", "-f", str(script), "-D", "rows=5", "-s", "9", "-t", "3", "-r")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert shape(ours.out) == shape(theirs.out)
    assert "scaling factor: 9\n" in ours.out


COMMANDS = """\\set a 1 + 1
\\sleep 20 ms
\\if :a = 2
select 1; select pg_sleep(0.03);
\\else
select 2;
\\endif
\\shell sleep 0.02
\\setshell b sleep 0.02; echo 3
\\startpipeline
select pg_sleep(0.01);
\\endpipeline
"""


def test_every_command_is_timed_as_pgbench_does(both: Both, tmp_path: Path) -> None:
    script, reported = tmp_path / "own.sql", tmp_path / "told.json"
    script.write_text(COMMANDS)
    words = ("-n", "-f", str(script), "-t", "3", "-M", "extended", "-r")
    ours, theirs = both.plinth(*words, f"--json={reported}"), both.pgbench(*words)
    assert shape(ours.out) == shape(theirs.out)
    at_least_ms = {"sleep 20": 20, "pg_sleep(0.03)": 30, "shell sleep": 20, "setshell": 20, "endpipeline": 10}
    for said in (ours, theirs):
        commands = re.findall(r"^ +([0-9.]+) +0 +(.+)$", said.out, re.MULTILINE)
        assert len(commands) == 13
        for words_of_it, least_ms in at_least_ms.items():
            (took_ms,) = [float(ms) for ms, text in commands if words_of_it in text]
            assert took_ms >= least_ms
        (skipped_ms,) = [ms for ms, text in commands if text == "select 2;"]
        assert skipped_ms == "0.000"

    histograms = json.loads(reported.read_text())["histograms"]
    timed = {one["line"]: one for one in histograms if one["scope"] == "command"}
    assert {line: one["count"] for line, one in timed.items()} == dict.fromkeys([1, 2, 3, 5, 8, 9, 10, 12], 3)
    (all_of_it,) = [one for one in histograms if one["scope"] == "transaction"]
    alone = [one for one in histograms if one["scope"] == "statement" and one["line"] == 4]
    assert sum(one["sum_ns"] for one in (*timed.values(), *alone)) <= all_of_it["sum_ns"]


def test_a_client_that_fails_ends_and_the_exit_code_is_2(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "bad.sql"
    script.write_text("SELECT 1 / 0;\n")
    words = ("-n", "-f", str(script), "-c", "2", "-t", "3")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, theirs.code) == (2, 2)
    assert shape(ours.out) == shape(theirs.out)
    assert sorted(set(shape(ours.err))) == sorted(set(shape(theirs.err)))


def test_a_client_whose_script_cannot_continue(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "bad.sql"
    script.write_text("SELECT 1;\n\\set x 1 / 0\n")
    words = ("-n", "-f", str(script), "-t", "3")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.err)) == (theirs.code, shape(theirs.err)) == (2, shape(theirs.err))


def test_continue_after_errors(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "bad.sql"
    script.write_text("SELECT 1 / 0;\n")
    reported = both.plinth("-n", "-f", str(script), "-t", "3", "--continue-on-error", "--failures-detailed")
    assert reported.code == 0
    assert "number of failed transactions: 3 (100.000%)\n" in reported.out
    assert "number of other failures: 3 (100.000%)\n" in reported.out


def test_exit_on_abort(both: Both, tmp_path: Path) -> None:
    """At once, whatever other clients are at, and without a report."""
    script = tmp_path / "bad.sql"
    script.write_text("\\if :client_id = 2\nSELECT 1 / 0;\n\\endif\nSELECT pg_sleep(60);\n")
    words = ("-n", "-f", str(script), "-c", "3", "-j", "2", "-T", "60", "--exit-on-abort")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.out), words_of(ours.err)) == (theirs.code, shape(theirs.out), words_of(theirs.err))
    assert ours.err.endswith("error: Run was aborted due to an error in thread 1\n")


def test_a_transaction_that_ends_its_client_is_not_logged(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "bad.sql"
    script.write_text("\\if :client_id = 1\nSELECT 1 / 0;\n\\endif\nSELECT 1;\n")
    logged = []
    for program in (both.plinth, both.pgbench):
        prefix = tmp_path / program.__name__
        assert program("-n", "-f", str(script), "-c", "2", "-t", "2", "-l", f"--log-prefix={prefix}").code == 2
        (log,) = tmp_path.glob(f"{program.__name__}.*")
        logged.append([line.split()[:2] for line in log.read_text().splitlines()])
    assert logged == [[["0", "1"], ["0", "2"]]] * 2


FLAKY = """\
create sequence turn;
create function flaky(code text) returns int language plpgsql as
$$ begin
if nextval('turn') % 3 <> 0 then raise exception 'not now' using errcode = code; end if;
return 7;
end $$
"""
RETRIED = {
    "block": ("simple", "begin;\nselect flaky('40001');\nend;\n"),
    "gset": ("simple", "select flaky('40P01') as f \\gset\nselect :f;\n"),
    "pipeline": ("prepared", "\\startpipeline\nbegin;\nselect flaky('40001');\nselect 2;\nend;\n\\endpipeline\n"),
}


@pytest.mark.parametrize("tries", ["2", "3"])
@pytest.mark.parametrize("name", RETRIED)
def test_every_error_is_reported(server: Server, both: Both, name: str, tries: str, tmp_path: Path) -> None:
    protocol, text = RETRIED[name]
    script = tmp_path / "script"
    script.write_text(text)
    words = ("-n", "-M", protocol, "-f", str(script), "-t", "4", f"--max-tries={tries}", "--verbose-errors")
    said = []
    server.execute(FLAKY)
    try:
        for program in (both.plinth, both.pgbench):
            server.execute("alter sequence turn restart")
            reported = program(*words, "--failures-detailed")
            said.append((reported.code, shape(reported.out), words_of(reported.err)))
    finally:
        server.execute("drop function flaky; drop sequence turn")
    assert said[0] == said[1]
    assert "got an error in command" in said[0][2]


def test_retries_in_a_pipeline_are_those_of_the_statement(server: Server, both: Both, tmp_path: Path) -> None:
    """Which pgbench counts for `\\endpipeline`, where it learns of them."""
    script = tmp_path / "script"
    script.write_text("\\startpipeline\nselect 1;\nselect flaky('40001');\n\\endpipeline\n")
    words = ("-n", "-M", "extended", "-f", str(script), "-t", "4", "--max-tries=2", "-r")
    counted = []
    server.execute(FLAKY)
    try:
        for program, command in ((both.plinth, "select flaky"), (both.pgbench, "\\endpipeline")):
            server.execute("alter sequence turn restart")
            row = rf"^ +\S+ +(\d+) +(\d+) {re.escape(command)}"
            counted.append(re.findall(row, program(*words).out, re.MULTILINE))
    finally:
        server.execute("drop function flaky; drop sequence turn")
    assert counted == [[("2", "2")]] * 2


def test_of_a_long_statement_its_beginning_is_shown(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "own.sql"
    text = f"select '{'x' * 200}';\r\nselect\r1;\n\\set a 1 + \\\n  1\nselect 1 as a \\gset \nselect 2 \n \n"
    script.write_text(text, newline="")
    words = ("-n", "-f", str(script), "-t", "1", "-r")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    commands = [re.findall(r"^ +[0-9.]+ +0 (.*)", reported.out, re.MULTILINE) for reported in (ours, theirs)]
    assert commands[0] == commands[1]
    assert len(commands[0]) == 5


def test_copy_is_refused_as_pgbench_does(both: Both, tmp_path: Path) -> None:
    """With the place beside it."""
    script = tmp_path / "copy.sql"
    script.write_text("select 1;\ncopy (select 1) to stdout;\n")
    words = ("-n", "-f", str(script), "-t", "2")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.out)) == (theirs.code, shape(theirs.out))
    place = "plinth bench: error: client 0 aborted in command 1 (SQL) of script 0\n"
    assert words_of(ours.err.replace(place, "").replace("in plinth bench", "in pgbench")) == words_of(theirs.err)
    assert place in ours.err


def test_an_empty_prefix_of_logs(both: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for program in (both.plinth, both.pgbench):
        assert program("-n", "-S", "-t", "1", "-l", "--log-prefix=").code == 0
    assert len({path.name for path in tmp_path.iterdir() if re.fullmatch(r"\.\d+", path.name)}) == 2


def test_ctrl_c_shows_what_there_is_and_ends_by_the_signal(both: Both, tmp_path: Path) -> None:
    """So that a shell's loop around it ends, too. pgbench ends without a word."""
    reported = tmp_path / "told.json"
    words = ["-n", "-S", "-T", "999999999", "-P", "1", f"--json={reported}"]
    child = both.start_plinth(*words)
    assert child.stderr is not None
    while not child.stderr.readline().startswith("progress:"):
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == -signal.SIGINT
    (done,) = re.findall(r"^number of transactions actually processed: (\d+)$", out, re.MULTILINE)
    assert json.loads(reported.read_text())["measured"]["done"] == int(done) > 0
    assert err.endswith("error: Run was interrupted; the above results are incomplete.\n")


def test_nobody_reads_the_report(both: Both) -> None:
    child = both.start_plinth("-n", "-S", "-t", "1")
    assert child.stdout is not None
    child.stdout.close()
    assert (child.wait(30), child.stderr.read() if child.stderr else None) == (141, "")


def test_what_is_empty_is_not_given(both: Both) -> None:
    words = ("-n", "-S", "-t", "1", "-h", "", "-p", "", "-U", "", "-d", "")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.out)) == (theirs.code, shape(theirs.out)) == (0, shape(theirs.out))


def test_a_place_for_json_that_cannot_be_written(both: Both, tmp_path: Path) -> None:
    reported = both.plinth("-n", "-S", "-T", "60", f"--json={tmp_path}/nowhere/told.json")
    assert reported.code == 1
    assert 'told.json": No such file or directory' in reported.err


def test_json_on_standard_output_has_it_to_itself(both: Both) -> None:
    reported = both.plinth("-n", "-S", "-t", "3", "--json=-")
    assert reported.code == 0
    assert json.loads(reported.out)["measured"]["done"] == 3
    assert "number of transactions actually processed: 3/3\n" in reported.err
    assert reported.err.splitlines()[0].startswith("plinth bench (")


def test_the_lag_of_nothing_is_no_number(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("do $$ begin raise exception using errcode = '40001'; end $$;\n")
    words = ("-n", "-f", str(script), "-t", "3", "-R", "1000")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.out)) == (theirs.code, shape(theirs.out))
    for reported in (ours, theirs):
        assert "\nrate limit schedule lag: avg NaN (max 0.000) ms\n" in reported.out


PIPELINE = ("-M", "prepared")
ABORTS = {
    "gset-none": ("select 1 as a where false \\gset\n", ()),
    "gset-two": ("select 1 as a; select generate_series(1, 2) as a \\gset\n", ()),
    "gset-name": ("select 1, 2 as b \\gset\n", ()),
    "aset-name": ("select 1 as b \\; select 2 \\aset\n", ()),
    "sleep": ("\\sleep :x\nselect 1;\n", ("-D", "x=abc")),
    "if": ("\\if :x\nselect 1;\n\\endif\n", ("-D", "x=abc")),
    "elif": ("\\if false\nselect 1;\n\\elif :x\nselect 2;\n\\endif\n", ("-D", "x=abc")),
    "set-range": ("\\set y :x\nselect 1;\n", ("-D", "x=-9223372036854775809")),
    "set": ("\\set y :x + 1\nselect 1;\n", ("-D", "x=abc")),
    "shell": ("select 1;\n\\shell false\n", ()),
    "setshell": ("\\setshell x echo abc\nselect 1;\n", ()),
    "pipeline-simple": ("\\startpipeline\nselect 1;\n", ()),
    "pipeline-open": ("\\startpipeline\nselect 1;\n", PIPELINE),
    "pipeline-end": ("\\endpipeline\nselect 1;\n", PIPELINE),
    "pipeline-sync": ("\\syncpipeline\nselect 1;\n", PIPELINE),
    "pipeline-twice": ("\\startpipeline\n\\startpipeline\nselect 1;\n\\endpipeline\n", PIPELINE),
    "pipeline-gset": ("\\startpipeline\nselect 1 as a \\gset\n\\endpipeline\n", PIPELINE),
    "pipeline-error": ("\\startpipeline\nselect 1/0;\nselect 2;\n\\endpipeline\n", PIPELINE),
    "pipeline-parts": (
        "\\startpipeline\nselect 1;\n\\syncpipeline\n\\syncpipeline\nselect 1/0;\n\\endpipeline\n",
        PIPELINE,
    ),
    "third-query": ("select 1; select 2;\nselect 3 \\; select 4 \\; select 1/0;\n", ()),
    "first-query-after": ("select 1 \\; select 2;\nselect 1/0;\n", ()),
    "in-block": ("begin;\nselect 1 \\; select 1/0;\nend;\n", ()),
    "block-open": ("begin; select 1;\n", ()),
    "terminated": ("select 1;\nselect pg_terminate_backend(pg_backend_pid());\n", ()),
    "terminated-later": ("select 1;\n\\sleep 1 ms\nselect pg_terminate_backend(pg_backend_pid());\n", ()),
    "detail": ("insert into pgbench_branches values (1);\n", ()),
    "hint": ("select pgbench_accounts.aidd from pgbench_accounts;\n", ()),
    "place": (f"\\set x 5\nselect 1,\n\t{'1, ' * 30}':x', nosuch, {'2, ' * 30}3;\n", ()),
    "place-extended": ("\\set x 5\nselect :x::int, nosuch;\n", ("-M", "extended")),
    "context": ("do $$ begin perform 1 / 0; end $$;\n", ()),
    "query": ("do $$ begin perform nosuch; end $$;\n", ("-M", "extended")),
}


@pytest.mark.parametrize("name", ABORTS)
def test_a_client_is_aborted_in_the_words_of_pgbench(both: Both, name: str, tmp_path: Path) -> None:
    text, more = ABORTS[name]
    script = tmp_path / "script"
    script.write_text(text)
    words = ("-n", "-f", str(script), "-t", "1", *more)
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    reported = without_shell_user(ours.err)
    assert (reported != ours.err) == (name in ("shell", "setshell"))
    assert (ours.code, words_of(reported)) == (theirs.code, words_of(theirs.err))
    assert ours.code == 2


FOUND_IN_THE_RUN = {
    "set-undefined": ("select 1;\n\\set x :nobody + 1\n", ()),
    "if-undefined": ("\\if :nobody\nselect 1;\n\\endif\n", ()),
    "sleep-undefined": ("select 1;\n\\sleep :nobody ms\n", ()),
    "shell-undefined": ("\\shell echo :nobody\nselect 1;\n", ()),
    "sql-undefined": ("select :nobody;\n", ()),
    "extended-undefined": ("select 'x' || coalesce(:nobody, 'null');\n", ("-M", "extended")),
    "prepared-undefined": ("select 'x' || coalesce(:nobody, 'null');\n", ("-M", "prepared")),
    "set-in-a-branch-not-taken": ("\\if false\n\\set x :nobody\n\\endif\nselect 1;\n", ()),
    "block-open": ("begin;\nselect 1;\n", ()),
    "block-open-of-several": ("begin;\nselect 1;\n", ("-c", "2", "-t", "3")),
    "pipeline-open": ("\\startpipeline\nselect 1;\n", ("-M", "extended")),
    "set-name": ("select 1;\n\\set a-b 1\n", ()),
    "set-name-with-colon": ("\\set x 1\n\\set :x 2\nselect 1;\n", ()),
    "set-name-with-digit": ("\\set 1x 1\nselect 1;\n", ()),
    "set-name-after-the-value": ("\\set a-b 1 / 0\nselect 1;\n", ()),
    "set-name-in-a-branch-not-taken": ("\\if false\n\\set a-b 1\n\\endif\nselect 1;\n", ()),
    "set-name-in-a-pipeline": ("\\startpipeline\nselect 1;\n\\set a-b 1\n\\endpipeline\n", PIPELINE),
    "setshell-name": ("\\setshell a-b echo 5\nselect 1;\n", ()),
    "setshell-name-after-the-command": ("\\setshell a-b echo five\nselect 1;\n", ()),
    "setshell-name-in-a-branch-not-taken": ("\\if false\n\\setshell a-b exit 1\n\\endif\nselect 1;\n", ()),
    "gset-prefix": ("select 1 \\gset a-\n", ()),
    "gset-prefix-of-a-digit": ("select 1 as x, 2 as y \\gset 1\n", PIPELINE),
    "gset-prefix-after-the-rows": ("select 1 as x where false \\gset a-\n", ()),
    "gset-prefix-after-an-error": ("select 1 / 0 \\gset a-\n", ()),
    "gset-prefix-in-a-branch-not-taken": ("\\if false\nselect 1 as x \\gset a-\n\\endif\nselect 1;\n", ()),
    "aset-prefix": ("select 1 as x \\; select 2 as y \\aset a-\n", ()),
    "aset-prefix-without-rows": ("select 1 as x where false \\aset a-\n", ()),
}


@pytest.mark.parametrize("name", FOUND_IN_THE_RUN)
def test_what_pgbench_finds_in_the_run_is_found_in_the_run(server: Server, name: str, tmp_path: Path) -> None:
    """By the pgbench of each server's version."""
    text, more = FOUND_IN_THE_RUN[name]
    script = tmp_path / "script"
    script.write_text(text)
    place = {"PGHOST": str(server.folder), "PGPORT": str(server.port), "PGUSER": "postgres", "PGDATABASE": "postgres"}
    both = Both(place, str(Path(server.installation.bindir) / "pgbench"))
    words = ("-n", "-f", str(script), "-t", "1", *more)
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, sorted(words_of(without_shell_user(ours.err)).splitlines())) == (
        theirs.code,
        sorted(words_of(theirs.err).splitlines()),
    )
    processed = [re.findall(r"actually processed: (\S+)", reported.out) for reported in (ours, theirs)]
    assert processed[0] == processed[1]


def without_shell_user(text: str) -> str:
    """pgbench says nothing of it: it runs shell commands as root."""
    return re.sub(r".*warning: shell commands of scripts run as user \w+, never as root\n", "", text)


def words_of(text: str) -> str:
    """Without the program's name."""
    return re.sub(r"^(\S*/)?pgbench:|^plinth bench:", "", text, flags=re.MULTILINE)


def test_nothing_begins_unless_every_client_is_connected(server: Server, both: Both) -> None:
    role = f"few_{os.getpid()}"
    server.execute(f"create role {role} login connection limit 3 in role pg_read_all_data")
    words = ("-n", "-S", "-c", "8", "-t", "1", "-U", role)
    ours = both.plinth(*words, "-j", "2")
    until(lambda: not server.execute(f"select from pg_stat_activity where usename = '{role}'"))
    theirs = both.pgbench(*words)  # two threads of it may both say why, one in the middle of the other's line
    assert (ours.code, shape(ours.out), shape(ours.err)) == (theirs.code, shape(theirs.out), shape(theirs.err))
    assert ours.code == 1
    assert "too many connections for role" in ours.err
    assert int(re.findall(r"for client (\d+)", ours.err)[0]) < 8


def test_a_client_that_gets_no_connection_of_its_own(server: Server, both: Both, tmp_path: Path) -> None:
    """Since its first transaction sees to that."""
    script = tmp_path / "script"
    said = []
    for program in (both.plinth, both.pgbench):
        role = f"{program.__name__}_{os.getpid()}"
        server.execute(f"create role {role} login superuser")
        script.write_text(f"alter role {role} nologin;\n")
        reported = program("-n", "-f", str(script), "-C", "-t", "3", "-U", role)
        assert reported.code == 2
        assert "number of transactions actually processed: 1/3\n" in reported.out
        said.append(words_of(reported.err).replace(role, "ROLE"))
    assert said[0] == said[1]
    assert " error: client 0 aborted while establishing connection\n" in said[0]


def test_one_transaction_has_no_spread_and_no_percentile_above_it(both: Both) -> None:
    reported = both.plinth("-n", "-S", "-t", "1", "-P", "5", "--percentiles=1,100").out
    (mean,) = re.findall(r"^latency average = (\S+) ms$", reported, re.MULTILINE)
    assert "latency stddev = 0.000 ms\n" in reported
    assert re.findall(r"^latency p\S+ = (\S+) ms$", reported, re.MULTILINE) == [mean, mean]


def test_a_log_that_cannot_be_written(both: Both, tmp_path: Path) -> None:
    words = ("-n", "-S", "-t", "1", "-l", f"--log-prefix={tmp_path}/nowhere/log")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.err)) == (theirs.code, shape(theirs.err)) == (1, shape(theirs.err))


def test_a_password_is_asked_for(server: Server) -> None:
    """On the terminal, since there is one, and only once for all clients."""
    ours, theirs = os.openpty()
    argv = [sys.executable, "-m", "plinth", "bench", "-n", "-S", "-c", "3", "-t", "1"]
    place = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "scram_user", "PGDATABASE": "postgres"}

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    child = subprocess.Popen(
        argv, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=take_terminal, env=os.environ | place
    )
    os.close(theirs)
    said = b""
    answered = False
    with suppress(OSError):  # how the end of a terminal is told
        while part := os.read(ours, 4096):
            said += part
            if not answered and said.endswith(b"Password: "):
                os.write(ours, PASSWORD.encode() + b"\n")
                answered = True
    os.close(ours)
    assert child.wait(30) == 0, said
    assert said.count(b"Password: ") == 1
    assert b"number of transactions actually processed: 3/3" in said


def test_rows_are_reported_once_when_all_are_there(both: Both) -> None:
    reported = both.plinth("-i", "-s", "2", "-I", "dtg")
    assert len(re.findall(r"\(100%\)", reported.err)) == 1, reported.err
    assert both.plinth("-i", "-q").code == 0


def test_debug_shows_the_circumstances(both: Both) -> None:
    words = ("-n", "-S", "-c", "2", "-T", "1", "--debug")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert words_of(ours.err).splitlines()[0] == words_of(theirs.err).splitlines()[0]


def test_tables_that_are_not_there(both: Both) -> None:
    words = ("-S", "-t", "1", "template1")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.err)) == (theirs.code, shape(theirs.err))


def test_vacuum_that_cannot_be_is_reported_and_passed_over(both: Both, tmp_path: Path) -> None:
    script = tmp_path / "own.sql"
    script.write_text("SELECT 1;\n")
    words = ("-f", str(script), "-t", "1", "template1")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.err)) == (theirs.code, shape(theirs.err)) == (0, shape(theirs.err))


def test_what_pgbench_has_not(both: Both, tmp_path: Path) -> None:
    place = tmp_path / "result.json"
    reported = both.plinth("-n", "-S", "-t", "20", "--percentiles=50,99.9", "--warmup=0.2", f"--json={place}")
    assert re.search(r"^latency p50 = \d+\.\d{3} ms\nlatency p99.9 = \d+\.\d{3} ms$", reported.out, re.MULTILINE)
    result = json.loads(place.read_text())
    assert result["measured"]["done"] == 20
    assert result["warmup_ns"] >= 200_000_000


def test_a_rate_that_steps_and_ramps(both: Both, tmp_path: Path) -> None:
    """100 in the first second, from 100 to 300 in the next, then 50 a second."""
    place = tmp_path / "result.json"
    words = ("-n", "-S", "-c", "4", "-T", "3", "--rate=100:1,100..300:1,50", "--arrivals=uniform", f"--json={place}")
    reported = both.plinth(*words)
    assert reported.code == 0, reported.err
    result = json.loads(place.read_text())
    done = [row["done"] for row in result["series"] if row["phase"] == "measure"]
    assert sum(done) == pytest.approx(350, abs=4)
    assert done[:3] == pytest.approx([100, 200, 50], abs=4)
    assert "rate limit schedule lag: avg" in reported.out


@pytest.mark.parametrize(
    "options",
    [
        "-I d",
        "-s 2",
        "-s 1 -F 70 --foreign-keys -q",
        "-I dtGvpf",
        "-I dtpg",
        "-I dtpfgv",
        "-n --unlogged-tables",
        "--partitions=3",
        "--partitions=2 --partition-method=hash --unlogged-tables -F 50",
        "--partitions=1",
        "-I dt -s 20000",
    ],
)
def test_initialisation_leaves_what_pgbench_leaves(server: Server, both: Both, options: str) -> None:
    words = ("-i", *options.split())
    left = []
    for name, program in (("theirs", both.pgbench), ("ours", both.plinth)):
        server.execute(f"CREATE DATABASE {name}")
        try:
            reported = program(*words, name)
            assert reported.code == 0, reported.err
            left.append((_catalogue(server, name), steps(reported)))
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    assert left[0] == left[1]


def test_initialisation_with_tablespaces(server: Server, both: Both) -> None:
    (server.folder / "space").mkdir()
    server.own(server.folder / "space")
    server.execute(f"CREATE TABLESPACE space LOCATION '{server.folder}/space'")
    server.execute("CREATE DATABASE ours")
    try:
        assert both.plinth("-i", "--tablespace=space", "--index-tablespace=space", "ours").code == 0
        query = (
            "SELECT count(*) FROM pg_class c JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE spcname = 'space'"
        )
        assert _query(server, "ours", query) == [(7,)]
    finally:
        server.execute("DROP DATABASE ours WITH (FORCE)")
        server.execute("DROP TABLESPACE space")


@pytest.mark.parametrize("options", ["-I t --tablespace=nosuch", "-I G", "-I v", "-I p", "-I f"])
def test_an_initialisation_that_fails_says_the_statement(both: Both, options: str) -> None:
    words = ("-i", *options.split(), "template1")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.err)) == (theirs.code, shape(theirs.err)) == (1, shape(theirs.err))


def test_rows_for_tables_that_are_not_there(both: Both) -> None:
    words = ("-i", "-I", "g", "template1")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, theirs.code) == (1, 1)
    assert 'relation "pgbench_' in ours.err


def _catalogue(server: Server, database: str) -> list[tuple[object, ...]]:
    """Tables with their options, columns, constraints, partitions' bounds and rows."""
    tables = _query(
        server,
        database,
        "SELECT relname, relkind, relpersistence, reloptions::text, pg_get_expr(relpartbound, oid),"
        " (SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || attnotnull, ',' ORDER BY attnum)"
        "  FROM pg_attribute a WHERE a.attrelid = c.oid AND attnum > 0)"
        " FROM pg_class c WHERE relname LIKE 'pgbench%' ORDER BY relname",
    )
    constraints = _query(
        server,
        database,
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype <> 'n' ORDER BY 1, 2",
    )
    rows = [
        _query(server, database, f"SELECT count(*), md5(string_agg(t::text, ';' ORDER BY t::text)) FROM {row[0]} t")
        for row in tables
        if row[1] in ("r", "p")
    ]
    return [*tables, *constraints, *[row for each in rows for row in each]]


def _query(server: Server, database: str, sql: str) -> list[tuple[object, ...]]:
    import psycopg

    with psycopg.connect(
        host=str(server.folder), port=server.port, user="postgres", dbname=database, autocommit=True
    ) as connection:
        return connection.execute(sql.encode()).fetchall()


def steps(reported: ProgramOutput) -> list[str]:
    """What was done, without the rows on the way."""
    return [re.sub(r"\d+\.\d+", "N", line) for line in reported.err.splitlines() if "tuples" not in line]


def shape(text: str) -> list[str]:
    """Lines without figures, and without who says them."""
    text = re.sub(r"^(\S*/)?pgbench:|^plinth bench:", "", text, flags=re.MULTILINE).replace("plinth bench", "pgbench")
    text = re.sub(r"^pgbench \(.*\)$", "pgbench (VERSION)", text, flags=re.MULTILINE)
    lines = [re.sub(r" +", " ", re.sub(r"\d+(\.\d+)?", "N", line)) for line in text.splitlines()]
    # How many seconds there were, and which client's error came first, is chance.
    return [line for number, line in enumerate(lines) if not line.startswith("progress:") or line not in lines[:number]]


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
def test_partitioned_tables_in_a_database_of_any_encoding(server: Server, encoding: str) -> None:
    place = {"PGHOST": str(server.folder), "PGPORT": str(server.port), "PGUSER": "postgres", "PGPASSWORD": PASSWORD}
    env = {**os.environ, **place}
    name = f"in_{encoding.lower()}"
    with psycopg.connect(
        host=str(server.folder), port=server.port, user="postgres", password=PASSWORD, autocommit=True
    ) as control:
        control.execute(f"create database {name} template template0 encoding '{encoding}' locale 'C'".encode())
    for words in (["-i", "-q", "--partitions=2"], ["-n", "-t", "3"]):
        bench = [sys.executable, "-m", "plinth", "bench", *words, name]
        done = subprocess.run(bench, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    assert "partition method: range" in done.stdout
