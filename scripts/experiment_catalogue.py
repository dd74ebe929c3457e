"""The catalogue of experiments/, made of the files themselves and of scripts/catalogue.toml, which says what they do not.

scripts/generated.py writes it and checks that it is up to date.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kept_reports import read_kept, studies
from plinth.experiment import read_experiment
from plinth.model.experiment import Experiment
from plinth.report.markdown_text import plain

ROOT = Path(__file__).resolve().parent.parent
EXPERIMENTS = ROOT / "experiments"
CATALOGUE = ROOT / "scripts/catalogue.toml"
PAGE = "docs/experiments-catalogue.md"
_MADE = "<!-- Made by scripts/generated.py from experiments/ and scripts/catalogue.toml: change it there. -->"
_LEAD = """\
Every file of `experiments/`, in the repository and in the package: what it asks, what it varies, how long it runs, what
it needs, and where the answer is. To get one with the scripts that it names:

```sh
plinth init mine.toml --example ramdisk
plinth plan mine.toml
```

Times are those of the file's header or, where it has none, the estimate of `plinth plan`, for a machine with two cores;
`plinth plan` estimates yours. "Yes" under *root* means that `plinth run` needs root, because it makes and mounts devices
or networks. Under *measured*, "a report" is one that meets the [rule of
publication](studies/README.md#when-a-report-is-published); "first figures" are on a page that says how far to trust
them. [`--full`](guides/experiments.md#the-published-size) asks for the published size, which takes hours and much
more space."""
_TAKES = re.compile(r"\b(?:runs(?: here)? in about|Ran in) ([\w ]+?)(?: on (\d+(?: busy)? cores))?(?=[.,;])", re.I)
_WITHOUT_ROOT = {"directory", "tmpfs"}
_PROGRAMS = {
    "xfs": "xfsprogs for XFS",
    "btrfs": "btrfs-progs",
    "zfs": "the kernel's ZFS, or zfs-fuse",
    "md": "mdadm and md in the kernel",
    "lvm": "lvm2 and device mapper in the kernel",
    "zram": "zram in the kernel",
}


def experiment_catalogue() -> str:
    """Return the page; every experiment is in one group of scripts/catalogue.toml, or this ends with what is wrong."""
    groups = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))["group"]
    files = {path.stem: path for path in sorted(EXPERIMENTS.glob("*.toml"))}
    named = [name for group in groups for name in group["experiment"]]
    if sorted(named) != sorted(files):
        wrong = sorted({*named} ^ {*files} | {name for name in named if named.count(name) > 1})
        raise SystemExit(f"{CATALOGUE.name}: each file of experiments/ once, and no other: {', '.join(wrong)}")
    overview: list[str] = []
    parts: list[str] = []
    for group in groups:
        parts.append(f"## {group['title']}")
        for name, entry in group["experiment"].items():
            read = read_experiment(files[name])
            overview.append(_row(name, read.experiment, read.text, entry))
            parts.append(_entry(name, read.experiment, read.text, entry))
    table = "\n".join(["| experiment | question | runs in | root | measured |", "|---|---|---|---|---|", *overview])
    return "\n\n".join(["# Catalogue of experiments", _MADE, _LEAD, table, *parts]) + "\n"


def _row(name: str, experiment: Experiment, text: str, entry: Mapping[str, Any]) -> str:
    cells = (
        f"[{name}](#{name})",
        plain(experiment.question),
        _takes(name, text, entry).removeprefix("about "),
        "yes" if _needs_root(experiment) else "no",
        _measured(name, entry),
    )
    return f"| {' | '.join(cells)} |"


def _measured(name: str, entry: Mapping[str, Any]) -> str:
    if list(_reports(name)):
        return "a report"
    if entry.get("answers"):
        return "first figures"
    return "not yet"


def _entry(name: str, experiment: Experiment, text: str, entry: Mapping[str, Any]) -> str:
    lines = [
        f"### {name}",
        "",
        f"**{plain(experiment.question)}**",
        "",
        *(f"- Varies {line}" for line in _factors(experiment)),
        f"- Runs in {_takes(name, text, entry)}",
        f"- Needs {'; '.join(_needs(experiment, entry)) or 'nothing more'}",
        *([f"- Needs with `--full` also {'; '.join(full)}"] if (full := list(_full_needs(experiment))) else []),
        *(f"- Study: {line}" for line in _study(experiment, entry)),
        f"- Answer: {'; '.join(_answers(name, entry)) or 'not yet measured'}",
    ]
    return "\n".join(lines)


def _takes(name: str, text: str, entry: Mapping[str, Any]) -> str:
    header = " ".join(line.removeprefix("#").strip() for line in text.split("\nspec =")[0].splitlines())
    found = _TAKES.search(header)
    if (found is None) == ("takes" not in entry):
        raise SystemExit(f"{CATALOGUE.name}: {name}: say `takes` if the header of the file does not, and only then")
    if found is None:
        return f"{entry['takes']} (the plan's estimate)"
    where = f" on {found[2]}" if found[2] else ""
    return f"about {found[1]}" if not where else f"{found[1]}{where}"


def _factors(experiment: Experiment) -> Iterator[str]:
    for key, levels in experiment.matrix.items():
        between = "; " if any(isinstance(level, int | tuple) for level in levels) else ", "
        yield f"`{key}`: {between.join(_level(level) for level in levels)}"


def _level(level: Any) -> str:
    if isinstance(level, tuple | list):
        return f"`{' '.join(map(str, level))}`"
    if isinstance(level, bool):
        return "`on`" if level else "`off`"
    if isinstance(level, int):
        return f"{level:,}"
    return f"`{level}`" if level != "" else "none"


def _kinds(experiment: Experiment) -> set[str]:
    return {storage.kind for storage in experiment.storage.values()}


def _needs_root(experiment: Experiment) -> bool:
    return (
        not _kinds(experiment) <= _WITHOUT_ROOT or experiment.network is not None or experiment.measure.cache == "cold"
    )


def _needs(experiment: Experiment, entry: Mapping[str, Any]) -> Iterator[str]:
    kinds = _kinds(experiment)
    if _needs_root(experiment):
        yield "root"
    elif "tmpfs" in kinds:
        yield "root for a real tmpfs; without it, a directory in `/dev/shm` serves instead"
    if "emulated" in kinds:
        yield "FUSE and loop devices"
    elif kinds & {"loop", "file"}:
        yield "loop devices"
    if experiment.network is not None:
        yield "network namespaces and TUN devices (iproute2)"
    yield from (_PROGRAMS[kind] for kind in sorted(kinds | _filesystems(experiment)) if kind in _PROGRAMS)
    yield from entry.get("needs", ())
    if experiment.measure.probe_io:
        yield "fio for its I/O figures; without it they are n/a"


def _filesystems(experiment: Experiment) -> set[str]:
    levels = {
        str(level) for key, levels in experiment.matrix.items() if key.endswith(".filesystem") for level in levels
    }
    return levels | {str(getattr(storage, "filesystem", "")) for storage in experiment.storage.values()}


def _full_needs(experiment: Experiment) -> Iterator[str]:
    full = experiment.full or {}
    kinds = {str(value) for key, value in full.items() if key.startswith("storage.") and key.endswith(".kind")}
    yield from (_PROGRAMS[kind] for kind in sorted(kinds - _kinds(experiment)) if kind in _PROGRAMS)
    if hosts := {str(value) for key, value in full.items() if key.startswith("storage.") and key.endswith(".host")}:
        yield f"{len(hosts)} machines, reached by ssh: see [hosts](guides/hosts.md)"
    if full.get("measure.probe_io") and not experiment.measure.probe_io:
        yield "fio for its I/O figures"


def _study(experiment: Experiment, entry: Mapping[str, Any]) -> Iterator[str]:
    if "study" in entry:
        titles = {study["page"]: study["title"] for study in studies()}
        said = "" if experiment.reference else "; the report shows none of its figures"
        yield f"[{titles[entry['study']]}](studies/{entry['study']}.md){said}"
    elif experiment.reference:
        raise SystemExit(
            f"{CATALOGUE.name}: {experiment.name}: say which page of docs/studies is about {experiment.reference}"
        )


def _reports(name: str) -> Iterator[str]:
    """Yield links to the kept reports of an experiment."""
    for study in studies():
        for run in study["run"]:
            if run.get("experiment", run["name"]) == name and read_kept(run["name"]):
                yield f"[report, figures and charts](studies/{study['page']}.md#{run['name']})"


def _answers(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    yield from _reports(name)
    yield from (f"[{text}]({target})" for target, text in entry.get("answers", {}).items())
