"""Lists the bundles below a directory, each with a key that does not reveal its path."""

import hashlib
import os
import queue
import secrets
import threading
import time
from dataclasses import dataclass, replace

from plinth.bundle import BundleFolder
from plinth.model.errors import PlinthError
from plinth.model.history import BundleAnswer, ListedBundle
from plinth.serve.analyst import Analyst
from plinth.system import cancel
from plinth.system.lock import is_locked
from plinth.tasks.history import found_bundles, listed_bundle, newest_first

BEING_WORKED_OUT = "being worked out"
_SHORTEST_WAIT_S = 1.0
_WAIT_PER_SCAN = 50
"""An open catalogue has the directory read again and again, maybe while a run measures: it may take 2 % of one core."""
_DOCUMENTS = ("manifest.json", "plan.json", "env/host.json", "SHA256SUMS", "trials")
"""Files whose change shows that a bundle has changed: documents are replaced, and trials are added to trials/."""
State = tuple[object, ...]
Answered = tuple[BundleAnswer | None, str | None]
"""The answer of a bundle, or None and why there is none."""
_NICENESS = 10
"""Pages come first."""


@dataclass(frozen=True)
class CataloguedBundle:
    """A bundle, its key in URLs, and whether its run is active."""

    key: str
    name: str
    listed: ListedBundle
    runs: bool


@dataclass(frozen=True)
class Listing:
    """All bundles at one time, the newest first; `state` is another one once anything of them has changed."""

    bundles: tuple[CataloguedBundle, ...]
    state: str
    wait_s: float
    """How long a page that is open waits before it asks again."""


class Catalogue:
    """List entries are cached until a document of the bundle changes; answers are computed meanwhile.

    May be asked by several threads. Reads all bundles at once, so that the first page need not.
    """

    def __init__(self, root: BundleFolder) -> None:
        self.root = root
        self._kept: dict[str, tuple[State, CataloguedBundle]] = {}
        self._answers: dict[str, tuple[State, Answered]] = {}
        self._asked: queue.SimpleQueue[tuple[State, CataloguedBundle] | None] = queue.SimpleQueue()
        self._is_closed = False
        # Pages of a server that was started before this one must not take its state for theirs.
        self._born = secrets.token_hex(4)
        self._changes = 0
        self._listing: Listing | None = None
        self._scanned_s = 0.0
        self._scanning = threading.Lock()
        self._analyst = Analyst(_NICENESS)
        self._answering = threading.Thread(target=self._compute_answers, name="answers")
        self.listing()
        self._answering.start()

    def close(self) -> None:
        """Stop computing answers."""
        self.end()
        self._answering.join()

    def end(self) -> None:
        """Have the computing of answers end, without waiting for it."""
        self._is_closed = True
        self._analyst.close()
        self._asked.put(None)

    def listing(self) -> Listing:
        """Read the directory, and return all current bundles."""
        with self._scanning:
            return self._scan()

    def recent(self) -> Listing:
        """Return all bundles as they were a moment ago: for pages that ask again and again, however many are open."""
        with self._scanning:
            listing = self._listing
            is_recent = listing is not None and time.monotonic() < self._scanned_s + listing.wait_s / 2
            return listing if listing is not None and is_recent else self._scan()

    def bundle(self, key: str) -> CataloguedBundle | None:
        """Return the bundle of this key; None if it does not exist any more."""
        return next((one for one in self.listing().bundles if one.key == key), None)

    def folder(self, bundle: CataloguedBundle) -> BundleFolder:
        """Open its directory again without following links. Raises RunError if it was removed."""
        return self.root.folder(bundle.name)

    def _scan(self) -> Listing:
        begun_s = time.thread_time()
        found = {name: self._catalogued(name, problem) for name, problem in found_bundles(self.root)}
        if self._kept.keys() - found.keys():
            self._kept = {name: kept for name, kept in self._kept.items() if name in found}
            self._changes += 1
        bundles = tuple(sorted(found.values(), key=lambda one: newest_first(one.listed)))
        wait_s = max(_SHORTEST_WAIT_S, _WAIT_PER_SCAN * (time.thread_time() - begun_s))
        self._scanned_s = time.monotonic()
        self._listing = Listing(bundles, f"{self._born}-{self._changes}", wait_s)
        return self._listing

    def _catalogued(self, name: str, problem: str | None) -> CataloguedBundle:
        cancel.check()  # before the address is printed; later none of the threads that read can be cancelled
        state, runs = (problem,), False
        if problem is None:
            try:
                folder = self.root.folder(name) if name else self.root
            except PlinthError as error:
                problem = error.message
                state = (problem,)
            else:
                runs = is_locked(folder.descriptor)
                state = (runs, *(_state(folder.descriptor, document) for document in _DOCUMENTS))
        kept = self._kept.get(name)
        if kept is None or kept[0] != state:
            listed = listed_bundle(self.root, name, problem, lambda _: (None, BEING_WORKED_OUT))
            kept = state, CataloguedBundle(_key(name), name, listed, runs)
            if listed.status != "unreadable":
                self._asked.put(kept)
            self._changes += 1
        elif (answered := self._answers.pop(name, None)) is not None and answered[0] == state:
            answer, missing = answered[1]
            said = {"answer": answer and answer.text, "answer_missing": missing, "headline": answer and answer.headline}
            kept = state, replace(kept[1], listed=kept[1].listed.model_copy(update=said))
            self._changes += 1
        self._kept[name] = kept
        return kept[1]

    def _compute_answers(self) -> None:
        while (asked := self._asked.get()) is not None and not self._is_closed:
            state, bundle = asked
            try:
                answer, missing = self._analyst.do("answer", self.root, [bundle.name])
                answered = answer and BundleAnswer.model_validate(answer), missing
            except PlinthError as error:
                answered = None, error.message
            self._answers[bundle.name] = state, answered


def _key(name: str) -> str:
    return hashlib.sha256(os.fsencode(name)).hexdigest()[:20]


def _state(folder: int, document: str) -> object:
    """Return inode, size and change time of a file (inode(7)); None if it does not exist."""
    try:
        found = os.stat(document, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
