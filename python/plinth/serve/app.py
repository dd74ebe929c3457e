"""The pages by their addresses. A bundle's address has its key, never a path."""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from importlib import resources

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from plinth.model.errors import PlinthError, UsageError
from plinth.serve.catalogue import Catalogue, CataloguedBundle
from plinth.serve.pages import catalogue_page, comparison_page, problem_page
from plinth.serve.reports import Reports, policy_of
from plinth.tasks.history import INCONSISTENT

Handler = Callable[[Request], Response]
FEWEST_COMPARED = 2


class Pages:
    """Answers requests. Its methods block, so each request has a thread of its own."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._reports = Reports()
        self._style = resources.files("plinth.serve").joinpath("style.css").read_text(encoding="utf-8")

    def application(self) -> Starlette:
        """The ASGI application, without its guard."""
        routes = [
            Route("/", _teaching(self.catalogue)),
            Route("/style.css", self.style),
            Route("/bundles/{key}", _teaching(self.report)),
            Route("/compare", _teaching(self.compare)),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: _http_problem})

    def close(self) -> None:
        """Wait for what is being worked out; nothing else is begun."""
        self._reports.close()
        self._catalogue.close()

    def catalogue(self, request: Request) -> Response:
        """All bundles."""
        return HTMLResponse(catalogue_page(str(self._catalogue.root.path), self._catalogue.bundles()))

    def style(self, request: Request) -> Response:
        """The style sheet of the server's own pages."""
        return Response(self._style, media_type="text/css")

    def report(self, request: Request) -> Response:
        """A bundle's report."""
        page = self._reports.page(self._catalogue.folder(self._asked_for(request.path_params["key"])))
        return HTMLResponse(page, headers={"Content-Security-Policy": policy_of(page)})

    def compare(self, request: Request) -> Response:
        """The ticked bundles, each against the oldest of them."""
        ticked = [self._asked_for(key) for key in dict.fromkeys(request.query_params.getlist("bundle"))]
        if len(ticked) < FEWEST_COMPARED:
            raise UsageError("two runs are needed", hint="tick two of them or more")
        ticked.sort(key=lambda one: one.listed.created_unix_ns or 0)
        compared = self._reports.comparison([self._catalogue.folder(one) for one in ticked])
        return HTMLResponse(comparison_page(compared))

    def _asked_for(self, key: str) -> CataloguedBundle:
        found = self._catalogue.bundle(key)
        if found is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return found


def _teaching(handler: Handler) -> Handler:
    """`handler`, with what it raises of bundles as a page that says why."""

    @wraps(handler)
    def answer(request: Request) -> Response:
        try:
            return handler(request)
        except PlinthError as error:
            hints = (error.where, *error.details, error.hint and f"Hint: {error.hint}")
            return _problem("This cannot be shown", [error.message, *(hint for hint in hints if hint)])
        except INCONSISTENT as error:
            reason = f"The parts of the bundle contradict one another: {type(error).__name__}: {error}"
            return _problem("This cannot be shown", [reason])

    return answer


def _problem(title: str, sentences: list[str]) -> Response:
    return HTMLResponse(problem_page(title, sentences), HTTPStatus.UNPROCESSABLE_ENTITY)


def _http_problem(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    sentence = "There is no such page; a bundle that was moved has another address."
    return HTMLResponse(problem_page(HTTPStatus(status).phrase, [sentence]), status)
