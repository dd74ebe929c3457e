"""Access control of the server: requests need its token, its own host name, its own pages as origin, and may only
read."""

import hmac
from collections.abc import Collection, Iterable
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

READING = ("GET", "HEAD")
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
    """Lets through what reads, comes by one of `hosts` ("127.0.0.1:8432") and has the token, in the address or the cookie.

    A page of another origin cannot ask: it has no cookie (SameSite=Strict), its Origin is refused, and a name of its own that
    resolves to this machine (DNS rebinding) is not one of `hosts`.
    """

    def __init__(self, app: ASGIApp, token: str, hosts: Collection[str], cookie: str) -> None:
        self._app = app
        self._token = token
        self._hosts = frozenset(hosts)
        self._origins = frozenset(f"http://{host}" for host in hosts)
        self._cookie = cookie

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

        await (answer or self._app)(scope, receive, send_guarded)

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
        """With the token in the address: to the same address without it, and the cookie; None for whoever has that."""
        given = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=1000).get("token", ())
        if given and self._is_token(given[0]):
            response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", path="/")
            return response
        if any(self._is_token(value) for value in _cookies(headers.getlist("cookie"), self._cookie)):
            return None
        return _refused("open the address that `plinth serve` printed: it has the token without which nothing is shown")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="surrogateescape"), self._token.encode())


def _cookies(headers: Iterable[str], name: str) -> Iterable[str]:
    for header in headers:
        try:
            found = SimpleCookie(header).get(name)
        except CookieError:  # not set by this server
            continue
        if found is not None:
            yield found.value


def _is_one_of(values: list[str], allowed: Collection[str]) -> bool:
    return len(values) == 1 and values[0].lower() in allowed


def _refused(reason: str, status: HTTPStatus = HTTPStatus.FORBIDDEN) -> Response:
    return PlainTextResponse(f"refused: {reason}\n", status)
