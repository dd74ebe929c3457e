"""`plinth bench --fleet`: pgbench's command line on several machines, by each executor."""

import itertools
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from both import Both
from certificates import Authority
from fleets import HOSTS, running_agents
from native_server import PASSWORD, Server
from own_sshd import Sshd
from plinth.model.connection import Connection
from plinth.model.load import FleetTrial
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from plinth.workload.tpcc_conditions import check_conditions
from ray_machines import Machine
from servers import all_installations
from waiting import wait_until

NOWHERE = Both({"PGHOST": "/nonexistent", "PGUSER": "nobody"})
COMMAND = f"--fleet-command={Path(sys.executable).with_name('plinth')}"
SSH = (f"--fleet={','.join(HOSTS)}", COMMAND)
Machines = Callable[[int], tuple[list[str], list[str]]]
ENCRYPTED = "SELECT 1 / ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid();\n"


@pytest.fixture
def ssh_home(sshd: Sshd, tmp_path: Path) -> dict[str, str]:
    """The environment of a user whose ssh reads a configuration that leads to the hosts."""
    folder = tmp_path / "home"
    folder.mkdir()
    return {"HOME": str(folder), "PATH": f"{sshd.programs}:{os.environ['PATH']}"}


@pytest.fixture
def place(connection: Connection) -> dict[str, str]:
    return {
        "PGHOST": connection.host,
        "PGPORT": str(connection.port),
        "PGUSER": connection.user,
        "PGDATABASE": connection.database,
    }


@pytest.fixture
def bench(place: dict[str, str], ssh_home: dict[str, str]) -> Both:
    return Both(place | ssh_home)


@pytest.fixture
def control(connection: Connection) -> Iterator[psycopg.Connection]:
    """A connection, and a table `drawn` for what clients draw."""
    with psycopg.connect(
        host=connection.host,
        port=connection.port,
        user=connection.user,
        dbname=connection.database,
        autocommit=True,
    ) as control:
        control.execute("CREATE TABLE drawn (client int, value bigint)")
        yield control
        control.execute("DROP TABLE drawn")


@pytest.fixture
def insert(tmp_path: Path) -> str:
    script = tmp_path / "insert.sql"
    script.write_text("\\set value random(1, :most)\nINSERT INTO drawn VALUES (:client_id, :value);\n")
    return str(script)


def _drawn(control: psycopg.Connection) -> list[tuple[int, int]]:
    rows = control.execute("SELECT * FROM drawn ORDER BY 1, 2").fetchall()
    control.execute("TRUNCATE drawn")
    return rows


def _without_figures(report: str) -> list[str]:
    return re.sub(r"\d+(\.\d+)?", "N", report).splitlines()


@pytest.fixture(params=["local", *(pytest.param(executor, marks=pytest.mark.long) for executor in ("ssh", "ray"))])
def machines(request: pytest.FixtureRequest) -> Machines:
    """The words for so many machines, by each executor, and their names."""
    match request.param:
        case "local":
            return lambda count: ([f"--fleet={count}"], [f"local-{number}" for number in range(1, count + 1)])
        case "ssh":
            return lambda count: ([f"--fleet={','.join(HOSTS[:count])}", COMMAND], [*HOSTS[:count]])
        case _:
            address = request.getfixturevalue("ray_address")
            # The coordinator is on the first machine, which is taken last.
            return lambda count: ([f"--fleet={count}@{address}"], ["machine2", "machine3", "machine1"][:count])


def test_the_report_is_that_of_one_engine_and_has_the_machines_below(
    machines: Machines, bench: Both, control: psycopg.Connection, insert: str, tmp_path: Path
) -> None:
    words, names = machines(3)
    file = tmp_path / "all.json"
    asked = ["-n", "-f", insert, "-D", "most=1000000000", "-c", "6", "-t", "20", "-M", "prepared", "-r"]
    asked += ["--random-seed=7", "--percentiles=50,99.9"]
    alone = bench.plinth(*asked, "-j", "3")
    expected = _drawn(control)
    reported = bench.plinth(*asked, *words, f"--json={file}")
    assert (alone.code, reported.code) == (0, 0), reported.err
    assert _drawn(control) == expected and len(expected) == 6 * 20
    whole, _, below = reported.out.partition("number of machines: 3\n")
    assert _without_figures(whole) == _without_figures(alone.out)
    assert "number of transactions actually processed: 120/120\n" in whole and "number of threads: 3\n" in whole
    assert "INSERT INTO drawn" in whole
    assert re.findall(r"^machine (\S+): 2 clients, 1 thread$", below, re.MULTILINE) == names
    assert re.findall(r" - number of transactions actually processed: (\d+) \(tps = \d+\.\d+\)", below) == ["40"] * 3
    fleet = FleetTrial.model_validate(json.loads(file.read_text())["fleet"])
    assert [one.measured.done for one in fleet.machines] == [40] * 3
    (skew_ms,) = re.findall(r"^start skew of the machines = (\S+) ms$", below, re.MULTILINE)
    assert float(skew_ms) == pytest.approx((fleet.skew_ns or 0) / 1e6, abs=0.001)
    assert ("warning: fleet start" in reported.err) == (fleet.excluded is not None)


def test_an_open_loop_reports_its_progress_and_what_it_skipped(
    bench: Both, control: psycopg.Connection, insert: str
) -> None:
    words = [
        "-n",
        "-f",
        insert,
        "-D",
        "most=9",
        "-c",
        "4",
        "-R",
        "200",
        "-T",
        "3",
        "--warmup=1",
        "-P",
        "1",
        "-L",
        "500",
    ]
    reported = bench.plinth(*words, "--fleet=2", "--progress-timestamp")
    assert reported.code == 0, reported.err
    lines = [line for line in reported.err.splitlines() if line.startswith("progress: ")]
    # The last second is shorter where nothing more was due; then it is in the final report only.
    assert len(lines) in (2, 3) and all(
        re.search(r"[1-9]\d*\.\d tps, lat .*, 0 failed, lag .* ms, \d+ skipped", line) for line in lines
    )
    times = [float(line.split()[1]) for line in lines]
    assert [round(later - first) for first, later in itertools.pairwise(times)] == [1] * (len(lines) - 1)
    (done,) = re.findall(r"^number of transactions actually processed: (\d+)$", reported.out, re.MULTILINE)
    machines = re.findall(r" - number of transactions actually processed: (\d+) ", reported.out)
    assert sum(map(int, machines)) == int(done) and 450 < int(done) < 750
    assert "rate limit schedule lag: avg" in reported.out and "number of transactions skipped: " in reported.out
    assert len(_drawn(control)) >= int(done)


@pytest.mark.long
def test_tpcc_in_both_forms(machines: Machines, bench: Both, control: psycopg.Connection) -> None:
    two, names = machines(2)
    assert bench.plinth("-i", "-q", "-b", "tpcc").code == 0
    try:
        before = control.execute("SELECT sum(d_next_o_id) FROM district").fetchone()
        done = 0
        for form in ("statements", "procedures"):
            words = ["-b", "tpcc", f"--form={form}", "-c", "4", "-t", "50", "--max-tries=50", "--json=-"]
            reported = bench.plinth(*words, *two)
            assert reported.code == 0, reported.err
            everything = json.loads(reported.out)
            # A deck of 100 cards for each machine's thread of 100 transactions: the mix is exact.
            assert [one["measured"]["done"] for one in everything["scripts"]] == [90, 86, 8, 8, 8]
            assert (
                "new orders per minute (NOPM) = " in reported.err and f"machine {names[1]}: 2 clients" in reported.err
            )
            orders = everything["scripts"][0]["measured"]
            done += orders["done"] - orders["rolled_back"]
        after = control.execute("SELECT sum(d_next_o_id) FROM district").fetchone()
        assert before is not None and after is not None and after[0] - before[0] == done
        assert [check.got for check in check_conditions(control, initial=False) if not check.ok] == []
    finally:
        assert bench.plinth("-i", "-b", "tpcc", "-I", "d").code == 0


@pytest.fixture(scope="module")
def encrypting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Authority]]:
    """A server that speaks TLS on 127.0.0.1, and the authority of its certificate."""
    with _encrypting(tmp_path_factory, "127.0.0.1", "127.0.0.1/32") as running:
        yield running


@pytest.fixture
def encrypting_there(
    ray_address: str, ray_cluster: list[Machine], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Authority]]:
    """One on the first machine of the Ray cluster, whose network the others have."""
    address = ray_cluster[0].address
    with _encrypting(tmp_path_factory, address, f"{address}/24") as running:
        yield running


@contextmanager
def _encrypting(folders: pytest.TempPathFactory, address: str, clients: str) -> Iterator[tuple[Server, Authority]]:
    owner = server_owner()
    authority = Authority(folders.mktemp("certificates") / "ours")
    issued = authority.issue("good", "localhost", f"DNS:localhost,IP:{address}")
    settings = f"ssl = on\nlisten_addresses = '{address}'\n"
    hba = f"local all all trust\nhostssl all tls_user {clients} scram-sha-256\n"
    server = Server(all_installations(owner, Runner())["17"], owner, settings, hba)
    for name, source in (("server.crt", issued.certificate), ("server.key", issued.key)):
        path = server.data / name
        path.write_bytes(source.read_bytes())
        path.chmod(0o600)
        server.own(path)
    server.start()
    try:
        server.execute(f"create role tls_user login password '{PASSWORD}'")
        yield server, authority
    finally:
        server.remove()


@pytest.fixture
def encrypted(encrypting: tuple[Server, Authority], ssh_home: dict[str, str]) -> Both:
    """bench with a verified connection to it, whose password is in .pgpass alone."""
    return Both(ssh_home | _place_of_tls(*encrypting, "localhost", Path(ssh_home["HOME"]) / ".pgpass"))


def _place_of_tls(server: Server, authority: Authority, host: str, pgpass: Path) -> dict[str, str]:
    pgpass.write_text(f"{host}:*:*:tls_user:{PASSWORD}\n")
    pgpass.chmod(0o600)
    place = {"PGHOST": host, "PGPORT": str(server.port), "PGUSER": "tls_user", "PGDATABASE": "postgres"}
    verified = {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": str(authority.certificate)}
    return place | verified | {"PGPASSFILE": str(pgpass)}


@pytest.mark.long
def test_machines_of_ray_reach_a_server_by_tls(
    encrypting_there: tuple[Server, Authority], ray_address: str, ray_cluster: list[Machine], tmp_path: Path
) -> None:
    script = tmp_path / "encrypted.sql"
    script.write_text(ENCRYPTED)
    place = _place_of_tls(*encrypting_there, ray_cluster[0].address, tmp_path / "pgpass")
    reported = Both(place).plinth("-n", "-f", str(script), "-c", "3", "-t", "5", f"--fleet=3@{ray_address}")
    assert reported.code == 0, reported.err
    assert "number of transactions actually processed: 15/15\n" in reported.out


@pytest.mark.long
def test_ctrl_c_ends_all_machines_with_a_report_and_the_password_was_in_memory_only(
    encrypted: Both, tmp_path: Path
) -> None:
    """Over ssh and TLS."""
    script = tmp_path / "encrypted.sql"
    script.write_text(ENCRYPTED)
    before = running_agents()
    child = encrypted.start_plinth("-n", "-f", str(script), "-c", "6", "-T", "600", "-P", "1", *SSH)
    assert child.stderr is not None
    said = ""
    while not said.startswith("progress:"):
        said = child.stderr.readline()
        assert child.poll() is None, said
    seen = b"".join(_bytes(file) for name in ("cmdline", "environ") for file in Path("/proc").glob(f"[0-9]*/{name}"))
    agents = running_agents() - before
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert len(agents) == 3 and b"plinth\0agent" in seen and PASSWORD.encode() not in seen
    assert child.returncode == -signal.SIGINT
    assert err.endswith("error: Run was interrupted; the above results are incomplete.\n")
    (done,) = re.findall(r"^number of transactions actually processed: (\d+)$", out, re.MULTILINE)
    machines = re.findall(r" - number of transactions actually processed: (\d+) ", out)
    assert sum(map(int, machines)) == int(done) > 0 and len(machines) == 3
    assert "number of failed transactions: 0 " in out


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes() if file.is_file() else b""
    except OSError:  # it has ended
        return b""


def test_a_machine_whose_localhost_is_its_own_does_not_reach_the_server(encrypted: Both, tmp_path: Path) -> None:
    """Agents in a network namespace of their own: as on another machine, 127.0.0.1 is not the server's."""
    script = tmp_path / "one.sql"
    script.write_text("SELECT 1;\n")
    command = tmp_path / "plinth-elsewhere"
    options = "-n" if os.geteuid() == 0 else "-rn"
    command.write_text(
        f'#!/bin/sh\nexec unshare {options} sh -c \'ip link set lo up; exec "$0" "$@"\' '
        f'{Path(sys.executable).with_name("plinth")} "$@"\n'
    )
    command.chmod(0o755)
    reported = encrypted.plinth("-n", "-f", str(script), "-c", "3", "--fleet=client1", f"--fleet-command={command}")
    assert reported.code == 1
    assert 'error: machine client1: connection to server at "127.0.0.1", port' in reported.err
    assert "Connection refused" in reported.err
    assert "hint: Each machine looks for the server at localhost of its own: give -h" in reported.err


def test_a_server_that_has_no_room_is_no_matter_of_its_address(
    encrypted: Both, encrypting: tuple[Server, Authority], tmp_path: Path
) -> None:
    script = tmp_path / "one.sql"
    script.write_text("SELECT 1;\n")
    server, _ = encrypting
    server.execute("alter role tls_user connection limit 1")
    try:
        refused = encrypted.plinth("-n", "-f", str(script), "-c", "3", *SSH)
    finally:
        server.execute("alter role tls_user connection limit -1")
    assert refused.code == 1 and "hint" not in refused.err
    assert re.search(
        r'error: machine client\d: connection to server at "\S+", port \d+ failed: FATAL:  too many', refused.err
    )


def test_a_machine_that_is_lost_is_named_with_what_it_said_last(
    bench: Both, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONFAULTHANDLER", "1")
    script = tmp_path / "sleep.sql"
    script.write_text("SELECT pg_sleep(0.01);\n")
    before = running_agents()
    child = bench.start_plinth("-n", "-f", str(script), "-c", "4", "-T", "600", "-P", "1", "--fleet=2")
    assert child.stderr is not None
    while not child.stderr.readline().startswith("progress:"):
        assert child.poll() is None
    os.kill(max(running_agents() - before), signal.SIGABRT)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 2 and "tps = " not in out
    assert re.search(r"error: the agent on machine local-\d is lost: the connection has ended", err, re.MULTILINE)
    assert "in _run_module_as_main" in err, "the end of what it printed"


@pytest.mark.parametrize(
    "machines", [pytest.param(["--fleet=3"], id="local"), pytest.param(SSH, id="ssh", marks=pytest.mark.long)]
)
def test_agents_end_with_a_bench_that_is_killed(bench: Both, tmp_path: Path, machines: list[str]) -> None:
    script = tmp_path / "sleep.sql"
    script.write_text("SELECT pg_sleep(0.01);\n")
    before = running_agents()
    child = bench.start_plinth("-n", "-f", str(script), "-c", "3", "-T", "600", "-P", "1", *machines)
    assert child.stderr is not None
    while not child.stderr.readline().startswith("progress:"):
        assert child.poll() is None
    assert len(running_agents() - before) == 3
    child.kill()
    child.communicate()
    wait_until(lambda: running_agents() <= before)


def test_a_client_that_ends_the_run_ends_it_on_all_machines(bench: Both, tmp_path: Path) -> None:
    script = tmp_path / "aborts.sql"
    script.write_text("SELECT pg_sleep(0.01), 1 / :client_id;\n")
    reported = bench.plinth("-n", "-f", str(script), "-c", "4", "-T", "100", "--exit-on-abort", "--fleet=2")
    assert reported.code == 2
    assert "client 0 script 0 aborted in command 0 query 0: ERROR:  division by zero" in reported.err
    assert reported.err.endswith("error: Run was aborted due to an error in thread 0\n")


def test_shell_commands_run_on_the_machines_and_never_as_root(
    bench: Both, control: psycopg.Connection, tmp_path: Path
) -> None:
    script = tmp_path / "shell.sql"
    script.write_text("\\setshell uid id -u\nINSERT INTO drawn VALUES (:client_id, :uid);\n")
    reported = bench.plinth("-n", "-f", str(script), "-c", "2", "-t", "1", "--fleet=2")
    assert reported.code == 0, reported.err
    assert _drawn(control) == [(0, server_owner().uid), (1, server_owner().uid)]
    assert "warning: shell commands of scripts run on each machine of the fleet, never as root" in reported.err


REFUSED = [
    ("--fleet=0", "--fleet must be in range 1..1000"),
    ("--fleet=1001", "--fleet must be in range 1..1000"),
    ("--fleet=-3", "--fleet must be in range 1..1000"),
    ("--fleet=", "'' is no host"),
    ("--fleet=client1,,client2", "'' is no host"),
    ("--fleet='client1 client2'", "'client1 client2' is no host"),
    ("--fleet=-oProxyCommand=x", "'-oProxyCommand=x' is no host"),
    ("--fleet=client1,client1 -c 2", "a host is named twice"),
    ("--fleet=client1 --fleet-command='plinth; rm x'", "--fleet-command: got 'plinth; rm x'"),
    ("--fleet=3 -c 3 --fleet-command=plinth", "processes of this machine have none"),
    ("--fleet-command=plinth", "--fleet-command is allowed only under --fleet"),
    ("--fleet=3 -c 2", "got 2 for -c/--client with a fleet of 3 machines"),
    ("--fleet=client1,client2", "got 1 for -c/--client with a fleet of 2 machines"),
    ("--fleet=2 -c 2 -l", "-l/--log cannot be used with --fleet"),
    ("--fleet=2 -c 2 -f latin1.sql", 'script "latin1.sql" has bytes that are not UTF-8'),
    ("--fleet=2 -c 2 -D name=\udce9", "-D name has bytes that are not UTF-8"),
    ("-i --fleet=2", "cannot be used in initialization (-i) mode"),
    ("--flee=2 -c 2", "unrecognized option '--flee'"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED, ids=[words for words, _ in REFUSED])
def test_what_no_fleet_can_do_is_refused_before_anything_connects(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "latin1.sql").write_bytes("SELECT 'caf\u00e9';\n".encode("latin-1"))
    monkeypatch.chdir(tmp_path)
    refused = NOWHERE.plinth(*shlex.split(words))
    assert (refused.code, refused.out) == (1, "")
    assert message in refused.err and "connection to server" not in refused.err


def test_hosts_without_ssh_name_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plinth.system.runner._environment", lambda owner: {"PATH": "/nowhere"})
    refused = NOWHERE.plinth("--fleet=client1")
    assert refused.code == 1
    assert "ssh: there is no such program" in refused.err and "openssh-client" in refused.err
