"""How the part of a run on another host is undone when its coordinator has not: `plinth clean` is run there."""

import shlex
from typing import NamedTuple

from plinth.exit_codes import REFUSED
from plinth.fleet.executors.ssh import ssh_command
from plinth.model.errors import Refused, RunError
from plinth.model.host import HostSpec
from plinth.model.step import Step, Undo
from plinth.system import cancel
from plinth.system.directory import label_of
from plinth.system.runner import CommandError, Runner
from plinth.system.undo import UndoHandler, UndoHandlers

KIND = "clean_host"
KIND_ON_RAY = "clean_host_on_ray"
_TIMEOUT_S = 600.0
_LOOK_AGAIN_S = 2.0
_ATTEMPTS = 40
"""While the agent is still there, which has a lease of a minute by default."""


class _Place(NamedTuple):
    """Where the part of a run is, and how it is reached; in a journal as words of a shell."""

    destination: str
    remote: str
    port: str = ""
    ssh_config: str = ""

    @property
    def text(self) -> str:
        return shlex.join(self)

    def ssh(self) -> list[str]:
        config = ["-F", self.ssh_config] if self.ssh_config else []
        return ["ssh", *config, *(["-p", self.port] if self.port else [])]


def host_step(name: str, spec: HostSpec, run_id: str, ssh_config: str | None) -> Step:
    """Return the step that notes that a host has a part of a run."""
    if spec.node is not None:
        on_ray = Undo(kind=KIND_ON_RAY, path=shlex.join((name, spec.address, spec.node)), label=label_of(run_id))
        return Step(id=step_id(name), title=f"start an agent on host {name}", undo=on_ray)
    port = "" if spec.ssh.port is None else str(spec.ssh.port)
    place = _Place(spec.ssh.destination, spec.remote_command, port, ssh_config or "")
    return Step(
        id=step_id(name),
        title=f"start an agent on host {name}",
        undo=Undo(
            kind=KIND,
            path=place.text,
            label=label_of(run_id),
        ),
    )


def step_id(name: str) -> str:
    """Return the id of the step of a host."""
    return f"host.{name}.agent"


def _clean(what: Undo, runner: Runner) -> None:
    """Run `plinth clean` for the run there, as soon as its agent has ended. Raises RunError, Refused."""
    place = _Place(*shlex.split(what.path))
    run_id = what.label.removeprefix(label_of(""))
    command = ssh_command(place.ssh(), place.destination, f"exec {place.remote} clean {run_id}")
    for attempt in range(_ATTEMPTS):
        try:
            runner.run(command, timeout_s=_TIMEOUT_S)
            return
        except CommandError as error:
            still_runs = error.completed.exit_code == REFUSED and "still going" in "\n".join(error.details)
            if still_runs and attempt + 1 < _ATTEMPTS:
                cancel.sleep(_LOOK_AGAIN_S)
                continue
            kind = Refused if error.completed.exit_code == REFUSED else RunError
            raise kind(
                f"what the run has made on {place.destination} could not be undone from here: {error.message}",
                where=place.destination,
                hint=f"`{place.remote} clean {run_id}` there does it",
                details=error.details,
            ) from error


def _clean_on_ray(what: Undo, runner: Runner) -> None:
    """Have an agent that Ray starts there undo what an earlier one has left."""
    from plinth.run.hosts.link import HostLink  # whose agent knows all handlers, these among them

    name, address, node = shlex.split(what.path)
    with HostLink(name, HostSpec(address=address, node=node), runner, None) as link:
        link.call(("run",), "clean_up", {"run_id": what.label.removeprefix(label_of(""))})


HOST_UNDO: UndoHandlers = {
    KIND_ON_RAY: UndoHandler(
        _clean_on_ray,
        lambda what: f"undo what the run has made on {shlex.split(what.path)[-1]}, by an agent that Ray starts there",
    ),
    KIND: UndoHandler(
        _clean, lambda what: f"undo what the run has made on {shlex.split(what.path)[0]}, by `plinth clean` there"
    ),
}
