"""Completion of the command line in shells: `plinth completion SHELL` and `plinth --install-completion [SHELL]`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from cyclopts import Parameter

from plinth.cli.printing import print_plain
from plinth.model.errors import UsageError
from plinth.system.failures import from_os_error

if TYPE_CHECKING:
    from cyclopts import App

Shell = Literal["bash", "zsh", "fish"]
_SHELLS: tuple[Shell, ...] = get_args(Shell)


def completion(shell: Annotated[Shell, Parameter(help="Your shell.")], /) -> int:
    """Print a completion script.

    `plinth --install-completion` writes it to where your shell looks for it.

      plinth completion bash > /etc/bash_completion.d/plinth
    """
    print_plain(_application().generate_completion(shell=shell))
    return 0


def install_completion(words: list[str]) -> int:
    """Write the completion script to where the shell looks for it; `words` may name the shell, else it is that of $SHELL.

    For bash and zsh a line in ~/.bashrc or ~/.zshrc loads it, which is written once; fish needs none.
    """
    shell = _chosen(words)
    try:
        written = _application().install_completion(shell=shell)
    except OSError as error:
        raise from_os_error(error, "install the completion", Path(error.filename or Path.home())) from error
    print_plain(f"Wrote {written}. It works in the next {shell} that you start.")
    return 0


def _chosen(words: list[str]) -> Shell:
    allowed = ", ".join(_SHELLS)
    name = words[0] if words else Path(os.environ.get("SHELL", "")).name
    for shell in _SHELLS:
        if [name, *words[1:]] == [shell]:
            return shell
    got = " ".join(words) if words else f"$SHELL, which is {os.environ.get('SHELL', '')!r}"
    raise UsageError(
        f"there is no completion for {got}",
        where="--install-completion",
        hint=f"plinth --install-completion SHELL: {allowed}",
    )


def _application() -> "App":
    from plinth.cli.application import application

    app = application()

    def bench(*arguments: Path) -> None:  # its options are read by pgbench's rules, not by this parser
        """Run pgbench's command line on Plinth's load engine."""

    app.command(bench)
    return app
