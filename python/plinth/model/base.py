"""The base of every artefact: frozen, and closed to unknown keys."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

NAME_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]{0,39}$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
"""A name that can be part of a path: a letter, then letters, digits, - and _, at most 40."""

Names = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""One name, or a list of them."""

Port = Annotated[int, Field(ge=1, le=65535)]
"""A port of TCP."""

SettingValue = bool | int | float | str
"""The value of a server's setting, as an experiment has it."""


class Frozen(BaseModel):
    """An immutable value that refuses unknown keys, so that nothing is ignored in silence.

    Fields may carry an alias: the key in people's units as written in an experiment file
    (`duration = "60s"`), while the field itself has SI units in its name (`duration_s`).
    Artefacts are saved and read by field name.
    """

    model_config = ConfigDict(
        defer_build=True, frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True
    )


BUG = "a bug in Plinth"
"""How the reason of a gap begins that no machine, server or right is to blame for."""


class Gap(Frozen):
    """A figure or fact that is not available, and why. Shown as "n/a: reason", never as zero."""

    what: str
    reason: str

    @property
    def is_bug(self) -> bool:
        """Whether Plinth itself failed to read it."""
        return self.reason.startswith(BUG)
