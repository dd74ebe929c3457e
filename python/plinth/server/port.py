"""Free TCP ports of this host."""

import socket

from plinth.model.errors import MissingCapability

LOCALHOST = "127.0.0.1"


def check_free(port: int, address: str = LOCALHOST) -> None:
    """Raise MissingCapability when a server could not listen on `port` of an address of this host."""
    with socket.socket(_family(address)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            probe.bind((address, port))
        except OSError as error:
            raise MissingCapability(
                f"port {port} of {address} cannot be had: {error.strerror}",
                where=f"server.port = {port}",
                hint="choose another, or leave server.port out: a free one is then found; the address must be one of this machine",
            ) from error


def find_free(address: str = LOCALHOST) -> int:
    """Find a port of an address of this host on which nothing listens now. Raises MissingCapability for another host's address."""
    with socket.socket(_family(address)) as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            raise MissingCapability(
                f"{address} is no address of this machine: {error.strerror}",
                where="server.listen_address",
                hint="`ip address` shows those that it has",
            ) from error
        return int(probe.getsockname()[1])


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
