"""Reports in small form: what the repository keeps of a run, for the pages of docs/studies and their charts.

    python scripts/kept_reports.py [NAME=]BUNDLE...    keep the reports of these bundles in docs/studies/data/

Each is kept under the name of its experiment, or of NAME, as a run of scripts/studies.toml; one that breaks the rule of
scripts/publication_rule.py is refused.

The small form is the JSON of the report without what only its bundle and its machine need: time series, commands, evidence, bytes and
statements of each variant, settings that did not differ, what is below a storage, what other processes were called. Of paths the last
part is kept, as [...]/NAME. A list of objects with the same keys is kept as its keys and its rows, and a long text that occurs more than
once as {"(text)": N}, the Nth of the list "(texts)" from 0. The file is read as a report of this version: a field that is new in
plinth.model.report needs a default, or an entry in the kept files.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from plinth.model.analysis import VariantResult
from plinth.model.doctor import DoctorRecord, Examination
from plinth.model.report import PanelGap, Report, ReportTrial
from plinth.report.sections import page_tables, section_texts
from plinth.system.paths import state_dir
from publication_rule import objections

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs/studies/data"
STUDIES = ROOT / "scripts/studies.toml"
NOT_KEPT = "the small form of a report, which this page was made from, has no time series"
HIDDEN = "[...]"
_DIGITS = 9
"""Significant ones: those of a quantile in parts of a billion."""
_KEYS, _ROWS = "(keys)", "(rows)"
"""Of a list of objects with the same keys, in a kept file; nothing in a report has such a name."""
_TEXT, _TEXTS = "(text)", "(texts)"
"""Of a text that a kept file has more than once, and of all of these."""
_LONG_TEXT = 30
"""Characters of a text that takes less room as its place in a list."""
_ABSOLUTE = re.compile(r"(?<![\w.\]/:-])/[a-z][\w.-]*(?=/)")
_SOCKETS = re.compile(r"/tmp/plinth-[0-9a-f]{12}")
"""Directories of managed servers' sockets."""
_BELOW_HIDDEN = re.compile(r"\[\.\.\.\](?:/[\w.+-]+)+?(?=/[\w.+-]+(?![\w.+/-]))")
"""What is between a hidden place and the last part of a path below it."""
_PROCESSES = re.compile(r"(other processes took [\d.]+ of \d+ processors): .*?(?=; \d+ more in the report|$)")
_SERVERS = re.compile(r"(another PostgreSQL runs) \(pid \d+\) on .*")
_OF_ANY_MACHINE = {"/dev", "/etc", "/proc", "/run", "/sys", "/usr"}


def small_form(report: Report) -> Report:
    """Return the report without what only its bundle and its machine need."""
    analysis = report.analysis
    panels = report.panels[:1]  # which says for all of them why there is nothing to see
    flushes = tuple(
        storage.model_copy(
            update={"figures": tuple(one.model_copy(update={"latency_curve": ()}) for one in storage.figures)}
        )
        for storage in report.flushes
    )
    return report.model_copy(
        update={
            "run": report.run.model_copy(update={"bundle": PurePath(report.run.bundle).name}),
            "analysis": analysis.model_copy(
                update={
                    "variants": tuple(_small_variant(variant) for variant in analysis.variants),
                    "warnings": tuple(_nameless(warning) for warning in analysis.warnings),
                }
            ),
            "panels": panels,
            "series": (),
            "trials": tuple(_small_trial(trial) for trial in report.trials),
            "settings": tuple(row for row in report.settings if row.kind != "place" and len(row.cells) > 1),
            "storages": tuple(one.model_copy(update={"stack": (), "mount_options": ()}) for one in report.storages),
            "servers": tuple(one.model_copy(update={"data_directories": ()}) for one in report.servers),
            "flushes": flushes,
            "host": report.host.model_copy(update={"kernel": _series(report.host.kernel), "facts": (), "gaps": ()}),
            "doctor": report.doctor and _small_doctor(report.doctor),
            "reproduction": report.reproduction.model_copy(
                update={
                    "steps": (),
                    "versions": tuple(
                        one.model_copy(update={"version": _series(one.version)}) if one.name == "Linux" else one
                        for one in report.reproduction.versions
                    ),
                }
            ),
        }
    )


def _small_variant(variant: VariantResult) -> VariantResult:
    found = variant.bottleneck
    trials = tuple(
        trial.model_copy(update={"bottleneck": None, "work": None, "transactions": ()}) for trial in variant.trials
    )
    return variant.model_copy(
        update={
            "statements": (),
            "process_io": None,
            "endurance": None,
            "bottleneck": found
            and found.model_copy(update={"finding": found.finding.model_copy(update={"evidence": ()})}),
            "trials": trials,
        }
    )


def _small_doctor(record: DoctorRecord) -> DoctorRecord:
    """Return what would have spoiled the run; places, and checks that found or could say nothing, are of the machine."""

    def small(one: Examination) -> Examination:
        findings = tuple(
            finding.model_copy(update={"saw": _nameless(finding.saw), "readings": (), "remedy": None})
            for finding in one.at_least("warning")
        )
        return one.model_copy(update={"places": (), "findings": findings, "gaps": ()})

    return record.model_copy(update={"examinations": tuple(small(one) for one in record.examinations)})


def _nameless(text: str) -> str:
    """Return a sentence of the doctor without the names and places of other people's processes."""
    return _SERVERS.sub(r"\1", _PROCESSES.sub(r"\1", text))


def _series(kernel: str) -> str:
    """Return "6.18" for "6.18.44-custom"."""
    return ".".join(kernel.split(".")[:2])


def _small_trial(trial: ReportTrial) -> ReportTrial:
    return trial.model_copy(update={"columns": (), "marks": (), "devices": (), "checks": (), "panel_gaps": ()})


def kept_text(report: Report, places: Iterable[str]) -> str:
    """Return the file of a report: its small form as JSON, without defaults and what `report_of` adds, in which these places and names
    of the machine are hidden.

    Raises ValueError if it still names a folder that other machines do not have.
    """
    small = small_form(report).model_dump(
        mode="json",
        exclude_defaults=True,
        exclude={"sections": True, "tables": True, "trials": {"__all__": {"panel_gaps"}}},
    )
    document = {"schema_version": report.schema_version, **_rounded(small)}
    text = json.dumps(with_texts_once(by_columns(document)), ensure_ascii=False, separators=(",", ":"))
    for place in sorted(set(places), key=len, reverse=True):
        text = text.replace(json.dumps(place)[1:-1], HIDDEN)
    text = _BELOW_HIDDEN.sub(HIDDEN, _SOCKETS.sub(HIDDEN, text))
    if left := folders_of_one_machine(text):
        raise ValueError(f"the report names folders of this machine: {', '.join(left)}; hide them, or run elsewhere")
    return text + "\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return {key: _rounded(each) for key, each in value.items()} if isinstance(value, dict) else value


def by_columns(value: Any) -> Any:
    """Return JSON in which a list of objects with the same keys names these once; `by_rows` undoes it."""
    if isinstance(value, dict):
        return {key: by_columns(each) for key, each in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) < 2 or not all(isinstance(each, dict) and [*each] == [*value[0]] for each in value) or not value[0]:
        return [by_columns(each) for each in value]
    return {_KEYS: [*value[0]], _ROWS: [[by_columns(cell) for cell in each.values()] for each in value]}


def by_rows(value: Any) -> Any:
    """Return the JSON that `by_columns` was given."""
    if isinstance(value, list):
        return [by_rows(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_KEYS, _ROWS}:
        return [dict(zip(value[_KEYS], map(by_rows, row), strict=True)) for row in value[_ROWS]]
    return {key: by_rows(each) for key, each in value.items()}


def with_texts_once(document: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object in which long texts that repeat are in a list of their own; `with_texts_in_place` undoes it."""
    seen = Counter(_long_texts(document))
    places = {text: place for place, text in enumerate(text for text, times in seen.items() if times > 1)}

    def once(value: Any) -> Any:
        if isinstance(value, str) and value in places:
            return {_TEXT: places[value]}
        if isinstance(value, list):
            return [once(each) for each in value]
        return {key: once(each) for key, each in value.items()} if isinstance(value, dict) else value

    return {**once(document), _TEXTS: [*places]}


def _long_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) >= _LONG_TEXT:
        yield value
    elif isinstance(value, list | dict):
        for each in value if isinstance(value, list) else value.values():
            yield from _long_texts(each)


def with_texts_in_place(document: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON object that `with_texts_once` was given."""
    texts = document[_TEXTS]

    def in_place(value: Any) -> Any:
        if isinstance(value, list):
            return [in_place(each) for each in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {_TEXT}:
            return texts[value[_TEXT]]
        return {key: in_place(each) for key, each in value.items()}

    return {key: in_place(each) for key, each in document.items() if key != _TEXTS}


def folders_of_one_machine(text: str) -> list[str]:
    """Return the top folders of absolute paths in a text that not every machine has."""
    return sorted(set(_ABSOLUTE.findall(text)) - _OF_ANY_MACHINE)


@cache
def studies() -> tuple[dict[str, Any], ...]:
    """Return the studies of scripts/studies.toml, each with its runs."""
    return tuple(tomllib.loads(STUDIES.read_text(encoding="utf-8"))["study"])


def study_runs() -> dict[str, dict[str, Any]]:
    """Return the runs of all studies by name."""
    return {run["name"]: run for study in studies() for run in study["run"]}


def broken_rules(run: dict[str, Any], report: Report) -> list[str]:
    """Return why this report of a run of scripts/studies.toml may not be published."""
    return objections(report, of_speed=run.get("of_speed", True))


@cache
def read_kept(name: str) -> Report | None:
    """Return the kept report of this name; None if there is none. One that breaks the rule of publication ends the program."""
    path = DATA / f"{name}.json"
    if not path.exists():
        return None
    report = report_of(path.read_text(encoding="utf-8"))
    if name in study_runs() and (broken := broken_rules(study_runs()[name], report)):
        raise SystemExit(
            f"{path.relative_to(ROOT)} may not be published: {'; '.join(broken)}. Run it again, or delete it"
        )
    return report


def report_of(text: str) -> Report:
    """Return the report of a kept file; what is said of its sections, and its tables, are this version's."""
    document = by_rows(with_texts_in_place(json.loads(text)))
    gaps = [PanelGap(panel=panel["id"], reason=NOT_KEPT).model_dump(mode="json") for panel in document["panels"]]
    document["trials"] = [{**trial, "panel_gaps": gaps} for trial in document["trials"]]
    document["sections"] = section_texts().model_dump(mode="json")
    report = Report.model_validate_json(json.dumps(document))
    return report.model_copy(update={"tables": page_tables(report)})


def main() -> int:
    """Keep the report of each bundle of the command line; return 1 if one is refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundles", nargs="+", metavar="[NAME=]BUNDLE")
    return max(_keep(each) for each in parser.parse_args().bundles)


def _keep(named: str) -> int:
    name, _, bundle = named.partition("=") if "=" in named else ("", "", named)
    command = [sys.executable, "-m", "plinth", "report", "--json", "--", bundle]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return done.returncode  # the command has said why
    report = Report.model_validate_json(done.stdout)
    name = name or report.analysis.experiment
    if name not in study_runs():
        print(f"{bundle}: no run of {STUDIES.name} has the name {name}", file=sys.stderr)
        return 1
    if lacking := sorted(set(study_runs()[name].get("set", ())) - set(report.reproduction.overrides)):
        print(f"{bundle}: not kept: {name} is a run with --set {', '.join(lacking)}", file=sys.stderr)
        return 1
    if broken := broken_rules(study_runs()[name], report):
        print(f"{bundle}: not kept: {'; '.join(broken)}", file=sys.stderr)
        return 1
    checkouts = {server.origin.partition("/.venv/")[0] for server in report.servers if "/.venv/" in server.origin}
    installed = {str(Path(one.partition("=")[2]).parent) for one in report.reproduction.overrides if "bindir=" in one}
    places = (str(ROOT), *checkouts, *installed, str(Path(bundle).resolve().parent), str(Path.home()), str(state_dir()))
    path = DATA / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(kept_text(report, places), encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}, {path.stat().st_size:,} B")
    return 0


if __name__ == "__main__":
    sys.exit(main())
