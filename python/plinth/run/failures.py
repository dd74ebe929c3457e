"""What failed in a run while the rest of it continues: storages that cannot be made or that broke, clusters on them, variants that the
server was not built for, and other machines whose answers are not to be trusted."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plinth.model.errors import MissingCapability, PlinthError, Refused, RunError
from plinth.model.manifest import Failure
from plinth.model.plan import Plan


@dataclass
class Failures:
    """What failed, by name, each with its first error, in the order in which they failed."""

    storages: dict[str, PlinthError] = field(default_factory=dict)
    clusters: dict[str, PlinthError] = field(default_factory=dict)
    """Those that failed while their storages did not."""
    variants: dict[str, PlinthError] = field(default_factory=dict)
    """Those that cannot be measured while their cluster can be used."""
    hosts: dict[str, PlinthError] = field(default_factory=dict)
    """Those that have answered against the protocol."""

    def of_storages(self, names: Collection[str]) -> PlinthError | None:
        """Return the error of the first of `names` that failed."""
        return next((error for name, error in self.storages.items() if name in names), None)

    def of_cluster(self, name: str, storages: Collection[str]) -> PlinthError | None:
        """Return the error by which the cluster `name`, which needs `storages`, failed."""
        return self.clusters.get(name) or self.of_storages(storages)

    def first(self) -> PlinthError | None:
        """Return the error that the run ends with once the rest is done."""
        errors = (*self.storages.values(), *self.clusters.values(), *self.variants.values(), *self.hosts.values())
        return next(iter(errors), None)

    def recorded(self) -> tuple[Failure, ...]:
        """Return all failures, for the bundle."""
        kinds = {"storage": self.storages, "cluster": self.clusters, "variant": self.variants, "host": self.hosts}
        return tuple(
            Failure(what=f"{kind} {name}", reason=reason_of(error), exit_code=error.exit_code)
            for kind, failed in kinds.items()
            for name, error in failed.items()
        )


def lacking_variants(plan: Plan) -> dict[str, PlinthError]:
    """Return the variants that fail from the beginning, each with what the server or the machine lacks for it."""
    return {name: MissingCapability(reason) for name, reason in plan.lacking.items()}


def error_of(failures: Sequence[Failure], bundle: Path) -> PlinthError | None:
    """Return the error that a resumed run ends with for what had failed before it was resumed: the first, as it was then."""
    if not failures:
        return None
    kind = {4: Refused, 5: MissingCapability}.get(failures[0].exit_code, RunError)
    return kind(f"{failures[0].what} failed: {failures[0].reason}", where=str(bundle))


def reason_of(error: PlinthError) -> str:
    """Return an error in one line, with the server's message, or else the end of a command's output."""
    where = f" ({error.where})" if error.where else ""
    failures = [line for line in error.details if "FATAL:" in line or "PANIC:" in line]
    return "; ".join([f"{error.message}{where}", *(f"| {line}" for line in (failures or error.details)[-3:])])
