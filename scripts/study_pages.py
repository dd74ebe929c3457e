"""The pages of the five studies and the gallery, made of the kept reports (scripts/kept_reports.py) as scripts/studies.toml says.

    python scripts/study_pages.py DIR    write the kept reports as HTML pages, as `make docs` does

Text, tables and charts are part of what scripts/generated.py makes and checks.
"""

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from kept_reports import DATA, ROOT, read_kept
from plinth.model.report import PublishedComparison, Report
from plinth.model.units import format_size
from plinth.report import render_html
from plinth.report.charts import Drawing, draw_charts
from plinth.report.markdown import ranking_table
from plinth.report.markdown_text import blocks, bullets, plain
from plinth.report.sections.published import published_fact, published_tables

STUDIES = ROOT / "scripts/studies.toml"
PAGES = Path("docs/studies")
CHARTS = PAGES / "charts"
GALLERY = Path("docs/gallery.md")
_MADE = "<!-- Made by scripts/generated.py from scripts/studies.toml and docs/studies/data: change it there. -->"


def study_pages() -> dict[str, str]:
    """Return every page and chart: path below the root -> text."""
    texts: dict[str, str] = {}
    cards: list[str] = []
    for study in _studies()["study"]:
        sections: list[str] = []
        for run in study["run"]:
            report = read_kept(run["name"])
            charts = dict(_charts(run, report))
            texts.update({str(CHARTS / name): drawing.svg + "\n" for name, drawing in charts.items()})
            sections.append(_section(run, report, charts))
            cards.append(_card(study, run, report, charts))
        text = "\n\n".join([f"# {study['title']}", _MADE, study["text"].strip(), *_study(study), *sections]) + "\n"
        texts[str(PAGES / f"{study['page']}.md")] = text
    texts[str(GALLERY)] = _gallery(cards)
    return texts


def unwanted() -> list[str]:
    """Return the kept reports and charts that no page shows, as paths below the root."""
    wanted = {ROOT / name for name in study_pages()} | {DATA / f"{name}.json" for name in _run_names()}
    there = [*DATA.glob("*"), *(ROOT / CHARTS).glob("*")]
    return sorted(str(path.relative_to(ROOT)) for path in there if path not in wanted)


@cache
def _studies() -> dict[str, Any]:
    return tomllib.loads(STUDIES.read_text(encoding="utf-8"))


def _run_names() -> list[str]:
    return [run["name"] for study in _studies()["study"] for run in study["run"]]


@cache
def _drawings(name: str) -> tuple[Drawing, ...]:
    return tuple(draw_charts(read_kept(name)))


def _charts(run: dict[str, Any], report: Report) -> Iterator[tuple[str, Drawing]]:
    """Yield file name and drawing of each chart that a run is to show, by its title."""
    drawn = {drawing.title: drawing for drawing in _drawings(run["name"])}
    for title in run["charts"]:
        if title not in drawn:
            raise SystemExit(f"{STUDIES.name}: {run['name']} has no chart {title!r}, but {', '.join(map(repr, drawn))}")
        name = drawn[title].name.partition("-")[2]
        yield f"{report.analysis.experiment}-{name}.svg", drawn[title]


def _study(study: dict[str, Any]) -> Iterator[str]:
    """Yield what was published, from the data that the experiments name."""
    compared = read_kept(study["run"][0]["name"]).published
    if compared is None:
        raise SystemExit(f"{STUDIES.name}: {study['run'][0]['name']} names no published results")
    of = compared.reference
    yield "## The study"
    yield f"{plain(of.title)}. {plain(of.source)}. {plain(of.machine)}. {plain(of.conditions)}."
    if of.finding:
        yield bullets(of.finding)


def _section(run: dict[str, Any], report: Report, charts: dict[str, Drawing]) -> str:
    analysis = report.analysis
    parts = [
        f"## {plain(analysis.experiment)}",
        f"**{plain(analysis.question)}** {plain(analysis.answer)}",
        *(
            f"![{plain(drawing.title)}: {plain(analysis.experiment)}](charts/{name})"
            for name, drawing in charts.items()
        ),
        ranking_table(report),
        plain(report.ranking),
        plain(report.noise),
        _published(report.published),
        run.get("text", "").strip(),
        _limits(report),
        bullets(f"warning: {warning}" for warning in analysis.warnings),
        f"<!-- not run by tests: minutes long -->\n```sh\n{_command(report)}\n```",
        f"[The data of this section](data/{analysis.experiment}.json)",
    ]
    return "\n\n".join(part for part in parts if part)


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
    return (
        f"Measured on {day:%Y-%m-%d} on {plain(_studies()['machine'])}, with {host.cores} cores ({plain(host.cpu_model)}) and "
        f"{format_size(host.memory_total_bytes)} of memory; {plain(versions)}; "
        f"{trials.trials_counted} of {trials.trials_planned} trials count. {plain(report.observation)}"
    )


def _command(report: Report) -> str:
    changes = "".join(f" \\\n    --set {shlex.quote(one)}" for one in report.reproduction.overrides if "=" in one)
    return f"plinth run experiments/{report.analysis.experiment}.toml{changes}"


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


def main(folder: Path) -> int:
    """Write every kept report as an HTML page."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _run_names():
        (folder / f"{name}.html").write_text(render_html(read_kept(name)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
