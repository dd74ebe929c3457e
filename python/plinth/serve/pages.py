"""Renders the server's own pages as HTML. All text of bundles is escaped; only the live page needs its script."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape

from plinth.common.shown import shown
from plinth.model.history import ListedBundle
from plinth.model.live import LivePage
from plinth.model.run_comparison import RunsComparison
from plinth.report.runs import OF_STATEMENTS, difference_table, ratio_table, run_lines, statement_table
from plinth.serve.catalogue import CataloguedBundle, Listing

_HEAD = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
    '<link rel="icon" href="data:,"><link rel="stylesheet" href="{root}/{style}"><title>{title}</title></head>\n<body>\n'
)
_COLUMNS = ("Compare", "Began", "State", "Question and answer", "Headline", "Machine", "Folder")
_DESCENDING = ("Began", "Headline")
"""Columns of figures, which are sorted by the value in `data-value`, the largest first."""


def text(value: str) -> str:
    """Escape untrusted text for HTML and for attribute values in double quotes."""
    return escape(shown(value))


def page(root: str, title: str, body: Iterable[str], style: str = "catalogue.css") -> str:
    """Return a complete page with the given style sheet; `root` is what all addresses begin with."""
    return "".join((_HEAD.format(root=root, title=text(title), style=style), *body, "</body></html>\n"))


def catalogue_page(root: str, directory: str, listing: Listing) -> str:
    """Return the list of bundles, the newest first, each with a check box for the comparison. Its script adds to it that it is
    sorted by any column, filtered, and replaced when bundles change."""
    count = len(listing.bundles)
    return page(
        root,
        "Bundles",
        (
            '<header class="masthead"><p class="kicker"><b>Plinth</b></p>\n',
            f'<h1 id="count">{count:,} {"bundle" if count == 1 else "bundles"} below {text(directory)}</h1></header>\n',
            f'<main data-state="{listing.state}">\n',
            '<p class="notice" id="connection" role="status" hidden></p>\n',
            f'<p class="lead" id="none"{" hidden" if count else ""}>`plinth run` makes bundles.</p>\n',
            f'<form action="{root}/compare" method="get" id="bundles"{"" if count else " hidden"}>\n',
            '<p class="controls"><button>Compare the ticked runs</button> '
            '<span class="muted">The oldest of them is what the others are compared with.</span></p>\n',
            f'<div class="scrolling"><table class="bundles"><thead><tr>{"".join(map(_head, _COLUMNS))}</tr></thead>\n<tbody>\n',
            *(_row(root, bundle) for bundle in listing.bundles),
            "</tbody></table></div></form></main>\n",
            f'<script type="module" src="{root}/catalogue.js"></script>\n',
        ),
    )


def comparison_page(root: str, compared: RunsComparison) -> str:
    """Return the comparison of runs: answer, ratios, variants not compared, and differences."""
    refused = [one.sentence for one in compared.ratios if one.refused]
    unmatched = [f"{gap.what}: not compared: {gap.reason}" for gap in compared.unmatched]
    return page(
        root,
        "Runs compared",
        (
            f"<main>{back(root)}<h1>Runs compared</h1>\n<p><strong>{text(compared.answer)}</strong></p>\n",
            _table(*ratio_table(compared)),
            f"<h2>{OF_STATEMENTS}</h2>" if compared.statements else "",
            _table(*statement_table(compared)) if compared.statements else "",
            _list("Not compared", [*refused, *unmatched]),
            "<h2>What differs</h2>" if compared.differences else "",
            _table(*difference_table(compared)) if compared.differences else "",
            _list("Caveats", compared.caveats),
            _list("Runs", run_lines(compared)),
            "</main>",
        ),
    )


def live_page(root: str, bundle: CataloguedBundle, made_with: LivePage) -> str:
    """Return the page that shows a run while it is running; its script does the rest. Nothing of the bundle is in `made_with`."""
    one = bundle.listed
    name = _name(one)
    return page(
        root,
        f"{name}: live",
        (
            f'{back(root)}<header class="masthead"><p class="kicker"><b>{text(name)}</b> {text(one.folder)}</p>\n'
            f"<h1>{text(one.question or name)}</h1></header>\n",
            f'<main data-report="{root}/bundles/{bundle.key}"></main>\n',
            "<noscript><p>This page draws itself with JavaScript.</p></noscript>\n",
            f'<script type="application/json" id="plinth-live">{made_with.model_dump_json()}</script>\n',
            f'<script type="module" src="{root}/live.js"></script>\n',
        ),
        "live.css",
    )


def problem_page(root: str, title: str, sentences: Iterable[str]) -> str:
    """Return an error page."""
    paragraphs = "".join(f"<p>{text(sentence)}</p>\n" for sentence in sentences)
    return page(
        root, title, (f'<main>{back(root)}<h1>{text(title)}</h1>\n<div role="alert">{paragraphs}</div></main>',)
    )


def back(root: str) -> str:
    """Return the link to the catalogue."""
    return f'<nav><a href="{root}/">All bundles</a></nav>\n'


def date(unix_ns: int | None) -> str:
    """Format local time; a bundle may contain an invalid time."""
    if unix_ns is None:
        return "n/a"
    try:
        return f"{datetime.fromtimestamp(unix_ns // 10**9):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return "not a date"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table row; its first cell is a header."""
    head = "".join(f'<th scope="col">{text(cell)}</th>' for cell in heads)
    lines = (
        f'<tr><th scope="row">{text(first)}</th>{"".join(f"<td>{text(cell)}</td>" for cell in others)}</tr>\n'
        for first, *others in rows
    )
    return f'<div class="scrolling"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{"".join(lines)}</tbody></table></div>\n'


def _list(title: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{text(line)}</li>\n" for line in lines)
    return f"<h2>{text(title)}</h2>\n<ul>{items}</ul>\n" if items else ""


def _row(root: str, bundle: CataloguedBundle) -> str:
    one = bundle.listed
    name = text(_name(one))
    box = (
        ""
        if one.status == "unreadable"
        else f'<input type="checkbox" name="bundle" value="{bundle.key}" aria-label="compare {name}">'
    )
    began = "" if one.created_unix_ns is None else one.created_unix_ns
    return (
        f'<tr data-key="{bundle.key}"><td class="tick">{box}</td>'
        f'<td class="date" data-value="{began}">{date(one.created_unix_ns)}</td>'
        f'<td class="state {one.status}">{_state(root, bundle)}{_note(one.reason)}</td><td class="said">{_said(root, bundle, name)}</td>'
        f"{_headline(one)}"
        f'<td class="machine">{text(one.machine or "n/a")}</td><td class="folder">{text(one.folder)}</td></tr>\n'
    )


def _head(column: str) -> str:
    if column == _COLUMNS[0]:
        return f'<th scope="col">{column}</th>'
    order = "descending" if column in _DESCENDING else "ascending"
    return f'<th scope="col" data-order="{order}">{column}</th>'


def _headline(one: ListedBundle) -> str:
    if one.headline is None:
        return '<td class="headline" data-value=""></td>'
    value = "" if one.headline.value is None else repr(one.headline.value)
    note = f"<small>{text(one.headline.note)}</small>"
    return f'<td class="headline" data-value="{value}"><strong>{text(one.headline.figure)}</strong> {note}</td>'


def _name(one: ListedBundle) -> str:
    return one.experiment or one.folder.rpartition("/")[2]


def _state(root: str, bundle: CataloguedBundle) -> str:
    status = bundle.listed.status
    return f'<a href="{root}/live/{bundle.key}">{status}</a>' if bundle.runs and status == "running" else status


def _said(root: str, bundle: CataloguedBundle, name: str) -> str:
    one = bundle.listed
    if one.status == "unreadable":
        return name
    question = text(one.question) if one.question else name
    answer = text(one.answer) if one.answer else f"n/a: {text(one.answer_missing or 'not known')}"
    return f'<a href="{root}/bundles/{bundle.key}">{question}</a><div class="answer">{answer}</div>'


def _note(reason: str | None) -> str:
    return f'<div class="reason">{text(reason)}</div>' if reason else ""
