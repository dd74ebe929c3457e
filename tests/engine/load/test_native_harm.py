"""Connections that are cut, delayed and corrupted at every point, plain and encrypted: an error in time, and nothing else."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from certificates import Authority
from native_server import PASSWORD, Finished, Load, Server
from plinth import _native
from plinth.model.load import LoadResult
from plinth.system.conninfo import resolve
from plinth.system.owner import Owner
from plinth.system.runner import Runner
from proxy import Harm, Proxy, proxied
from servers import all_installations
from waiting import wait_until

HBA = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
MODES = ("disable", "require")


@pytest.fixture(scope="module")
def secured(owner: Owner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """PostgreSQL 17 on TCP with SCRAM, with and without TLS."""
    server = Server(all_installations(owner, Runner())["17"], owner, "ssl = on\n", HBA)
    issued = Authority(tmp_path_factory.mktemp("certificates") / "ours").issue("server", "localhost")
    for name, source in (("server.crt", issued.certificate), ("server.key", issued.key)):
        path = server.data / name
        path.write_bytes(source.read_bytes())
        path.chmod(0o600)
        server.own(path)
    server.start()
    server.execute(f"create role scram_user login password '{PASSWORD}'")
    yield server
    server.remove()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No default files of the user who runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path))


def through(proxy: Proxy, sslmode: str) -> dict[str, object]:
    """The engine's connection through a proxy."""
    where = f"host=127.0.0.1 port={proxy.port} dbname=postgres user=scram_user password='{PASSWORD}'"
    return resolve(f"{where} sslmode={sslmode}").for_engine()


@pytest.fixture(scope="module", params=MODES)
def spoken(request: pytest.FixtureRequest, secured: Server) -> tuple[str, dict[bool, int]]:
    """A mode, and how many bytes each side says in a login (and in a short load after it)."""
    with proxied(secured.port) as proxy:
        config = {"clients": 1, "threads": 1, "protocol": "simple", "seed": 1, "transactions_per_client": 1}
        script = {"name": "script", "source": "select 1;"}
        run = _native.LoadRun(json.dumps(config | {"connection": through(proxy, request.param), "scripts": [script]}))
        run.start()
        assert run.wait(20.0)
        return request.param, dict(proxy.passed_bytes)


def outcome(load: Load, finished: Finished, proxy: Proxy, sslmode: str, timeout_s: float) -> str:
    """Whether a client connected and did its work, in time: `done`, `lost`, or `refused`."""
    run = load(
        through(proxy, sslmode),
        "select 1;",
        transactions_per_client=1,
        connect_timeout_s=timeout_s,
        stop_timeout_s=0.1,
        protocol="simple",
    )
    began = time.monotonic()
    try:
        run.start()
    except _native.ConnectError as error:
        assert PASSWORD not in str(error)
        assert time.monotonic() - began < timeout_s + 5
        return "refused"
    if not run.wait(1.0):
        # A server that announces more than it sends looks like one that is slow: a stop ends it all the same.
        run.stop()
        assert run.wait(5.0), "it hangs"
    return "done" if '"done":1' in run.result() else "lost"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["close", "reset", "half-close"])
@pytest.mark.parametrize("from_server", [True, False])
def test_cut_at_every_point(
    secured: Server, spoken: tuple[str, dict[bool, int]], load: Load, finished: Finished, kind: str, from_server: bool
) -> None:
    sslmode, total = spoken
    points = sorted({0, 1, 5, *range(0, total[from_server] - 30, max(1, total[from_server] // 12))})
    seen = set()
    for after_bytes in points:
        with proxied(secured.port, Harm(kind, after_bytes, from_server)) as proxy:  # type: ignore[arg-type]
            seen.add(outcome(load, finished, proxy, sslmode, 10.0))
    # What is cut before the last answer never counts as done.
    assert seen <= {"refused", "lost"} if from_server else seen <= {"refused", "lost", "done"}
    assert "refused" in seen


def test_corrupted_at_every_point(
    secured: Server, spoken: tuple[str, dict[bool, int]], load: Load, finished: Finished
) -> None:
    sslmode, total = spoken
    step = max(1, total[True] // (25 if sslmode == "require" else 60))
    seen = []
    for after_bytes in range(0, total[True] - 10, step):
        with proxied(secured.port, Harm("corrupt", after_bytes)) as proxy:
            seen.append(outcome(load, finished, proxy, sslmode, 1.0))
    if sslmode == "require":
        # Every byte counts, but for the version that a record is said to have.
        assert seen.count("done") <= 2, seen
    assert "refused" in seen


@pytest.mark.parametrize("sslmode", MODES)
def test_silence_and_dripping_are_waited_for_no_longer_than_allowed(
    secured: Server, load: Load, finished: Finished, sslmode: str
) -> None:
    for after_bytes in (0, 1, 30):
        with proxied(secured.port, Harm("silence", after_bytes)) as proxy:
            run = load(through(proxy, sslmode), "select 1;", connect_timeout_s=0.3)
            with pytest.raises(_native.ConnectError, match=r"within 0\.3 s"):
                run.start()
    with proxied(secured.port, Harm("drip", 0, pause_s=0.02)) as proxy:
        run = load(through(proxy, sslmode), "select 1;", connect_timeout_s=0.5)
        with pytest.raises(_native.ConnectError, match=r"within 0\.5 s"):
            run.start()
    with proxied(secured.port, Harm("drip", 0)) as proxy:
        assert outcome(load, finished, proxy, sslmode, 20.0) == "done"


@pytest.mark.parametrize("sslmode", MODES)
@pytest.mark.parametrize(("kind", "words"), [("close", "closed"), ("reset", "reset"), ("half-close", "closed")])
def test_cut_within_a_long_answer(
    secured: Server, load: Load, finished: Finished, sslmode: str, kind: str, words: str
) -> None:
    with proxied(secured.port, Harm(kind, 300_000)) as proxy:  # type: ignore[arg-type]
        run = load(through(proxy, sslmode), "select repeat('x', 1000000);", transactions_per_client=1)
        result = finished(run)
    (error,) = result.errors
    assert (error.kind, error.statement, result.totals.failed) == ("connection_lost", 0, 1)
    assert words in error.message


@pytest.mark.long
def test_some_are_lost_and_the_others_continue(secured: Server, load: Load, finished: Finished) -> None:
    with proxied(secured.port) as proxy:
        run = load(through(proxy, "require"), "select 1;", clients=8, threads=2, duration_s=5.0)
        run.start()
        ours = "from pg_stat_activity where usename = 'scram_user'"
        wait_until(lambda: secured.execute(f"select count(*) {ours}") == [(8,)])  # those of the test before have ended
        secured.execute(f"select pg_terminate_backend(pid) from (select pid {ours} limit 3) p")
        assert run.wait(20.0)
    result = LoadResult.model_validate_json(run.result())
    assert sum(error.count for error in result.errors) == 3
    assert {error.kind for error in result.errors} == {"connection_lost"}
    assert result.series[-1].done > 0
