"""Instructions that the engine's own code runs for a transaction: what a clock cannot see on a machine that is shared.

callgrind counts them in the loop that serves clients, for one client and a real server; without the turn of each second,
and without the room that a first long latency needs. Counts of two runs of different lengths leave only what is done for
every transaction: the same to the instruction from run to run, on a busy machine too, and other with another compiler,
which is what the tolerance is for. benchmarks/instructions.json keeps what they were.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from native_server import Server
from plinth import _native
from plinth.workload.commit_ledger_check import prepare_ledger_tables

KEPT = json.loads((Path(__file__).parents[3] / "benchmarks" / "instructions.json").read_text())
TOLERANCE = 0.10
SHORT, LONG = 300, 1_300

LOADS = """\
import json, sys
from plinth import _native
for config in json.load(sys.stdin):
    run = _native.LoadRun(json.dumps(config))
    run.start()
    assert run.wait(300.0)
    done = json.loads(run.result())["totals"]["done"]
    assert done == config["transactions_per_client"]
"""


LEDGER = " with a ledger"


def config(server: Server, name: str, transactions: int, folder: Path) -> dict[str, Any]:
    """A load of one of pgbench's scripts, by its name, perhaps with the commit ledger behind it."""
    script = name.removesuffix(LEDGER)
    ledger = folder / f"{name} {transactions}"
    if keeps_ledger := script != name:
        ledger.mkdir()
    return {
        "connection": server.connection(),
        "clients": 1,
        "threads": 1,
        "protocol": "prepared",
        "scripts": [{"name": script, "source": _native.builtin_script(script)}],
        "variables": {"scale": "1"},
        "transactions_per_client": transactions,
        "seed": 1,
        # Numbers follow one another, since all loads work on the same tables.
        "ledger": {"folder": str(ledger), "first_number": transactions} if keeps_ledger else None,
    }


def instructions(configs: list[dict[str, Any]], folder: Path) -> list[int]:
    """Instructions of each load, all run by one process."""
    argv = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
    loop, left_out = "plinth_load::worker::Worker::serve_all*", ("*Recorder::turn_over*", "*Latencies::grow*")
    argv += [f"--toggle-collect={function}" for function in (loop, *left_out)]
    # A file for each thread that ends: those that connect, in which nothing is counted, and those that serve.
    argv += ["--dump-after=*__rust_begin_short_backtrace*", sys.executable, "-c", LOADS]
    done = subprocess.run(argv, input=json.dumps(configs), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    dumps = sorted(folder.glob("out.*"), key=lambda path: int(path.suffix[1:]))
    totals = [int(re.findall(r"^totals: (\d+)", dump.read_text(), re.MULTILINE)[0]) for dump in dumps]
    counts = [total for total in totals if total > 0]
    assert len(counts) == len(configs), "are the functions still called what is said here?"
    return counts


@pytest.mark.parametrize("server", ["18"], indirect=True)
def test_instructions_per_transaction_are_what_they_were(server: Server, tmp_path: Path) -> None:
    with server.connect() as control:
        prepare_ledger_tables(control, clients=1)
    configs = [config(server, script, transactions, tmp_path) for script in KEPT for transactions in (SHORT, LONG)]
    counts = instructions(configs, tmp_path)
    for script, short, long in zip(KEPT, counts[::2], counts[1::2], strict=True):
        each = (long - short) / (LONG - SHORT)
        print(f"{script}: {each:.0f} instructions a transaction; {KEPT[script]} were kept")
        assert each < KEPT[script] * (1 + TOLERANCE), "the engine has become dearer; find out why"
        assert each > KEPT[script] * (1 - TOLERANCE), "the engine has become cheaper: keep the new figure"
