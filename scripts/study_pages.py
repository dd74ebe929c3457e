"""The pages of the five studies and the gallery, made of the kept reports (scripts/kept_reports.py) as scripts/studies.toml says.

    python scripts/study_pages.py DIR    write the kept reports as HTML pages, as `make docs` does

Text, tables and charts are part of what scripts/generated.py makes and checks.
"""

import argparse
import re
import shlex
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from kept_reports import DATA, ROOT, STUDIES, read_kept, studies, study_runs
from plinth.experiment import read_experiment, read_reference
from plinth.model.figures import Estimate
from plinth.model.report import PublishedComparison, Report
from plinth.model.units import format_size
from plinth.report import render_html
from plinth.report.build import EXPERIMENT_FILE
from plinth.report.charts import Drawing, draw_charts
from plinth.report.markdown import ranking_table
from plinth.report.markdown_text import blocks, bullets, plain
from plinth.report.sections import SECTIONS
from plinth.report.sections.published import published_fact, published_tables
from plinth.report.text import ratio

EXPERIMENTS = Path("experiments")
PAGES = Path("docs/studies")
CHARTS = PAGES / "charts"
GALLERY = Path("docs/gallery.md")
CARRIED_OVER = PAGES / "carried-over.md"
_SHOWN = {"Published ratios and ours", "Every trial, tps"}
_SWEEP = re.compile("throughput over", re.I)
"""What a run shows unless scripts/studies.toml says otherwise."""
_MADE = "<!-- Made by scripts/generated.py from scripts/studies.toml and docs/studies/data: change it there. -->"


def study_pages() -> dict[str, str]:
    """Return every page and chart: path below the root -> text."""
    texts: dict[str, str] = {}
    cards: list[str] = []
    for study in studies():
        sections: list[str] = []
        for run in study["run"]:
            report = read_kept(run["name"])
            if report is None:
                sections.append(_not_yet(run))
                continue
            charts = dict(_charts(run, report))
            texts.update({str(CHARTS / name): drawing.svg + "\n" for name, drawing in charts.items()})
            sections.append(_section(run, report, charts))
            if charts:
                cards.append(_card(study, run, report, charts))
        text = "\n\n".join([f"# {study['title']}", _MADE, study["text"].strip(), *_study(study), *sections]) + "\n"
        texts[str(PAGES / f"{study['page']}.md")] = text
    texts[str(GALLERY)] = _gallery(cards)
    texts[str(CARRIED_OVER)] = _carried_over()
    return texts


def unwanted() -> list[str]:
    """Return the kept reports and charts that no page shows, as paths below the root."""
    wanted = {ROOT / name for name in study_pages()} | {DATA / f"{name}.json" for name in study_runs()}
    there = [*DATA.glob("*"), *(ROOT / CHARTS).glob("*")]
    return sorted(str(path.relative_to(ROOT)) for path in there if path not in wanted)


@cache
def _drawings(name: str) -> tuple[Drawing, ...]:
    return tuple(draw_charts(report)) if (report := read_kept(name)) else ()


def _charts(run: dict[str, Any], report: Report) -> Iterator[tuple[str, Drawing]]:
    """Yield file name and drawing of each chart that a run is to show, by its title."""
    if not run.get("of_speed", True):
        return
    drawn = {drawing.title: drawing for drawing in _drawings(run["name"])}
    for title in run.get("charts", [one for one in drawn if one in _SHOWN or _SWEEP.search(one)]):
        if title not in drawn:
            raise SystemExit(f"{STUDIES.name}: {run['name']} has no chart {title!r}, but {', '.join(map(repr, drawn))}")
        name = drawn[title].name.partition("-")[2]
        yield f"{run['name']}-{name}.svg", drawn[title]


def _experiment(run: dict[str, Any]) -> Path:
    """Return the file of a run's experiment, below the root; it has the run's name unless the run says another."""
    return EXPERIMENTS / f"{run.get('experiment', run['name'])}.toml"


def _study(study: dict[str, Any]) -> Iterator[str]:
    """Yield what was published, from the data that the study's first experiment names."""
    path = ROOT / _experiment(study["run"][0])
    reference = read_experiment(path).experiment.reference
    if reference is None:
        return
    of = read_reference(reference, path.parent)
    yield "## The study"
    yield f"{plain(of.title)}. {plain(of.source)}. {plain(of.machine)}. {plain(of.conditions)}."
    if of.finding:
        yield bullets(of.finding)


def _not_yet(run: dict[str, Any]) -> str:
    question = read_experiment(ROOT / _experiment(run)).experiment.question
    words = ("plinth", "run", str(_experiment(run)), *(word for one in run.get("set", ()) for word in ("--set", one)))
    return (
        f"## {plain(run['name'])}\n\n**{plain(question)}** Not yet measured: no run of it meets the [rule of "
        f"publication](README.md#when-a-report-is-published).\n\n{_to_repeat(shlex.join(words))}"
    )


def _section(run: dict[str, Any], report: Report, charts: dict[str, Drawing]) -> str:
    analysis = report.analysis
    if not run.get("of_speed", True):
        return _what_was_found(run, report)
    parts = [
        f"## {plain(run['name'])}",
        f"**{plain(analysis.question)}** {plain(analysis.answer)}",
        *(f"![{plain(drawing.title)}: {plain(run['name'])}](charts/{name})" for name, drawing in charts.items()),
        ranking_table(report),
        plain(report.ranking),
        plain(report.noise),
        _published(report.published),
        run.get("text", "").strip(),
        _limits(report),
        bullets(f"warning: {warning}" for warning in analysis.warnings),
        _to_repeat(_command(run, report)),
        f"[The data of this section](data/{run['name']}.json)",
    ]
    return "\n\n".join(part for part in parts if part)


def _what_was_found(run: dict[str, Any], report: Report) -> str:
    """Return the section of a run whose speeds are not published: the parts of its report that it is to show."""
    parts = {section.id: blocks(section.blocks(report)) for section in SECTIONS if section.id in run["shows"]}
    if missing := [name for name in run["shows"] if not parts.get(name)]:
        raise SystemExit(f"{STUDIES.name}: {run['name']} shows {', '.join(missing)}, of which its report has nothing")
    found = [
        f"## {plain(run['name'])}",
        f"**{plain(report.analysis.question)}** What was found; {run.get('why', 'its trials are too short to compare speeds')}.",
        run.get("text", "").strip(),
        *parts.values(),
        _limits(report),
        bullets(f"warning: {warning}" for warning in report.analysis.warnings),
        _to_repeat(_command(run, report)),
        f"[The data of this section](data/{run['name']}.json)",
    ]
    return "\n\n".join(part for part in found if part)


def _to_repeat(command: str) -> str:
    return f"<!-- not run by tests: minutes long -->\n```sh\n{command}\n```"


def _published(compared: PublishedComparison | None) -> str:
    """Return the published figures whose counterpart was measured here."""
    if compared is None:
        return ""
    measured = compared.model_copy(
        update={
            "figures": tuple(row for row in compared.figures if row.variant),
            "ratios": tuple(row for row in compared.ratios if row.variant),
        }
    )
    facts = bullets(f"{row.what}: {published_fact(row)}" for row in compared.facts if row.ours is not None)
    tables = "\n\n".join(filter(None, (blocks(published_tables(measured)), facts)))
    return f"Published figures and ours:\n\n{tables}" if tables else ""


def _limits(report: Report) -> str:
    """Say when and on what a run was measured."""
    run, host, trials = report.run, report.host, report.analysis
    day = datetime.fromtimestamp(run.created_unix_ns / 1e9, UTC)
    versions = ", ".join(f"{one.name} {one.version}" for one in report.reproduction.versions)
    judged = [trial.steady for variant in trials.variants for trial in variant.trials if trial.steady is not None]
    steady = f", {sum(judged)} of {len(judged)} were steady" if judged else ""
    return (
        f"Measured on {day:%Y-%m-%d} on an idle virtual machine of {host.cores} cores ({plain(host.cpu_model)}) and "
        f"{format_size(host.memory_total_bytes)} of memory; {plain(versions)}; {trials.trials_counted} of "
        f"{trials.trials_planned} trials count{steady}. {plain(report.observation)}"
    )


def _command(run: dict[str, Any], report: Report) -> str:
    """Return the command that repeats a run, each change on a line of its own."""
    command = next(one for one in report.reproduction.commands if one.startswith("plinth run "))
    return command.replace(EXPERIMENT_FILE, str(_experiment(run)), 1).replace(" --set ", " \\\n    --set ")


def _card(study: dict[str, Any], run: dict[str, Any], report: Report, charts: dict[str, Drawing]) -> str:
    """Return a run in the gallery: its first chart, its answer, and where there is more."""
    name, analysis = run["name"], report.analysis
    chart, drawing = next(iter(charts.items()))
    return "\n\n".join(
        [
            f"## {plain(analysis.question)}",
            plain(analysis.answer),
            f"![{plain(drawing.title)}: {plain(name)}](studies/charts/{chart})",
            f"[Report](gallery/{name}.html), [experiment and figures](studies/{study['page']}.md#{_anchor(name)})",
        ]
    )


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9_-]+", "-", title.lower())


def _gallery(cards: list[str]) -> str:
    lead = (
        "A chart, the question and the answer of every run behind the pages of the [studies](studies/README.md). "
        "The links to reports lead to the page that `plinth report --html` writes, without its time series; they are part of "
        "the built site (`make docs`), not of the repository."
    )
    return "\n\n".join(["# Gallery of reports", _MADE, lead, *cards]) + "\n"


def _carried_over() -> str:
    """Return the page of each published ratio, next to ours, with what became of it and why."""
    lead = (
        "Which findings of the five studies can be seen again on a small virtual machine and emulated drives, and which "
        "cannot. *As published*: the published ratio is within our 95 % interval. *Same direction*: it is not, but faster is "
        "faster and slower is slower. *Undecided*: our interval includes 1. *No*: we found something else. Only [kept "
        "reports](README.md#when-a-report-is-published) count; each finding links to its own."
    )
    parts = ["# What carried over", _MADE, lead]
    for study in studies():
        rows = [
            f"| {' | '.join(cells)} |"
            for run in study["run"]
            if run.get("of_speed", True) and (report := read_kept(run["name"]))
            for cells in _findings(study, run, report)
        ]
        if rows or "carried_over" in study:
            parts.append(f"## {study['title']}")
        if rows:
            parts.append("\n".join(["| finding | published | ours | carried over |", "|---|---|---|---|", *rows]))
        elif "carried_over" in study:
            parts.append("Not yet measured.")
        parts.append(study.get("carried_over", "").strip())
    return "\n\n".join(filter(None, parts)) + "\n"


def _findings(study: dict[str, Any], run: dict[str, Any], report: Report) -> Iterator[tuple[str, ...]]:
    """Yield finding, published ratio, ours and what became of it, of each ratio that was measured, except baselines."""
    if (compared := report.published) is None:
        return
    link = f"{study['page']}.md#{_anchor(run['name'])}"
    for figure in compared.figures:
        if figure.published_ratio is not None and figure.ratio is not None and figure.ratio.interval is not None:
            of = figure.published_ratio
            yield (
                f"[{plain(figure.label)}]({link})",
                f"{of:.3g}x",
                ratio(figure.ratio),
                carried_over(of, of, figure.ratio),
            )
    for row in compared.ratios:
        if row.ratio is not None:
            name = plain(row.what) + (f" ({plain(row.variant)})" if row.variant else "")
            low, high = row.published_low, row.published_high
            published = f"{low:.3g}x" if low == high else f"{low:.3g} to {high:.3g}x"
            yield f"[{name}]({link})", published, ratio(row.ratio), carried_over(low, high, row.ratio)


def carried_over(low: float, high: float, ours: Estimate) -> str:
    """Return what became of a published ratio, given as its range: whether ours, with its interval, says the same."""
    if ours.interval is None:
        return "n/a: ours has no interval"
    if ours.interval.low <= 1 <= ours.interval.high and not low <= 1 <= high:
        return "undecided"
    if ours.interval.low <= high and low <= ours.interval.high:
        return "as published"
    return "same direction" if (low > 1 and ours.value > 1) or (high < 1 and ours.value < 1) else "no"


def main(folder: Path) -> int:
    """Write every kept report as an HTML page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in study_runs():
        if report := read_kept(name):
            (folder / f"{name}.html").write_text(render_html(report), encoding="utf-8")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", type=Path)
    sys.exit(main(parser.parse_args().folder))
