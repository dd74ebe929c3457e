"""Regenerate the generated files, or check that they are up to date.

    python scripts/generated.py           write them
    python scripts/generated.py --check   exit 1 and name those that are out of date

docs/reference/ and the man pages come from the models and from the commands' own help, the pages of studies and the gallery from
scripts/study_pages.py, the catalogue of experiments from scripts/experiment_catalogue.py.
"""

import argparse
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from cyclopts import App
from pydantic import BaseModel

from experiment_catalogue import PAGE, experiment_catalogue
from man_pages import man_pages
from plinth.cli import COMMANDS, help_text
from plinth.cli.disk_view import cache_text, physics_text
from plinth.experiment import KEYS, json_schema, packaged_references, read_experiment
from plinth.experiment.examples import EXAMPLES_FILE, Example
from plinth.model.analysis import Analysis
from plinth.model.dataset import ColumnSpec, DatasetSpec
from plinth.model.disk import Physics
from plinth.model.doctor import DoctorRecord
from plinth.model.durability import DurabilitySpec
from plinth.model.endurance import DriveSpec, Endurance
from plinth.model.experiment import Experiment, MeasureSpec
from plinth.model.forecast import Forecast
from plinth.model.live import LiveProtocol
from plinth.model.load_config import LedgerFiles, LoadConfig, LoadScript, Rate, Recording, Stage
from plinth.model.objective import Objective
from plinth.model.patroni import PatroniSpec
from plinth.model.plan import Plan
from plinth.model.published import PublishedFact, PublishedFigure, PublishedRatio, Reference
from plinth.model.run_comparison import RunFigures, RunsComparison
from plinth.model.server_spec import ServerSpec
from plinth.model.storage import QueueSpec, StorageSpec
from plinth.model.storage_options import DATASET, MKFS, MOUNT, POOL
from plinth.model.trial import Trial
from plinth.model.units import format_duration, format_size
from plinth.model.workload import WorkloadSpec
from plinth.report import schema
from plinth.storage.devices.disk_daemon import disk_profiles
from plinth.system.confinement import WAYS
from study_pages import study_pages

ROOT = Path(__file__).resolve().parent.parent
WAYS_BEGIN = "<!-- Made by scripts/generated.py from python/plinth/system/confinement.py: change it there. -->"
WAYS_END = "<!-- The end of what is generated. -->"
SCHEMA_FILE = "python/plinth/experiment/experiment.schema.json"
"""In the package, since `plinth init` names it in the files that it writes."""

EXPERIMENTS = ROOT / "experiments"
EXAMPLES = f"python/plinth/experiment/{EXAMPLES_FILE}"

DATASET_KINDS: tuple[type[BaseModel], ...] = get_args(get_args(DatasetSpec)[0])
STORAGE_KINDS: tuple[type[BaseModel], ...] = get_args(get_args(StorageSpec)[0])
COLUMN_KINDS: tuple[type[BaseModel], ...] = get_args(get_args(ColumnSpec)[0])


def kinds_of(model: type[BaseModel]) -> str:
    """Return "uniform, gaussian, ..." for a model that is chosen by its kind."""
    return ", ".join(get_args(model.model_fields["kind"].annotation))


SECTIONS: dict[str, type[BaseModel]] = {
    "top of the file": Experiment,
    **{f"[storage.NAME] kind = {get_args(kind.model_fields['kind'].annotation)[0]}": kind for kind in STORAGE_KINDS},
    "[storage.NAME.physics]": Physics,
    "[storage.NAME.queue]": QueueSpec,
    "[server]": ServerSpec,
    "[server.patroni]": PatroniSpec,
    **{f"[dataset] kind = {get_args(kind.model_fields['kind'].annotation)[0]}": kind for kind in DATASET_KINDS},
    **{f"[dataset.columns] NAME.kind = {kinds_of(kind)}": kind for kind in COLUMN_KINDS},
    "[workload]": WorkloadSpec,
    "[measure]": MeasureSpec,
    "[[objective]]": Objective,
    "[durability]": DurabilitySpec,
    "[drive]": DriveSpec,
}
PUBLISHED_SECTIONS: dict[str, type[BaseModel]] = {
    "top of the file": Reference,
    "[[figure]]": PublishedFigure,
    "[[ratio]]": PublishedRatio,
    "[[fact]]": PublishedFact,
}


def schema_text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2) + "\n"


def examples_text() -> str:
    """Return the curated experiments with the files that they name, for the package, which has no experiments/."""
    loaded = {path.stem: read_experiment(path) for path in sorted(EXPERIMENTS.glob("*.toml"))}
    kept = {name: Example(one.experiment.question, one.text, one.files)._asdict() for name, one in loaded.items()}
    return json.dumps(kept, indent=1, ensure_ascii=False) + "\n"


def experiment_reference() -> str:
    lines = [
        "# Experiment file",
        "",
        "<!-- Made by scripts/generated.py from python/plinth/model/experiment.py, workload.py, dataset.py, storage.py and disk.py: change it there. -->",
        "",
        "TOML, `spec = 1`. `plinth init` writes one to start from, `plinth init --full` one with every key; `plinth schema` prints the JSON "
        "Schema for editors.",
        "`--set KEY=VALUE` replaces any key from the command line.",
    ]
    return "\n".join([*lines, *section_lines(SECTIONS)]) + "\n"


def published_reference() -> str:
    lines = [
        "# Published results",
        "",
        "<!-- Made by scripts/generated.py from python/plinth/model/published.py: change it there. -->",
        "",
        "TOML, `spec = 1`: what `reference` of an experiment names. Plinth comes with: "
        f"{', '.join(f'`{name}`' for name in packaged_references())}.",
    ]
    return "\n".join([*lines, *section_lines(PUBLISHED_SECTIONS)]) + "\n"


def rights_page() -> str:
    """Return the page that says what the keys of an experiment could make root do."""
    lines = [
        "# What an experiment may have root do",
        "",
        "<!-- Made by scripts/generated.py from python/plinth/experiment/rights.py: change it there. -->",
        "",
        "An experiment file may come from another user: a colleague, or a bundle that was shared. Most keys are numbers, names of",
        "at most 40 letters, digits, - and _, or words of a list, which can do no harm. The others take text. What each can make the",
        "user who runs it do, often root, is one of:",
        "",
        "- **harmless**: the text is shown or compared, and names nothing outside of the experiment;",
        "- **confined**: what it asks for stays within the limits of the table, also in your own experiments;",
        "- **confirmed**: it names a path, a disk, a program or an address. `plinth run BUNDLE`, `plinth host check`, `plinth fleet check` and",
        "  `plinth storage prepare` show each value in a separate sentence, with where links lead, below the whole experiment and before",
        "  anything is started, and ask; `--yes` is for scripts.",
        "",
        "A test compares the table with the schema: a new key that takes text needs a line here. Another uses each confirmed key in a bundle,",
        "as a key, as a level of a factor, in `[full]` and by `--set`, and looks for its value in what has to be confirmed.",
        "",
        "| key | | what it names | who acts on it | why that is enough |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| `{key}` | {one.treatment} | {one.names} | {one.by} | {one.why} |" for key, one in KEYS.items()]
    lines += [
        "",
        "## Options of mkfs, mount, zpool and zfs",
        "",
        "These programs run as root, and some of their options copy files into the storage, write files, or use devices that no guard has",
        "checked. So only these are accepted; values are words and numbers, never paths. To ask for one that is missing, open an issue.",
        "",
    ]
    for filesystem, allowed in MKFS.items():
        with_lists = (f"`{name}` ({listed(allowed.lists[name])})" for name in sorted(allowed.lists))
        plain = (f"`{name}`" for name in allowed.names() if name not in allowed.lists)
        lines.append(f"- **mkfs.{filesystem}**: {', '.join((*plain, *with_lists))}")
    lines.append(f"- **mount**: {listed(MOUNT)}; `errors` with `continue` or `remount-ro`")
    lines.append(
        f"- **properties of a pool** (zpool): {listed(POOL)}, `feature@NAME`; `failmode` with `wait` or `continue`"
    )
    lines.append(f"- **properties of its dataset** (zfs): {listed(DATASET)}")
    return "\n".join(lines) + "\n"


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def section_lines(sections: dict[str, type[BaseModel]]) -> list[str]:
    """Return a table of keys for each model, under its title."""
    lines: list[str] = []
    for title, model in sections.items():
        lines += ["", f"## {title}", "", " ".join((model.__doc__ or "").split()), ""]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{field.alias or name}` | {type_text(model, name)} | {default_text(field)} | {meaning(field)} |"
            for name, field in sorted(model.model_fields.items(), key=lambda item: item[0] != "kind")
        ]
    return lines


def type_text(model: type[BaseModel], name: str) -> str:
    own = model.model_json_schema(by_alias=True)["properties"][model.model_fields[name].alias or name]
    options = [option for option in own.get("anyOf", [own]) if option.get("type") != "null"]
    if any("$ref" in option or "oneOf" in option for option in options) or own.get("type") == "object":
        return "table"
    kinds = [
        kind
        for option in options
        for kind in ([option["type"]] if isinstance(option.get("type"), str) else option.get("type", []))
    ]
    return " or ".join(dict.fromkeys(kinds)) or "text"


def default_text(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value == {} or isinstance(value, BaseModel):
        return ""
    return f"`{json.dumps(value)}`"


def meaning(field: Any) -> str:
    words = field.description or ""
    allowed = list(literals(field.annotation))
    if len(allowed) > 1:
        words += " Allowed: " + ", ".join(f"`{word}`" for word in allowed) + "."
    if field.examples:
        words += " Example: " + ", ".join(f"`{json.dumps(example)}`" for example in field.examples) + "."
    return words.strip().replace("|", "\\|")


def literals(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    else:
        for argument in get_args(annotation):
            yield from literals(argument)


def cli_reference() -> str:
    parts = [
        "# Commands",
        "",
        "<!-- Made by scripts/generated.py from the commands' own help: change it there. -->",
        "",
        "```text",
        help_text(),
        "```",
    ]
    for words in command_words():
        shown = subprocess.run(
            [sys.executable, "-m", "plinth", *words, "--help"],
            capture_output=True,
            text=True,
            check=True,
            env={"COLUMNS": "100", "PATH": "/usr/bin:/bin", "NO_COLOR": "1", "PYTHONPATH": str(ROOT / "python")},
        ).stdout
        parts += [
            "",
            f"## plinth {' '.join(words)}",
            "",
            "```text",
            re.sub(r"[ \t]+$", "", shown, flags=re.M).strip(),
            "```",
        ]
    return "\n".join(parts) + "\n"


def command_words() -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, those of a group before those of its commands."""
    for command in COMMANDS:
        yield (command.name,)
        target = pkgutil.resolve_name(command.target) if command.target else None
        if isinstance(target, App):
            yield from ((command.name, name) for name in target if not name.startswith("-"))


def disk_reference() -> str:
    lines = [
        "# Emulated disks: the profiles",
        "",
        "<!-- Made by scripts/generated.py from crates/disk/src/model/profiles.rs: change it there. -->",
        "",
        "Medians with one request at a time, of 8 KiB each, by the pure model; a log write is a write behind the one before",
        "it, and a flush. Through a loop device the machine adds up to 60 us per request; the test of every profile",
        "(`tests/disk/test_disk_accuracy.py`) holds the median within 10 % and that.",
        "",
        "| profile | stands for | random read | random write | log write | write cache |",
        "|---|---|---|---|---|---|",
    ]
    profiles = disk_profiles()
    for profile in profiles:
        medians = profile.depth_one
        times = (medians.random_read_ns, medians.random_write_ns, medians.log_write_ns)
        cells = [profile.name, profile.stands_for, *(format_duration(ns / 1e9) for ns in times)]
        lines.append(f"| {' | '.join(cells)} | {cache_text(profile.physics)} |")
    for profile in profiles:
        lines += ["", f"## {profile.name}", "", "```text", physics_text(profile.physics), "```", ""]
        lines += [f"- {what}: {source}" for what, source in profile.sources]
    return "\n".join(lines) + "\n"


def security_page() -> str:
    """Return SECURITY.md with the table of how what was brought reaches processes."""
    before, _, rest = (ROOT / "SECURITY.md").read_text().partition(WAYS_BEGIN)
    after = rest.partition(WAYS_END)[2]
    rows = ["| what was brought | reaches | as | sees | at most |", "|---|---|---|---|---|"]
    for way in WAYS.values():
        bounds = [f"{format_size(way.output_bytes)} of output"]
        if way.timeout_s is not None:
            bounds.insert(0, format_duration(way.timeout_s))
        if way.memory_bytes is not None:
            bounds.append(f"{format_size(way.memory_bytes)} of memory")
        sees, most = ", ".join(way.sees), ", ".join(bounds)
        rows.append(f"| {way.brought} | {way.process} | the server's user | {sees} | {most} |")
    return "\n".join([f"{before}{WAYS_BEGIN}", "", *rows, "", f"{WAYS_END}{after}"])


def engine_limits() -> str:
    """Return the module of the load engine with the defaults and bounds of its configuration, which its model declares."""

    def most(model: type[BaseModel], key: str) -> Any:
        return model.model_json_schema()["properties"][key]["maximum"]

    bounds: dict[str, tuple[str, Any]] = {
        "MOST_CLIENTS": ("usize", most(LoadConfig, "clients")),
        "LONGEST_S": ("f64", most(LoadConfig, "stop_timeout_s")),
        "MOST_TPS": ("f64", most(Stage, "to_tps")),
        "MOST_FIRST_NUMBER": ("u64", most(LedgerFiles, "first_number")),
        "MOST_CLASSES": ("usize", most(Recording, "classes")),
        "MOST_SPEED": ("f64", most(Recording, "speed")),
    }
    defaults: dict[str, tuple[type[BaseModel], str]] = {
        "max_tries": (LoadConfig, "u32"),
        "check_variables": (LoadConfig, "bool"),
        "connect_timeout_s": (LoadConfig, "f64"),
        "stop_timeout_s": (LoadConfig, "f64"),
        "weight": (LoadScript, "u32"),
        "first_number": (LedgerFiles, "u64"),
        "classes": (Recording, "usize"),
        "arrivals": (Rate, "Distribution"),
    }

    def literal(kind: str, value: Any) -> str:
        if kind == "Distribution":
            return f"{kind}::{value.title()}"
        return str(value).lower() if kind == "bool" else f"{float(value):_}" if kind == "f64" else f"{value:_}"

    texts = [f"pub(crate) const {name}: {kind} = {literal(kind, value)};\n" for name, (kind, value) in bounds.items()]
    for key, (model, kind) in defaults.items():
        value = literal(kind, model.model_fields[key].default)
        texts.append(f"\npub(crate) fn {key}() -> {kind} {{\n    {value}\n}}\n")
    made = (
        "//! Defaults and greatest values of a configuration. Made by scripts/generated.py of plinth.model.load_config."
    )
    return f"{made}\n\nuse crate::arrivals::Distribution;\n\n{''.join(texts)}"


def generated() -> dict[str, str]:
    """Return every generated file: path below the root -> text."""
    return {
        EXAMPLES: examples_text(),
        SCHEMA_FILE: schema_text(json_schema()),
        "docs/reference/plan.schema.json": schema_text(Plan.model_json_schema()),
        "docs/reference/trial.schema.json": schema_text(Trial.model_json_schema()),
        "docs/reference/analysis.schema.json": schema_text(Analysis.model_json_schema()),
        "docs/reference/baseline.schema.json": schema_text(RunFigures.model_json_schema()),
        "docs/reference/comparison.schema.json": schema_text(RunsComparison.model_json_schema()),
        "docs/reference/doctor.schema.json": schema_text(DoctorRecord.model_json_schema()),
        "docs/reference/endurance.schema.json": schema_text(Endurance.model_json_schema()),
        "docs/reference/forecast.schema.json": schema_text(Forecast.model_json_schema()),
        "docs/reference/live.schema.json": schema.schema_text(LiveProtocol),
        "docs/reference/load.schema.json": schema_text(LoadConfig.model_json_schema()),
        "crates/load/src/limits.rs": engine_limits(),
        "docs/reference/report.schema.json": schema.schema_text(),
        "docs/reference/published.schema.json": schema_text(Reference.model_json_schema(by_alias=True)),
        "docs/reference/experiment.md": experiment_reference(),
        "docs/concepts/rights.md": rights_page(),
        "SECURITY.md": security_page(),
        "docs/reference/published.md": published_reference(),
        "docs/reference/commands.md": cli_reference(),
        "docs/reference/disk-profiles.md": disk_reference(),
        **{f"wheel-data/data/share/man/man1/{name}": text for name, text in man_pages().items()},
        PAGE: experiment_catalogue(),
        **study_pages(),
    }


def main() -> int:
    """Write what is out of date, or name it and return 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    only_check = parser.parse_args().check
    examples = ROOT / EXAMPLES
    if not only_check and examples.read_text() != examples_text():
        examples.write_text(examples_text())  # first, since a command's help names them
        print(f"wrote {EXAMPLES}")
    texts = generated()
    stale = [name for name, text in texts.items() if not (ROOT / name).is_file() or (ROOT / name).read_text() != text]
    if only_check:
        for name in stale:
            print(f"out of date: {name}; `make fmt` regenerates it", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[name])
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
