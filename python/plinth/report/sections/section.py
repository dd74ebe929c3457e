"""What a section of a report is: its title, its note, its tables and its lines of a terminal, for every form of the report."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

from rich.text import Text

from plinth.model.contents import BundleContents
from plinth.model.durability import Damage
from plinth.model.report import Report
from plinth.model.trial import Trial

T = TypeVar("T")

MAX_ENTRIES = 6
"""Maximum number of entries that a terminal lists, such as the fastest variants; the other forms list all."""


class Table(NamedTuple):
    """A table of texts. One without rows is not shown."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class Bullets(NamedTuple):
    """A bulleted list. One without items is not shown."""

    items: Sequence[str]


class Code(NamedTuple):
    """Text that is shown as it is: commands, or a file."""

    language: str
    text: str


Block = str | Table | Bullets | Code
"""A paragraph, or one of the others. An empty paragraph is not shown."""
Entry = Sequence[Text]
"""What a terminal says of one subject: a line, and those that belong to it."""


def _nothing(report: Report) -> tuple[()]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the report. Forms show what it has for them, and leave it out where that is nothing."""

    id: str
    """Its field of `SectionTexts`, if it has one, and its anchor in the HTML page."""
    title: str
    note: str = ""
    """How to read it, for people who see it for the first time."""
    blocks: Callable[[Report], Iterable[Block]] = _nothing
    """What documents (Markdown) show below the title."""
    entries: Callable[[Report], Sequence[Entry]] = _nothing
    """What a terminal lists below the title."""
    closing: Callable[[Report], Sequence[Text]] = _nothing
    """What a terminal says below the list, however long that is."""
    details: Callable[[Report], Sequence[Text]] = _nothing
    """The same, on more than one screen only."""
    heading: Callable[[Report], str] | None = None
    """The title in a terminal, where it is another one."""
    nouns: str = "variants"
    """What the entries are, in "3 more variants"."""
    most: int = MAX_ENTRIES
    in_summary: bool = False
    """Whether it is on the one screen that a run ends with."""
    page: Literal["storage", "own"] | None = None
    """Where the HTML page shows its tables as they are: in the section on storages, or in a separate one. None: a view shows it."""


def table_of(
    rows: Callable[[Report], Iterable[T]], columns: Mapping[str, Callable[[T], str]]
) -> Callable[[Report], list[Table]]:
    """Return the blocks of a section that is one table: `columns` has the cell of a row by head."""

    def blocks(report: Report) -> list[Table]:
        return [Table(tuple(columns), [tuple(cell(row) for cell in columns.values()) for row in rows(report)])]

    return blocks


def sentences_of(
    rows: Callable[[Report], Iterable[T]], subject: Callable[[T], str], sentence: Callable[[T], str]
) -> Callable[[Report], list[Entry]]:
    """Return the entries of a section that says a sentence of each subject."""

    def entries(report: Report) -> list[Entry]:
        return [entry(subject(row), sentence(row)) for row in rows(report)]

    return entries


def by_variant(contents: BundleContents, parts: Callable[[Trial], Iterable[T]]) -> Iterator[tuple[str, list[T]]]:
    """Return the label of each variant with parts of its trials, in the order of the plan; without variants that have none."""
    for variant in contents.plan.variants:
        own = [part for one in contents.trials if one.trial.variant == variant.id for part in parts(one.trial)]
        if own:
            yield variant.label, own


def other_damage(found: Iterable[Damage]) -> str:
    """Return each kind of damage but lost commits, with how much there is of it; empty for none."""
    counts: Counter[str] = Counter()
    for damage in found:
        if damage.kind != "lost commit":
            counts[damage.kind] += damage.count
    return "; ".join(f"{kind}: {count:,}" for kind, count in counts.items())


def entry(subject: str, sentence: str, style: str = "", *, aside: str = "") -> Entry:
    """Return a line on a subject, whose end may be dimmed; without a subject the sentence alone."""
    return [Text.assemble((f"{subject}: " if subject else "", "bold"), (sentence, style), (aside, "dim"))]
