"""`plinth serve` in another process, and questions to it over a real socket."""

import http.client
import os
import signal
import socket
from urllib.parse import parse_qs, urlsplit

from prepared_plinth import PreparedProcess
from waiting import wait_until


class Served:
    """A server that has printed its address; ended by `interrupt`."""

    def __init__(self, directory, *options, **environment):
        words = ["serve", directory, "--port", "0", *options]
        self._process = PreparedProcess(words, None, {**os.environ, **environment})
        self.address = self._process.stdout.readline().strip()
        assert self.address, self._process.stderr.read()
        parts = urlsplit(self.address)
        self.port = parts.port
        self.root = parts.path.rstrip("/")
        self.token = parse_qs(parts.query)["token"][0]

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        if self._process.poll() is None:
            self.interrupt()

    @property
    def pid(self):
        return self._process.pid

    @property
    def cookie(self):
        return f"plinth={self.token}"

    def ask(self, path, method="GET", *, cookie=True, headers=()):
        """Status, headers and text of the answer of a page of the server's; `cookie` is sent unless it is False."""
        return self.ask_whole(self.root + path, method, cookie=cookie, headers=headers)

    def ask_whole(self, path, method="GET", *, cookie=True, headers=()):
        """The same by the whole path, with the folder that the server's addresses begin with."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {**({"Cookie": self.cookie} if cookie else {}), **dict(headers)}
        connection.request(method, path, headers=sent)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, body

    def send(self, request: bytes, *, ends=False) -> bytes:
        """The whole answer to bytes as they are, after which the connection `ends`: what no library of HTTP would send."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(request)
            if ends:
                connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def interrupt(self, number=signal.SIGINT):
        """End it as Ctrl-C does; exit code and what it wrote to standard error."""
        self._process.send_signal(number)
        return self._process.wait(60), self._process.stderr.read()


def catalogue(served):
    """The catalogue, once every answer is worked out."""
    pages = []

    def is_complete():
        pages.append(served.ask("/")[2])
        return "being worked out" not in pages[-1]

    wait_until(is_complete, timeout_s=60)
    return pages[-1]
