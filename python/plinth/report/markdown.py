"""The report as Markdown, for an issue, a wiki or a commit message."""

from collections.abc import Iterable, Sequence

from plinth.model.figures import times
from plinth.model.report import Report, SettingRow
from plinth.report.text import NOT_AVAILABLE, latency_pair, rate, variant_name

_MARKS = {"yes": "yes", "partly": "partly", "no": "**no**"}


def render_markdown(report: Report) -> str:
    """Question, answer, ranking, differences, warnings, gaps, how to run it again, and the disclosure list."""
    analysis = report.analysis
    sections = [
        f"# {_text(analysis.experiment)}",
        f"**{_text(analysis.question)}**",
        _text(analysis.answer),
        _ranking(report),
        _text(report.noise),
        _section("Differences between variants", _differences(report)),
        _section("Warnings", _list(analysis.warnings)),
        _section("Not available", _list(f"{gap.where}: {gap.what}: n/a: {gap.reason}" for gap in report.gaps)),
        _section("Run it again", _reproduction(report)),
        _section("Disclosure", _list(f"{_MARKS[d.status]}: {d.claim} ({d.evidence})" for d in report.disclosures)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _ranking(report: Report) -> str:
    comparisons = {comparison.variant: comparison for comparison in report.analysis.comparisons}
    rows = []
    for variant in report.analysis.variants:
        comparison = comparisons.get(variant.id)
        rows.append(
            (
                str(variant.rank or NOT_AVAILABLE),
                variant_name(variant),
                rate(variant.tps),
                times(comparison.ratio) if comparison else "",
                latency_pair(variant),
                variant.safety.grade,
                comparison.verdict if comparison else "",
            )
        )
    heads = (
        "Rank",
        "Variant",
        "tps, median [interval]",
        "Ratio to baseline",
        "Latency p50 / p99",
        "Commits",
        "Verdict",
    )
    return _table(heads, rows)


def _differences(report: Report) -> str:
    labels = {variant.id: variant.label for variant in report.analysis.variants}

    def cells(row: SettingRow) -> str:
        known = [f"{cell.text} ({', '.join(labels[variant] for variant in cell.variants)})" for cell in row.cells]
        unread = [f"{NOT_AVAILABLE} ({', '.join(labels[variant] for variant in row.unread)})"] if row.unread else []
        return "; ".join([*known, *unread])

    differing = [row for row in report.settings if row.kind != "place" and (len(row.cells) > 1 or row.unread)]
    return _table(("Name", "Values"), [(row.name, cells(row)) for row in differing]) if differing else ""


def _reproduction(report: Report) -> str:
    versions = ", ".join(f"{version.name} {version.version}" for version in report.reproduction.versions)
    commands = "\n".join(report.reproduction.commands)
    toml = report.reproduction.experiment_toml.strip()
    fence = "`" * max(3, 1 + _longest_run(toml, "`"))
    return f"{fence}sh\n{commands}\n{fence}\n\n{_text(versions)}; seed {report.reproduction.seed}.\n\n{fence}toml\n{toml}\n{fence}"


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {_text(item)}" for item in items)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|")


def _text(text: str) -> str:
    """Plain text of ours or of a user's, in one line, without taking it for HTML."""
    return " ".join(text.split()).replace("<", "&lt;")


def _longest_run(text: str, character: str) -> int:
    longest = run = 0
    for each in text:
        run = run + 1 if each == character else 0
        longest = max(longest, run)
    return longest
