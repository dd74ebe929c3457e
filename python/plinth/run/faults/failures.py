"""What failed in a run while the rest of it continues: storages that cannot be made or that broke, clusters on them, variants that the
server was not built for, and other machines whose answers are not to be trusted."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from plinth.model.errors import MissingCapability, PlinthError, Refused, RunError
from plinth.model.manifest import Failure


class Failures:
    """Storages, clusters, variants and hosts that failed, by name, each with its error, in the order in which they failed."""

    def __init__(self, lacking: Mapping[str, str]) -> None:
        """`lacking` are the variants that fail from the beginning, each with what the server or the machine lacks for it."""
        self._variants: dict[str, PlinthError] = {name: MissingCapability(reason) for name, reason in lacking.items()}
        self._storages: dict[str, PlinthError] = {}
        self._clusters: dict[str, PlinthError] = {}
        self._hosts: dict[str, PlinthError] = {}

    def add_storage(self, name: str, error: PlinthError) -> None:
        """Record that storage `name` failed; the first error is kept."""
        self._storages.setdefault(name, error)

    def add_cluster(self, name: str, error: PlinthError) -> None:
        """Record that cluster `name` failed while its storages did not."""
        self._clusters.setdefault(name, error)

    def add_host(self, name: str, error: PlinthError) -> None:
        """Record that another machine of the run has answered against the protocol."""
        self._hosts.setdefault(name, error)

    def add_variant(self, name: str, error: PlinthError) -> None:
        """Record that the variant `name` cannot be measured while its cluster can be used."""
        self._variants.setdefault(name, error)

    def of_variant(self, name: str) -> PlinthError | None:
        """Return the error by which the variant `name` failed while its cluster did not."""
        return self._variants.get(name)

    def of_storages(self, names: Collection[str]) -> PlinthError | None:
        """Return the error of the first of `names` that failed."""
        return next((error for name, error in self._storages.items() if name in names), None)

    def of_cluster(self, name: str, storages: Collection[str]) -> PlinthError | None:
        """Return the error by which the cluster `name`, which needs `storages`, failed."""
        return self._clusters.get(name) or self.of_storages(storages)

    def error(self) -> PlinthError | None:
        """Return the error that the run ends with once the rest is done: the first."""
        errors = (*self._storages.values(), *self._clusters.values(), *self._variants.values(), *self._hosts.values())
        return next(iter(errors), None)

    def recorded(self) -> tuple[Failure, ...]:
        """Return all failures, for the bundle."""
        return (
            *(_failure(f"storage {name}", error) for name, error in self._storages.items()),
            *(_failure(f"cluster {name}", error) for name, error in self._clusters.items()),
            *(_failure(f"variant {name}", error) for name, error in self._variants.items()),
            *(_failure(f"host {name}", error) for name, error in self._hosts.items()),
        )


def error_of(failures: Sequence[Failure], bundle: Path) -> PlinthError | None:
    """Return the error that a resumed run ends with for what had failed before it was resumed: the first, as it was then."""
    if not failures:
        return None
    kind = {4: Refused, 5: MissingCapability}.get(failures[0].exit_code, RunError)
    return kind(f"{failures[0].what} failed: {failures[0].reason}", where=str(bundle))


def _failure(what: str, error: PlinthError) -> Failure:
    return Failure(what=what, reason=reason_of(error), exit_code=error.exit_code)


def reason_of(error: PlinthError) -> str:
    """Return an error in one line, with the server's message, or else the end of a command's output."""
    where = f" ({error.where})" if error.where else ""
    failures = [line for line in error.details if "FATAL:" in line or "PANIC:" in line]
    return "; ".join([f"{error.message}{where}", *(f"| {line}" for line in (failures or error.details)[-3:])])
