"""Steps: what is done to the machine, named before it is done, and how each is undone."""

from pydantic import Field

from plinth.model.base import Frozen


class Undo(Frozen):
    """How a step is undone; what the journal keeps. Only what has `label` is ever touched."""

    kind: str = Field(
        description='What knows how: the name of a handler that a kind of storage or server declares, such as "unmount".'
    )
    path: str = Field(
        description="Directory, mount point, data directory, file, connection string without a password, or what shared memory is "
        "known by."
    )
    label: str = Field(description="The mark that must be found on it before it is undone.")


class Step(Frozen):
    """One step. With `argv` it is an external command, exactly as it will run; otherwise Plinth does it itself."""

    id: str = Field(description='Such as "storage.memory.mount".')
    title: str = Field(description='What it does, for people: "mount a tmpfs of 2.0 GiB".')
    argv: tuple[str, ...] | None = None
    user: str | None = Field(default=None, description="The user that it runs as, when not ours.")
    destroys: tuple[str, ...] = Field(
        default=(), description="Stable ids of the disks whose content is lost by it; none for what Plinth made itself."
    )
    undo: Undo | None = None
