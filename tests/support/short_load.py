"""PostgreSQL with a short load on storages, as `plinth run` does it: the whole way, in seconds."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

EXPERIMENT = """
spec = 1
name = "short"
question = "Does PostgreSQL run on it?"
{storages}
[server]
storage = "{first}"
version = {version}
{bindir}
[server.settings]
shared_buffers = "32MB"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
clients = 2
[matrix]
storage = [{names}]
[measure]
warmup = "100ms"
duration = "500ms"
repeats = 1
probe = "10ms"
aa = false
"""


def write_experiment(folder: Path, storages: str, names: Sequence[str], bindir: Path | None = None) -> Path:
    """The experiment file of a short load on each of `names`."""
    version = 18 if bindir is None else int(bindir.parent.name)
    text = EXPERIMENT.format(
        storages=storages,
        first=names[0],
        names=", ".join(f'"{name}"' for name in names),
        version=version,
        bindir="" if bindir is None else f'bindir = "{bindir}"',
    )
    file = folder / "short.toml"
    file.write_text(text)
    return file


def command(folder: Path, destroy: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """The command that runs it, and its environment; journals and storages are below `folder`/state."""
    argv = [sys.executable, "-m", "plinth", "run", str(folder / "short.toml"), "--bundle", str(folder / "bundle")]
    argv += [word for serial in destroy for word in ("--destroy", serial)]
    return argv, {**os.environ, "NO_COLOR": "1", "COLUMNS": "200", "PLINTH_STATE_DIR": str(folder / "state")}


def run_short_load(
    folder: Path,
    storages: str,
    names: Sequence[str],
    *,
    bindir: Path | None = None,
    destroy: Sequence[str] = (),
    timeout_s: float = 400,
) -> dict[str, dict[str, Any]]:
    """Run it to its end; the trial of each storage, each complete and with its checks passed. Nothing may be left."""
    write_experiment(folder, storages, names, bindir)
    argv, environment = command(folder, destroy)
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    trials = trials_of(folder)
    assert set(trials) == set(names)
    for trial in trials.values():
        assert trial["status"] == "complete", trial["failure"]
        assert trial["totals"]["done"] > 0
        assert all(check["ok"] for check in trial["checks"]), trial["checks"]
    assert list((folder / "state" / "journal").iterdir()) == []
    assert list((folder / "state" / "work").iterdir()) == []
    return trials


def trials_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The trial of each storage's variant."""
    found = [json.loads(path.read_text()) for path in sorted((folder / "bundle").glob("trials/[0-9]*/trial.json"))]
    return {trial["variant"]: trial for trial in found}


def storage_facts(folder: Path, name: str) -> dict[str, Any]:
    """What the bundle says about a storage."""
    return json.loads((folder / "bundle" / "env" / f"storage-{name}.json").read_text())
