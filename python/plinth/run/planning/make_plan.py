"""From an experiment to its plan: collects from the stages the facts that planning needs."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from plinth.experiment import ParsedExperiment
from plinth.experiment.files import recorded_files
from plinth.model.dataset import DatasetSpec, DumpDataset, SqlDataset
from plinth.model.errors import ExperimentError, MissingCapability, PlinthError, Problem, UsageError, together
from plinth.model.experiment import Experiment
from plinth.model.facts import Installation
from plinth.model.plan import PRIMARY, Plan, PlannedShell, TransactionText
from plinth.model.replay import PlannedRecording, RecordedClass
from plinth.model.storage import StorageSpec
from plinth.model.units import format_duration
from plinth.model.workload import WorkloadSpec
from plinth.plan import Expanded, build_plan, expand, restore_problems, scale_to_fit
from plinth.run.checks.credits import credit_warnings
from plinth.run.checks.faults import fault_problems
from plinth.run.checks.hosts import (
    graph_problems,
    host_of_server,
    host_problems,
    hosts_of_nodes,
    on_hosts,
    same_machines,
)
from plinth.run.checks.obstacles import Obstacles, find_obstacles
from plinth.run.checks.own_database import data_problems, replay_problems
from plinth.run.checks.patroni import patroni_errors, patroni_problems
from plinth.run.checks.power_cuts import cut_problems, io_error_problems
from plinth.run.checks.settings import SettingsCheck, at_its_factor, unique
from plinth.run.checks.snapshots import snapshot_problems
from plinth.run.context import RunContext, addresses_of, backup_of, network_layout
from plinth.run.fleet import fleet_problems
from plinth.run.host import Hosts
from plinth.run.interrupt import InterruptGuard
from plinth.run.local_host import ONLY_THIS
from plinth.run.planning.inputs import plan_inputs, without_steps
from plinth.run.provision.restoring import Restoring
from plinth.run.trial.load_config import check_load
from plinth.server.unpack_backup import check_backup
from plinth.system.drop_caches import drop_error
from plinth.system.owner import Owner, server_owner
from plinth.system.runner import Runner
from plinth.workload import Dataset, check_scripts, check_working_set, dataset_of, scripts_of, shell_commands
from plinth.workload.recording import recording_of, replay_s
from plinth.workload.server_log import ReadingLog


def make_plan(
    loaded: ParsedExperiment,
    *,
    run_id: str,
    bundle: Path,
    fit: bool = False,
    destroy: Collection[str] | None = None,
    allow_writes: bool = False,
    reading: ReadingLog = lambda _: nullcontext(),
    hosts: Hosts = ONLY_THIS,
) -> Plan:
    """Return the plan of an experiment on this machine and its `hosts`; nothing is changed by making it.

    Raises ExperimentError for what is wrong with the experiment here, such as settings that the server would refuse, UsageError for
    scripts that do not parse, and MissingCapability when there is no such server, or when `fit` finds no size that fits. An
    error has with it all else that would keep the plan from being carried out, as `find_obstacles` finds it with `destroy`.
    `allow_writes`: recorded statements may write to an external server. `reading` shows how far a log is that is replayed.
    Interrupted on Ctrl-C.
    """
    with InterruptGuard(lambda _: None):
        planner = _Planner(
            loaded,
            run_id,
            bundle,
            None if fit else lambda draft: find_obstacles(draft, bundle, loaded.connections, destroy, hosts),
            allow_writes,
            reading,
            hosts,
        )
        experiment, cuts = loaded.experiment, ()
        if fit:
            experiment, cuts = scale_to_fit(experiment, planner.plan)
        plan = planner.plan(experiment, cuts)
        planner.check_working_sets(plan)
        return plan


@dataclass(eq=False)
class _Planner:
    """Caches what does not change between the plans of --scale-to-fit."""

    loaded: ParsedExperiment
    run_id: str
    bundle: Path
    _obstacles: Callable[[Plan], Obstacles] | None
    _allow_writes: bool
    _reading: ReadingLog
    hosts: Hosts
    owner: Owner = field(default_factory=server_owner, init=False)
    runner: Runner = field(default_factory=Runner, init=False)
    _installations: dict[tuple[str | None, int, str | None], Installation] = field(default_factory=dict, init=False)
    _shell_commands: dict[PlannedShell, None] = field(default_factory=dict, init=False)
    _script_errors: dict[str, UsageError] = field(default_factory=dict, init=False)
    _recordings: dict[str, tuple[PlannedRecording | None, tuple[RecordedClass, ...]]] = field(
        default_factory=dict, init=False
    )
    _recording_errors: dict[str, PlinthError] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.facts = {name: host.facts() for name, host in self.hosts.items()}
        self.addresses = addresses_of(self.hosts)
        memory_bytes = self.facts[None].memory_total_bytes
        self._settings = SettingsCheck(self.loaded.experiment, self.owner, self.runner, memory_bytes)

    def plan(self, experiment: Experiment, cuts: tuple[str, ...] = ()) -> Plan:
        self._shell_commands.clear()
        self._script_errors.clear()
        experiment = self._as_long_as_recorded(experiment)
        expanded = expand(experiment, self._scripts, lambda workload: self._recording(workload)[0])
        if misplaced := list(graph_problems(expanded, experiment.host)):
            raise self.loaded.error(
                [at_its_factor(_as_described(one, experiment), experiment.matrix) for one in misplaced]
            )
        expanded = on_hosts(expanded, self.addresses)
        hanging = [
            error for name, host in self.hosts.items() for error in host.hanging_places(_of_host(expanded, name))
        ]
        context = RunContext.of(
            expanded.storages,
            self.run_id,
            self.facts,
            self.bundle,
            network=network_layout(self.run_id, _networked(expanded), experiment.measure.seed),
            hosts=self.hosts,
        )
        installations, of_nodes, missing = self._installations_of(expanded)
        missing += [*hanging, *self._missing(experiment, expanded, context, installations, of_nodes)]
        of_scripts, unparsed = self._of_scripts()
        restoring = Restoring.of(
            context, ((key.server.storages, bool(key.server.standby)) for key in expanded.clusters), experiment.measure
        )
        of_storages = [] if hanging else self._storage_problems(experiment, expanded, context)
        problems = [*of_scripts, *of_storages, *self._problems(experiment, expanded, context, restoring)]
        problems += () if hanging else restoring.problems()
        lacking, of_settings = self._findings(expanded, installations)
        problems += of_settings
        inputs = replace(
            plan_inputs(
                context, self.runner, self._dataset, installations, experiment.measure, restoring, experiment.fleet
            ),
            node_installations=of_nodes,
            addresses=self.addresses,
            full=self.loaded.full,
            lacking=lacking,
            reference=self.loaded.reference,
            removed_factors=self.loaded.removed_factors,
            warnings=[*same_machines(self.hosts), *credit_warnings(context, experiment.measure)],
            shell_commands=tuple(self._shell_commands),
            dataset_files={name: text for key in expanded.clusters for name, text in self._files_of(key.dataset)},
        )
        overrides = (*self.loaded.overrides, *cuts)
        if problems or unparsed or missing:
            draft = None
            if not of_storages and not hanging:  # else neither speed nor space is known of them
                draft = build_plan(experiment, expanded, overrides, without_steps(inputs))
            self._raise(problems, [*unparsed, *missing], draft)
        return build_plan(experiment, expanded, overrides, inputs)

    def _scripts(self, workload: WorkloadSpec, dataset: DatasetSpec) -> tuple[TransactionText, ...]:
        """Return the transactions of a variant; none, and an entry in `_script_errors`, if they cannot be run."""
        try:
            return self._checked_scripts(workload, dataset)
        except UsageError as error:
            texts = [str(problem) for problem in error.problems] if isinstance(error, ExperimentError) else [str(error)]
            self._script_errors.setdefault("; ".join([error.where or "", *texts]), error)
            return ()

    def _of_scripts(self) -> tuple[list[Problem], list[PlinthError]]:
        """Return what is wrong with scripts by what the experiment's file says, and in the scripts' own files."""
        errors = [*self._script_errors.values(), *self._recording_errors.values()]
        problems = [one for error in errors if isinstance(error, ExperimentError) for one in error.problems]
        return problems, [error for error in errors if not isinstance(error, ExperimentError)]

    def _as_long_as_recorded(self, experiment: Experiment) -> Experiment:
        """Return the experiment with what its longest recording leaves of the warm-up as the measured time, where it says none."""
        measure = experiment.measure
        is_given = "duration_s" in self.loaded.experiment.measure.model_fields_set
        if is_given or not (experiment.workload.replay or "workload.replay" in experiment.matrix):
            return experiment
        longest_s = 0.0
        for variant in expand(experiment, lambda *_: ()).variants:
            recording, _ = self._recording(variant.workload)
            if recording is not None:
                longest_s = max(longest_s, replay_s(recording, variant.workload))
        if longest_s <= measure.longest_warmup_s:
            if longest_s:
                self._recording_errors["length"] = UsageError(
                    f"the recording is replayed in {format_duration(longest_s)}, and the warm-up takes "
                    f"{format_duration(measure.longest_warmup_s)}: nothing would be measured",
                    where="measure.warmup",
                    hint='a shorter warm-up, as in warmup = "0s", or a lower workload.speed',
                )
            return experiment
        measured = measure.model_copy(update={"duration_s": longest_s - measure.longest_warmup_s})
        return experiment.model_copy(update={"measure": measured})

    def _recording(self, workload: WorkloadSpec) -> tuple[PlannedRecording | None, tuple[RecordedClass, ...]]:
        """Return the recording of a workload; none, and an entry in `_script_errors`, if it cannot be read."""
        if not workload.replay:
            return None, ()
        keys = {"replay", "sessions", "log_line_prefix", "classes"}
        key = workload.model_dump_json(include=keys)
        if key not in self._recordings:
            self._recordings[key] = None, ()
            try:
                with self._placed():
                    files = recorded_files(self.loaded.folder, workload.replay, ["workload", "replay"])
                self._recordings[key] = recording_of(workload, files, self._reading)
            except PlinthError as error:
                self._recording_errors[key] = error
        return self._recordings[key]

    def _checked_scripts(self, workload: WorkloadSpec, dataset: DatasetSpec) -> tuple[TransactionText, ...]:
        if workload.replay:
            return self._recording(workload)[1]
        with self._placed():
            scripts = scripts_of(workload, dataset.kind, self.loaded.files)
        variables = self._dataset(dataset).variables()
        check_scripts(workload, scripts, variables)
        check_load(workload, scripts, self.loaded.experiment.measure, variables)
        shells = shell_commands(scripts, [*variables, *workload.variables], self.owner.name)
        self._shell_commands |= dict.fromkeys(shells)
        return scripts

    def _dataset(self, spec: DatasetSpec) -> Dataset:
        return dataset_of(spec, self.loaded.files)

    def _files_of(self, spec: DatasetSpec) -> Iterator[tuple[str, str]]:
        """Yield the SQL files that a dataset names, with their texts."""
        if isinstance(spec, SqlDataset):
            names = (name for key in SqlDataset.file_keys for name in spec.files(key))
            yield from ((name, self.loaded.files[name]) for name in names)

    def check_working_sets(self, plan: Plan) -> None:
        """Check the working sets, only after --scale-to-fit, which tries sizes that are too small."""
        datasets = {cluster.id: self._dataset(cluster.dataset) for cluster in plan.clusters}
        with self._placed():
            for variant in plan.variants:
                check_working_set(variant.workload, datasets[variant.cluster].variables())

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """Add file and line to a problem that is raised within."""
        try:
            yield
        except Problem as problem:
            raise self.loaded.error([at_its_factor(problem, self.loaded.experiment.matrix)]) from problem

    def _storage_problems(self, experiment: Experiment, expanded: Expanded, context: RunContext) -> list[Problem]:
        """Return what is wrong with the descriptions of storages."""
        found = [one for name, host in self.hosts.items() for one in host.place_problems(_of_host(expanded, name))]
        found += [problem for storage in context.storages.values() for problem in storage.problems()]
        return [at_its_factor(_as_described(problem, experiment), experiment.matrix) for problem in found]

    def _problems(
        self, experiment: Experiment, expanded: Expanded, context: RunContext, restoring: Restoring
    ) -> list[Problem]:
        """Return everything else that is wrong with the experiment on this machine, of what its file says."""
        measure, durability, errors = experiment.measure, experiment.durability, experiment.io_errors
        found = [
            *(cut_problems(durability, context, expanded, self._dataset) if durability is not None else ()),
            *(io_error_problems(errors, context, expanded, self._dataset) if errors is not None else ()),
            *fault_problems(measure.actions, measure.restore, context, expanded),
            *patroni_problems(measure, expanded),
            *fleet_problems(experiment, expanded),
            *snapshot_problems(measure, restoring, expanded),
            *data_problems(expanded),
            *host_problems(experiment, expanded, self.addresses),
            *replay_problems(experiment, expanded, allow_writes=self._allow_writes),
        ]
        placed = [at_its_factor(problem, experiment.matrix) for problem in unique(found)]
        return [*placed, *restore_problems(measure, expanded)]

    def _missing(
        self,
        experiment: Experiment,
        expanded: Expanded,
        context: RunContext,
        installations: Mapping[str, Installation],
        of_nodes: Mapping[tuple[str, str], Installation],
    ) -> Iterator[PlinthError]:
        """Yield what the machines lack for the experiment, apart from installations."""
        otherwise = "else take as-is, of which only shared buffers begin empty"
        if experiment.measure.cache == "cold" and (error := drop_error('measure.cache = "cold"', otherwise)):
            yield error
        backups = {(backup_of(key.dataset), installations.get(key.id)) for key in expanded.clusters}
        for source, installation in sorted(backups, key=str):
            try:
                if source is not None and installation is not None:
                    check_backup(source, installation, context.owner, self.runner)
            except PlinthError as error:
                yield error
        yield from self._lacking_clients(expanded)
        try:
            if context.network is not None:
                context.network.check(self.runner)
        except PlinthError as error:
            yield error
        yield from patroni_errors(expanded, installations, of_nodes, self.hosts)

    def _lacking_clients(self, expanded: Expanded) -> Iterator[PlinthError]:
        """Yield why dumps cannot be restored from here into servers on other hosts."""
        restored = (key for key in expanded.clusters if isinstance(key.dataset, DumpDataset))
        there = (key for key in restored if host_of_server(key, expanded.storages) is not None)
        for version in dict.fromkeys(key.server.version for key in there):
            try:
                self._installation(None, version, None)
            except PlinthError as error:
                yield MissingCapability(
                    f"a dump is restored by psql and pg_restore of this machine, of the server's version: {error.message}",
                    where="dataset.kind",
                    hint=error.hint,
                    details=error.details,
                )

    def _raise(self, problems: list[Problem], missing: Sequence[PlinthError], draft: Plan | None) -> NoReturn:
        """Raise what is wrong with the experiment, what machines lack for it, and what would keep `draft` from being carried out."""
        obstacles = self._obstacles(draft).errors if self._obstacles is not None and draft is not None else ()
        others = [*missing, *obstacles]
        if not problems:
            raise together("the experiment cannot run here", others)
        error = self.loaded.error(problems)
        error.others = tuple(others)
        raise error

    def _installations_of(
        self, expanded: Expanded
    ) -> tuple[dict[str, Installation], dict[tuple[str, str], Installation], list[PlinthError]]:
        """Return the installation of each managed cluster, those of nodes on other hosts, and why some are not there."""
        found: dict[str, Installation] = {}
        of_nodes: dict[tuple[str, str], Installation] = {}
        missing: dict[tuple[str | None, int, str | None], PlinthError] = {}
        for key in expanded.clusters:
            machines = hosts_of_nodes(key, expanded.storages)
            for node, host in machines.items():
                wanted = (host, key.server.version, key.server.bindir)
                if wanted in missing or (node != PRIMARY and host == machines[PRIMARY]):
                    continue
                try:
                    if node == PRIMARY:
                        found[key.id] = self._installation(*wanted)
                    else:
                        of_nodes[key.id, node] = self._installation(*wanted)
                except PlinthError as error:
                    missing[wanted] = error
        return found, of_nodes, list(missing.values())

    def _installation(self, host: str | None, version: int, bindir: str | None) -> Installation:
        wanted = (host, version, bindir)
        if wanted not in self._installations:
            self._installations[wanted] = self.hosts[host].installation(version, bindir)
        return self._installations[wanted]

    def _findings(
        self, expanded: Expanded, installations: Mapping[str, Installation]
    ) -> tuple[dict[str, str], list[Problem]]:
        """Return what `SettingsCheck.findings` does, each installation being asked on its host."""
        lacking: dict[str, str] = {}
        problems: list[Problem] = []
        for name, host in self.hosts.items():
            clusters = [key for key in expanded.clusters if host_of_server(key, expanded.storages) == name]
            ids = {key.id for key in clusters}
            variants = [variant for variant in expanded.variants if variant.cluster in ids]
            own = expanded._replace(clusters=clusters, variants=variants)
            of_clusters = {cluster: one for cluster, one in installations.items() if cluster in ids}
            if variants:
                lacks, wrong = host.settings_findings(self._settings.findings, self.loaded.experiment, own, of_clusters)
                lacking |= lacks
                problems += wrong
        return lacking, problems


def _of_host(expanded: Expanded, host: str | None) -> dict[str, StorageSpec]:
    return {name: spec for name, spec in expanded.storages.items() if spec.host == host}


def _networked(expanded: Expanded) -> list[str]:
    """Return the nodes that an emulated network joins."""
    if all(variant.network is None for variant in expanded.variants):
        return []
    return [PRIMARY, *dict.fromkeys(name for key in expanded.clusters for name in key.server.standby)]


def _as_described(problem: Problem, experiment: Experiment) -> Problem:
    """Report a problem of a storage that stands for one level of a factor where the file describes it."""
    _, name, *keys = map(str, problem.path)
    for described in experiment.storage:
        if name != described and name.startswith(f"{described}-") and name not in experiment.storage:
            return at_its_factor(
                Problem(problem.message, path=["storage", described, *keys], hint=problem.hint), experiment.matrix
            )
    return problem
