"""A catalogue of bundles: a view of their folders, computed whenever it is requested."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.manifest import RunStatus


class ListedHeadline(Frozen):
    """The figure that the answer of a bundle tells first, in the words of its report."""

    figure: str = Field(description='"1.32x [1.2, 1.45]", or the throughput where nothing is compared.')
    value: float | None = Field(description="By which it is sorted; None where it is undecided.")
    note: str = Field(description="What the figure is of, or why there is none.")


class BundleAnswer(Frozen):
    """What an analysis says of a bundle."""

    text: str
    headline: ListedHeadline | None


class ListedBundle(Frozen):
    """One folder that is a bundle, or that looks like one and cannot be read as such."""

    folder: str = Field(description="Its path; bytes that are not UTF-8 are written as \\xNN.")
    status: RunStatus | Literal["unreadable"]
    reason: str | None = Field(default=None, description="Why it is unreadable, or why its run ended before its end.")
    experiment: str | None = None
    question: str | None = None
    answer: str | None = None
    answer_missing: str | None = Field(default=None, description="Why there is no answer.")
    headline: ListedHeadline | None = None
    machine: str | None = Field(default=None, description="CPU, memory and operating system.")
    created_unix_ns: int | None = Field(default=None, description="When the run began.")


class History(Frozen):
    """The bundles below a directory, the newest first; those of unknown date last."""

    directory: str
    bundles: tuple[ListedBundle, ...]
