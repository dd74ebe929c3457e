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

import pytest

from both import Both, shape, words_of
from native_server import PASSWORD, Server


@pytest.mark.long
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
select pg_sleep(0.05);
\\endpipeline
"""


def test_every_command_is_timed_as_pgbench_does(both: Both, tmp_path: Path) -> None:
    script, reported = tmp_path / "own.sql", tmp_path / "told.json"
    script.write_text(COMMANDS)
    words = ("-n", "-f", str(script), "-t", "3", "-M", "extended", "-r")
    ours, theirs = both.plinth(*words, f"--json={reported}"), both.pgbench(*words)
    assert shape(ours.out) == shape(theirs.out)
    # The server may begin the pipeline's query before a busy machine lets the client wait for its end.
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


def test_one_transaction_has_no_spread_and_no_percentile_above_it(both: Both) -> None:
    reported = both.plinth("-n", "-S", "-t", "1", "-P", "5", "--percentiles=1,100").out
    (mean,) = re.findall(r"^latency average = (\S+) ms$", reported, re.MULTILINE)
    assert "latency stddev = 0.000 ms\n" in reported
    assert re.findall(r"^latency p\S+ = (\S+) ms$", reported, re.MULTILINE) == [mean, mean]


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


def test_debug_shows_the_circumstances(both: Both) -> None:
    words = ("-n", "-S", "-c", "2", "-T", "1", "--debug")
    ours, theirs = both.plinth(*words), both.pgbench(*words)
    assert words_of(ours.err).splitlines()[0] == words_of(theirs.err).splitlines()[0]


def test_extensions_to_pgbench(both: Both, tmp_path: Path) -> None:
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
    assert done[:3] == pytest.approx([100, 200, 50], abs=20)  # on a busy machine some end a moment after their second
    assert "rate limit schedule lag: avg" in reported.out
