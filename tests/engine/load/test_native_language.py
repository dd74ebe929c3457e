"""The whole script language, run by the engine and by pgbench with the same seed: they leave the same rows."""

import os
import time
from pathlib import Path

import pytest

from native_server import Finished, Load, Server
from plinth import _native
from script_maker import ScriptMaker

SEED = 4242
SCRIPTS_AT_ONCE = 100
PROTOCOLS = pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])

CONDITIONS = """
\\set x random(0, 5)
\\set y random(0, 1)
\\set r random(1, 1000000)
\\if :x = 0
  \\if :y
    insert into kept values (:client_id, 'zero, ' || cast(:y as int));
  \\elif :y is null
    select 1 / 0;
  \\else
    \\set x null
    insert into kept values (:client_id, 'zero, not');
  \\endif
\\elif :x < 3
  \\set z :x * 10 + :y
  \\if false
    \\if 1 / 0
    \\elif 1 / 0
    \\else
      select 1 / 0;
    \\endif
  \\elif 1
  \\elif 1 / 0
  \\endif
  insert into kept values (:client_id, 'few ' || cast(:z as int));
\\elif :x = 3
\\else
  insert into kept values (:client_id, 'many ' || cast(:x as int));
\\endif
\\if null
  select 1 / 0;
\\elif 0.0
  select 1 / 0;
\\endif
insert into kept values (:client_id, 'end ' || cast(:r as int));
"""

RESULTS = """
\\set n random(1, 20)
select n, n * 2 as "double", null as nothing, 'it''s' as text from (values (cast(:n as int))) as v (n) \\gset
select cast(:n as int) + 1 as n \\gset next_
\\set sum :n + :next_n + :double
select 1 as seen where cast(:n as int) > 10 \\aset
\\if :n > 10
  \\set sum :sum + :seen * 1000
\\endif
select generate_series(1, cast(:n as int)) as last \\aset
insert into kept values (:client_id, format('%s %s %s', cast(:sum as int), cast(:last as int), cast(:n as int)));
"""

COMBINED = """
\\set n random(1, 9)
select 1 as one \\; select 2 as two, :n as n where :n > 4 \\; select 4 as four union select 5 order by 1 \\aset a_
select 7 as skipped \\; insert into kept values (:client_id, 'combined') \\; select :n as last \\gset
\\if :n > 4
  insert into kept values (:client_id, format('%s %s %s', :a_one, :a_two, :a_n));
\\endif
insert into kept values (:client_id, format('%s %s ":skipped"', :a_four, :last));
"""

PIPELINE = """
\\set n random(1, 1000)
begin;
\\startpipeline
insert into kept values (:client_id, 'first ' || cast(:n as text));
\\set n :n + 1
insert into kept values (:client_id, 'second ' || cast(:n as text));
\\syncpipeline
\\if :n % 2
insert into kept values (:client_id, 'odd');
\\endif
select generate_series(1, 5000);
\\sleep 1 us
\\syncpipeline
\\endpipeline
\\startpipeline
\\endpipeline
end;
"""

SHELL = """
\\set n random(1, 100)
\\setshell m expr :n + 1
\\setshell o printf '%s   \\n' :m
\\shell test :o -eq :m
insert into kept values (:client_id, cast(:n as int) || ' ' || cast(:m as int) || ' ' || cast(:o as int));
"""


class Peer:
    """A table that scripts fill, by pgbench and by the engine in turn."""

    def __init__(self, server: Server, load: Load, finished: Finished, folder: Path) -> None:
        self.server, self.load, self.finished, self.folder = server, load, finished, folder
        server.execute("drop table if exists kept; create table kept (client int, text text, n serial)")

    def rows(self) -> list[tuple[object, ...]]:
        rows = self.server.execute("select client, text from kept order by client, n")
        self.server.execute("truncate kept restart identity")
        return rows

    def by_pgbench(self, protocol: str, *scripts: str, options: tuple[str, ...] = ()) -> list[tuple[object, ...]]:
        argv = ["-n", "-M", protocol, "-c", "3", "-j", "3", "-t", "30", f"--random-seed={SEED}", *options]
        for number, script in enumerate(scripts):
            path = self.folder / f"{number}.sql"
            path.write_text(script)
            argv += ["-f", str(path)]
        self.server.pgbench(*argv)
        return self.rows()

    def by_engine(self, protocol: str, *scripts: str, **changes: object) -> list[tuple[object, ...]]:
        sources = [{"name": f"script {number}", "source": script} for number, script in enumerate(scripts)]
        config: dict[str, object] = {
            "scripts": sources,
            "protocol": protocol,
            "clients": 3,
            "threads": 3,
            "transactions_per_client": 30,
            "seed": SEED,
        }
        config |= changes
        result = self.finished(self.load(self.server.connection(), **config))
        assert (result.errors, result.totals.failed) == ((), 0)
        assert result.totals.done == 3 * int(str(config["transactions_per_client"]))
        return self.rows()


@pytest.fixture
def peer(server: Server, load: Load, finished: Finished, tmp_path: Path) -> Peer:
    return Peer(server, load, finished, tmp_path)


@pytest.mark.long
@PROTOCOLS
@pytest.mark.parametrize("script", [CONDITIONS, RESULTS, SHELL], ids=["conditions", "results", "shell"])
def test_the_engine_leaves_the_rows_that_pgbench_leaves(peer: Peer, protocol: str, script: str) -> None:
    rows = peer.by_engine(protocol, script)
    assert len(rows) >= 90
    assert rows == peer.by_pgbench(protocol, script)


def test_combined_statements(peer: Peer) -> None:
    rows = peer.by_engine("simple", COMBINED)
    assert len({text for _, text in rows}) > 10
    assert rows == peer.by_pgbench("simple", COMBINED)


@pytest.mark.parametrize("protocol", ["extended", "prepared"])
def test_pipelines(peer: Peer, protocol: str) -> None:
    rows = peer.by_engine(protocol, PIPELINE)
    assert len(rows) > 180
    # The pgbench of 15 has no \\syncpipeline.
    script = PIPELINE if peer.server.installation.major >= 17 else PIPELINE.replace("\\syncpipeline\n", "")
    assert rows == peer.by_pgbench(protocol, script)


@PROTOCOLS
def test_scripts_made_up_at_random(peer: Peer, protocol: str) -> None:
    factor = int(os.environ.get("PLINTH_TEST_FACTOR", "1"))
    has_sync = peer.server.installation.major >= 17
    maker = ScriptMaker(SEED, protocol, has_sync)
    for _ in range(factor):
        scripts = [maker.script() for _ in range(SCRIPTS_AT_ONCE)]
        rows = peer.by_engine(protocol, *scripts, transactions_per_client=100)
        assert len({str(text).split()[0] for _, text in rows}) > SCRIPTS_AT_ONCE / 2
        assert rows == peer.by_pgbench(protocol, *scripts, options=("-t", "100"))


def test_scripts_are_chosen_by_weight_as_pgbench_does(peer: Peer) -> None:
    scripts = [f"insert into kept values (:client_id, '{name}');" for name in ("a", "b", "c", "never")]
    weighted = [
        {"name": "same", "source": source, "weight": weight}
        for source, weight in zip(scripts, (1, 5, 2, 0), strict=True)
    ]
    rows = peer.by_engine("simple", scripts=weighted)
    for number, source in enumerate(scripts):
        (peer.folder / f"{number}.sql").write_text(source)
    files = [f"{peer.folder}/{number}.sql@{weight}" for number, weight in enumerate((1, 5, 2, 0))]
    options = tuple(word for file in files for word in ("-f", file))
    assert rows == peer.by_pgbench("simple", options=options)
    assert {text for _, text in rows} == {"a", "b", "c"}


def test_scripts_of_one_name_have_results_of_their_own(server: Server, load: Load, finished: Finished) -> None:
    sources = ("select 1;", "select 2;", "\\set x 1 / 0")
    scripts = [
        {"name": "same.sql", "source": source, "weight": weight}
        for source, weight in zip(sources, (8, 8, 1), strict=True)
    ]
    result = finished(load(server.connection(), scripts=scripts, transactions_per_client=100))
    names = {(one.script, one.text) for one in result.histograms if one.scope == "statement"}
    assert names == {("same.sql", "select 1;"), ("same.sql #2", "select 2;")}
    assert [error.script for error in result.errors] == ["same.sql #3"]


def test_default_seed_given_or_drawn(peer: Peer) -> None:
    script = "\\set x permute(random(1, 1000), 1000) + hash(:client_id)\ninsert into kept values (:client_id, ':x');"
    drawn = peer.by_engine("simple", script)
    assert drawn == peer.by_pgbench("simple", script)
    given = peer.by_engine("simple", script, variables={"default_seed": "17"})
    assert given == peer.by_pgbench("simple", script, options=("-D", "default_seed=17"))
    assert given != drawn


@pytest.mark.parametrize(
    ("protocol", "script", "line", "message"),
    [
        ("prepared", "select 1;\nselect 1 where false \\gset", 2, "expected one row, got 0"),
        ("simple", "select 1;\nselect generate_series(1, 3) as a \\gset", 2, "expected one row, got 3"),
        ("extended", "create temp table if not exists t () \\gset", 1, "expected one row, got 0"),
        ("prepared", "select 1 \\gset", 1, 'gset: invalid variable name: "?column?"'),
        ("prepared", "select 1 as a \\gset\n\\set b :c + 1", 2, 'undefined variable "c"'),
        ("prepared", "select 'x y' as a \\gset\n\\if :a\n\\endif", 2, 'malformed variable "a" value: "x y"'),
        ("simple", "\\if true\n\\startpipeline\n\\endif", 2, "cannot use pipeline mode with the simple query protocol"),
        ("extended", "\\startpipeline\n\\startpipeline", 2, "already in pipeline mode"),
        ("prepared", "select 1;\n\\syncpipeline", 2, "not in pipeline mode"),
        ("prepared", "select 1;\n\\endpipeline", 2, "not in pipeline mode"),
        (
            "prepared",
            "\\startpipeline\nselect 1 as a \\gset\n\\endpipeline",
            2,
            "\\gset is not allowed in pipeline mode",
        ),
        (
            "extended",
            "\\startpipeline\nselect 1 as a \\aset\n\\endpipeline",
            2,
            "\\aset is not allowed in pipeline mode",
        ),
        ("prepared", "\\startpipeline\nselect 1;", 2, "end of script reached with pipeline open"),
        ("simple", "\\shell false", 1, "false: could not launch shell command"),
        ("simple", "\\shell no-such-command 2> /dev/null", 1, "no-such-command: could not launch shell command"),
        ("simple", "\\setshell x true", 1, "true: could not read result of shell command"),
        ("simple", "\\setshell x echo one", 1, 'shell command must return an integer (not "one'),
        ("simple", "select 1 as a \\gset\n\\shell echo :b", 2, 'echo: undefined variable ":b"'),
        (
            "simple",
            "\\set x 5\n\\if true\n\\elif 1\n\\else\n\\endif\n\\if 1 / (:x - 5)\n\\endif",
            6,
            "division by zero",
        ),
        ("simple", "\\if false\n\\elif 1 / 0\n\\endif", 2, "division by zero"),
        ("simple", "select 'soon' as x \\gset\n\\sleep :x", 2, 'invalid sleep time "soon" for variable "x"'),
    ],
)
def test_what_ends_a_client_where_pgbench_aborts(
    server: Server, load: Load, finished: Finished, tmp_path: Path, protocol: str, script: str, line: int, message: str
) -> None:
    result = finished(load(server.connection(), script, protocol=protocol, clients=2, transactions_per_client=5))
    (error,) = result.errors
    assert (error.kind, error.line, error.count) == ("script", line, 2)
    assert message in error.message
    assert (result.totals.failed, result.totals.done) == (2, 0)

    path = tmp_path / "script.sql"
    path.write_text(script)
    if "syncpipeline" in script and server.installation.major < 17:
        return
    failed = server.pgbench_failing("-n", "-M", protocol, "-t", "5", "-f", str(path))
    assert message.split(": ", 1)[-1] in failed.replace("\n", " ")


def test_an_error_in_a_pipeline_fails_its_transaction_once(server: Server, load: Load, finished: Finished) -> None:
    script = """\\startpipeline
        select 1;
        \\syncpipeline
        begin;
        select 1 / (:client_id - 1);
        select 2;
        \\syncpipeline
        select 3;
        \\endpipeline
        end;"""
    result = finished(load(server.connection(), script, clients=3, transactions_per_client=4))
    (error,) = result.errors
    assert (error.kind, error.sqlstate, error.statement, error.count) == ("sql", "22012", 2, 4)
    assert (result.totals.done, result.totals.failed) == (8, 4)


def test_a_pipeline_that_fails_to_prepare(server: Server, load: Load, finished: Finished) -> None:
    script = "\\startpipeline\nselect 1;\nselect no_such_column;\nselect 2;\n\\endpipeline"
    result = finished(load(server.connection(), script, transactions_per_client=3))
    (error,) = result.errors
    assert (error.sqlstate, error.line, error.count) == ("42703", 3, 3)


def test_a_long_pipeline_is_sent_in_parts(server: Server, load: Load, finished: Finished) -> None:
    script = "\\startpipeline\n" + "select repeat('x', 1000);\n\\syncpipeline\n" * 2000 + "\\sleep 20 ms\n\\endpipeline"
    result = finished(load(server.connection(), script, protocol="extended", transactions_per_client=3))
    assert (result.totals.done, result.errors) == (3, ())
    statements = [one for one in result.histograms if one.scope == "statement"]
    assert (len(statements), {one.count for one in statements}) == (2000, {3})


def test_a_serialization_failure_in_a_pipeline_is_tried_again(server: Server, load: Load, finished: Finished) -> None:
    server.execute("drop table if exists hot; create table hot (n int); insert into hot values (0)")
    script = """\\startpipeline
        begin isolation level repeatable read;
        select n from hot;
        select pg_sleep(0.001);
        update hot set n = n + 1;
        end;
        \\endpipeline"""
    result = finished(load(server.connection(), script, clients=4, transactions_per_client=10, max_tries=1000))
    assert (result.totals.done, result.totals.failed) == (40, 0)
    assert result.totals.retries > 0
    assert server.execute("select n from hot") == [(40,)]


def test_a_row_longer_than_the_buffer_becomes_a_variable(server: Server, load: Load, finished: Finished) -> None:
    script = (
        "select repeat('x', 300000) as long \\gset\nselect length(:long) as n \\gset\n\\set check 1 / (:n - 299999)"
    )
    result = finished(load(server.connection(), script, transactions_per_client=2))
    assert (result.totals.done, result.errors) == (2, ())


def test_a_shell_keeps_no_other_client_waiting(server: Server, load: Load, finished: Finished) -> None:
    script = "\\if :client_id = 0\n\\shell sleep 1\n\\else\nselect 1;\n\\endif"
    result = finished(load(server.connection(), script, clients=2, duration_s=0.5))
    assert result.totals.done > 20
    assert result.errors == ()


def test_a_shell_that_does_not_end_is_killed_with_what_it_started(server: Server, load: Load, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"\\shell sleep 600 & echo $! $$ >> {pids}; wait"
    run = load(server.connection(), script, clients=1, duration_s=600.0, stop_timeout_s=0.1)
    run.start()
    while not (pids.exists() and pids.read_text().endswith("\n")):
        assert not run.wait(0.01)
    run.stop()
    assert run.wait(5.0)
    for pid in map(int, pids.read_text().split()):
        deadline = time.monotonic() + 5
        while _is_alive(pid):
            assert time.monotonic() < deadline


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_a_script_that_waits_for_nothing_in_most_transactions_can_be_stopped(server: Server, load: Load) -> None:
    script = "\\set x random(1, 1000000)\n\\if :x = 1\nselect 1;\n\\endif"
    run = load(server.connection(), script, clients=2, duration_s=600.0)
    run.start()
    assert not run.wait(0.2)
    run.stop()
    assert run.wait(5.0)


def test_debug_prints_what_pgbench_prints(
    server: Server, load: Load, finished: Finished, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = "\\set x debug(:client_id + 0.5)\n\\if debug(true) and debug(null) is null\n\\set y debug(-7)\n\\endif\n"
    result = finished(load(server.connection(), script, transactions_per_client=2))
    assert result.errors == ()
    ours = capfd.readouterr().err
    (tmp_path / "script.sql").write_text(script)
    server.pgbench("-n", "-t", "2", "-f", str(tmp_path / "script.sql"))
    assert ours.count("debug(") == 8
    assert server.pgbench_debugging("-n", "-t", "2", "-f", str(tmp_path / "script.sql")) == ours


def test_options_about_scripts_and_seeds() -> None:
    assert _native.script_weight("a@b.sql@3") == ("a@b.sql", 3)
    with pytest.raises(ValueError, match="invalid weight specification: @x"):
        _native.script_weight("a@x")
    name, description, source = _native.find_builtin("se")
    assert (name, description) == ("select-only", "<builtin: select only>")
    assert source == _native.builtin_script("select-only")
    with pytest.raises(ValueError, match='ambiguous builtin name: 2 builtin scripts found for prefix "s"'):
        _native.find_builtin("s")
    assert [name for name, _, _ in _native.builtin_scripts()] == ["tpcb-like", "simple-update", "select-only"]
    assert _native.random_seed("-1") == 2**64 - 1
    assert _native.random_seed("rand") != _native.random_seed("rand")
    assert abs(_native.random_seed("time") / 1e6 - time.time()) < 60
    with pytest.raises(ValueError, match='unrecognized random seed option "one"'):
        _native.random_seed("one")
