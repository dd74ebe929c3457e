"""A bundle whose run goes on, as far as anybody can tell from outside: its lock is held and its live log is written."""

from contextlib import contextmanager
from typing import Any

from plinth.bundle import LIVE, BundleFolder
from plinth.model.load import LoadResult
from plinth.run.listener import LiveSecond
from plinth.run.live_log import LiveLog
from plinth.system.lock import DirectoryLock
from small_bundles import CONTENTS, written


class RecordedCalls:
    """A listener that records its calls, by name."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *given: self.calls.append((name, *given))

    def of(self, name):
        return [given for called, *given in self.calls if called == name]


class Going:
    """The run of the bundle at `path`; `log` is what it tells of itself."""

    def __init__(self, path, *, earlier=()):
        self.path = path
        self.file = path / LIVE
        self.recorded: Any = RecordedCalls()
        self.log = LiveLog(BundleFolder(path), CONTENTS.plan, self.recorded, earlier)

    def begin(self, place=0):
        """The trial at `place` of the plan begins."""
        planned = CONTENTS.plan.trials[place]
        variant = next(each for each in CONTENTS.plan.variants if each.id == planned.variant)
        self.log.trial_started(planned, variant, len(CONTENTS.plan.trials))

    def second(self, second, **host):
        self.log.second(LiveSecond(second, (second.t_ns + second.length_ns) / 1e9, 8.0, host))

    def end(self, place=0):
        """The trial at `place` is in the bundle."""
        contents = CONTENTS.trials[place]
        load = LoadResult.model_construct(histograms=contents.histograms)
        self.log.trial_ended(contents.trial, load)

    def whole_trial(self, place=0):
        self.begin(place)
        for second in CONTENTS.trials[place].series:
            self.second(second)
        self.end(place)


@contextmanager
def going(path):
    """A bundle whose run holds its lock; afterwards the run was killed."""
    written(path, trials=False, finished=False)
    with DirectoryLock(path):
        yield Going(path)
