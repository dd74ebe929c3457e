"""The fleet of a run: why an experiment cannot be driven by one, whether its machines are there, and the load of a trial."""

from collections.abc import Iterator

from plinth.fleet import FleetLoad, check_fleet
from plinth.fleet.executors import executor_of
from plinth.load import LoadConfig
from plinth.model.errors import MissingCapability, Problem
from plinth.model.experiment import Experiment, ServerSpec
from plinth.model.fleet import FleetSpec
from plinth.model.units import format_count
from plinth.model.workload import WorkloadSpec
from plinth.plan import Expanded
from plinth.run.listener import Listener
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner


def fleet_problems(experiment: Experiment, expanded: Expanded) -> list[Problem]:
    """The problems, each at the key to change; none when the fleet can drive every variant."""
    fleet = experiment.fleet
    if fleet is None:
        return []
    found: dict[str, Problem] = {}
    servers = [key.server for key in expanded.clusters]
    for problem in (
        *_of_experiment(experiment),
        *(problem for server in servers for problem in _of_server(fleet, server)),
        *(problem for variant in expanded.variants for problem in _of_workload(fleet, variant.workload)),
    ):
        found.setdefault(problem.message, problem)
    return list(found.values())


def check_machines(fleet: FleetSpec, runner: Runner, log: LogFile, listener: Listener) -> None:
    """Before anything is made: an agent runs on each machine, with the same versions, and its clock can be read.

    Raises RunError where one cannot be started, MissingCapability where one cannot be used.
    """
    listener.phase("look at the machines of the fleet")
    found = check_fleet(executor_of(fleet, runner, log), None)
    if wrong := [f"{one.name}: {problem}" for one in found for problem in one.problems]:
        raise MissingCapability(
            "the machines of the fleet cannot drive this load together",
            where="fleet",
            details=wrong,
            hint="`plinth fleet check EXPERIMENT.toml` shows all that it finds",
        )


def fleet_load(fleet: FleetSpec, config: LoadConfig, runner: Runner, log: LogFile) -> FleetLoad:
    """The load of one trial, whose agents are started with it and end with it."""
    return FleetLoad(config, executor_of(fleet, runner, log), fleet.address)


def _of_experiment(experiment: Experiment) -> Iterator[Problem]:
    if experiment.durability is not None:
        yield Problem(
            "power cuts are made with the load of this machine alone",
            path=["durability"],
            hint="leave [durability] or [fleet] out",
        )


def _of_server(fleet: FleetSpec, server: ServerSpec) -> Iterator[Problem]:
    """Machines other than this one reach a server over TCP, on an address that is not this machine's own."""
    if not fleet.is_remote or server.connection is not None:
        return
    if server.listen != "tcp" or server.listen_address is None:
        yield Problem(
            "the machines of the fleet cannot reach a managed server that listens on this machine only",
            path=["server", "listen"],
            hint='listen = "tcp" and listen_address = an address of this machine that they reach',
        )


def _of_workload(fleet: FleetSpec, workload: WorkloadSpec) -> Iterator[Problem]:
    if workload.driver != "plinth":
        yield Problem(
            f"clients of {workload.driver} run on this machine alone",
            path=["workload", "driver"],
            hint='with [fleet], use driver = "plinth"',
        )
    if workload.keeps_ledger:
        yield Problem(
            "the ledger of commits is kept by the load of this machine alone",
            path=["workload", "ledger"],
            hint="leave the ledger or [fleet] out",
        )
    machines = fleet.number_of_machines
    if workload.clients < machines:
        yield Problem(
            f"{workload.clients} clients for {machines} machines: each machine needs one at least",
            path=["workload", "clients"],
            hint="more clients, or fewer machines",
        )


def machines_words(fleet: FleetSpec | None) -> str:
    """What the plan says of a trial's machines; nothing of a load by this machine alone."""
    if fleet is None:
        return ""
    which = ", ".join(fleet.hosts[: fleet.number_of_machines]) or fleet.address
    return f" on {format_count(fleet.number_of_machines, 'machine')} ({which})"
