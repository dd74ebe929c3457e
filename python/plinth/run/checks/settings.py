"""What the server says against the settings of an experiment, before anything is made: alone, together, and with its standbys."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from plinth.model.action import Action
from plinth.model.base import SettingValue
from plinth.model.dataset import DatasetSpec, LoadedTables
from plinth.model.errors import Problem
from plinth.model.experiment import Experiment
from plinth.model.facts import Installation
from plinth.model.fault import FailoverAction
from plinth.model.plan import PRIMARY, Variant
from plinth.plan import ClusterKey, Expanded
from plinth.server.replication.standby_checks import followers_once_promoted, standby_problems, standbys_of
from plinth.server.settings.ask import STANDBY_SETTINGS, SettingsProbe
from plinth.server.settings.dry_start import DryStart
from plinth.system.owner import Owner
from plinth.system.runner import Runner
from plinth.workload import settings_while_loading


class _Judges(NamedTuple):
    """What one installation is asked by."""

    probe: SettingsProbe
    dry_start: DryStart


class SettingsCheck:
    """Asks the installations of an experiment about its settings; answers are kept for the next plan."""

    def __init__(self, experiment: Experiment, owner: Owner, runner: Runner, memory_total_bytes: int) -> None:
        self._experiment = experiment
        self._owner = owner
        self._runner = runner
        self._memory_total_bytes = memory_total_bytes
        self._judges_of: dict[str, _Judges] = {}

    def findings(
        self, expanded: Expanded, installations: Mapping[str, Installation]
    ) -> tuple[dict[str, str], list[Problem]]:
        """Return the variants that need what this build of the server or this machine lacks, each with that: they fail, and
        the others are measured. And all other settings that the server refuses, alone or together.

        What the build lacks for every variant is a problem, too.
        """
        lacking: dict[str, str] = {}
        found: list[Problem] = []
        of_build: list[Problem] = []
        of_builds: set[str] = set()
        clusters = {cluster.id: cluster for cluster in expanded.clusters}
        for variant in expanded.variants:
            judges = self._judges(installations.get(variant.cluster))
            if judges is None:
                continue
            probe = judges.probe
            lacks = {problem.message: problem for problem in probe.lacking(variant.settings)}
            wrong = probe.problems(variant.settings)
            refused = [problem for problem in wrong if problem.message not in lacks]
            actions = self._experiment.measure.actions
            refused += _standby_problems(probe, variant, clusters[variant.cluster], actions)
            if lacks:
                of_builds.add(variant.id)
                of_build += (at_its_factor(problem, variant.levels) for problem in lacks.values())
                reasons = "; ".join(f"{reported} ({problem.hint})" for reported, problem in lacks.items())
                lacking[variant.id] = f"this build of the server lacks it: {reasons}"
            elif not wrong:
                refused += self._combined(judges, variant)
                limit_bytes = clusters[variant.cluster].server.memory_bytes
                if reason := judges.dry_start.lacking(variant.settings, probe.definitions, limit_bytes):
                    lacking[variant.id] = f"the server would not start: {reason}"
            found += (at_its_factor(problem, variant.levels) for problem in refused)
        if len(of_builds) == len(expanded.variants):
            found += of_build
        found += self._of_loads(expanded, installations)
        return lacking, unique(map(self._as_written, found))

    def _combined(self, judges: _Judges, variant: Variant) -> Iterator[Problem]:
        """Yield settings of a server that refuse one another: of the primary, and of each standby that has its own settings."""
        for own in ({}, *variant.standby_settings.values()):
            if problem := judges.dry_start.problem({**variant.settings, **own}, judges.probe.definitions):
                yield problem

    def _of_loads(self, expanded: Expanded, installations: Mapping[str, Installation]) -> Iterator[Problem]:
        """Yield settings of the load that the server refuses: alone, or with those of a cluster's first variant."""
        for cluster in expanded.clusters:
            judges = self._judges(installations.get(cluster.id))
            if judges is None:
                continue
            wrong: list[Problem] = []
            for path, settings in _settings_of_load(cluster.dataset):
                for problem in judges.probe.problems(settings):
                    wrong.append(Problem(problem.message, path=[*path, *problem.path[2:]], hint=problem.hint))
            yield from wrong
            own = settings_while_loading(cluster.dataset)
            first = next((one.settings for one in expanded.variants if one.cluster == cluster.id), {})
            if wrong or not own or judges.probe.problems(first):
                continue
            if problem := judges.dry_start.problem({**first, **own}, judges.probe.definitions):
                yield Problem(problem.message, path=["dataset", "load_settings"], hint=problem.hint)

    def _as_written(self, problem: Problem) -> Problem:
        """Report a problem of a setting that has a separate key in [server] at that key."""
        names = "synchronous_standby_names"
        key = f"server.{names}"
        if [word.lower() for word in map(str, problem.path)] != ["server", "settings", names]:
            return problem
        if key in self._experiment.matrix:
            return Problem(problem.message, path=["matrix", key], hint=problem.hint)
        if self._experiment.server.synchronous_standby_names is None:
            return problem
        return Problem(problem.message, path=["server", names], hint=problem.hint)

    def _judges(self, installation: Installation | None) -> _Judges | None:
        """Return those of an installation; None where there is no managed server."""
        if installation is None:
            return None
        if installation.bindir not in self._judges_of:
            self._judges_of[installation.bindir] = _Judges(
                SettingsProbe(installation, self._owner, self._runner),
                DryStart(installation, self._owner, self._runner, self._memory_total_bytes),
            )
        return self._judges_of[installation.bindir]


def at_its_factor(problem: Problem, factors: Collection[str]) -> Problem:
    """Report the problem of a level at the factor that it belongs to."""
    if problem.key in factors:
        return Problem(problem.message, path=["matrix", problem.key], hint=problem.hint)
    return problem


def unique(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems, each message once."""
    return list({problem.message: problem for problem in reversed(list(problems))}.values())[::-1]


def _settings_of_load(dataset: DatasetSpec) -> Iterator[tuple[list[str], dict[str, SettingValue]]]:
    """Yield the settings that the server must accept during the load, each with the table of the file that gives it."""
    yield ["dataset", "load_settings"], dict(settings_while_loading(dataset))
    if isinstance(dataset, LoadedTables) and dataset.maintenance_work_mem is not None:
        yield ["dataset"], {"maintenance_work_mem": dataset.maintenance_work_mem}


def _standby_problems(
    probe: SettingsProbe, variant: Variant, cluster: ClusterKey, actions: Sequence[Action]
) -> Iterator[Problem]:
    """Yield problems with commits that would wait for a standby: those of trials, and those of the load, which has its own
    settings and is done before there are standbys."""
    standbys = cluster.server.standby
    promoted: dict[str, list[str]] = {}
    for action in actions:
        if isinstance(action, FailoverAction):
            promoted |= followers_once_promoted(standbys, action.to, rejoins=action.rejoin != "none")
    yield from standby_problems(probe, variant.settings, standbys, variant.standby_settings, promoted)
    if problem := probe.standby_problem(variant.settings, standbys_of(PRIMARY, standbys)):
        yield problem
    own = {name.lower(): name for name in settings_while_loading(cluster.dataset)}
    blamed = next((own[name] for name in STANDBY_SETTINGS if name in own), None)
    alone = {
        name: value for name, value in variant.settings.items() if not standbys or name.lower() != STANDBY_SETTINGS[0]
    }
    while_loading = {**alone, **settings_while_loading(cluster.dataset)}
    if blamed is not None and (problem := probe.standby_problem(while_loading)):
        yield Problem(problem.message, path=["dataset", "load_settings", blamed], hint=problem.hint)
