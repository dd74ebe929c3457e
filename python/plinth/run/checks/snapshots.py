"""Why no snapshot of a running server can be taken as an experiment's actions ask for it, and on what it can."""

from collections.abc import Iterator

from plinth.model.errors import Problem
from plinth.model.experiment import MeasureSpec
from plinth.model.flashback import SnapshotAction
from plinth.model.server_spec import ServerSpec
from plinth.plan import Expanded
from plinth.run.provision.restoring import Restoring

_RESTORE = ["measure", "restore"]
_CAN = 'give it kind = "zfs", kind = "btrfs", or kind = "loop" with filesystem = "btrfs"'


def snapshot_problems(measure: MeasureSpec, restoring: Restoring, expanded: Expanded) -> Iterator[Problem]:
    """Yield the problems, each at the key to change; none without such an action, and when every variant can have it."""
    number = next((n for n, action in enumerate(measure.actions) if isinstance(action, SnapshotAction)), None)
    if number is None:
        return
    if measure.restore == "none":
        yield Problem(
            "the files go back to the snapshot when the load has ended: they have to be restored before the next trial",
            path=_RESTORE,
            hint='add restore = "auto"',
        )
    if not all(variant.workload.keeps_ledger for variant in expanded.variants):
        yield Problem(
            "with snapshots, a commit ledger is needed: it says which commits have to be in them",
            path=["workload"],
            hint='set workload.ledger = true, or workload.builtin = "ledger"',
        )
    for key in expanded.clusters:
        yield from _of_server(key.server, restoring, number)


def _of_server(server: ServerSpec, restoring: Restoring, number: int) -> Iterator[Problem]:
    path: list[str | int] = ["measure", "action", number]
    if server.connection is not None:
        yield Problem(
            "the files of an external server are not ours to put back to a snapshot",
            path=path,
            hint="take a managed server: [storage.NAME] instead of server.connection",
        )
        return
    if server.standby:
        yield Problem(
            "snapshots are taken of servers without standbys only: these would be ahead of a primary that goes back",
            path=path,
            hint="leave [server.standby] out",
        )
        return
    names = sorted(server.storages)
    storages = [restoring.context.storages[name] for name in names]
    on_btrfs = [storage for storage in storages if storage.has_subvolumes()]
    places = 1 + (server.wal_storage is not None) + len(server.tablespaces)
    if len(storages) > 1 or (on_btrfs and places > 1):
        yield Problem(
            f"data directory, WAL and tablespaces are in {places} places ({', '.join(names)}), whose snapshots would be of different "
            "moments",
            path=path,
            hint="leave server.wal_storage and server.tablespaces out",
        )
        return
    for storage in storages:
        if storage in on_btrfs:
            if restoring.asked in ("copy", "reflink"):
                yield Problem(
                    f"on {storage.name} (btrfs) a snapshot is one of a subvolume, which no data directory is that was copied",
                    path=_RESTORE,
                    hint='take restore = "auto" or "snapshot"',
                )
        elif reason := restoring.no_snapshot(storage):
            hint = (
                _CAN if storage.snapshot() is None else "give each cluster a separate storage, with nothing else on it"
            )
            yield Problem(f"no snapshot can be taken: {reason}", path=["storage", storage.name], hint=hint)
