"""What becomes of an acknowledged commit when the power goes: judged from the storage's facts and the server's settings.

A judgement from facts, not a test: a device that lies about its flushes is not found here.
"""

from collections.abc import Iterator, Mapping, Sequence

from plinth.model.facts import ServerFacts, StackNode, StorageFacts
from plinth.model.place import EMULATED, NETWORK
from plinth.model.plan import DATA_ROLE, WAL_ROLE, Variant
from plinth.model.safety import GRADES, Safety, SafetyGrade
from plinth.model.write_facts import (
    AS_ASKED,
    AS_READ_BACK,
    SettingSeen,
    WriteFacts,
    WrittenRelation,
    settings_in_force,
    value_in_force,
)

Finding = tuple[SafetyGrade, str]

_NO_FLUSHES = "the file system sends no flushes to the device"
_FLUSHES_OFF = {
    "nobarrier": _NO_FLUSHES,
    "barrier=0": _NO_FLUSHES,
    "barrier=none": _NO_FLUSHES,  # reiserfs
    "fsync_mode=nobarrier": _NO_FLUSHES,  # f2fs
    "nosync": "the file system leaves out every sync",
}
"""Mount options under which fsync returns before the device's cache is written, by any file system's name for them."""
_WRITEBACK = "data=writeback"


def storage_findings(role: str, storage: StorageFacts | None) -> list[Finding]:
    """Return what is known of the storage that has `role`; None: its facts were never read."""
    if storage is None:
        whose = "its facts" if role == DATA_ROLE else f"the facts of that of {role}"
        return [unknown(f"{whose} were never read")]
    name = storage.name if role == DATA_ROLE else f"{storage.name}, where the {role} is,"
    findings: list[Finding] = []
    if storage.volatile:
        why = storage.volatile_reason or f"{storage.filesystem} loses everything at a power cut"
        findings.append(("does not keep", f"{name} is volatile: {why}"))
    if storage.flushes_withheld is not None:
        findings.append(("does not keep", storage.flushes_withheld))
    findings += _of_options(f"{name} is", storage.filesystem, storage.mount_options)
    findings += _of_layers(name, storage.stack)
    return list(dict.fromkeys(findings))


def unknown(why: str) -> Finding:
    """Judge a storage of which too little is known."""
    return "unknown", f"the storage cannot be judged: {why}"


def _of_options(subject: str, filesystem: str, options: Sequence[str]) -> Iterator[Finding]:
    for option in options:
        if option in _FLUSHES_OFF:
            yield "does not keep", f"{subject} mounted with {option}: {_FLUSHES_OFF[option]}"
        if option == _WRITEBACK:  # as PostgreSQL's manual has it, 28.3: Write-Ahead Logging
            yield (
                "keeps",
                f"{subject} mounted with {option}: after a crash a file that was not flushed may hold old blocks, and "
                "PostgreSQL flushes what it relies on",
            )
        # "volatile" since Linux 5.10, "fsync=volatile" in later ones.
        if filesystem == "overlay" and option in ("volatile", "fsync=volatile"):
            yield "does not keep", f"{subject} a volatile overlay, which leaves out every sync"


def _of_layers(name: str, stack: Sequence[StackNode]) -> Iterator[Finding]:
    """Return what the layers say: the top mount and its file system are judged by the storage's own options."""
    mounted = ""
    for number, node in enumerate(stack):
        if node.kind == "mount":
            mounted = node.name
        elif node.kind == "filesystem" and number > 1:
            subject = f"{name} is stored on {mounted}, which is"
            yield from _of_options(subject, node.name, [*_list(stack[number - 1], "options"), *_list(node, "options")])
            yield from _of_options(subject, node.name, _list(node, "options_in_effect"))
        elif node.kind == "loop" and _value(node, "write_cache") == "write through":
            yield (
                "does not keep",
                f"{name} is stored on {node.name}, a loop device whose write cache is set to write through: the kernel sends "
                "it no flushes, and its file is never synced",
            )
        elif node.kind == "zfs":
            yield from _of_pool(name, node)
        elif node.kind == NETWORK:
            yield (
                "unknown",
                f"{name} is stored elsewhere ({node.name}): whether that keeps what it has acknowledged cannot be seen from here",
            )
        if node.kind == "filesystem" and node.name.partition(".")[0] in ("fuse", "fuseblk"):
            below = next((one.kind for one in stack[number + 1 :] if one.kind not in ("mount", "filesystem")), None)
            if below not in (EMULATED, "zfs"):
                yield (
                    "unknown",
                    f"{name} is stored on a file system that a program serves ({node.name}): what that does with a flush "
                    "cannot be seen from here",
                )


def _of_pool(name: str, pool: StackNode) -> Iterator[Finding]:
    for of in ("dataset", "pool"):
        if _value(pool, f"{of}.sync") == "disabled":
            yield "does not keep", f"{name} has sync = disabled on ZFS: an fsync returns before anything is written"
        if _value(pool, f"{of}.logbias") == "throughput":
            yield "keeps", f"{name} has logbias = throughput on ZFS: synchronous writes go past a log device"


def _value(node: StackNode, name: str) -> object:
    return next((fact.value for fact in node.facts if fact.name == name), None)


def _list(node: StackNode, name: str) -> list[str]:
    value = _value(node, name)
    return value if isinstance(value, list) else []


_TRUSTED: tuple[Finding, ...] = (
    ("keeps", "every commit is flushed before it is acknowledged, to storage that is not volatile"),
    ("keeps", "the device is trusted to keep what it says it has flushed"),
)
"""What remains to be said where nothing speaks against a variant."""


def judge(
    variant: Variant,
    storages: Mapping[str, StorageFacts | None],
    server: ServerFacts | None,
    writes: Sequence[WriteFacts] = (),
) -> Safety:
    """Return the worst of what storages, settings and the tables that were written allow.

    `storages` by what the server has on them ("data", "WAL", ...), none of an external server. Facts that were never
    read are None. `writes` are of the variant's loads.
    """
    findings = [] if storages else [unknown("Plinth did not start this server and cannot see it")]
    for role, storage in storages.items():
        findings += storage_findings(role, storage)
    findings += _of_preloaded(server)
    findings += _of_settings(variant, storages, server, writes)
    findings += [*_of_relations(writes), *_TRUSTED]
    worst, _ = max(findings, key=lambda finding: GRADES.index(finding[0]))
    return Safety(
        grade=worst, reasons=tuple(reason for grade, reason in findings if (grade == "keeps") == (worst == "keeps"))
    )


def _of_preloaded(server: ServerFacts | None) -> list[Finding]:
    """Return what libraries do that were loaded into the server before its own: libeatmydata makes nothing of every fsync."""
    findings: list[Finding] = []
    for library in () if server is None else server.preloaded:
        if "eatmydata" in library:
            findings.append(("does not keep", f"{library} is loaded into the server: every fsync is left out"))
        else:
            why = f"{library} is loaded into the server (LD_PRELOAD), and may change what its calls do"
            findings.append(("unknown", why))
    return findings


def _of_settings(
    variant: Variant,
    storages: Mapping[str, StorageFacts | None],
    server: ServerFacts | None,
    writes: Sequence[WriteFacts],
) -> list[Finding]:
    findings: list[Finding] = []
    if server is None:
        findings.append(("unknown", "the settings in force were never read back from the server"))
    settings = settings_in_force(variant.asked, server, writes)
    if value_in_force(settings, "fsync") == "off":
        why = f"fsync = off{_where(settings['fsync'])}: nothing is flushed, and a power cut can corrupt everything"
        findings.append(("does not keep", why))
    of_pages = [storage for role, storage in storages.items() if role != WAL_ROLE]
    full_page_writes_off = value_in_force(settings, "full_page_writes") == "off"
    if full_page_writes_off and of_pages and all(storage and storage.filesystem == "zfs" for storage in of_pages):
        findings.append(("keeps", "full_page_writes = off, on zfs, which never overwrites a page in place"))
    elif full_page_writes_off:
        where = _where(settings["full_page_writes"])
        findings.append(
            (
                "does not keep",
                f"full_page_writes = off{where}: a page torn by a power cut cannot be repaired from the WAL",
            )
        )
    if value_in_force(settings, "data_sync_retry") == "on":
        findings.append(
            (
                "unknown",
                f"data_sync_retry = on{_where(settings['data_sync_retry'])}: when a flush fails, the server tries it again instead of "
                "recovering from the WAL, and Linux may have dropped what the first one did not write",
            )
        )
    return [*findings, *_of_commits(settings)]


def _of_commits(settings: Mapping[str, SettingSeen]) -> list[Finding]:
    """Return what synchronous_commit allows, on the sessions of the load too."""
    seen = settings.get("synchronous_commit")
    if seen is None or value_in_force(settings, seen.name) not in (None, "off"):
        return []
    if seen.value is None:
        return [("unknown", f"{seen.where} sets synchronous_commit to a value that only shows while it runs")]
    if not seen.certain:
        why = f"{seen.where}; whether commits of the load had that is not known"
        return [("unknown", why)]
    return [
        (
            "may lose recent commits",
            f"synchronous_commit = off{_where(seen)}: a crash loses the commits of up to three times wal_writer_delay",
        )
    ]


def _where(seen: SettingSeen) -> str:
    """Return where a setting comes from; nothing for the server's configuration, which goes without saying."""
    return "" if seen.where in (AS_READ_BACK, AS_ASKED) else f" ({seen.where})"


def _of_relations(writes: Sequence[WriteFacts]) -> list[Finding]:
    """Return what becomes of tables and indexes that took writes and are not kept where, or as, the server's other data are."""
    findings: dict[str, Finding] = {}
    for relation in (relation for facts in writes for relation in facts.relations):
        name = f"{relation.kind} {relation.name}"
        if relation.persistence == "unlogged" and relation.kind == "table":
            findings[name] = ("does not keep", f"{name} is unlogged: recovery after a crash empties it")
        elif relation.directory is not None and relation.storage is None:
            findings[name] = _outside(name, relation)
    for gap in (gap for facts in writes for gap in facts.gaps):
        findings[gap.what] = ("unknown", f"{gap.what}: not known: {gap.reason}")
    return list(findings.values())


def _outside(name: str, relation: WrittenRelation) -> Finding:
    """Judge a relation in a tablespace that is on no storage of the experiment."""
    where = f"{name} is in tablespace {relation.tablespace}, in {relation.directory}"
    if relation.place is not None:
        losing = [why for grade, why in storage_findings(DATA_ROLE, relation.place) if grade == "does not keep"]
        if losing:
            return "does not keep", f"{where}: {losing[0]}"
    return "unknown", f"{where}, on none of the experiment's storages: no power cut reaches it, and it was not tested"
