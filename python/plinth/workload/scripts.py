"""What clients run: the transactions of a built-in workload, or script files in pgbench's language."""

import json
from collections.abc import Collection, Iterable, Mapping

from plinth.model.builtin import BUILTINS
from plinth.model.errors import Problem, UsageError
from plinth.model.files import weighted
from plinth.model.plan import PlannedShell, ScriptText, TransactionText
from plinth.model.workload import WorkloadSpec
from plinth.system.owner import SHELL_COMMANDS
from plinth.workload.builtins import builtin_of

# Set by the load engine for every client, as pgbench does.
AUTOMATIC_VARIABLES = ("scale", "client_id", "random_seed", "default_seed")


def scripts_of(spec: WorkloadSpec, dataset: str, texts: Mapping[str, str]) -> tuple[TransactionText, ...]:
    """Return the transactions of a workload on a kind of dataset; `texts` holds script files by the path that the experiment names.

    Raises Problem for a built-in workload that works on another kind of dataset.
    """
    if spec.builtin is None:
        named = map(weighted, spec.script)
        return tuple(ScriptText(name=path, source=texts[path], weight=weight) for path, weight in named)
    wanted = BUILTINS[spec.builtin].dataset
    # Tables of pgbench may be there without having been loaded.
    if dataset != wanted and not (dataset == "none" and BUILTINS[spec.builtin].is_pgbench):
        fitting = [name for name, traits in BUILTINS.items() if traits.dataset == dataset]
        raise Problem(
            f"{spec.builtin!r} works on dataset {wanted}, not on {dataset}",
            path=["workload", "builtin"],
            hint=f"on dataset {dataset}: {', '.join(fitting) or 'a script'}; or [dataset] kind = {wanted!r}",
        )
    return tuple(one.transaction(spec) for one in builtin_of(spec.builtin))


def check_working_set(spec: WorkloadSpec, variables: Mapping[str, str]) -> None:
    """Raise Problem for a working set of more rows than the dataset with these variables has."""
    rows = int(variables["rows"]) if "rows" in variables else None
    if spec.active_rows is not None and rows is not None and spec.active_rows > rows:
        raise Problem(
            f"got {spec.active_rows:,}; the dataset has {rows:,} rows to choose from", path=["workload", "active_rows"]
        )


def check_scripts(
    spec: WorkloadSpec, transactions: Iterable[TransactionText], known: Collection[str] = ()
) -> list[str]:
    """Compile each script and return the text of its SQL statements. `known` are variables that the dataset sets.

    Transactions that are compiled into the load engine need no check.

    Raises UsageError with file, line and column.
    """
    from plinth._native import ScriptError, parse_script

    names = [*dict.fromkeys([*AUTOMATIC_VARIABLES, *known, *spec.variables])]
    scripts = [one for one in transactions if isinstance(one, ScriptText)]
    statements: list[str] = []
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
    return statements


def shell_commands(
    transactions: Iterable[TransactionText], variables: Collection[str], user: str
) -> list[PlannedShell]:
    """Return every command of the system that scripts which parse would start, as written; `user` is who runs them.

    `variables` are those that are set from outside.
    """
    from plinth._native import parse_script

    return [
        PlannedShell(script=script.name, line=command["line"], command=command["text"], user=user)
        for script in transactions
        if isinstance(script, ScriptText)
        for command in json.loads(parse_script(script.name, script.source, [*AUTOMATIC_VARIABLES, *variables]))[
            "commands"
        ]
        if command["name"] in SHELL_COMMANDS
    ]
