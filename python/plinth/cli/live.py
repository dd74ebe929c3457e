"""Shows the progress of a run on stderr: a live display on a terminal, else plain lines."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from plinth.cli.console import error_console, stderr
from plinth.cli.printing import print_plain
from plinth.model.figures import percent
from plinth.model.load import LoadResult, Second
from plinth.model.plan import PlannedTrial, Variant
from plinth.model.progress import Progress
from plinth.model.trial import Trial
from plinth.model.units import format_duration, format_size
from plinth.run.listener import Listener, LiveSecond

_BARS = "▁▂▃▄▅▆▇█"
_SPARK_SECONDS = 40
_PLAIN_PROGRESS_EVERY_S = 5.0


@contextmanager
def open_listener(quiet: bool) -> Iterator[Listener]:
    """Return the listener to use: silent, live on a terminal, or plain lines."""
    console = error_console()
    if quiet:
        yield Silent(console)
    elif console.is_terminal and not console.is_dumb_terminal:
        display = LiveDisplay(console)
        with Live(console=console, get_renderable=display.render, refresh_per_second=8, transient=True):
            yield display
    else:
        yield PlainLines()


class Silent:
    """Shows notes only."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def phase(self, text: str) -> None:
        """Not shown."""

    def progress(self, progress: Progress) -> None:
        """Not shown."""

    def note(self, text: str) -> None:
        """Shown."""
        self._console.print(Text(f"note: {text}"))

    def trial_started(self, trial: PlannedTrial, variant: Variant, total: int) -> None:
        """Not shown."""

    def second(self, live: LiveSecond) -> None:
        """Not shown."""

    def trial_ended(self, trial: Trial, load: LoadResult | None) -> None:
        """Not shown."""


class PlainLines:
    """A line for each event, for logs and pipes."""

    def __init__(self) -> None:
        self._stderr = stderr()
        self._started = time.monotonic()
        self._next_progress = 0.0
        self._trial = ""

    def phase(self, text: str) -> None:
        """One line."""
        self._say(text)
        self._next_progress = time.monotonic() + _PLAIN_PROGRESS_EVERY_S

    def progress(self, progress: Progress) -> None:
        """One line every few seconds."""
        if time.monotonic() >= self._next_progress:
            self._next_progress = time.monotonic() + _PLAIN_PROGRESS_EVERY_S
            self._say(f"  {progress_text(progress)}")

    def note(self, text: str) -> None:
        """One line."""
        self._say(f"note: {text}")

    def trial_started(self, trial: PlannedTrial, variant: Variant, total: int) -> None:
        """Kept for the line at the end."""
        self._trial = f"trial {trial.number} of {total}: {variant.label}"

    def second(self, live: LiveSecond) -> None:
        """Not shown."""

    def trial_ended(self, trial: Trial, load: LoadResult | None) -> None:
        """One line with the trial's figures."""
        self._say(f"{self._trial}: {outcome(trial)}")

    def _say(self, text: str) -> None:
        # One write call, since another thread may print a note.
        print_plain(f"[{time.monotonic() - self._started:7.1f} s] {text}\n", end="", file=self._stderr, flush=True)


class LiveDisplay:
    """Shows phase, progress and the running trial's seconds below the notes and finished trials."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = time.monotonic()
        self._phase = ""
        self._progress: tuple[Progress, float] | None = None
        self._trial: tuple[PlannedTrial, Variant, int] | None = None
        self._live: LiveSecond | None = None
        self._tps: list[float] = []
        self._ended = 0
        self._first_trial: float | None = None

    def phase(self, text: str) -> None:
        """Shown in the head line."""
        self._phase, self._progress, self._trial, self._live = text, None, None, None

    def progress(self, progress: Progress) -> None:
        """Shown as a bar with rate and time left."""
        since = time.monotonic()
        if self._progress is not None and self._progress[0].task == progress.task:
            since = self._progress[1]
        self._progress = (progress, since)

    def note(self, text: str) -> None:
        """Stays on the screen above the display."""
        self._console.print(Text(f"note: {text}", style="yellow"))

    def trial_started(self, trial: PlannedTrial, variant: Variant, total: int) -> None:
        """Shown in the head line."""
        self._trial, self._live, self._tps, self._progress = (trial, variant, total), None, [], None
        self._first_trial = self._first_trial or time.monotonic()

    def second(self, live: LiveSecond) -> None:
        """Shown with the seconds before it."""
        self._live = live
        self._tps.append(_tps(live.second))

    def trial_ended(self, trial: Trial, load: LoadResult | None) -> None:
        """Stays on the screen above the display."""
        label, total = (self._trial[1].label, self._trial[2]) if self._trial else (trial.variant, trial.number)
        self._console.print(Text.assemble((f"trial {trial.number} of {total}: {label}: ", "dim"), outcome(trial)))
        self._ended += 1

    def render(self) -> RenderableType:
        """Render the display; called by the terminal's refresh thread."""
        rows: list[RenderableType] = [self._head()]
        if self._trial is not None and self._live is not None:
            rows.append(self._second_line(self._live))
            rows.append(Text(host_line(self._live.host), style="dim"))
        if self._progress is not None:
            rows.append(_bar(*self._progress))
        return Group(*rows)

    def _head(self) -> Text:
        elapsed = format_duration(round(time.monotonic() - self._started))
        if self._trial is None:
            return Text.assemble((f"{elapsed:>9}  ", "dim"), self._phase)
        trial, variant, total = self._trial
        head = f"trial {trial.number} of {total}: "
        return Text.assemble(
            (f"{elapsed:>9}  ", "dim"), head, (variant.label, "bold"), (self._left(total - trial.number + 1), "dim")
        )

    def _left(self, trials: int) -> str:
        """Estimate the time of `trials` more trials from the mean of those before, including the running one."""
        if self._first_trial is None or not self._ended:
            return ""
        each_s = (time.monotonic() - self._first_trial) / (self._ended + 0.5)
        return f"  about {format_duration(round(each_s * (trials - 0.5)))} left"

    def _second_line(self, live: LiveSecond) -> Text:
        second = live.second
        tps = _tps(second)
        p95 = "n/a" if second.latency_p95_ns is None else format_duration(second.latency_p95_ns / 1e9)
        failed = f", {second.failed} failed" if second.failed else ""
        line = f"{second.phase:>9}  {tps:>9,.0f} tps, p95 {p95}{failed}  {live.elapsed_s:.0f} of {live.total_s:.0f} s  "
        return Text.assemble(line, (sparkline(self._tps[-_SPARK_SECONDS:]), "cyan"))


def sparkline(values: list[float]) -> str:
    """Draw the values as bars from zero to the largest."""
    top = max(values, default=0.0)
    if top <= 0:
        return ""
    return "".join(_BARS[min(len(_BARS) - 1, int(value / top * (len(_BARS) - 1) + 0.5))] for value in values)


_HOST_FIGURES: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("postgres_cores", "postgres {:.2f} cores".format),
    ("engine_cores", "engine {:.2f} cores".format),
    ("device_write_bytes_per_s", lambda rate: f"device writes {format_size(rate)}/s"),
    ("device_flushes_per_s", "{:,.0f} flushes/s".format),
    ("device_utilisation", lambda share: f"{percent(share, 0)} busy"),
    ("wal_bytes_per_s", lambda rate: f"WAL {format_size(rate)}/s"),
)


def host_line(figures: dict[str, float]) -> str:
    """Format the observer's figures of the last second; unknown figures are omitted."""
    shown = [show(figures[name]) for name, show in _HOST_FIGURES if name in figures]
    return " " * 11 + ", ".join([*shown, *_written(figures)])


def _written(figures: dict[str, float]) -> list[str]:
    """Format the bytes that the run has written to its disks, and its write budget if there is one."""
    if "disk_written_bytes" not in figures:
        return []
    budget = f" of {format_size(figures['max_written_bytes'])}" if "max_written_bytes" in figures else ""
    return [f"written so far {format_size(figures['disk_written_bytes'])}{budget}"]


def outcome(trial: Trial) -> str:
    """Summarise a trial in one line."""
    if trial.tps is None or trial.status == "failed":
        return f"FAILED: {trial.failure}"
    failed = f", {trial.measured.failed} failed" if trial.measured and trial.measured.failed else ""
    excluded = f" (excluded: {trial.excluded})" if trial.excluded else ""
    return f"{trial.tps:,.0f} tps{failed}{excluded}"


def progress_text(progress: Progress) -> str:
    """Format progress: "load rows: 1,200,000 of 5,000,000 rows, 612,000 rows/s, 27 MB/s, 6 s left"."""
    amount = format_size if progress.unit == "bytes" else "{:,.0f}".format
    unit = "" if progress.unit == "bytes" else f" {progress.unit}"
    total = "" if progress.total is None else f" of {amount(progress.total)}"
    detail = f" ({progress.detail})" if progress.detail else ""
    return ", ".join([f"{progress.task}: {amount(progress.done)}{total}{unit}{detail}", *_pace(progress)])


def _pace(progress: Progress) -> list[str]:
    """Format the rate and the remaining time; empty if unknown."""
    if not progress.rate or not progress.total:
        return []
    rate = f"{progress.rate:,.0f}" if progress.rate >= 10 else f"{progress.rate:.2g}"
    parts = [f"{rate} {progress.unit}/s"] if progress.unit != "bytes" else []
    if progress.bytes_per_s is not None:
        parts.append(f"{format_size(progress.bytes_per_s)}/s")
    if progress.left_s:
        parts.append(f"{format_duration(progress.left_s)} left")
    return parts


def _bar(progress: Progress, since: float) -> Table:
    grid = Table.grid(padding=(0, 1))
    elapsed = time.monotonic() - since
    if progress.rate is None and elapsed > 1:
        progress = progress._replace(rate=progress.done / elapsed)
    grid.add_row(
        "         ",
        ProgressBar(total=progress.total or 1, completed=progress.done if progress.total else 0, width=24),
        Text(progress_text(progress)),
    )
    return grid


def _tps(second: Second) -> float:
    """The last second of a load may have no length."""
    return second.done * 1e9 / second.length_ns if second.length_ns else 0.0
