"""What a client's backend waits for, as a kind of bottleneck. Names of events: PostgreSQL 13 to 18, in any case.

Chapter "Monitoring Database Activity", tables of wait events; 17 changed the case of many.
"""

from plinth.model.bottleneck import BottleneckKind
from plinth.model.waits import ON_CPU

_WAL = {"io:walsync", "io:walsyncmethodassign", "io:walwrite", "io:walinitsync", "io:walinitwrite", "lwlock:walwrite"}
# A page that another backend reads is waited for as LWLock:BufferIO (13), then IPC:BufferIO. Of asynchronous I/O,
# which 18 brought, all are reads.
_READS = {
    *("io:datafileread", "io:datafileprefetch", "io:slruread", "io:buffileread", "io:copyfileread"),
    *("io:aioiocompletion", "io:aioiouringexecution", "io:aioiouringsubmit"),
    *("lwlock:aioworkersubmissionqueue", "lwlock:aiouringcompletion"),
    *("lwlock:bufferio", "ipc:bufferio"),
}
_WRITES = {
    *("io:datafilewrite", "io:datafileextend", "io:datafileflush", "io:datafilesync", "io:datafileimmediatesync"),
    *("io:datafiletruncate", "io:buffilewrite", "io:slruwrite", "io:slrusync", "io:slruflushsync", "lock:extend"),
}
# Backends that end their transactions at the same time leave that to one of them, who holds the lock for all.
_LOCKS = {"ipc:procarraygroupupdate", "ipc:xactgroupupdate", "ipc:cloggroupupdate"}


def class_of(event: str) -> BottleneckKind | None:
    """Return the bottleneck that waiting for `event` is a sign of; None where it is none, such as a pause asked for."""
    name = event.lower()
    kind, _, what = name.partition(":")
    if event == ON_CPU or what == "spindelay":
        return "server CPU"
    if name in _WAL:
        return "WAL flush"
    if name in _READS:
        return "device reads"
    if name in _WRITES:
        return "device writes"
    if what == "syncrep":
        return "replication"
    if name == "client:clientwrite":
        return "network"
    return "locks" if name in _LOCKS or kind in ("lock", "lwlock", "bufferpin", "buffer") else None


def is_pause(event: str) -> bool:
    """Return whether a backend that waits for `event` pauses because it was asked to, as by pg_sleep or vacuum_cost_delay.

    It is at work for its client, who waits for it: it is not idle.
    """
    return event.lower().startswith("timeout:")


def is_turn_of_client(event: str) -> bool:
    """Return whether a backend that waits for `event` has nothing to do until its client sends something."""
    kind, _, what = event.lower().partition(":")
    return kind == "activity" or (kind == "client" and what == "clientread")
