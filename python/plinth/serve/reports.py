"""Serves reports of bundles as sandboxed pages without network access."""

import base64
import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence

from plinth.bundle import BundleFolder
from plinth.model.run_comparison import RunsComparison
from plinth.serve.analyst import Analyst
from plinth.tasks.answers import bundle_state

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
