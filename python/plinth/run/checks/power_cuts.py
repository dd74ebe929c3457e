"""Why power cuts cannot be made on what an experiment measures, or would show nothing."""

from collections.abc import Callable, Iterator, Sequence

from plinth.model.builtin import BUILTINS
from plinth.model.dataset import DatasetSpec
from plinth.model.durability import DurabilitySpec
from plinth.model.errors import Problem
from plinth.model.io_error import IoErrorSpec, can_be_made
from plinth.model.workload import WorkloadSpec
from plinth.plan import Expanded
from plinth.run.context import RunContext
from plinth.storage import Storage
from plinth.workload import Dataset
from plinth.workload.survival import knows_commits

_HIDE_DAMAGE = ("zero_damaged_pages", "ignore_checksum_failure", "ignore_invalid_pages")


def cut_problems(
    durability: DurabilitySpec, context: RunContext, expanded: Expanded, dataset_of: Callable[[DatasetSpec], Dataset]
) -> list[Problem]:
    """Return the problems, each at the key that asks for power cuts; none when every variant can be tested by them."""
    found: dict[str, Problem] = {}
    clusters = {cluster.id: cluster for cluster in expanded.clusters}
    for variant in expanded.variants:
        cluster = clusters[variant.cluster]
        if cluster.server.connection is not None:
            found["connection"] = Problem(
                "the power of an external server cannot be cut by a command", path=["durability"]
            )
            continue
        if cluster.server.standby:
            found["standby"] = Problem(
                "power cuts are made on a server without standbys only",
                path=["durability"],
                hint="leave [server.standby] or [durability] out",
            )
            continue
        names = cluster.server.storages
        for storage in context.closure(names):
            if (refusal := storage.power_cut_refusal()) and storage.name in names:
                found[storage.name] = Problem(
                    f"the power cannot be cut: {refusal}",
                    path=["storage", storage.name],
                    hint='use kind = "emulated", or leave [durability] out',
                )
        for setting in _HIDE_DAMAGE:
            if str(variant.settings.get(setting, "off")).lower() in ("on", "true", "yes", "1"):
                found[setting] = Problem(
                    f"{setting} = on hides the damage that power cuts are to find",
                    path=["server", "settings", setting],
                    hint="leave it out: a server that does not recover is a result",
                )
        if durability.atlas:
            cuttable = sorted(names - found.keys())
            found |= _of_atlas(durability, [context.storages[name] for name in cuttable], variant.workload)
        if not knows_commits(variant.workload, dataset_of(cluster.dataset)):
            found["workload"] = _unknown_commits(variant.workload)
    return list(found.values())


def io_error_problems(
    spec: IoErrorSpec, context: RunContext, expanded: Expanded, dataset_of: Callable[[DatasetSpec], Dataset]
) -> list[Problem]:
    """Return what keeps storages from failing as asked, or commits from being looked for, each at the key that asks for it.

    At the end the power is cut, so that they need all that power cuts need, and disks that can fail.
    """
    found = [
        Problem(
            one.message,
            path=["io_errors", *one.path[1:]] if one.path[:1] == ["durability"] else one.path,
            hint=None if one.hint is None else one.hint.replace("[durability]", "[io_errors]"),
        )
        for one in cut_problems(DurabilitySpec(cuts=1), context, expanded, dataset_of)
    ]
    for name in sorted({name for key in expanded.clusters for name in key.server.storages}):
        storage = context.storages[name]
        if storage.power_cut_refusal() is None and storage.spec.kind != "emulated":
            found.append(
                Problem(
                    f"{name} is of kind {storage.spec.kind}, whose requests cannot be made to fail",
                    path=["storage", name],
                    hint='use kind = "emulated", or leave [io_errors] out',
                )
            )
    return [*found, *_never_made(spec, expanded)]


def _never_made(spec: IoErrorSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield the errors that are asked for by name, and that no storage's file system can have."""
    names = {name for key in expanded.clusters for name in key.server.storages}
    used = {getattr(expanded.storages[name], "filesystem", "") for name in names}
    for error in spec.errors if "errors" in spec.model_fields_set else ():
        if used and not any(can_be_made(error, filesystem) for filesystem in used):
            only = "on btrfs only" if can_be_made(error, "btrfs") else "on ext4 and XFS only"
            yield Problem(
                f"got {error!r}, which can be made {only}, and no storage has such a file system",
                path=["io_errors", "errors"],
                hint=f"leave {error!r} out, or set filesystem",
            )


def _of_atlas(durability: DurabilitySpec, storages: Sequence[Storage], workload: WorkloadSpec) -> dict[str, Problem]:
    found: dict[str, Problem] = {}
    for storage in storages:
        if storage.spec.kind != "emulated":
            found[f"atlas {storage.name}"] = Problem(
                f"{storage.name} is of kind {storage.spec.kind}, and only emulated disks can be recorded for an atlas",
                path=["durability", "atlas"],
                hint=f'use kind = "emulated" for {storage.name}, or live cuts (cuts = 30) only',
            )
    if durability.disks == "one":
        found["atlas disks"] = Problem(
            "the images of an atlas are of a cut of all disks at once",
            path=["durability", "disks"],
            hint='use disks = "all", or live cuts (cuts = 30) only',
        )
    if not workload.keeps_ledger:
        found["atlas ledger"] = Problem(
            "an atlas needs a commit ledger: each image is of another moment of the load",
            path=["durability", "atlas"],
            hint='set workload.ledger = true, or workload.builtin = "ledger"',
        )
    return found


def _unknown_commits(workload: WorkloadSpec) -> Problem:
    counted = [name for name, traits in BUILTINS.items() if traits.leaves_history]
    return Problem(
        f"after a power cut it could not be determined which commits of {workload.builtin or 'a script'} are there",
        path=["workload", "builtin" if workload.builtin else "script"],
        hint=f"with [durability], set workload.ledger = true, or builtin to one of {', '.join([*counted, 'ledger'])}",
    )
