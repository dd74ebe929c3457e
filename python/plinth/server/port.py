"""TCP ports of this host: whether one is free, and a free one."""

import socket

from plinth.model.errors import MissingCapability

LOCALHOST = "127.0.0.1"


def check_free(port: int) -> None:
    """Raise MissingCapability when a server could not listen on `port`."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            probe.bind((LOCALHOST, port))
        except OSError as error:
            raise MissingCapability(
                f"port {port} of {LOCALHOST} cannot be had: {error.strerror}",
                where=f"server.port = {port}",
                hint="choose another, or leave server.port out: a free one is then found",
            ) from error


def find_free() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((LOCALHOST, 0))
        return int(probe.getsockname()[1])
