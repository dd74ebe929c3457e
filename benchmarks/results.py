"""Where the results of a benchmark go, and the machine that they depend on."""

import json
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

LOAD_AVERAGE_BEFORE = round(os.getloadavg()[0], 2)  # what else the machine was doing


def machine_kind() -> str:
    """Return the processors, and whether they are a hypervisor's: no name that would tell one machine from another."""
    is_virtual = re.search(r"^flags\s*:.* hypervisor\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{os.cpu_count()}-core-{'vm' if is_virtual else 'machine'}"


def machine_facts() -> dict[str, str | float | None]:
    """Return what the figures depend on."""
    return {
        "cpu": _found(r"model name\s*: (.*)", "/proc/cpuinfo"),
        "cpus": os.cpu_count(),
        "memory_gib": round(int(_found(r"MemTotal:\s+(\d+)", "/proc/meminfo")) / 2**20),
        "kernel": platform.release().split("-")[0],
        "nice": os.nice(0),
        "load_average_before": LOAD_AVERAGE_BEFORE,
    }


def _found(pattern: str, file: str) -> str:
    match = re.search(pattern, Path(file).read_text())
    return match[1] if match else "unknown"


def machine_text() -> str:
    """Return the facts as one line."""
    return ", ".join(f"{name} {value}" for name, value in machine_facts().items())


def keep(folder: Path, readme: str, **results: Mapping[str, object]) -> Path:
    """Write README.md and NAME.json for each of `results`, with the machine, into a new folder, and return it.

    A folder that is there already keeps its results: the new one then ends in -2, -3 and so on.
    """
    new, number = folder, 1
    while new.exists():
        number += 1
        new = folder.with_name(f"{folder.name}-{number}")
    new.mkdir(parents=True)
    (new / "README.md").write_text(readme)
    for name, content in results.items():
        text = json.dumps({"machine": machine_facts(), **content}, indent=1)
        (new / f"{name}.json").write_text(f"{text}\n")
    return new
