"""Expands factors to variants, each storage whose fields are factors to one for each level, and finds the clusters that variants share.

The id of a variant is what its files are called, and what people type; it says every level.
"""

import hashlib
import itertools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from plinth.model.base import SettingValue
from plinth.model.dataset import DatasetSpec
from plinth.model.experiment import Experiment, factors_of_storages, with_levels
from plinth.model.figures import number
from plinth.model.level import Level, level_label, level_text, levels_label
from plinth.model.patroni import PatroniSpec
from plinth.model.plan import TransactionText, Variant
from plinth.model.replay import PlannedRecording
from plinth.model.server_spec import ServerSpec
from plinth.model.standby import upstream_first
from plinth.model.storage import StorageSpec
from plinth.model.storage_graph import closure, factors_by_storage, mounted_storages
from plinth.model.workload import WorkloadSpec

_LETTERS_OF_NAMES = 40
"""Names of factors are shortened until they have no more together: that is the same for every level."""
_LETTERS_OF_WORDS = (sys.maxsize, 4, 1, 0)
"""How much of each word of a name stays, until the names fit."""
_MOST_LETTERS = 120
"""Levels that are longer together, such as SQL, are cut: a file name has at most 255 bytes, its ending among them."""
_HASH_LETTERS = 8
_LONGEST_STORAGE_NAME = 40
_Key = tuple[str, tuple[tuple[str, Level], ...]]
"""A storage and the levels of the factors that change it."""


def variant_id(levels: Mapping[str, Level], fallback: str, taken: Collection[str]) -> str:
    """Return an id that no other variant has: the label of the levels in lower-case letters, digits and hyphens.

    Where the factors' names are long together, their words are shortened; levels stay whole, as two variants may differ in the last
    letter of one. The same levels give the same id in every experiment. `fallback` names a variant without levels.
    """
    parts = [_part(factor, level) for factor, level in levels.items() if level_text(level)]
    return unique_id(_fitted(parts) if parts else _slug(fallback) or "variant", taken)


def unique_id(wanted: str, taken: Collection[str]) -> str:
    """Return the id, with a number at its end where it is taken: labels may differ in signs only."""
    return next(
        name for name in itertools.chain([wanted], (f"{wanted}-{n}" for n in itertools.count(2))) if name not in taken
    )


class _Part(NamedTuple):
    """A level of an id, with the words of its factor's name before and after it."""

    before: tuple[str, ...]
    level: str
    after: tuple[str, ...]

    def text(self, letters: int) -> str:
        """Return the words of the name with at most so many letters; of one letter each in one word, such as fpw-off."""
        sides = [[word[:letters] for word in words] for words in (self.before, self.after)]
        if letters == 1:
            sides = [["".join(words)] for words in sides]
        return "-".join(filter(None, (*sides[0], self.level, *sides[1])))


def _part(factor: str, level: Level) -> _Part:
    label = _slug(level_label(factor, level))
    text = number(level) if isinstance(level, int | float) and not isinstance(level, bool) else level_text(level)
    own = _slug(text)
    if own and label.endswith(f"-{own}"):
        return _Part(tuple(label.removesuffix(f"-{own}").split("-")), own, ())
    if own and label.startswith(f"{own}-"):
        return _Part((), own, tuple(label.removeprefix(f"{own}-").split("-")))
    return _Part((), label or "other", ())


def _fitted(parts: Sequence[_Part]) -> str:
    """Return the levels with as much of the factors' names as there is room for."""
    bare = len("-".join(part.level for part in parts))
    texts = ("-".join(part.text(letters) for part in parts) for letters in _LETTERS_OF_WORDS)
    text = next(text for text in texts if len(text) - bare <= _LETTERS_OF_NAMES or len(text) == bare)
    if len(text) <= _MOST_LETTERS:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_LETTERS]
    return f"{text[: _MOST_LETTERS - _HASH_LETTERS - 1].strip('-')}-{digest}"


def _slug(text: str) -> str:
    """Return the text in lower-case letters, digits and hyphens; the sign of a number is a word, so that -1 is not 1."""
    plain = re.sub(r"(?<=\d),(?=\d)", "", text.lower())
    signed = re.sub(r"(?<![a-z0-9])-(?=\d)", "-minus-", plain)
    return re.sub(r"[^a-z0-9]+", "-", signed).strip("-")


@dataclass(frozen=True)
class ClusterKey:
    """Determines a data directory; variants with equal keys share one."""

    id: str
    server: ServerSpec
    dataset: DatasetSpec


class Expanded(NamedTuple):
    """The expansion of an experiment: variants, the clusters that they share, and every storage by name."""

    variants: list[Variant]
    clusters: list[ClusterKey]
    storages: dict[str, StorageSpec]


def expand(
    experiment: Experiment,
    scripts_of: Callable[[WorkloadSpec, DatasetSpec], tuple[TransactionText, ...]],
    recording_of: Callable[[WorkloadSpec], PlannedRecording | None] = lambda _: None,
) -> Expanded:
    """Return every combination of levels as a variant, in the order of the file; the A/A twin comes last.

    A factor in the fields of a storage that a variant does not use has one level there, the baseline's.
    """
    document = experiment.model_dump(by_alias=True, exclude_none=True)
    combinations = [
        dict(zip(experiment.matrix, levels, strict=True)) for levels in itertools.product(*experiment.matrix.values())
    ]
    baseline = {factor: levels[0] for factor, levels in experiment.matrix.items()} | experiment.measure.baseline
    storages = ConcreteStorages(experiment.matrix, experiment.storage)
    clusters: dict[str, ClusterKey] = {}
    variants: list[Variant] = []
    for levels in combinations:
        resolved = Experiment.model_validate(with_levels(document, levels), by_alias=True, by_name=False)
        server = _server(resolved)
        idle = storages.without_effect(resolved.storage, server.storages)
        if any(levels[factor] != baseline[factor] for factor in idle):
            continue  # it would duplicate a variant
        server = _on_concrete(server, storages.of(resolved.storage, levels))
        made_of = _without_settings(server)
        key = made_of.model_dump_json() + resolved.dataset.model_dump_json()
        if key not in clusters:
            number = len(clusters) + 1
            clusters[key] = ClusterKey(f"{number}-{server.storage or 'external'}", made_of, resolved.dataset)
        own = {factor: level for factor, level in levels.items() if factor not in idle}
        label = levels_label(own) or server.storage or "external"
        variants.append(
            Variant(
                id=variant_id(own, label, [variant.id for variant in variants]),
                label=label,
                levels=own,
                cluster=clusters[key].id,
                settings=_settings(server),
                standby_settings={name: dict(one.settings) for name, one in server.standby.items() if one.settings},
                connection_options=server.connection_options,
                network=resolved.network,
                patroni=server.patroni if server.failover == "patroni" else None,
                workload=resolved.workload,
                scripts=scripts_of(resolved.workload, resolved.dataset),
                recording=recording_of(resolved.workload),
                is_baseline=levels == baseline,
            )
        )
    if experiment.measure.aa:
        baseline_variant = next(variant for variant in variants if variant.is_baseline)
        variants.append(_twin(baseline_variant, [variant.id for variant in variants]))
    return Expanded(_with_connections(variants), list(clusters.values()), storages.specs)


def _server(resolved: Experiment) -> ServerSpec:
    """Return the server of a variant with all its storages."""
    server = resolved.server
    if server.connection is None and server.storage is None:
        server = server.model_copy(update={"storage": next(iter(mounted_storages(resolved.storage)), None)})
    if server.wal_storage == server.storage:  # pg_wal is in the data directory, as by default
        server = server.model_copy(update={"wal_storage": None})
    standbys = {
        name: one.model_copy(update={"wal_storage": None}) if one.wal_storage == one.storage else one
        for name, one in upstream_first(server.used_standbys).items()
    }
    return server.model_copy(update={"standby": standbys, "standbys": None})


def _settings(server: ServerSpec) -> dict[str, SettingValue]:
    """Return the settings of the primary."""
    names = server.synchronous_standby_names
    return {**server.settings, **({} if names is None else {"synchronous_standby_names": names})}


def _without_settings(server: ServerSpec) -> ServerSpec:
    """Return what a cluster is made of."""
    standbys = {name: one.model_copy(update={"settings": {}}) for name, one in server.standby.items()}
    conducted = {"failover": "plinth", "patroni": PatroniSpec()}
    return server.model_copy(
        update={
            "settings": {},
            "standby": standbys,
            "synchronous_standby_names": None,
            "connection_options": {},
            **conducted,
        }
    )


def _on_concrete(server: ServerSpec, names: Mapping[str, str]) -> ServerSpec:
    """Return the server with its storages renamed."""
    changes: dict[str, Any] = {
        key: names[name] for key in ("storage", "wal_storage") if (name := getattr(server, key)) is not None
    }
    changes["standby"] = {
        standby: spec.model_copy(
            update={"storage": names[spec.storage], "wal_storage": spec.wal_storage and names[spec.wal_storage]}
        )
        for standby, spec in server.standby.items()
    }
    changes["tablespaces"] = {tablespace: names[name] for tablespace, name in server.tablespaces.items()}
    return server.model_copy(update=changes)


def _twin(baseline: Variant, taken: list[str]) -> Variant:
    return baseline.model_copy(
        update={
            "id": unique_id(f"{baseline.id}-aa", taken),
            "label": f"{baseline.label} (A/A)",
            "is_baseline": False,
            "is_aa_twin": True,
        }
    )


_LATE_SESSIONS = 2
"""Times more sessions of a recording than when it was recorded, where a slower storage makes them end later."""


def _opens_as_recorded(variant: Variant) -> bool:
    return variant.recording is not None and variant.workload.connections is None


def _with_connections(variants: list[Variant]) -> list[Variant]:
    """Return the variants with max_connections for all clients, equal in all unless a variant sets it."""
    most = max(variant.clients * (_LATE_SESSIONS if _opens_as_recorded(variant) else 1) for variant in variants)
    if most + SPARE_CONNECTIONS <= DEFAULT_MAX_CONNECTIONS:
        return variants
    room = most + SPARE_CONNECTIONS
    return [
        variant.model_copy(update={"settings": {"max_connections": room} | variant.settings}) for variant in variants
    ]


DEFAULT_MAX_CONNECTIONS = 100
SPARE_CONNECTIONS = 20
"""Connections for superuser_reserved_connections, Plinth's control connections and the observer."""


class ConcreteStorages:
    """The storages of all variants by name; a storage with factors is replaced by one for each level."""

    def __init__(self, matrix: Mapping[str, object], names: Iterable[str]) -> None:
        self.specs: dict[str, StorageSpec] = {}
        self._factors = factors_of_storages(matrix)
        self._taken = set(names)
        self._names: dict[_Key, str] = {}

    def of(self, resolved: Mapping[str, StorageSpec], levels: Mapping[str, Level]) -> dict[str, str]:
        """Map names in the file to names in the variant of `levels`, whose storages are `resolved`."""
        touched = factors_by_storage(resolved, self._factors)
        names = {name: self._name(name, {f: levels[f] for f in touched[name]}) for name in resolved}
        for name, spec in resolved.items():
            self.specs.setdefault(names[name], _renamed(spec, names))
        return names

    def without_effect(self, resolved: Mapping[str, StorageSpec], used: Iterable[str]) -> set[str]:
        """Return the factors that do not affect the storages `used`."""
        touched = factors_by_storage(resolved, self._factors)
        return set(self._factors) - {factor for name in closure(resolved, used) for factor in touched[name]}

    def _name(self, name: str, levels: Mapping[str, Level]) -> str:
        key = (name, tuple(levels.items()))
        if not levels:
            return name
        if key not in self._names:
            words = (re.sub(r"[^A-Za-z0-9]+", "-", level_text(level)).strip("-") for level in levels.values())
            wanted = "-".join([name, *filter(None, words)])[:_LONGEST_STORAGE_NAME]
            endings = itertools.chain([""], (f"-{n}" for n in itertools.count(2)))
            free = (f"{wanted[: _LONGEST_STORAGE_NAME - len(ending)]}{ending}" for ending in endings)
            self._names[key] = next(candidate for candidate in free if candidate not in self._taken)
            self._taken.add(self._names[key])
        return self._names[key]


def _renamed(spec: StorageSpec, names: Mapping[str, str]) -> StorageSpec:
    """Return the storage with its references renamed."""
    document: Any = spec.model_dump(by_alias=True, exclude_none=True)
    for reference in spec.references():
        document = _replaced(document, reference.key, names[reference.name])
    return type(spec).model_validate(document, by_alias=True, by_name=False)


def _replaced(value: Any, key: tuple[str | int, ...], name: str) -> Any:
    if not key:
        return name
    first, rest = key[0], key[1:]
    if isinstance(first, str):
        return {**value, first: _replaced(value[first], rest, name)}
    return (*value[:first], _replaced(value[first], rest, name), *value[first + 1 :])
