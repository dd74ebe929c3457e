"""How the storages of an experiment are layered."""

from collections.abc import Iterable, Mapping, Sequence

from plinth.model.storage import StorageSpec


def raw_storages(storages: Mapping[str, StorageSpec]) -> dict[str, str]:
    """Return the storages that are members of another, and of which: they are made, but not formatted or mounted."""
    return {
        reference.name: name
        for name, spec in storages.items()
        for reference in spec.references()
        if reference.role == "member"
    }


def mounted_storages(storages: Mapping[str, StorageSpec]) -> list[str]:
    """Return the storages that can hold a data directory."""
    raw = raw_storages(storages)
    return [name for name, spec in storages.items() if name not in raw and spec.is_mounted]


def in_order(storages: Mapping[str, StorageSpec]) -> list[str]:
    """Return the names so that each comes after those that it is built on; otherwise in their own order. No cycles."""
    ordered: dict[str, None] = {}

    def add(name: str) -> None:
        if name not in ordered:
            for reference in storages[name].references():
                add(reference.name)
            ordered[name] = None

    for name in storages:
        add(name)
    return list(ordered)


def closure(storages: Mapping[str, StorageSpec], names: Iterable[str]) -> list[str]:
    """Return `names` and all that they are built on, each after what it is built on."""
    used = set(names)
    ordered = in_order(storages)
    for name in reversed(ordered):  # in this order every user comes before what it uses
        if name in used:
            used.update(reference.name for reference in storages[name].references())
    return [name for name in ordered if name in used]


def factors_by_storage(storages: Mapping[str, StorageSpec], factors: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return which factors ("storage.NAME.FIELD") make a storage another one: its own, those of what it is built on, and of
    whose member it is, since a member cannot be in two storages at once."""
    touched: dict[str, set[str]] = {name: set() for name in storages}
    for factor in factors:
        touched[factor.split(".")[1]].add(factor)
    ordered = in_order(storages)
    for name in ordered:
        for reference in storages[name].references():
            touched[name] |= touched[reference.name]
    for name in reversed(ordered):
        for reference in storages[name].references():
            if reference.role == "member":
                touched[reference.name] |= touched[name]
    return {name: tuple(factor for factor in factors if factor in touched[name]) for name in storages}
