"""What the server and its commits made of each error of storage."""

from plinth.model.contents import BundleContents
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.io_error import IoErrorResult, IoErrorText
from plinth.model.units import format_duration
from plinth.report.sections.section import Section, other_damage, sentences_of, table_of

_ANSWERS = {"waits": "waits, logs nothing", "nothing": "notices nothing"}
_BACK = {
    "went on": "went on",
    "recovered": "recovered",
    "restarted": "once restarted",
    "remounted": "once mounted again",
    "never": "never",
}


def io_error_texts(contents: BundleContents) -> tuple[IoErrorText, ...]:
    """Describe every error, in the order in which they were made."""
    labels = {variant.id: variant.label for variant in contents.plan.variants}
    return tuple(_text(labels[one.variant], one) for one in contents.io_errors)


def _text(label: str, one: IoErrorResult) -> IoErrorText:
    return IoErrorText(
        variant=label,
        error=one.words,
        server=_server(one),
        said=one.said[0] if one.said else "",
        back=_back(one),
        commits=_commits(one),
        damage=_damage(one),
    )


def _server(one: IoErrorResult) -> str:
    if one.server is None:
        return f"{NOT_AVAILABLE}: {one.failure}"
    if one.struck == 0:
        return f"{NOT_AVAILABLE}: no such request was sent"
    return _ANSWERS.get(one.server, one.server)


def _back(one: IoErrorResult) -> str:
    if one.came_back is None:
        return NOT_AVAILABLE
    words = _BACK[one.came_back]
    return words if one.back_s is None or one.came_back == "went on" else f"{words}, {format_duration(one.back_s)}"


def _commits(one: IoErrorResult) -> str:
    if one.failure is not None and not one.damage:
        return NOT_AVAILABLE
    return f"lost {one.lost_commits:,} of {one.acknowledged:,}"


def _damage(one: IoErrorResult) -> str:
    return other_damage(one.damage) or ("none" if one.failure is None else NOT_AVAILABLE)


def _sentence(one: IoErrorText) -> str:
    return f"{one.error}: {one.server}; back: {one.back}; commits {one.commits}; other damage: {one.damage}"


IO_ERRORS = Section(
    id="io_errors",
    title="Errors of storage",
    note="Each storage failed while the load ran and checkpoints were written, and then worked again. The answer is the most severe message "
    "of the server's log about the storage. At the end the disks lost what no flush had made durable, so that nothing was read from a page "
    "cache that the disk does not have; the server recovered, and every acknowledged commit was looked for.",
    blocks=table_of(
        lambda report: report.io_errors,
        {
            "Variant": lambda one: one.variant,
            "Error": lambda one: one.error,
            "Server": lambda one: one.server,
            "Its words": lambda one: one.said,
            "Came back": lambda one: one.back,
            "Commits": lambda one: one.commits,
            "Other damage": lambda one: one.damage,
        },
    ),
    entries=sentences_of(lambda report: report.io_errors, lambda one: one.variant, _sentence),
    nouns="errors",
    page="storage",
)
