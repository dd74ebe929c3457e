"""Logs of hosts, in the bundle of the run: as much of them as there is room for, and a note on what is missing."""

from plinth.common.untrusted import Room
from plinth.run.hosts.link import HostLink
from plinth.system.log_file import LogFile


def append_within(log: LogFile, piece: bytes, of_log: Room, link: HostLink) -> bool:
    """Append a piece of a host's log, as far as there is room in the log and among all logs of the host; return whether there was. Where
    there was not, the log and a note say which bound it was."""
    if not piece:
        return True
    of_host = link.logs_room
    which, room = min(("one log", of_log), ("all logs of a host in a run", of_host), key=lambda one: one[1].left_bytes)
    kept = room.take(len(piece))
    (of_host if room is of_log else of_log).take(kept)
    is_cut = kept < len(piece)
    reason = f"host {link.name} has more of it than the {room.size_bytes // 2**20} MiB that are kept of {which}"
    with log.to_append() as file:
        file.write(piece[:kept])
        if is_cut:
            file.write(f"\n... cut by plinth: {reason}\n".encode())
    if is_cut:
        link.note(f"{log.path.name} was cut: {reason}; the rest is on the host until the run ends")
    return not is_cut
