"""Routes requests to pages. A bundle's URL contains its key, never a path."""

import base64
import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from plinth.bundle import BundleFolder
from plinth.model.errors import PlinthError, UsageError
from plinth.model.run_comparison import RunsComparison
from plinth.report.html import built
from plinth.serve.analyst import Analyst
from plinth.serve.catalogue import Catalogue, CataloguedBundle, Listing
from plinth.serve.guard import CATALOGUE_POLICY
from plinth.serve.live import LIVE_POLICY, LiveStreams, live_page_of
from plinth.serve.pages import catalogue_page, comparison_page, live_page, problem_page
from plinth.tasks.answers import bundle_state

Handler = Callable[[Request], Response]
FEWEST_COMPARED = 2


class Pages:
    """Answers requests. Its methods block, so each request has a separate thread."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._reports = Reports(catalogue.root)
        self.streams = LiveStreams()

    def application(self) -> Starlette:
        """Return the ASGI application without access control."""
        routes = [
            Route("/", _with_error_page(self.catalogue)),
            Route("/changes", _with_error_page(self.changes)),
            Route("/catalogue.css", _file("catalogue.css", "text/css")),
            Route("/catalogue.js", _file("catalogue.js", "text/javascript")),
            Route("/live.css", _file("live.css", "text/css")),
            Route("/live.js", _file("live.js", "text/javascript")),
            Route("/bundles/{key}", _with_error_page(self.report)),
            Route("/compare", _with_error_page(self.compare)),
            Route("/live/{key}", _with_error_page(self.live)),
            Route("/live/{key}/events", self.live_events),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: _http_problem})

    @contextmanager
    def ended_first(self) -> Iterator[None]:
        """Return a context manager that on exit ends what requests wait for, since the server waits for them."""
        try:
            yield
        finally:
            self.streams.end()
            self._reports.close()
            self._catalogue.end()

    def close(self) -> None:
        """End all analyses, and start no other."""
        self._reports.close()
        self._catalogue.close()

    def catalogue(self, request: Request) -> Response:
        """Return the page of all bundles."""
        return self._catalogue_page(request, self._catalogue.listing())

    def changes(self, request: Request) -> Response:
        """Return the page of all bundles if it has changed since the state `since`; else an answer without content."""
        listing = self._catalogue.recent()
        if request.query_params.get("since") != listing.state:
            return self._catalogue_page(request, listing)
        return Response(status_code=HTTPStatus.NO_CONTENT, headers=_asking_again(listing))

    def _catalogue_page(self, request: Request, listing: Listing) -> Response:
        page = catalogue_page(_root(request), str(self._catalogue.root.path), listing)
        return HTMLResponse(page, headers={"Content-Security-Policy": CATALOGUE_POLICY, **_asking_again(listing)})

    def report(self, request: Request) -> Response:
        """Return the report of a bundle."""
        bundle = self._asked_for(request.path_params["key"])
        page = self._reports.page(bundle.name, self._catalogue.folder(bundle))
        return HTMLResponse(page, headers={"Content-Security-Policy": policy_of(page)})

    def compare(self, request: Request) -> Response:
        """Return the comparison of the selected bundles with the oldest of them."""
        ticked = [self._asked_for(key) for key in dict.fromkeys(request.query_params.getlist("bundle"))]
        if len(ticked) < FEWEST_COMPARED:
            raise UsageError("two runs are needed", hint="tick two of them or more")
        ticked.sort(key=lambda one: one.listed.created_unix_ns or 0)
        compared = self._reports.comparison([one.name for one in ticked])
        return HTMLResponse(comparison_page(_root(request), compared))

    def live(self, request: Request) -> Response:
        """Return the live page of an active run."""
        bundle = self._asked_for(request.path_params["key"])
        _built("live.js")
        page = live_page(_root(request), bundle, live_page_of(_root(request), bundle.key))
        return HTMLResponse(page, headers={"Content-Security-Policy": LIVE_POLICY})

    async def live_events(self, request: Request) -> Response:
        """Return the stream of the live page; a browser that connects again sends its place, in a header or the address."""
        folder = await run_in_threadpool(self._folder_of, request.path_params["key"])
        after = request.headers.get("last-event-id") or request.query_params.get("after")
        return self.streams.response(folder, after)

    def _folder_of(self, key: str) -> BundleFolder:
        try:
            return self._catalogue.folder(self._asked_for(key))
        except PlinthError as error:  # it was removed in the meantime
            raise HTTPException(HTTPStatus.NOT_FOUND) from error

    def _asked_for(self, key: str) -> CataloguedBundle:
        found = self._catalogue.bundle(key)
        if found is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return found


def _root(request: Request) -> str:
    """Return what the addresses of all pages begin with."""
    return request.scope["root_path"]


def _asking_again(listing: Listing) -> dict[str, str]:
    return {"Plinth-Ask-Again-S": f"{listing.wait_s:.1f}"}


def _built(name: str) -> str:
    """Return an asset of the server's pages. Raises MissingCapability if it was not built into this installation."""
    return built("plinth.serve", name, "the pages of the server are not built")


def _file(name: str, media_type: str) -> Handler:
    return _with_error_page(lambda request: Response(_built(name), media_type=media_type))


def _with_error_page(handler: Handler) -> Handler:
    """Wrap `handler` to show its errors as a page."""

    @wraps(handler)
    def answer(request: Request) -> Response:
        try:
            return handler(request)
        except PlinthError as error:
            hints = (error.where, *error.details, error.hint and f"Hint: {error.hint}")
            return _problem(request, "This cannot be shown", [error.message, *(hint for hint in hints if hint)])

    return answer


def _problem(request: Request, title: str, sentences: list[str]) -> Response:
    return HTMLResponse(problem_page(_root(request), title, sentences), HTTPStatus.UNPROCESSABLE_ENTITY)


def _http_problem(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    sentence = "There is no such page; a bundle that was moved has another address."
    return HTMLResponse(problem_page(_root(request), HTTPStatus(status).phrase, [sentence]), status)


MAX_KEPT_PAGES = 8
"""Maximum number of cached reports of up to 5 MB each."""
_SCRIPT = re.compile(r'<script type="module"[^>]*>(.*?)</script>', re.DOTALL)


class Reports:
    """Renders report pages on request, one at a time, and caches them while their bundles do not change."""

    def __init__(self, root: BundleFolder) -> None:
        self._root = root
        self._analyst = Analyst()
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._making = threading.Lock()

    def page(self, name: str, folder: BundleFolder) -> str:
        """Return the HTML report of the bundle `name`. Raises RunError with those of its analysis for an unreadable bundle."""
        with self._making:
            state = f"{folder.path} {bundle_state(folder)}"
            if state not in self._kept:
                self._kept[state] = self._analyst.do("report", self._root, [name])
            self._kept.move_to_end(state)
            while len(self._kept) > MAX_KEPT_PAGES:
                self._kept.popitem(last=False)
            return self._kept[state]

    def comparison(self, names: Sequence[str]) -> RunsComparison:
        """Compare every bundle with the first. Raises RunError for bundles that must not be compared."""
        return RunsComparison.model_validate(self._analyst.do("comparison", self._root, names))

    def close(self) -> None:
        """End the page being rendered, and render no other."""
        self._analyst.close()


def policy_of(page: str) -> str:
    """Return the Content-Security-Policy of a report page: its viewer runs in an opaque origin, which can send no request.

    Data of the bundle cannot be taken for the viewer's script: it holds no "<" (plinth.report.html).
    """
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in _SCRIPT.findall(page)
    )
    return (
        f"sandbox allow-scripts; default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; font-src data:; "
        "img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )
