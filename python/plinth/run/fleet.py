"""The fleet of a run: why an experiment cannot be driven by one, whether its machines are there, and the load of a trial."""

from collections.abc import Iterator
from typing import Any

from plinth.fleet.check import check_fleet
from plinth.fleet.copying import FleetCopy
from plinth.fleet.executors import executor_of
from plinth.fleet.executors.executor import Executor
from plinth.fleet.load import FleetLoad
from plinth.load import LoadConfig
from plinth.model.errors import MissingCapability, Problem
from plinth.model.experiment import Experiment
from plinth.model.fault import ServerAction
from plinth.model.flashback import SnapshotAction
from plinth.model.fleet import FleetSpec
from plinth.model.plan import Variant
from plinth.model.server_spec import ServerSpec
from plinth.model.units import format_count, format_size
from plinth.model.workload import Driver
from plinth.plan import Expanded
from plinth.run.context import RunContext
from plinth.run.listener import Listener
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner
from plinth.workload.bulk import Loader, MakeFleetLoader, bulk_loader

LEAST_BYTES = 128 * 2**20
"""Of rows for each machine: fewer are sent sooner than an agent has started."""


def fleet_problems(experiment: Experiment, expanded: Expanded) -> Iterator[Problem]:
    """Yield the problems, each at the key to change; none when the fleet can drive every variant."""
    fleet = experiment.fleet
    if fleet is None:
        return
    yield from _of_experiment(experiment)
    for key in expanded.clusters:
        yield from _of_server(fleet, key.server)
    for variant in expanded.variants:
        yield from _of_clients(fleet, variant)


def check_machines(fleet: FleetSpec, runner: Runner, log: LogFile, listener: Listener, context: RunContext) -> None:
    """Check before anything is made that an agent runs on each machine, with the same versions, and that its clock can be read.

    Raises RunError where one cannot be started, MissingCapability where one cannot be used.
    """
    listener.phase("look at the machines of the fleet")
    found = check_fleet(_executor(fleet, runner, log, context), None)
    if wrong := [f"{one.name}: {problem}" for one in found for problem in one.problems]:
        raise MissingCapability(
            "the machines of the fleet cannot drive this load together",
            where="fleet",
            details=wrong,
            hint="`plinth fleet check EXPERIMENT.toml` shows all that it finds",
        )


def fleet_load(
    fleet: FleetSpec, driver: Driver, config: LoadConfig, runner: Runner, log: LogFile, context: RunContext
) -> FleetLoad:
    """Return the load of one trial, whose agents are started with it and end with it."""
    return FleetLoad(config, _executor(fleet, runner, log, context), driver)


def fleet_loader(
    fleet: FleetSpec | None, runner: Runner, log: LogFile, context: RunContext | None = None
) -> MakeFleetLoader | None:
    """Return what sends the rows of datasets: as many machines as it is worth to start agents on. None without a fleet."""
    if fleet is None:
        return None

    def make(config: dict[str, Any], size_bytes: float) -> Loader:
        machines = min(fleet.number_of_machines, len(config["pieces"]), int(size_bytes // LEAST_BYTES))
        if machines < 2:
            return bulk_loader(config)
        return FleetCopy(config, _executor(fleet.model_copy(update={"machines": machines}), runner, log, context))

    return make


def _executor(fleet: FleetSpec, runner: Runner, log: LogFile, context: RunContext | None) -> Executor:
    """Return what starts the agents: not on machines of a Ray cluster that are hosts of the run."""
    if context is None:
        return executor_of(fleet, runner, log)
    hosts = [host.ray_node for host in context.hosts.values() if host.ray_node is not None]
    return executor_of(fleet, runner, log, context.ssh_config, hosts)


def _of_experiment(experiment: Experiment) -> Iterator[Problem]:
    if experiment.durability is not None:
        yield Problem(
            "power cuts are made with the load of this machine alone",
            path=["durability"],
            hint="leave [durability] or [fleet] out",
        )
    for number, action in enumerate(experiment.measure.actions):
        if isinstance(action, ServerAction | SnapshotAction):
            yield Problem(
                "what is done to servers is measured with the load of this machine alone",
                path=["measure", "action", number],
                hint="leave the action or [fleet] out",
            )


def _of_server(fleet: FleetSpec, server: ServerSpec) -> Iterator[Problem]:
    """Check that machines other than this one reach a server over TCP, on an address that is not this machine's own."""
    if not fleet.is_remote or server.connection is not None:
        return
    if server.listen != "tcp" or server.listen_address is None:
        yield Problem(
            "the machines of the fleet cannot reach a managed server that listens on this machine only",
            path=["server", "listen"],
            hint='listen = "tcp" and listen_address = an address of this machine that they reach',
        )


def _of_clients(fleet: FleetSpec, variant: Variant) -> Iterator[Problem]:
    machines, workload = fleet.number_of_machines, variant.workload
    if workload.replay and variant.recording is None:
        return  # which is said of the recording
    if variant.clients >= machines:
        return
    if workload.connections is not None:
        one, key, hint = "connection", "connections", "more connections, or fewer machines"
    elif workload.replay:
        one, key, hint = "session", "replay", "fewer machines"
    else:
        one, key, hint = "client", "clients", "more clients, or fewer machines"
    at_once = " at one time" if one == "session" else ""
    yield Problem(
        f"{format_count(variant.clients, one)}{at_once} for {machines} machines: each machine needs one at least",
        path=["workload", key],
        hint=hint,
    )


def machines_words(fleet: FleetSpec | None) -> str:
    """Return what the plan says of a trial's machines; nothing of a load by this machine alone."""
    return "" if fleet is None else f" on {_machines(fleet)}"


def copying_words(fleet: FleetSpec | None) -> str:
    """Return what the plan says of the machines that send rows: it is `fleet_loader` that decides how many."""
    if fleet is None or fleet.number_of_machines == 1:
        return ""
    return f"; from each of up to {_machines(fleet)} that gets {format_size(LEAST_BYTES)} or more to send"


def _machines(fleet: FleetSpec) -> str:
    which = ", ".join(fleet.hosts[: fleet.number_of_machines]) or (
        f"Ray, {fleet.ray_address}" if fleet.executor == "ray" else fleet.executor
    )
    return f"{format_count(fleet.number_of_machines, 'machine')} ({which})"
