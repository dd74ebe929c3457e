"""From an experiment to its plan: asks the other rooms what the planner must know."""

import os
from collections.abc import Sequence
from pathlib import Path

from plinth.experiment import LoadedExperiment
from plinth.model.errors import Problem
from plinth.model.experiment import Experiment, WorkloadSpec
from plinth.model.facts import HostFacts, Installation
from plinth.model.plan import Plan, PlannedCluster, PlannedTrial, ScriptText, Variant
from plinth.model.step import Step
from plinth.observe import host_facts
from plinth.plan import ClusterKey, Place, Surroundings, build_plan, expand, scale_to_fit
from plinth.run.site import Site
from plinth.server import SettingsProbe, external_step, find_installation
from plinth.storage import Storage
from plinth.system.owner import Owner, server_owner
from plinth.system.runner import Runner
from plinth.system.undo import undo_step
from plinth.workload import check_scripts, dataset_of, scripts_of


def make_plan(loaded: LoadedExperiment, *, run_id: str, bundle: Path, fit: bool = False) -> Plan:
    """The plan of an experiment on this machine; nothing is changed by making it.

    Raises UsageError for scripts that do not parse, ExperimentError for settings that the server would refuse, and
    MissingCapability when there is no such server, or when `fit` finds no size that fits.
    """
    planner = _Planner(loaded, run_id, bundle)
    experiment, cuts = loaded.experiment, ()
    if fit:
        experiment, cuts = scale_to_fit(experiment, planner.plan)
    return planner.plan(experiment, cuts)


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

    def plan(self, experiment: Experiment, cuts: tuple[str, ...] = ()) -> Plan:
        site = Site.of(experiment, self.run_id, self.host, self.owner, self.bundle)
        variants, keys = expand(experiment, self._scripts)
        installations = {key.id: self._installation(key) for key in keys if key.server.connection is None}
        self._check_settings(variants, installations)
        return build_plan(
            experiment,
            variants,
            keys,
            (*self.loaded.overrides, *cuts),
            Surroundings(
                run_id=self.run_id,
                host=self.host,
                places={name: _place(storage) for name, storage in site.storages.items()},
                installations=installations,
                dataset_bytes=lambda spec: dataset_of(spec).size_bytes(),
                dataset_load_s=lambda spec: dataset_of(spec).load_s(),
                provision_steps=lambda clusters: _provision_steps(site, clusters),
                trial_steps=lambda trial, variant, cluster: _trial_steps(site, trial, variant, cluster),
                teardown_steps=lambda clusters: _teardown_steps(site, clusters),
            ),
        )

    def _scripts(self, workload: WorkloadSpec) -> tuple[ScriptText, ...]:
        scripts = scripts_of(workload, self.loaded.scripts)
        check_scripts(workload, scripts)
        return scripts

    def _installation(self, key: ClusterKey) -> Installation:
        wanted = (key.server.version, key.server.bindir)
        if wanted not in self._installations:
            self._installations[wanted] = find_installation(*wanted, self.owner, self.runner)
        return self._installations[wanted]

    def _check_settings(self, variants: Sequence[Variant], installations: dict[str, Installation]) -> None:
        problems: dict[str, Problem] = {}
        for variant in variants:
            installation = installations.get(variant.cluster)
            if installation is None:
                continue
            probe = self._probes.setdefault(installation.bindir, SettingsProbe(installation, self.owner, self.runner))
            for problem in probe.problems(variant.settings):
                problems.setdefault(problem.message, _at_its_factor(problem, variant))
        if problems:
            raise self.loaded.error(list(problems.values()))


def _at_its_factor(problem: Problem, variant: Variant) -> Problem:
    """A level's problem belongs to the factor that brought it."""
    if problem.key in variant.levels:
        return Problem(problem.message, path=["matrix", problem.key], hint=problem.hint)
    return problem


def _place(storage: Storage) -> Place:
    """Where a storage's space comes from, and how much of it there is for the server's user."""
    source = storage.needs_from()
    if isinstance(source, str):
        return Place("memory", "memory", storage.host.memory_available_bytes)
    try:
        status = os.statvfs(source)
        return Place(str(source.stat().st_dev), str(source), status.f_bavail * status.f_frsize)
    except OSError:
        return Place(str(source), str(source), None)


def _provision_steps(site: Site, clusters: Sequence[PlannedCluster]) -> list[Step]:
    steps = [step for storage in site.used_storages(list(clusters)) for step in storage.steps()]
    for cluster in clusters:
        steps += [external_step(site.run_id)] if cluster.storage is None else site.layout(cluster).steps()
        for step in dataset_of(cluster.dataset).steps():
            steps.append(
                step.model_copy(update={"id": f"{cluster.id}.{step.id}", "title": f"{cluster.id}: {step.title}"})
            )
    return steps


def _trial_steps(site: Site, trial: PlannedTrial, variant: Variant, cluster: PlannedCluster) -> list[Step]:
    workload = variant.workload
    load = (
        f"trial {trial.number}, {variant.label}: CHECKPOINT, then {', '.join(s.name for s in variant.scripts)} by "
        f"{workload.clients} clients, {workload.protocol} protocol, seed {trial.seed}"
    )
    steps = [Step(id=f"trial.{trial.number}.load", title=load)]
    if cluster.storage is None:
        return steps
    settings = ", ".join(f"{name} = {value}" for name, value in variant.settings.items()) or "defaults"
    start = site.layout(cluster).start_step()
    title = f"trial {trial.number}, {variant.label}: start {cluster.id} anew with {settings}"
    return [start.model_copy(update={"id": f"trial.{trial.number}.start", "title": title}), *steps]


def _teardown_steps(site: Site, clusters: Sequence[PlannedCluster]) -> list[Step]:
    """What the journal undoes at the end, the last first."""
    undone = map(undo_step, reversed(_provision_steps(site, clusters)))
    return [step for step in undone if step is not None]
