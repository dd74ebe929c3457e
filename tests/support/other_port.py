"""A server of another user on this machine, on its own port."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Server(ThreadingHTTPServer):
    """A server that keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Noting)
        self.sent: list[tuple[str, str | None, str | None]] = []
        self.address = f"http://127.0.0.1:{self.server_port}"


class _Noting(BaseHTTPRequestHandler):
    """It notes what browsers send to it."""

    def do_GET(self):
        assert isinstance(self.server, _Server)
        self.server.sent.append((self.path, self.headers.get("Cookie"), self.headers.get("Referer")))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b'<!doctype html><link rel="icon" href="data:,"><title>another</title>')

    def log_message(self, format, *args):
        pass


@contextmanager
def server_on_another_port():
    """The server; `sent` has path, cookies and referrer of each request."""
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
