"""Serves reports of bundles as sandboxed pages without network access."""

import base64
import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence

from plinth.bundle import BundleFolder
from plinth.model.run_comparison import RunsComparison
from plinth.model.run_metrics import Metric
from plinth.report import build_report, render_html
from plinth.tasks.analysis import analyse_bundle
from plinth.tasks.answers import bundle_state
from plinth.tasks.compare import compare_bundles

MAX_KEPT_PAGES = 8
"""Maximum number of cached reports of up to 5 MB each."""
METRICS: tuple[Metric, ...] = ("tps", "latency_p99")
"""Metrics of a comparison; the command line compares others, too."""
_SCRIPT = re.compile(r'<script type="module"[^>]*>(.*?)</script>', re.DOTALL)


class Reports:
    """Renders report pages on request, one at a time, and caches them while their bundles do not change."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._making = threading.Lock()

    def page(self, folder: BundleFolder) -> str:
        """Return the HTML report. Raises the errors of the analysis for an unreadable bundle."""
        with self._making:
            state = f"{folder.path} {bundle_state(folder)}"
            if state not in self._kept:
                self._kept[state] = render_html(build_report(*analyse_bundle(folder)))
            self._kept.move_to_end(state)
            while len(self._kept) > MAX_KEPT_PAGES:
                self._kept.popitem(last=False)
            return self._kept[state]

    def comparison(self, folders: Sequence[BundleFolder]) -> RunsComparison:
        """Compare every bundle with the first. Raises a PlinthError for bundles that must not be compared."""
        with self._making:
            return compare_bundles(folders, baseline=None, metrics=METRICS, allowed=())

    def close(self) -> None:
        """Wait for the page being rendered, which must not be interrupted inside a library, and render no other."""
        self._making.acquire()


def policy_of(page: str) -> str:
    """The Content-Security-Policy of a report page: its own viewer runs, in an origin of its own that can ask nobody.

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
