"""Expands storages whose fields are factors: one storage for each level, and one for each storage built on it."""

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from plinth.model.experiment import factors_of_storages
from plinth.model.level import Level, level_text
from plinth.model.storage import StorageSpec
from plinth.model.storage_graph import closure, factors_by_storage

_LONGEST_NAME = 40
_Key = tuple[str, tuple[tuple[str, Level], ...]]


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
            wanted = "-".join([name, *filter(None, words)])[:_LONGEST_NAME]
            endings = itertools.chain([""], (f"-{n}" for n in itertools.count(2)))
            free = (f"{wanted[: _LONGEST_NAME - len(ending)]}{ending}" for ending in endings)
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
