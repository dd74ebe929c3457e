"""A run as an object: its states, its stop, its threads, its signals, and the stub that describes it."""

import ast
import inspect
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

import plinth
from native_server import Finished, Load, Server
from plinth import _native
from plinth.model.load import LoadResult
from waiting import wait_until


def test_stop_keeps_what_was_done(server: Server, load: Load) -> None:
    server.pgbench("-i", "-q", "-I", "g")
    source = _native.builtin_script("tpcb-like")
    run = load(server.connection(), source, variables={"scale": "1"}, clients=4, threads=2, duration_s=600.0)
    run.start()
    while json.loads(run.progress())["done"] < 50:
        assert not run.wait(0.01)
    began = time.monotonic()
    run.stop()
    assert run.wait(10.0)
    assert time.monotonic() - began < 5.0
    result = LoadResult.model_validate_json(run.result())
    assert result.interrupted
    assert (result.totals.open, result.totals.failed, result.errors) == (0, 0, ())
    assert server.execute("select count(*) from pgbench_history") == [(result.totals.done,)]


def test_stop_cuts_off_what_does_not_end(server: Server, load: Load) -> None:
    scripts = [{"name": "slow", "source": "select pg_sleep(5);"}, {"name": "sleepy", "source": "\\sleep 60 s\n"}]
    run = load(server.connection(), scripts=scripts, clients=6, threads=2, duration_s=600.0, stop_timeout_s=0.3)
    run.start()
    run.stop()
    assert run.wait(3.0)
    result = LoadResult.model_validate_json(run.result())
    assert (result.totals.open, result.totals.scheduled) == (6, 6)
    assert (result.interrupted, result.errors) == (True, ())


def test_a_flood_of_rows_keeps_nobody_from_working(server: Server, load: Load) -> None:
    script = "select generate_series(1, case when :client_id = 0 then 2000000000 else 1 end);"
    run = load(server.connection(), script, clients=2, duration_s=600.0, stop_timeout_s=0.3)
    run.start()
    while json.loads(run.progress())["done"] < 100:
        assert not run.wait(0.01)
    run.stop()
    assert run.wait(5.0)
    result = LoadResult.model_validate_json(run.result())
    assert (result.totals.open, result.errors) == (1, ())


def test_stop_before_the_start_runs_nothing(server: Server, load: Load, finished: Finished) -> None:
    run = load(server.connection(), "select 1;", clients=3)
    run.stop()
    result = finished(run)
    assert (result.totals.scheduled, result.interrupted, result.series) == (0, True, ())


def test_stop_after_the_end_changes_nothing(server: Server, load: Load, finished: Finished) -> None:
    run = load(server.connection(), "select 1;", transactions_per_client=3)
    result = finished(run)
    run.stop()
    assert not result.interrupted
    assert type(result).model_validate_json(run.result()) == result


def test_the_duration_lets_running_transactions_finish(server: Server, load: Load, finished: Finished) -> None:
    result = finished(load(server.connection(), "select pg_sleep(0.7);", clients=2, duration_s=0.3))
    assert (result.measured.done, result.totals.open) == (2, 0)
    assert result.measured_ns >= 700_000_000
    assert not result.interrupted


def test_calls_at_the_wrong_time(server: Server, load: Load, finished: Finished) -> None:
    run = load(server.connection(), "select 1;", transactions_per_client=1)
    assert json.loads(run.progress())["phase"] == "connect"
    with pytest.raises(_native.EngineError, match="not started"):
        run.result()
    finished(run)
    with pytest.raises(_native.EngineError, match="started before"):
        run.start()
    for timeout_s in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="timeout_s"):
            run.wait(timeout_s)
    assert run.wait(float("inf"))


def test_a_result_before_the_end_is_refused(server: Server, load: Load) -> None:
    run = load(server.connection(), "select 1;", duration_s=600.0)
    run.start()
    assert not run.wait(0.0)
    with pytest.raises(_native.EngineError, match="has not ended"):
        run.result()


def test_a_run_that_is_dropped_ends(server: Server) -> None:
    config = {
        "connection": server.connection(application_name="dropped"),
        "clients": 2,
        "threads": 1,
        "protocol": "simple",
        "scripts": [{"name": "s", "source": "select 1;"}],
        "duration_s": 600.0,
        "seed": 1,
    }
    run = _native.LoadRun(json.dumps(config))
    run.start()
    del run
    sessions = "select count(*) from pg_stat_activity where application_name = 'dropped'"
    wait_until(lambda: server.execute(sessions) == [(0,)])


def test_handles_may_be_used_from_several_threads(server: Server, load: Load) -> None:
    run = load(server.connection(), "select 1;", clients=2, threads=2, duration_s=0.7)
    run.start()
    polls = [0, 0, 0]

    def poll(index: int) -> None:
        while not run.wait(0.01):
            json.loads(run.progress())
            polls[index] += 1

    threads = [threading.Thread(target=poll, args=(index,)) for index in range(3)]
    ticks = 0
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.01)
        ticks += 1
    assert ticks > 10, "Python runs while the others wait"
    assert all(count > 5 for count in polls)


def test_ctrl_c_ends_a_wait_and_the_run_can_be_stopped(server: Server, load: Load) -> None:
    run = load(server.connection(), "select 1;", clients=2, duration_s=600.0)
    run.start()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run.wait(60.0)
    timer.join()
    run.stop()
    assert run.wait(10.0)
    result = LoadResult.model_validate_json(run.result())
    assert result.interrupted
    assert result.totals.done > 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clients": 0}, "clients: got 0"),
        ({"cleints": 1}, "unknown field `cleints`"),
        ({"protocol": "binary"}, "unknown variant `binary`"),
        ({"duration_s": None}, "exactly one of"),
        ({"connection": {"host": "/"}}, "missing field `port`"),
    ],
)
def test_configurations_that_make_no_sense(load: Load, changes: dict[str, object], words: str) -> None:
    connection = {"host": "/tmp", "port": 5432, "user": "u", "database": "d"}
    config = {"connection": connection, "script": "select 1;"} | changes
    with pytest.raises(_native.ConfigError, match=words):
        load(**config)


def test_errors_in_scripts_have_a_place(load: Load) -> None:
    connection = {"host": "/tmp", "port": 5432, "user": "u", "database": "d"}
    with pytest.raises(_native.ScriptError) as raised:
        load(connection, "select 1;\n\\set x 1 +\n")
    assert (raised.value.file, raised.value.line) == ("script", 2)
    assert raised.value.column >= 1
    assert raised.value.message
    with pytest.raises(_native.ScriptError) as raised:
        load(connection, "\\set aid 1\nselect :aidd;\n")
    assert (raised.value.line, raised.value.hint) == (2, "did you mean :aid?")


def test_parse_script_shows_what_is_in_it() -> None:
    parsed = json.loads(_native.parse_script("s", "\\set a :scale\nselect :a,\n :b;\nselect 2;\n", ["scale"]))
    assert parsed["variables_used"] == ["scale", "a", "b"]
    assert [(one["index"], one["line"]) for one in parsed["statements"]] == [(0, 2), (1, 4)]
    with pytest.raises(_native.ScriptError, match="scale"):
        _native.parse_script("s", "\\set a :scale\n", [])
    with pytest.raises(ValueError, match="tpcb-like, simple-update, select-only"):
        _native.builtin_script("tpcc")


def test_the_stub_describes_the_module() -> None:
    stub = ast.parse((Path(plinth.__file__).parent / "_native.pyi").read_text())
    described = {node.name: node for node in stub.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    public = {name for name in vars(_native) if not name.startswith("_")}
    assert set(described) == public
    for name, node in described.items():
        real = getattr(_native, name)
        if isinstance(node, ast.FunctionDef):
            assert list(inspect.signature(real).parameters) == [argument.arg for argument in node.args.args], name
            continue
        bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
        assert bases <= {base.__name__ for base in real.__mro__}, name
        methods = {method.name: method for method in node.body if isinstance(method, ast.FunctionDef)}
        real_methods = {method for method in vars(real) if not method.startswith("__")}
        assert set(methods) - {"__new__"} == real_methods, name
        for method_name in real_methods:
            parameters = list(inspect.signature(getattr(real, method_name)).parameters)
            assert parameters == [argument.arg for argument in methods[method_name].args.args], method_name
