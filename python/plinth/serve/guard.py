"""Access control of the server: requests need its secret folder, its token, its own host name, its own pages as origin, and
may only read."""

import hmac
from collections.abc import Collection, Iterable
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

READING = ("GET", "HEAD")
_COOKIE = "plinth"
_MOST_PARAMETERS = 1000
_NOT_SHOWN = "open the address that `plinth serve` printed: nothing is shown without its token"
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; font-src data:; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""Content-Security-Policy of the server's own pages: no script, nothing of other origins."""
CATALOGUE_POLICY = f"{PAGE_POLICY}; script-src 'self'; connect-src 'self'"
"""Content-Security-Policy of the catalogue, which runs a script of the server's that asks the server alone."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": PAGE_POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Lets through what reads, comes by one of `hosts` ("127.0.0.1:8432"), knows the secret `folder` that all addresses begin with,
    and has the token, in the address or the cookie.

    A page of another site cannot ask: it has no cookie (SameSite=Strict), its Origin is refused, and a name of that site that
    resolves to this machine (DNS rebinding) is not one of `hosts`. Cookies do not know ports: every server of this
    machine is of the same site and is sent those of its host. The cookie is bound to the folder, which such a server does not
    know: it is sent no cookie, and with one it could not ask.
    """

    def __init__(self, app: ASGIApp, folder: str, token: str, hosts: Collection[str]) -> None:
        self._app = app
        self._folder = folder
        self._token = token
        self._hosts = frozenset(hosts)
        self._origins = frozenset(f"http://{host}" for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request of ASGI; only HTTP is served."""
        headers = Headers(scope=scope)
        answer = self._refusal(scope, headers) or self._admission(scope, headers)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                of_answer = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    of_answer.setdefault(name, value)
            await send(message)

        await (answer or self._app)({**scope, "root_path": f"/{self._folder}"}, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not _is_one_of(headers.getlist("host"), self._hosts):
            return _refused(
                f"this server is asked as {' or '.join(sorted(self._hosts))}", HTTPStatus.MISDIRECTED_REQUEST
            )
        if "origin" in headers and not _is_one_of(headers.getlist("origin"), self._origins):
            return _refused("pages of another origin may not ask this server")
        is_navigation = headers.get("sec-fetch-mode", "navigate") == "navigate"
        if not is_navigation and headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return _refused("pages of another origin may not ask this server")
        if scope["method"] not in READING:
            return PlainTextResponse(
                "this server only reads\n", HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": ", ".join(READING)}
            )
        return None

    def _admission(self, scope: Scope, headers: Headers) -> Response | None:
        """Return None for a request with the cookie; with the token in the address, a redirection that sets the cookie; else a refusal.

        Nothing in the answer depends on how much of folder or token is right.
        """
        if not _is_same(scope["path"].removeprefix("/").partition("/")[0], self._folder):
            return _refused(_NOT_SHOWN)
        try:
            given = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=_MOST_PARAMETERS).get("token", ())
        except ValueError:  # each costs time and memory
            reason = f"an address has {_MOST_PARAMETERS:,} parameters at most: tick fewer bundles"
            return _refused(reason, HTTPStatus.BAD_REQUEST)
        if given and _is_same(given[0], self._token):
            response = RedirectResponse(f"/{self._folder}/", HTTPStatus.SEE_OTHER)
            response.set_cookie(_COOKIE, self._token, httponly=True, samesite="strict", path=f"/{self._folder}")
            return response
        if any(_is_same(value, self._token) for value in _cookies(headers.getlist("cookie"))):
            return None
        return _refused(_NOT_SHOWN)


def _is_same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), secret.encode())


def _cookies(headers: Iterable[str]) -> Iterable[str]:
    """Yield all values of our cookie: servers on other ports can set one of the same name, and others that no parser likes."""
    for header in headers:
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == _COOKIE:
                yield value


def _is_one_of(values: list[str], allowed: Collection[str]) -> bool:
    return len(values) == 1 and values[0].lower() in allowed


def _refused(reason: str, status: HTTPStatus = HTTPStatus.FORBIDDEN) -> Response:
    return PlainTextResponse(f"refused: {reason}\n", status)
