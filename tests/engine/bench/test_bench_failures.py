"""What fails in `plinth bench` is said, and ends it, as in pgbench."""

import os
import re
from pathlib import Path

import pytest

from both import Both, shape, words_of
from native_server import Server
from waiting import wait_until


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
    """At once, regardless of what other clients do, and without a report."""
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
    """With the place of the command in addition."""
    script = tmp_path / "copy.sql"
    script.write_text("select 1;\ncopy (select 1) to stdout;\n")
    words = ("-n", "-f", str(script), "-t", "2")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.out)) == (theirs.code, shape(theirs.out))
    place = "plinth bench: error: client 0 aborted in command 1 (SQL) of script 0\n"
    assert words_of(ours.err.replace(place, "").replace("in plinth bench", "in pgbench")) == words_of(theirs.err)
    assert place in ours.err


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


def test_nothing_begins_unless_every_client_is_connected(server: Server, both: Both) -> None:
    role = f"few_{os.getpid()}"
    server.execute(f"create role {role} login connection limit 3 in role pg_read_all_data")
    words = ("-n", "-S", "-c", "8", "-t", "1", "-U", role)
    ours = both.plinth(*words, "-j", "2")
    wait_until(lambda: not server.execute(f"select from pg_stat_activity where usename = '{role}'"))
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


def test_a_log_that_cannot_be_written(both: Both, tmp_path: Path) -> None:
    words = ("-n", "-S", "-t", "1", "-l", f"--log-prefix={tmp_path}/nowhere/log")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert (ours.code, shape(ours.err)) == (theirs.code, shape(theirs.err)) == (1, shape(theirs.err))


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
