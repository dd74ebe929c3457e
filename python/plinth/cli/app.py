"""Calls the command of a command line and converts its exceptions to exit codes."""

import shlex
import sys

from cyclopts import CycloptsError, UnusedCliTokensError

from plinth import exit_codes
from plinth.cli.application import application
from plinth.cli.printing import print_plain
from plinth.common.shown import on_one_line
from plinth.model.errors import ExperimentError, Reported, Several


def call(words: list[str]) -> int:
    """Run a command line and return its exit code. Errors are printed to stderr with their location and a hint."""
    try:
        if words[0] == "--install-completion":
            from plinth.cli.completion import install_completion

            return install_completion(words[1:])
        result = application()(words, exit_on_error=False, print_error=False)
        return result if isinstance(result, int) else 0
    except CycloptsError as error:
        _show_usage_error(error)
        return exit_codes.USAGE
    except Reported as error:
        show_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        print_plain("interrupted", file=sys.stderr)
        return exit_codes.INTERRUPTED


def show_error(error: Reported) -> None:
    """Print an error to stderr: what failed, where, got and allowed, then a hint."""
    from plinth.cli.console import error_console
    from plinth.model.units import format_count

    console = error_console(soft_wrap=True)
    if isinstance(error, Several):
        for one in error.errors:
            show_error(one)
        console.print(f"{error.message}: {format_count(len(error.errors), 'error')}", style="bold red")
        return
    console.print("error: ", style="bold red", end="")
    if isinstance(error, ExperimentError):
        console.print(error.message)
        for problem in error.problems:
            place = ": ".join(part for part in (problem.where, problem.key) if part)
            console.print(f"  {place}: ", style="bold", end="")
            console.print(problem.message)
            if problem.hint:
                console.print(f"      hint: {problem.hint}")
        for one in error.others:
            show_error(one)
        return
    console.print(error.message)
    if error.where:
        console.print(f"  where: {on_one_line(error.where)}")
    for line in error.details:
        console.print(f"  | {line}", style="dim")
    if error.hint:
        console.print(f"  hint: {error.hint}")


def _show_usage_error(error: CycloptsError) -> None:
    error.console = None
    if isinstance(error, UnusedCliTokensError):
        words = error.unused_tokens or ()
        text = f"unexpected argument{'s' if len(words) > 1 else ''}: {shlex.join(words)}"
    else:
        text = " ".join(str(error).split())
    print_plain(f"error: {text}", file=sys.stderr)
    command = " ".join(("plinth", *(error.command_chain or ()), "--help"))
    print_plain(f"  hint: `{command}` explains the usage", file=sys.stderr)
