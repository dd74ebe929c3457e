"""Make the generated files anew, or check that they are fresh.

    python scripts/generated.py           write them
    python scripts/generated.py --check   exit 1 and name those that are not fresh

docs/reference/ comes from the models and from the commands' own help.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from plinth.cli import COMMANDS, help_text
from plinth.experiment import json_schema
from plinth.model.analysis import Analysis
from plinth.model.experiment import (
    DirectoryStorage,
    Experiment,
    MeasureSpec,
    NoDataset,
    ServerSpec,
    TmpfsStorage,
    TpcbDataset,
    WorkloadSpec,
)
from plinth.model.plan import Plan
from plinth.model.trial import Trial
from plinth.report import schema

ROOT = Path(__file__).resolve().parent.parent

SECTIONS: dict[str, type[BaseModel]] = {
    "top of the file": Experiment,
    "[storage.NAME] kind = directory": DirectoryStorage,
    "[storage.NAME] kind = tmpfs": TmpfsStorage,
    "[server]": ServerSpec,
    "[dataset] kind = tpcb": TpcbDataset,
    "[dataset] kind = none": NoDataset,
    "[workload]": WorkloadSpec,
    "[measure]": MeasureSpec,
}


def schema_text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2) + "\n"


def experiment_reference() -> str:
    lines = [
        "# Experiment file",
        "",
        "<!-- Made by scripts/generated.py from python/plinth/model/experiment.py: change it there. -->",
        "",
        "TOML, `spec = 1`. `plinth init` writes a commented one; `plinth schema` prints the JSON Schema for editors.",
        "`--set KEY=VALUE` replaces any key from the command line.",
    ]
    for title, model in SECTIONS.items():
        lines += ["", f"## {title}", "", " ".join((model.__doc__ or "").split()), ""]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        lines += [
            f"| `{field.alias or name}` | {type_text(model, name)} | {default_text(field)} | {meaning(field)} |"
            for name, field in model.model_fields.items()
        ]
    return "\n".join(lines) + "\n"


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
    for command in COMMANDS:
        shown = subprocess.run(
            [sys.executable, "-m", "plinth", command.name, "--help"],
            capture_output=True,
            text=True,
            check=True,
            env={"COLUMNS": "100", "PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
        ).stdout
        parts += [
            "",
            f"## plinth {command.name}",
            "",
            "```text",
            re.sub(r"[ \t]+$", "", shown, flags=re.M).strip(),
            "```",
        ]
    return "\n".join(parts) + "\n"


def generated() -> dict[str, str]:
    """Every generated file: path below the root -> text."""
    return {
        "docs/reference/experiment.schema.json": schema_text(json_schema()),
        "docs/reference/plan.schema.json": schema_text(Plan.model_json_schema()),
        "docs/reference/trial.schema.json": schema_text(Trial.model_json_schema()),
        "docs/reference/analysis.schema.json": schema_text(Analysis.model_json_schema()),
        "docs/reference/report.schema.json": schema.schema_text(),
        "docs/reference/experiment.md": experiment_reference(),
        "docs/reference/commands.md": cli_reference(),
    }


def main() -> int:
    stale = [
        name for name, text in generated().items() if not (ROOT / name).is_file() or (ROOT / name).read_text() != text
    ]
    if sys.argv[1:] == ["--check"]:
        for name in stale:
            print(f"not fresh: {name}; `make fmt` makes it anew", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(generated()[name])
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
