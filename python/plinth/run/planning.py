"""From an experiment to its plan: collects from the stages the facts that planning needs."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from plinth.experiment import LoadedExperiment
from plinth.model.action import Action
from plinth.model.base import SettingValue
from plinth.model.dataset import DatasetSpec, LoadedTables, SqlDataset
from plinth.model.errors import Problem
from plinth.model.experiment import Experiment
from plinth.model.facts import HostFacts, Installation
from plinth.model.fault import FailoverAction
from plinth.model.plan import PRIMARY, Plan, PlannedShell, TransactionText, Variant
from plinth.model.workload import WorkloadSpec
from plinth.observe import host_facts
from plinth.plan import ClusterKey, Expanded, build_plan, expand, restore_problems, scale_to_fit
from plinth.run.cache_state import check_cache
from plinth.run.context import RunContext
from plinth.run.cut_problems import cut_problems
from plinth.run.fault_problems import fault_problems
from plinth.run.fleet import fleet_problems
from plinth.run.interrupt import InterruptGuard
from plinth.run.load_of import check_load
from plinth.run.patroni_problems import patroni_problems
from plinth.run.plan_inputs import plan_inputs
from plinth.run.restoring import Restoring
from plinth.run.snapshot_problems import snapshot_problems
from plinth.server import (
    STANDBY_SETTINGS,
    SettingsProbe,
    find_installation,
    followers_once_promoted,
    standby_problems,
    standbys_of,
)
from plinth.storage import check_answers, check_places
from plinth.system.owner import Owner, check_sees_servers, server_owner
from plinth.system.runner import Runner
from plinth.workload import (
    Dataset,
    check_scripts,
    check_working_set,
    dataset_of,
    load_settings,
    scripts_of,
    shell_commands,
)


def make_plan(loaded: LoadedExperiment, *, run_id: str, bundle: Path, fit: bool = False) -> Plan:
    """The plan of an experiment on this machine; nothing is changed by making it.

    Raises UsageError for scripts that do not parse, ExperimentError for settings that the server would refuse, and
    MissingCapability when there is no such server, or when `fit` finds no size that fits. Interrupted on Ctrl-C.
    """
    with InterruptGuard(lambda _: None):
        planner = _Planner(loaded, run_id, bundle)
        experiment, cuts = loaded.experiment, ()
        if fit:
            experiment, cuts = scale_to_fit(experiment, planner.plan)
        plan = planner.plan(experiment, cuts)
        planner.check_working_sets(plan)
        return plan


class _Planner:
    """Caches what does not change between the plans of --scale-to-fit."""

    def __init__(self, loaded: LoadedExperiment, run_id: str, bundle: Path) -> None:
        self.loaded = loaded
        self.run_id = run_id
        self.bundle = bundle
        self.host: HostFacts = host_facts()
        self.owner: Owner = server_owner()
        self.runner = Runner()
        self._installations: dict[tuple[int, str | None], Installation] = {}
        self._probes: dict[str, SettingsProbe] = {}
        self._shell_commands: dict[PlannedShell, None] = {}

    def plan(self, experiment: Experiment, cuts: tuple[str, ...] = ()) -> Plan:
        self._shell_commands.clear()
        expanded = expand(experiment, self._scripts)
        check_answers(expanded.storages)
        check_cache(experiment.measure)
        with self._placed():
            check_places(expanded.storages)
        context = RunContext.of(
            expanded.storages,
            self.run_id,
            self.host,
            self.owner,
            self.bundle,
            networked=_networked(expanded),
            network_seed=experiment.measure.seed,
        )
        if context.network is not None:
            context.network.check(self.runner)
        installations = {key.id: self._installation(key) for key in expanded.clusters if key.server.connection is None}
        durability = experiment.durability
        if durability is not None and (problems := cut_problems(durability, context, expanded, self._dataset)):
            raise self.loaded.error([_at_its_factor(problem, experiment.matrix) for problem in problems])
        measure = experiment.measure
        if problems := fault_problems(measure.actions, measure.restore, context, expanded):
            raise self.loaded.error([_at_its_factor(problem, experiment.matrix) for problem in problems])
        if problems := patroni_problems(measure, expanded, installations, self.owner, self.runner):
            raise self.loaded.error([_at_its_factor(problem, experiment.matrix) for problem in problems])
        if problems := fleet_problems(experiment, expanded):
            raise self.loaded.error([_at_its_factor(problem, experiment.matrix) for problem in problems])
        restoring = Restoring.of(
            context,
            ((key.server.storages, bool(key.server.standby)) for key in expanded.clusters),
            measure,
        )
        if problems := snapshot_problems(measure, restoring, expanded):
            raise self.loaded.error([_at_its_factor(problem, experiment.matrix) for problem in problems])
        if problems := [*restore_problems(experiment.measure, expanded), *restoring.problems()]:
            raise self.loaded.error(problems)
        lacking = self._check_settings(expanded, installations)
        return build_plan(
            experiment,
            expanded,
            (*self.loaded.overrides, *cuts),
            replace(
                plan_inputs(
                    context,
                    self.runner,
                    self._dataset,
                    installations,
                    experiment.measure,
                    restoring,
                    experiment.fleet,
                ),
                full=self.loaded.full,
                lacking=lacking,
                reference=self.loaded.reference,
                removed_factors=self.loaded.removed_factors,
                shell_commands=tuple(self._shell_commands),
                dataset_files={name: text for key in expanded.clusters for name, text in self._files_of(key.dataset)},
            ),
        )

    def _scripts(self, workload: WorkloadSpec, dataset: DatasetSpec) -> tuple[TransactionText, ...]:
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
        """The SQL files that a dataset names, with their texts."""
        if isinstance(spec, SqlDataset):
            names = (name for key in SqlDataset.file_keys for name in spec.files(key))
            yield from ((name, self.loaded.files[name]) for name in names)

    def check_working_sets(self, plan: Plan) -> None:
        """Checked only after --scale-to-fit, which tries sizes that are too small."""
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
            raise self.loaded.error([_at_its_factor(problem, self.loaded.experiment.matrix)]) from problem

    def _installation(self, key: ClusterKey) -> Installation:
        wanted = (key.server.version, key.server.bindir)
        if wanted not in self._installations:
            check_sees_servers(self.owner)
            self._installations[wanted] = find_installation(*wanted, self.owner, self.runner)
        return self._installations[wanted]

    def _check_settings(self, expanded: Expanded, installations: dict[str, Installation]) -> dict[str, str]:
        """The variants that need a feature which this build of the server lacks, each with that feature; they fail,
        and the others are measured.

        Raises ExperimentError for all other settings that the server refuses, and where every variant fails.
        """
        problems: dict[str, Problem] = {}
        lacking: dict[str, str] = {}
        clusters = {cluster.id: cluster for cluster in expanded.clusters}
        for variant in expanded.variants:
            probe = self._probe(installations.get(variant.cluster))
            if probe is None:
                continue
            lacks = {problem.message: problem for problem in probe.lacking(variant.settings)}
            if lacks:
                lacking[variant.id] = "; ".join(f"{reported} ({problem.hint})" for reported, problem in lacks.items())
            for problem in probe.problems(variant.settings):
                if problem.message not in lacks or len(lacking) == len(expanded.variants):
                    problems.setdefault(problem.message, _at_its_factor(problem, variant.levels))
            actions = self.loaded.experiment.measure.actions
            for problem in _standby_problems(probe, variant, clusters[variant.cluster], actions):
                problems.setdefault(problem.message, _at_its_factor(problem, variant.levels))
        for cluster in expanded.clusters:
            probe = self._probe(installations.get(cluster.id))
            for path, settings in _settings_of_load(cluster.dataset):
                for problem in probe.problems(settings) if probe else ():
                    placed = Problem(problem.message, path=[*path, *problem.path[2:]], hint=problem.hint)
                    problems.setdefault(problem.message, placed)
        if problems:
            raise self.loaded.error([self._as_written(problem) for problem in problems.values()])
        return lacking

    def _as_written(self, problem: Problem) -> Problem:
        """A problem of a setting that has a key of its own in [server] is reported there."""
        names = "synchronous_standby_names"
        key = f"server.{names}"
        matrix = self.loaded.experiment.matrix
        if [word.lower() for word in map(str, problem.path)] != ["server", "settings", names]:
            return problem
        if key in matrix:
            return Problem(problem.message, path=["matrix", key], hint=problem.hint)
        if self.loaded.experiment.server.synchronous_standby_names is None:
            return problem
        return Problem(problem.message, path=["server", names], hint=problem.hint)

    def _probe(self, installation: Installation | None) -> SettingsProbe | None:
        """The server program that checks settings; None where there is no managed server."""
        if installation is None:
            return None
        return self._probes.setdefault(installation.bindir, SettingsProbe(installation, self.owner, self.runner))


def _networked(expanded: Expanded) -> list[str]:
    """The nodes that an emulated network joins."""
    if all(variant.network is None for variant in expanded.variants):
        return []
    return [PRIMARY, *dict.fromkeys(name for key in expanded.clusters for name in key.server.standby)]


def _settings_of_load(dataset: DatasetSpec) -> Iterator[tuple[list[str], dict[str, SettingValue]]]:
    """The settings that the server must accept during the load, each with the table of the file that gives it."""
    yield ["dataset", "load_settings"], dict(load_settings(dataset))
    if isinstance(dataset, LoadedTables) and dataset.maintenance_work_mem is not None:
        yield ["dataset"], {"maintenance_work_mem": dataset.maintenance_work_mem}


def _standby_problems(
    probe: SettingsProbe, variant: Variant, cluster: ClusterKey, actions: Sequence[Action]
) -> Iterator[Problem]:
    """Problems with commits that would wait for a standby: those of trials, and those of the load, which has settings
    of its own and is done before there are standbys."""
    standbys = cluster.server.standby
    promoted: dict[str, list[str]] = {}
    for action in actions:
        if isinstance(action, FailoverAction):
            promoted |= followers_once_promoted(standbys, action.to, rejoins=action.rejoin != "none")
    yield from standby_problems(probe, variant.settings, standbys, variant.standby_settings, promoted)
    if problem := probe.standby_problem(variant.settings, standbys_of(PRIMARY, standbys)):
        yield problem
    own = {name.lower(): name for name in load_settings(cluster.dataset)}
    blamed = next((own[name] for name in STANDBY_SETTINGS if name in own), None)
    alone = {
        name: value for name, value in variant.settings.items() if not standbys or name.lower() != STANDBY_SETTINGS[0]
    }
    while_loading = {**alone, **load_settings(cluster.dataset)}
    if blamed is not None and (problem := probe.standby_problem(while_loading)):
        yield Problem(problem.message, path=["dataset", "load_settings", blamed], hint=problem.hint)


def _at_its_factor(problem: Problem, factors: Collection[str]) -> Problem:
    """The problem of a level is reported at the factor that it belongs to."""
    if problem.key in factors:
        return Problem(problem.message, path=["matrix", problem.key], hint=problem.hint)
    return problem
