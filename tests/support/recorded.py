"""Trials whose bottleneck is known by construction, as recorded on an idle machine: what attribution is given of each.

`.venv/bin/python tests/support/recorded.py` records them again, in about two minutes, and refuses what attribution gets wrong.
"""

import gzip
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

import known_replication
from known import IN_MEMORY, IN_MEMORY_CASES, ON_SLOW_DISKS, ON_SLOW_DISKS_CASES, Cases, Silent, levels_of, run_cases
from plinth.analyse.attribution import SOURCES, attribute
from plinth.analyse.window import measured_phase
from plinth.bundle import read_bundle
from plinth.model.base import SettingValue
from plinth.model.bottleneck import Bottleneck
from plinth.model.plan import Plan
from plinth.model.trial import Points, Samples, Trial
from plinth.run.listener import Listener

FOLDER = Path(__file__).parent.parent / "attribution" / "recorded"


class Experiment(NamedTuple):
    """An experiment with its cases, and by levels what the sentence of a bottleneck ends with, where that is known."""

    text: str
    cases: Cases
    listener: Callable[[Plan], Listener]
    endings: Mapping[tuple[str, ...], str]


EXPERIMENTS = {
    "in-memory": Experiment(IN_MEMORY, IN_MEMORY_CASES, lambda plan: Silent(), {}),
    "on-slow-disks": Experiment(ON_SLOW_DISKS, ON_SLOW_DISKS_CASES, lambda plan: Silent(), {}),
    "replication": Experiment(
        known_replication.EXPERIMENT,
        known_replication.CASES,
        known_replication.Conflicting,
        known_replication.EXPECTED,
    ),
}


class RecordedTrial(NamedTuple):
    """What attribution is given of a trial, and what it must find."""

    levels: tuple[str, ...]
    kind: str
    ending: str
    trial: Trial
    samples: Samples
    cores: int
    clients: int
    is_open: bool
    settings: Mapping[str, SettingValue]

    def bottleneck(self) -> Bottleneck:
        """What attribution finds."""
        seen = measured_phase(self.trial, self.samples)
        return attribute(self.trial, seen, self.cores, self.clients, self.is_open, settings=self.settings)

    def is_found(self, found: Bottleneck) -> bool:
        """Whether it finds what the trial was made to have."""
        return found.kind == self.kind and found.sentence.endswith(self.ending)


def recorded_trials() -> Iterator[RecordedTrial]:
    """Every trial that is kept."""
    for name in EXPERIMENTS:
        for kept in json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes())):
            samples = {
                tuple(key): Points(np.array(t_ns, np.int64), np.array(values)) for key, t_ns, values in kept["samples"]
            }
            yield RecordedTrial(
                **{
                    **kept,
                    "levels": tuple(kept["levels"]),
                    "trial": Trial.model_validate(kept["trial"]),
                    "samples": samples,
                }
            )


def _record(name: str, folder: Path) -> None:
    of = EXPERIMENTS[name]
    run_cases(folder, of.text, of.cases, 1, of.listener)
    contents = read_bundle(folder / "bundle")
    variants = {variant.id: variant for variant in contents.plan.variants}
    kept = []
    for measured in contents.trials:
        variant = variants[measured.trial.variant]
        levels = levels_of(variant)
        samples = {key: points for key, points in measured.read_samples().items() if key[0] in SOURCES}
        trial = RecordedTrial(
            levels,
            of.cases[levels][0],
            of.endings.get(levels, ""),
            measured.trial,
            samples,
            contents.host.cores,
            variant.workload.clients,
            variant.workload.rate is not None,
            contents.as_in_force(variant).settings,
        )
        found = trial.bottleneck()
        if not trial.is_found(found):
            sys.exit(f"{name}, {', '.join(levels)}: expected {trial.kind} {trial.ending}, found: {found.sentence}")
        kept.append(
            {
                **trial._asdict(),
                "trial": measured.trial.model_dump(mode="json"),
                "samples": [[key, points.t_ns.tolist(), points.values.tolist()] for key, points in samples.items()],
            }
        )
    text = json.dumps(kept, separators=(",", ":"))
    (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for experiment in EXPERIMENTS:
        with tempfile.TemporaryDirectory(prefix="plinth-record-") as made:
            Path(made).chmod(0o755)
            os.environ["PLINTH_STATE_DIR"] = f"{made}/state"
            _record(experiment, Path(made))
