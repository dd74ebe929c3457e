"""Checks the packages of drivers and the scripts that they can run, before anything is created."""

import json
from collections.abc import Mapping, Sequence

from plinth.model.errors import UsageError
from plinth.model.load_config import CompiledTransaction
from plinth.model.plan import ScriptText, TransactionText
from plinth.model.workload import WorkloadSpec
from plinth.system.extras import require_package

_TAKEN = ("SQL", "set")


def check_driver(workload: WorkloadSpec, scripts: Sequence[TransactionText], variables: Mapping[str, str]) -> None:
    """Raise MissingCapability without the driver's packages, and UsageError for a script that it cannot run."""
    if workload.driver == "plinth":
        return
    if workload.driver == "sqlalchemy":
        require_package("sqlalchemy", "driver 'sqlalchemy'", where="workload.driver")
    if any(isinstance(one, CompiledTransaction) for one in scripts):
        raise UsageError(
            f"driver {workload.driver!r} runs scripts; {workload.builtin} is compiled into the load engine",
            where="workload.builtin",
            hint='take driver = "plinth", or a workload that is a script',
        )
    if len(scripts) > 1:
        raise UsageError(
            f"driver {workload.driver!r} runs one script; got {', '.join(script.name for script in scripts)}",
            where="workload.script",
            hint='driver = "plinth" draws among several by their weights',
        )
    for script in scripts:
        assert isinstance(script, ScriptText)
        given = {**variables, **{name: str(value) for name, value in workload.variables.items()}}
        _check_script(script, workload.driver, given)


def _check_script(script: ScriptText, driver: str, variables: Mapping[str, str]) -> None:
    from plinth._native import ScriptDraws, ScriptError, parse_script

    try:
        commands = json.loads(parse_script(script.name, script.source, [*variables]))["commands"]
        for command in commands:
            if command["name"] not in _TAKEN:
                raise UsageError(
                    f"driver {driver!r} does not run \\{command['name']}: it takes SQL and \\set only",
                    where=f"{script.name}:{command['line']}",
                    hint='driver = "plinth" runs all of pgbench\'s language',
                )
        ScriptDraws(script.name, script.source, dict(variables), 1, 1, 0)
    except ScriptError as error:
        raise UsageError(
            f"the script cannot be run: {error.message}",
            where=f"{error.file}:{error.line}:{error.column}",
            hint=error.hint,
        ) from error
