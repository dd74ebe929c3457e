"""What a run has lost while the rest of it goes on: storages that cannot be made or that broke, clusters on them, and
variants that the server was not built for."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from plinth.model.errors import MissingCapability, PlinthError, Refused, RunError
from plinth.model.manifest import Loss


class Losses:
    """Storages, clusters and variants by name, each with the error that it was lost by, in the order in which they were."""

    def __init__(self, lacking: Mapping[str, str]) -> None:
        """`lacking` are variants that are lost from the beginning, with what they lack."""
        self._variants = {
            name: MissingCapability(f"this build of the server lacks it: {reason}") for name, reason in lacking.items()
        }
        self._storages: dict[str, PlinthError] = {}
        self._clusters: dict[str, PlinthError] = {}

    def add_storage(self, name: str, error: PlinthError) -> None:
        """Storage `name` is lost; the first error counts."""
        self._storages.setdefault(name, error)

    def add_cluster(self, name: str, error: PlinthError) -> None:
        """Cluster `name` is lost by itself, while its storages are not."""
        self._clusters.setdefault(name, error)

    def of_variant(self, name: str) -> PlinthError | None:
        """What the variant `name` was lost by, while its cluster was not."""
        return self._variants.get(name)

    def of_storages(self, names: Collection[str]) -> PlinthError | None:
        """What the first of `names` that is lost was lost by."""
        return next((error for name, error in self._storages.items() if name in names), None)

    def of_cluster(self, name: str, storages: Collection[str]) -> PlinthError | None:
        """What the cluster `name`, which needs `storages`, was lost by."""
        return self._clusters.get(name) or self.of_storages(storages)

    def error(self) -> PlinthError | None:
        """What the run is to end with, once all that goes on is done: the first."""
        return next(iter((*self._storages.values(), *self._clusters.values(), *self._variants.values())), None)

    def recorded(self) -> tuple[Loss, ...]:
        """All of it, for the bundle."""
        return (
            *(_loss(f"storage {name}", error) for name, error in self._storages.items()),
            *(_loss(f"cluster {name}", error) for name, error in self._clusters.items()),
            *(_loss(f"variant {name}", error) for name, error in self._variants.items()),
        )


def error_of(losses: Sequence[Loss], bundle: Path) -> PlinthError | None:
    """What a run that was continued is to end with for what it had lost before: as it would have then, by the first."""
    if not losses:
        return None
    kind = {4: Refused, 5: MissingCapability}.get(losses[0].exit_code, RunError)
    return kind(f"{losses[0].what} was lost: {losses[0].reason}", where=str(bundle))


def _loss(what: str, error: PlinthError) -> Loss:
    return Loss(what=what, reason=reason_of(error), exit_code=error.exit_code)


def reason_of(error: PlinthError) -> str:
    """An error in one line, with what the server failed with, or else the end of what a command said."""
    where = f" ({error.where})" if error.where else ""
    failures = [line for line in error.details if "FATAL:" in line or "PANIC:" in line]
    return "; ".join([f"{error.message}{where}", *(f"| {line}" for line in (failures or error.details)[-3:])])
