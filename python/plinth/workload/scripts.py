"""The scripts that clients run: built-in ones, whose choice of rows has options, or files in pgbench's language."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from plinth.model.distribution import DEFAULT_PARAMETERS
from plinth.model.errors import Problem, UsageError
from plinth.model.experiment import BUILTIN_DATASETS, PGBENCH_BUILTINS, WorkloadSpec
from plinth.model.files import weighted
from plinth.model.plan import PlannedShell, ScriptText
from plinth.system.owner import SHELL_COMMANDS

# Set by the load engine for every client, as pgbench does.
AUTOMATIC_VARIABLES = ("scale", "client_id", "random_seed", "default_seed")


@dataclass(frozen=True)
class _Builtin:
    """A built-in script: `key` is drawn from 1 to `greatest`, then comes the rest."""

    key: str
    greatest: str
    rest: str


_OWN = {
    "numbers-select": _Builtin("number", ":rows", "SELECT operator, region FROM numbers WHERE number = :number;\n"),
    "numbers-update": _Builtin(
        "number",
        ":rows",
        "\\set operator random(1, :operators)\n"
        "\\set region random(1, :regions)\n"
        "UPDATE numbers SET operator = :operator, region = :region WHERE number = :number;\n",
    ),
    "upsert-function": _Builtin("id", ":rows", "SELECT upsert_looked_up(:id);\n"),
    "upsert": _Builtin("id", ":rows", "SELECT upsert_updated(:id);\n"),
}


def scripts_of(spec: WorkloadSpec, dataset: str, texts: Mapping[str, str]) -> tuple[ScriptText, ...]:
    """The scripts of a workload on a kind of dataset; `texts` holds script files by the path that the experiment names.

    Raises Problem for a built-in script that works on another kind of dataset.
    """
    if spec.builtin is None:
        named = map(weighted, spec.script)
        return tuple(ScriptText(name=path, source=texts[path], weight=weight) for path, weight in named)
    wanted = BUILTIN_DATASETS[spec.builtin]
    # Tables of pgbench may be there without having been loaded.
    if dataset != wanted and not (dataset == "none" and spec.builtin in PGBENCH_BUILTINS):
        fitting = [name for name, kind in BUILTIN_DATASETS.items() if kind == dataset]
        raise Problem(
            f"{spec.builtin!r} works on dataset {wanted}, not on {dataset}",
            path=["workload", "builtin"],
            hint=f"on dataset {dataset}: {', '.join(fitting) or 'a script'}; or [dataset] kind = {wanted!r}",
        )
    builtin = _builtin(spec.builtin)
    source = f"\\set {builtin.key} {_draw(spec, builtin)}\n{builtin.rest}" * spec.statements
    if spec.statements > 1:
        source = f"BEGIN;\n{source}END;\n"
    return (ScriptText(name=spec.builtin, source=source),)


def check_working_set(spec: WorkloadSpec, variables: Mapping[str, str]) -> None:
    """Raises Problem for a working set of more rows than the dataset, whose variables these are, has."""
    rows = int(variables["rows"]) if "rows" in variables else None
    if spec.active_rows is not None and rows is not None and spec.active_rows > rows:
        raise Problem(
            f"got {spec.active_rows:,}; the dataset has {rows:,} rows to choose from", path=["workload", "active_rows"]
        )


def check_scripts(spec: WorkloadSpec, scripts: tuple[ScriptText, ...], known: Collection[str] = ()) -> list[str]:
    """Compile each script and return the text of its SQL statements. `known` are variables that the dataset sets.

    Raises UsageError with file, line and column.
    """
    from plinth._native import ScriptError, parse_script

    names = [*dict.fromkeys([*AUTOMATIC_VARIABLES, *known, *spec.variables])]
    statements = []
    for script in scripts:
        try:
            parsed = json.loads(parse_script(script.name, script.source, names))
        except ScriptError as error:
            raise UsageError(
                f"the script does not parse: {error.message}",
                where=f"{error.file}:{error.line}:{error.column}",
                hint=error.hint,
            ) from error
        statements += [statement["text"] for statement in parsed["statements"]]
    if not statements:
        raise UsageError("the script has no SQL statement", where=", ".join(script.name for script in scripts))
    return statements


def shell_commands(scripts: Iterable[ScriptText], variables: Collection[str], user: str) -> list[PlannedShell]:
    """Every command of the system that scripts which parse would start, as written; `user` is who runs them.

    `variables` are those that are set from outside.
    """
    from plinth._native import parse_script

    return [
        PlannedShell(script=script.name, line=command["line"], command=command["text"], user=user)
        for script in scripts
        for command in json.loads(parse_script(script.name, script.source, [*AUTOMATIC_VARIABLES, *variables]))[
            "commands"
        ]
        if command["name"] in SHELL_COMMANDS
    ]


def _builtin(name: str) -> _Builtin:
    if name in _OWN:
        return _OWN[name]
    from plinth._native import builtin_script

    accounts = "100000 * :scale"
    draw, _, rest = builtin_script(name).partition("\n")
    assert draw == f"\\set aid random(1, {accounts})", f"{name} begins with the draw of its account"
    return _Builtin("aid", accounts, rest)


def _draw(spec: WorkloadSpec, builtin: _Builtin) -> str:
    """The function that draws the key."""
    greatest = builtin.greatest if spec.active_rows is None else spec.active_rows
    if spec.keys == "uniform":
        return f"random(1, {greatest})"
    parameter = spec.keys_parameter or DEFAULT_PARAMETERS[spec.keys]
    return f"random_{spec.keys}(1, {greatest}, {parameter})"
