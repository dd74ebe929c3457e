"""The scripts that clients run: pgbench's built-in ones, or files in its language."""

import json
from collections.abc import Mapping

from plinth.model.errors import UsageError
from plinth.model.experiment import WorkloadSpec
from plinth.model.plan import ScriptText

# Set by the load engine for every client, as pgbench does.
AUTOMATIC_VARIABLES = ("scale", "client_id", "random_seed", "default_seed")


def scripts_of(spec: WorkloadSpec, texts: Mapping[str, str]) -> tuple[ScriptText, ...]:
    """The scripts of a workload; `texts` holds the script files by the path that the experiment names."""
    if spec.builtin is not None:
        from plinth._native import builtin_script

        return (ScriptText(name=spec.builtin, source=builtin_script(spec.builtin)),)
    assert spec.script is not None, "a workload has either a builtin or a script"
    return (ScriptText(name=spec.script, source=texts[spec.script]),)


def check_scripts(spec: WorkloadSpec, scripts: tuple[ScriptText, ...]) -> list[str]:
    """Compile each script and return the text of its SQL statements. Raises UsageError with file, line and column."""
    from plinth._native import ScriptError, parse_script

    known = [*AUTOMATIC_VARIABLES, *spec.variables]
    statements = []
    for script in scripts:
        try:
            parsed = json.loads(parse_script(script.name, script.source, known))
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
