"""Whether a server could listen where its layout says, and its memory be limited, on the machine that it will be on."""

from plinth.run.trial.cache_state import drop_error
from plinth.server import port
from plinth.server.layout import SOCKET_PORT, ServerLayout
from plinth.system.cgroup import folder_of_memory_groups


def check_place(layout: ServerLayout) -> None:
    """Raise a PlinthError where the port of a server is taken, its socket could have no path, or nothing could limit its memory."""
    spec = layout.spec
    if spec.listen == "tcp":
        address = spec.listen_address or port.LOCALHOST
        port.check_free(spec.port, address) if spec.port is not None else port.find_free(address)
    layout.check_socket_path(spec.port or SOCKET_PORT)
    if spec.memory_bytes is not None:
        folder_of_memory_groups()
        # What Plinth loads and restores is in the page cache, and not counted as the server's.
        if error := drop_error("server.memory", "or leave it out"):
            raise error
