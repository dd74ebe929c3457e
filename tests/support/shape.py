"""A curated experiment, cut down and run by the command: its figures, one variant against the other."""

import json
import os
import statistics
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from prepared_plinth import run_prepared

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


class Trial(NamedTuple):
    """What a trial came to. `written_bytes` and `flushes` are by device, as in loop3."""

    tps: float
    written_bytes: dict[str, int]
    flushes: dict[str, int]


class Shape:
    """The trials of an experiment by variant."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        self.trials: dict[str, list[Trial]] = defaultdict(list)
        for path in sorted(bundle.glob("trials/[0-9]*/trial.json")):
            trial = json.loads(path.read_text())
            assert trial["status"] == "complete", trial["failure"]
            written = {device["device"]: device["written_bytes"] for device in trial["devices"]}
            flushes = {device["device"]: device["flushes"] for device in trial["devices"]}
            self.trials[trial["variant"]].append(Trial(trial["tps"], written, flushes))

    def tps(self, variant: str) -> float:
        """The median of its trials."""
        return statistics.median(trial.tps for trial in self.trials[variant])

    def ratio(self, variant: str, to: str) -> float:
        """How many times the transactions of `to` it does in a second."""
        return self.tps(variant) / self.tps(to)

    def devices(self, storage: str) -> list[str]:
        """The kernel's names of the loop devices that a storage is."""
        facts = json.loads((self.bundle / "env" / f"storage-{storage}.json").read_text())
        return [device for device in facts["block_devices"] if device.startswith("loop")]

    def written_bytes(self, variant: str, storage: str) -> list[int]:
        """What went to each device of `storage` in all trials of `variant`."""
        return [sum(trial.written_bytes[device] for trial in self.trials[variant]) for device in self.devices(storage)]

    def flushes(self, variant: str, storage: str) -> list[int]:
        """How often each device of `storage` was told to flush, in all trials of `variant`."""
        return [sum(trial.flushes[device] for trial in self.trials[variant]) for device in self.devices(storage)]


def plinth(scratch: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command with its state in `scratch`."""
    environment = {**os.environ, "NO_COLOR": "1", "PLINTH_STATE_DIR": str(scratch / "state")}
    return run_prepared(words, None, environment, timeout_s=1800)


def run_shape(scratch: Path, experiment: str, *changes: str) -> Shape:
    """Run experiments/`experiment`.toml with these --set, each KEY=VALUE, for a few trials of each variant."""
    bundle = scratch / "bundle"
    few = ("measure.repeats=2", "measure.aa=false")
    sets = [word for change in (*few, *changes) for word in ("--set", change)]
    done = plinth(scratch, "run", EXPERIMENTS / f"{experiment}.toml", "--bundle", bundle, *sets)
    undecided = 3  # two trials allow no verdict
    assert done.returncode == undecided, done.stderr
    print(done.stdout)
    return Shape(bundle)
