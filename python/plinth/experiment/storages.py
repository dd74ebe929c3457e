"""Checks the layering of storages: names, kinds, cycles and members. Works on the raw document, so that its problems are
reported with all others."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from plinth.common.nearest import nearest
from plinth.model.errors import Problem
from plinth.model.storage import (
    MEMBER_KINDS,
    SPECS,
    CountedStorage,
    EmulatedStorage,
    FormattedStorage,
    InstanceSpec,
    Reference,
    StorageSpec,
    count_of,
)
from plinth.model.storage_graph import raw_storages

_OF_A_FILESYSTEM = ("filesystem", "mkfs_options", "mount_options", "fill")


def valid_storages(tables: dict[str, Any]) -> dict[str, StorageSpec]:
    """Return the storages of [storage] that are valid separately; others are reported by the validation."""
    specs = {}
    for name, table in tables.items():
        kind = table.get("kind") if isinstance(table, dict) else None
        spec = SPECS.get(kind) if isinstance(kind, str) else None
        if spec is not None:
            with suppress(ValidationError):
                specs[name] = spec.model_validate(table, by_alias=True, by_name=False)
    return specs


def check_storages(specs: Mapping[str, StorageSpec], named: Collection[str]) -> list[Problem]:
    """Return problems between storages; `named` are all storages of the experiment, valid or not."""
    raw = raw_storages(specs)
    problems = [*_taken_twice(specs), *_cycles(specs), *_instances(specs)]
    for name, spec in specs.items():
        problems += [
            *_references(name, spec, specs, named),
            *_too_few_members(name, spec, specs),
            *(_mounted(name, spec) if name not in raw else _raw(name, spec, raw[name])),
        ]
    return problems


def _instances(specs: Mapping[str, StorageSpec]) -> Iterator[Problem]:
    """Yield the volumes that do not agree with the first of their instance on its limits."""
    first: dict[str, tuple[str, InstanceSpec]] = {}
    for name, spec in specs.items():
        if not isinstance(spec, EmulatedStorage) or spec.instance is None:
            continue
        other, limits = first.setdefault(spec.instance.name, (name, spec.instance))
        if limits != spec.instance:
            yield Problem(
                f"instance {spec.instance.name!r} has other limits here than of storage {other!r}",
                path=["storage", name, "instance"],
                hint="the volumes of one instance share its limits: give each the same",
            )


def check_data_directory(name: str, path: Sequence[str | int], specs: Mapping[str, StorageSpec]) -> list[Problem]:
    """Check that a data directory, WAL or tablespace can be stored on the storage `name`, which the key `path` names."""
    if name not in specs:
        return []
    whose = raw_storages(specs).get(name)
    if whose is not None:
        reason, hint = f"is a member of {whose!r}, so it has no file system", f"use {whose!r}, or describe another"
    elif not specs[name].is_mounted:
        reason, hint = f"is of kind {specs[name].kind}, which is not mounted", 'kind = "loop" is a file with a mount'
    else:
        return []
    return [Problem(f"no data directory can be stored on storage {name!r}: it {reason}", path=path, hint=hint)]


def _references(
    name: str, spec: StorageSpec, specs: Mapping[str, StorageSpec], named: Collection[str]
) -> Iterator[Problem]:
    """Yield problems of references to undefined or unsuitable storages."""
    raw = raw_storages(specs)
    for reference in spec.references():
        path = ["storage", name, *reference.key]
        if reference.name not in named:
            yield Problem(
                f"storage {reference.name!r} is not one of: {', '.join(named)}",
                path=path,
                hint=nearest(reference.name, named),
            )
        elif reference.name in specs and not _fits(reference, specs[reference.name]):
            got = f"{reference.name!r} is of kind {specs[reference.name].kind}"
            if reference.role == "member":
                yield Problem(f"{got}, which cannot be a member; allowed: {', '.join(MEMBER_KINDS)}", path=path)
            else:
                hint = 'kind = "loop" is a file with a mount'
                yield Problem(f"{got}, which is not mounted, so that no file can be stored on it", path=path, hint=hint)
        elif reference.role == "base" and reference.name in raw:
            yield Problem(
                f"{reference.name!r} is a member of {raw[reference.name]!r}, so no file can be stored on it",
                path=path,
                hint="describe another storage",
            )


def _fits(reference: Reference, spec: StorageSpec) -> bool:
    return spec.can_be_member if reference.role == "member" else spec.is_mounted


def _too_few_members(name: str, spec: StorageSpec, specs: Mapping[str, StorageSpec]) -> Iterator[Problem]:
    """Yield a problem if a storage, such as a RAID array, has too few members."""
    for need in spec.least_members():
        got = sum(count_of(specs[member]) if member in specs else 1 for member in need.names)
        if got < need.least:
            yield Problem(
                f"{need.what} needs at least {need.least} members, got {got}",
                path=["storage", name, *need.key],
                hint="a member with count = 4 is four of them",
            )


def _taken_twice(specs: Mapping[str, StorageSpec]) -> list[Problem]:
    problems = []
    taken: dict[str, str] = {}
    for name, spec in specs.items():
        for reference in spec.references():
            if reference.role != "member":
                continue
            if reference.name in taken:
                message = f"{reference.name!r} is a member already, of {taken[reference.name]!r}"
                problems.append(
                    Problem(message, path=["storage", name, *reference.key], hint="describe another storage")
                )
            taken.setdefault(reference.name, name)
    return problems


def _cycles(specs: Mapping[str, StorageSpec]) -> list[Problem]:
    problems = []
    seen: set[str] = set()

    def follow(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            circle = " -> ".join((*way[way.index(name) :], name))
            problems.append(Problem(f"a storage cannot be built on itself: {circle}", path=["storage", name]))
        elif name in specs and name not in seen:
            for reference in specs[name].references():
                follow(reference.name, (*way, name))
            seen.add(name)

    for name in specs:
        follow(name, ())
    return problems


def _mounted(name: str, spec: StorageSpec) -> Iterator[Problem]:
    """Yield a problem if a storage that is mounted has a count, which is for members only."""
    if isinstance(spec, CountedStorage) and spec.count > 1 and spec.is_mounted:
        yield Problem(
            f"count = {spec.count} makes members, but no storage has {name!r} as a member",
            path=["storage", name, "count"],
            hint="name it in the members of a btrfs, md or lvm, or in the data of a zfs",
        )


def _raw(name: str, spec: StorageSpec, whose: str) -> Iterator[Problem]:
    """Yield a problem if a member has a file system of its own."""
    if isinstance(spec, FormattedStorage):
        for key in _OF_A_FILESYSTEM:
            if key in spec.model_fields_set:
                yield Problem(
                    f"{name!r} is a member of {whose!r}, so it gets no file system of its own",
                    path=["storage", name, key],
                    hint="leave the key out",
                )
