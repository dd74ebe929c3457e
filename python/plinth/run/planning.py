"""From an experiment to its plan: asks the other rooms what the planner must know."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from plinth.drivers import check_driver
from plinth.experiment import LoadedExperiment
from plinth.model.base import SettingValue
from plinth.model.dataset import DatasetSpec, LoadedTables, SqlDataset
from plinth.model.errors import Problem
from plinth.model.experiment import Experiment, WorkloadSpec
from plinth.model.facts import HostFacts, Installation
from plinth.model.plan import Plan, PlannedCluster, PlannedShell, PlannedTrial, ScriptText, Variant
from plinth.model.step import Step
from plinth.model.units import format_count
from plinth.observe import host_facts
from plinth.plan import MEMORY, ClusterKey, Expanded, Place, Surroundings, build_plan, expand, scale_to_fit
from plinth.run.destroy import doomed_devices
from plinth.run.load_of import check_load
from plinth.run.site import Site
from plinth.run.undo import undo_step
from plinth.server import STANDBY_SETTINGS, SettingsProbe, external_step, find_installation
from plinth.storage import Storage, check_answers, check_places
from plinth.system.owner import Owner, server_owner
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
    MissingCapability when there is no such server, or when `fit` finds no size that fits.
    """
    planner = _Planner(loaded, run_id, bundle)
    experiment, cuts = loaded.experiment, ()
    if fit:
        experiment, cuts = scale_to_fit(experiment, planner.plan)
    plan = planner.plan(experiment, cuts)
    planner.check_working_sets(plan)
    return plan


class _Planner:
    """Keeps what does not change between the plans of --scale-to-fit."""

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
        with self._placed():
            check_places(expanded.storages)
        site = Site.of(expanded.storages, self.run_id, self.host, self.owner, self.bundle)
        installations = {key.id: self._installation(key) for key in expanded.clusters if key.server.connection is None}
        lacking = self._check_settings(expanded, installations)
        return build_plan(
            experiment,
            expanded,
            (*self.loaded.overrides, *cuts),
            Surroundings(
                run_id=self.run_id,
                full=self.loaded.full,
                lacking=lacking,
                reference=self.loaded.reference,
                removed_factors=self.loaded.removed_factors,
                host=self.host,
                places=lambda clusters: {storage.name: _place(storage) for storage in site.used_storages(clusters)},
                installations=installations,
                dataset_size=lambda spec: self._dataset(spec).size(),
                dataset_load_s=lambda spec: self._dataset(spec).load_s(),
                provision_steps=lambda clusters: self._provision_steps(site, clusters),
                trial_steps=lambda trial, variant, cluster: _trial_steps(site, trial, variant, cluster),
                teardown_steps=lambda clusters: self._teardown_steps(site, clusters),
                doomed=lambda clusters: doomed_devices(site.used_storages(list(clusters)), self.runner),
                shell_commands=tuple(self._shell_commands),
                dataset_files={name: text for key in expanded.clusters for name, text in self._files_of(key.dataset)},
            ),
        )

    def _scripts(self, workload: WorkloadSpec, dataset: DatasetSpec) -> tuple[ScriptText, ...]:
        with self._placed():
            scripts = scripts_of(workload, dataset.kind, self.loaded.files)
        variables = self._dataset(dataset).variables()
        check_scripts(workload, scripts, variables)
        check_driver(workload, scripts, variables)
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

    def _provision_steps(self, site: Site, clusters: Sequence[PlannedCluster]) -> list[Step]:
        steps = [step for storage in site.used_storages(clusters) for step in storage.steps()]
        for cluster in clusters:
            steps += (
                [external_step(site.run_id, cluster.id)] if cluster.storage is None else site.layout(cluster).steps()
            )
            for step in self._dataset(cluster.dataset).steps():
                steps.append(
                    step.model_copy(update={"id": f"{cluster.id}.{step.id}", "title": f"{cluster.id}: {step.title}"})
                )
        return steps

    def _teardown_steps(self, site: Site, clusters: Sequence[PlannedCluster]) -> list[Step]:
        """What the journal undoes at the end, the last first."""
        undone = map(undo_step, reversed(self._provision_steps(site, clusters)))
        return [step for step in undone if step is not None]

    def check_working_sets(self, plan: Plan) -> None:
        """Only once --scale-to-fit, which tries sizes that are too small, has ended."""
        datasets = {cluster.id: self._dataset(cluster.dataset) for cluster in plan.clusters}
        with self._placed():
            for variant in plan.variants:
                check_working_set(variant.workload, datasets[variant.cluster].variables())

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """A problem within gets its file and line."""
        try:
            yield
        except Problem as problem:
            raise self.loaded.error([_at_its_factor(problem, self.loaded.experiment.matrix)]) from problem

    def _installation(self, key: ClusterKey) -> Installation:
        wanted = (key.server.version, key.server.bindir)
        if wanted not in self._installations:
            self._installations[wanted] = find_installation(*wanted, self.owner, self.runner)
        return self._installations[wanted]

    def _check_settings(self, expanded: Expanded, installations: dict[str, Installation]) -> dict[str, str]:
        """The variants that this build of the server lacks something for, and what; they are lost, the others go on.

        Raises ExperimentError for all else that the server objects to, and where every variant is lost.
        """
        problems: dict[str, Problem] = {}
        lacking: dict[str, str] = {}
        datasets = {cluster.id: cluster.dataset for cluster in expanded.clusters}
        for variant in expanded.variants:
            probe = self._probe(installations.get(variant.cluster))
            if probe is None:
                continue
            lacks = {problem.message: problem for problem in probe.lacking(variant.settings)}
            if lacks:
                lacking[variant.id] = "; ".join(f"{told} ({problem.hint})" for told, problem in lacks.items())
            for problem in probe.problems(variant.settings):
                if problem.message not in lacks or len(lacking) == len(expanded.variants):
                    problems.setdefault(problem.message, _at_its_factor(problem, variant.levels))
            for problem in _standby_problems(probe, variant.settings, datasets[variant.cluster]):
                problems.setdefault(problem.message, _at_its_factor(problem, variant.levels))
        for cluster in expanded.clusters:
            probe = self._probe(installations.get(cluster.id))
            for path, settings in _settings_of_load(cluster.dataset):
                for problem in probe.problems(settings) if probe else ():
                    placed = Problem(problem.message, path=[*path, *problem.path[2:]], hint=problem.hint)
                    problems.setdefault(problem.message, placed)
        if problems:
            raise self.loaded.error(list(problems.values()))
        return lacking

    def _probe(self, installation: Installation | None) -> SettingsProbe | None:
        """Who judges settings; nobody where there is no managed server."""
        if installation is None:
            return None
        return self._probes.setdefault(installation.bindir, SettingsProbe(installation, self.owner, self.runner))


def _settings_of_load(dataset: DatasetSpec) -> Iterator[tuple[list[str], dict[str, SettingValue]]]:
    """What the server must take while it loads, with the table of the file that says so."""
    yield ["dataset", "load_settings"], dict(load_settings(dataset))
    if isinstance(dataset, LoadedTables) and dataset.maintenance_work_mem is not None:
        yield ["dataset"], {"maintenance_work_mem": dataset.maintenance_work_mem}


def _standby_problems(
    probe: SettingsProbe, settings: Mapping[str, SettingValue], dataset: DatasetSpec
) -> Iterator[Problem]:
    """Commits that would wait for a standby: those of trials, and those of the load, which has settings of its own."""
    if problem := probe.standby_problem(settings):
        yield problem
    own = {name.lower(): name for name in load_settings(dataset)}
    blamed = next((own[name] for name in STANDBY_SETTINGS if name in own), None)
    while_loading = {**settings, **load_settings(dataset)}
    if blamed is not None and (problem := probe.standby_problem(while_loading)):
        yield Problem(problem.message, path=["dataset", "load_settings", blamed], hint=problem.hint)


def _at_its_factor(problem: Problem, factors: Collection[str]) -> Problem:
    """A level's problem belongs to the factor that brought it."""
    if problem.key in factors:
        return Problem(problem.message, path=["matrix", problem.key], hint=problem.hint)
    return problem


def _place(storage: Storage) -> Place:
    """How fast a storage is, where its space comes from, and how much of it there is for the server's user."""
    source = storage.needs_from()
    place = Place(
        takes_bytes=storage.needs_bytes(),
        usable_bytes=storage.usable_bytes(),
        ballast_bytes=storage.ballast_bytes(),
        pace=storage.pace(),
    )
    match source:
        case None:
            return place
        case str():
            available_bytes = storage.host.memory_available_bytes
            return replace(place, key=MEMORY, where=MEMORY, available_bytes=available_bytes)
        case Path():
            key, where, available_bytes = _filesystem(source)
            return replace(place, key=key, where=where, available_bytes=available_bytes)
        case base:
            return replace(place, on=base.name)


def _filesystem(path: Path) -> tuple[str, str, int | None]:
    """A key that paths on the same file system share, the path, and the bytes that are free there."""
    try:
        status = os.statvfs(path)
        return str(path.stat().st_dev), str(path), status.f_bavail * status.f_frsize
    except OSError:
        return str(path), str(path), None


def _driver(workload: WorkloadSpec) -> str:
    return "" if workload.driver == "plinth" else f"driver {workload.driver}, "


def _trial_steps(site: Site, trial: PlannedTrial, variant: Variant, cluster: PlannedCluster) -> list[Step]:
    workload = variant.workload
    load = (
        f"trial {trial.number}, {variant.label}: CHECKPOINT, then {', '.join(s.name for s in variant.scripts)} by "
        f"{format_count(workload.clients, 'client')}, {workload.protocol} protocol, {_driver(workload)}seed {trial.seed}"
    )
    steps = [Step(id=f"trial.{trial.number}.load", title=load)]
    if cluster.storage is None:
        return steps
    settings = ", ".join(f"{name} = {value}" for name, value in variant.settings.items()) or "defaults"
    start = site.layout(cluster).start_step()
    title = f"trial {trial.number}, {variant.label}: start {cluster.id} anew with {settings}"
    return [start.model_copy(update={"id": f"trial.{trial.number}.start", "title": title}), *steps]
