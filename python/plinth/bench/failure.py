"""An error that ends `plinth bench` early, with pgbench's message."""

INTERRUPTED = 130
"""Exit code of what Ctrl-C ended."""


class BenchFailure(Exception):
    """An error as pgbench reports it: a message, perhaps a detail and a hint, and its exit code.

    `exit_code` is 1 for bad usage, scripts and set-up, and 2 for errors while the clients run. `lines` follow the
    message without a prefix, as the line of a script with the place of its error does; `then` is what
    could not be done because of it.
    """

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        lines: tuple[str, ...] = (),
        then: str | None = None,
        exit_code: int = 1,
        severity: str = "error: ",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.lines = lines
        self.then = then
        self.exit_code = exit_code
        self.severity = severity

    def text(self, program: str) -> str:
        """Return all lines for standard error."""
        told = [f"{program}: {self.severity}{self.message}", *self.lines]
        if self.detail is not None:
            told.append(f"{program}: detail: {self.detail}")
        if self.hint is not None:
            told.append(f"{program}: hint: {self.hint}")
        if self.then is not None:
            told.append(f"{program}: {self.severity}{self.then}")
        return "\n".join(told)
