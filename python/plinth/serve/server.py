"""Runs the HTTP server on the loopback interface until Ctrl-C."""

import errno
import os
import secrets
import select
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import uvicorn

from plinth.bundle import BundleFolder
from plinth.model.errors import UsageError
from plinth.run.interrupt import InterruptGuard
from plinth.serve.app import Pages
from plinth.serve.catalogue import Catalogue
from plinth.serve.connection import TimedConnections
from plinth.serve.guard import Guard
from plinth.system import cancel

ADDRESS = "127.0.0.1"
_MAX_CONNECTIONS = 200
_END_TIMEOUT_S = 2


def serve(directory: Path, port: int, announce: Callable[[str], None]) -> None:
    """Serve the bundles below `directory`; `announce` gets the address with the token, once it can be opened.

    Port 0 takes a free one. Comes back never: Ctrl-C and SIGTERM raise Interrupted. UsageError for a directory or port that cannot be used.
    """
    root = BundleFolder(directory)
    with _listening(port) as listener, InterruptGuard(lambda _: None), closing(Pages(Catalogue(root))) as pages:
        port = listener.getsockname()[1]
        # The folder is in the address of each page; the token is only in the printed one, and then in the cookie.
        folder, token = secrets.token_urlsafe(16), secrets.token_urlsafe(32)
        guard = Guard(pages.application(), folder, token, (f"{ADDRESS}:{port}", f"localhost:{port}"))
        connections = TimedConnections(guard)
        config = uvicorn.Config(
            connections,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # else everyone who connects writes lines to our terminal: damaged requests are warnings
            access_log=False,  # do not log URLs, which contain the token
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=_END_TIMEOUT_S,
        )
        connections.watch(config)
        with _Serving(uvicorn.Server(config), listener) as serving, pages.ended_first():
            announce(f"http://{ADDRESS}:{port}/{folder}/?token={token}")
            serving.wait()


class _Serving:
    """Runs the server in a thread, since the main thread handles signals, which end its wait."""

    def __init__(self, server: uvicorn.Server, listener: socket.socket) -> None:
        self._server = server
        self._listener = listener
        self._ended = os.eventfd(0, os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name="server")

    def __enter__(self) -> "_Serving":
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        os.close(self._ended)

    def wait(self) -> None:
        """Wait until the server ends. Raises Interrupted on cancellation."""
        cancel.poll({self._ended: select.POLLIN}, None)

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._listener])
        finally:
            os.eventfd_write(self._ended, 1)


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        is_taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        reason = "another program listens there" if is_taken else str(error)
        raise UsageError(
            f"cannot listen on port {port} of {ADDRESS}: {reason}",
            where="--port",
            hint="name another port, or --port 0 for one that is free",
        ) from error
    return listener
