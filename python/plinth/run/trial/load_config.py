"""The load of a trial, as configured for the engine and drivers, and a check whether they accept it before anything
is made."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from plinth import load
from plinth.load import LoadConfig, LoadScript, Rate, Stage
from plinth.model.connection import Connection
from plinth.model.experiment import MeasureSpec
from plinth.model.load_config import CompiledTransaction, LedgerFiles, Recording
from plinth.model.plan import ScriptText, TransactionText, Variant
from plinth.model.replay import PlannedRecording
from plinth.model.workload import WorkloadSpec
from plinth.run.trial.warmup import check_warmup
from plinth.system.owner import shell_user
from plinth.workload.recording import replay_s

STOP_TIMEOUT_S = 10.0
_CONNECT_TIMEOUT_S = 10.0
_MOST_THREADS = 8
_NOWHERE = Connection(host="/nowhere", port=5432, user="nobody", database="nothing")


class Work(NamedTuple):
    """What the clients do."""

    workload: WorkloadSpec
    scripts: Sequence[TransactionText]
    recording: PlannedRecording | None = None

    @classmethod
    def of(cls, variant: Variant) -> Self:
        """Return the work of a variant."""
        return cls(variant.workload, variant.scripts, variant.recording)


def load_of(
    work: Work,
    measure: MeasureSpec,
    *,
    to: Connection,
    variables: Mapping[str, str],
    cores: int,
    seed: int,
    ledger: Path | None = None,
) -> LoadConfig:
    """Return the configuration of the load's driver; `variables` are the dataset's, `ledger` is the folder for the commit ledger."""
    workload, scripts, recording = work
    clients = workload.clients if recording is None else workload.connections or recording.sessions_at_once
    return LoadConfig(
        connection=to,
        clients=clients,
        threads=min(workload.threads or min(cores, _MOST_THREADS), clients),
        protocol=workload.protocol,
        scripts=[one for one in map(_configured, scripts) if one is not None],
        replay=None if recording is None else _replay(workload, recording),
        deck=workload.is_dealt,
        variables={**variables, **{name: str(value) for name, value in workload.variables.items()}},
        warmup_s=measure.warmup_s,
        warmup_max_s=measure.warmup_max_s,
        duration_s=None if _is_whole(workload, measure, recording) else measure.duration_s,
        rate=_rate(workload),
        latency_limit_s=workload.latency_limit_s,
        reconnect=workload.reconnect,
        replace_terminated=True,
        seed=seed,
        max_tries=workload.max_tries,
        connect_timeout_s=_CONNECT_TIMEOUT_S,
        stop_timeout_s=STOP_TIMEOUT_S,
        shell_user=shell_user(),
        ledger=None if ledger is None else LedgerFiles(folder=str(ledger)),
    )


def check_load(
    workload: WorkloadSpec, scripts: Sequence[TransactionText], measure: MeasureSpec, variables: Mapping[str, str]
) -> None:
    """Raise UsageError, with file and line of a script, for what the workload's driver would refuse to run."""
    check_warmup(workload, measure)
    ledger = Path("/nowhere") if workload.keeps_ledger else None
    config = load_of(Work(workload, scripts), measure, to=_NOWHERE, variables=variables, cores=1, seed=1, ledger=ledger)
    load.check_load(workload, scripts, variables, config)


def _configured(transaction: TransactionText) -> LoadScript | CompiledTransaction | None:
    """Return what the engine runs as its own script; None of what is replayed."""
    if isinstance(transaction, ScriptText):
        return LoadScript(name=transaction.name, source=transaction.source, weight=transaction.weight)
    return transaction if isinstance(transaction, CompiledTransaction) else None


def _is_whole(workload: WorkloadSpec, measure: MeasureSpec, recording: PlannedRecording | None) -> bool:
    """Return whether a recording is replayed to its end, however late that is."""
    if recording is None:
        return False
    return measure.longest_warmup_s + measure.duration_s >= replay_s(recording, workload) - 1e-6


def _replay(workload: WorkloadSpec, recording: PlannedRecording) -> Recording:
    return Recording(
        file=recording.file,
        speed=None if workload.speed == "closed" else workload.speed,
        pooled=workload.connections is not None,
        read_only=not workload.writes,
        classes=workload.classes,
    )


def _rate(workload: WorkloadSpec) -> Rate | None:
    """Return the schedule of an open loop."""
    if workload.rate is None:
        return None
    if isinstance(workload.rate, int | float):
        return Rate.constant(workload.rate, workload.arrivals)
    stages = [
        Stage(
            from_tps=stage.tps, to_tps=stage.tps if stage.to_tps is None else stage.to_tps, duration_s=stage.duration_s
        )
        for stage in workload.rate
    ]
    return Rate(stages=tuple(stages), arrivals=workload.arrivals)
