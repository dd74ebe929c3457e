"""How the part of a run on another host is undone when its coordinator has not: `plinth clean` is run there."""

import shlex
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from weakref import WeakKeyDictionary

from plinth.exit_codes import REFUSED
from plinth.fleet.executors.ssh import SSH_FAILED, ssh_command
from plinth.model.errors import Refused, RunError, UsageError
from plinth.model.host import HostSpec
from plinth.model.step import Step, Undo
from plinth.run.host import agent_step_id
from plinth.system import cancel
from plinth.system.clean import CleanOptions, left_behind
from plinth.system.directory import label_of
from plinth.system.runner import CommandError, Runner
from plinth.system.undo import UndoHandler, UndoHandlers

KIND = "clean_host"
KIND_ON_RAY = "clean_host_on_ray"
_DAMAGED = "the journal is damaged: undo by hand what it names, then delete it"
_TIMEOUT_S = 600.0
"""For everything to be undone there, such as the write-back of a slow disk."""
_LOOK_AGAIN_S = 2.0
_WAIT_S = 80.0
"""While the agent is still there, which has a lease of a minute by default."""
_MOST_OUTPUT_BYTES = 2**20
"""The host is not trusted: what it prints is kept in memory."""


class _Place(NamedTuple):
    """Where the part of a run is, and how it is reached; in a journal as words of a shell."""

    destination: str
    remote: str
    port: str = ""
    ssh_config: str = ""
    name: str = ""
    """The host's name in the experiment; journals of version 3 do not have it."""

    @classmethod
    def of(cls, what: Undo) -> "_Place":
        """Return the place that a step has; Refused for what none of ours has written."""
        try:
            return cls(*shlex.split(what.path))
        except (TypeError, ValueError) as error:
            raise Refused(f"no place of a host: {error}", where=what.path, hint=_DAMAGED) from error

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
        return Step(id=agent_step_id(name), title=f"start an agent on host {name}", undo=on_ray)
    port = "" if spec.ssh.port is None else str(spec.ssh.port)
    place = _Place(spec.ssh.destination, spec.remote_command, port, ssh_config or "", name)
    return Step(
        id=agent_step_id(name),
        title=f"start an agent on host {name}",
        undo=Undo(
            kind=KIND,
            path=place.text,
            label=label_of(run_id),
        ),
    )


def given_up_hosts(names: Sequence[str], run_id: str | None, options: CleanOptions) -> tuple[str, ...]:
    """Return the ids of the steps of hosts that are given up, for the run `run_id` or the only one that has them.

    Raises UsageError for a host that no run that has ended left anything on, and for one that several did.
    """
    found = left_behind({}, run_id, options).runs  # how the others would be undone is of no interest
    runs = {run.run_id: {host for one in run.kept if (host := _host_of(one.step))} for run in found}
    for name in names:
        having = [each for each, hosts in runs.items() if name in hosts]
        if not having:
            hosts = sorted(set().union(*runs.values()))
            raise UsageError(
                f"no run that has ended has left anything on a host {name!r}",
                where="--forget-host",
                hint=f"there are {', '.join(hosts)}" if hosts else "the journals of runs that have ended name no host",
            )
        if len(having) > 1:
            raise UsageError(
                f"{len(having)} runs have left something on a host {name!r}: {', '.join(having)}",
                where="--forget-host",
                hint=f"name the run: plinth clean {having[0]} --forget-host {shlex.quote(name)}",
            )
    return tuple(map(agent_step_id, names))


def what_is_given_up(step: Step) -> str:
    """Return what is not undone any more where the step of a host is given up, for people."""
    assert step.undo is not None and step.undo.kind in HOST_UNDO, "it is one of `host_step`"
    run_id = step.undo.label.removeprefix(label_of(""))
    where = _words(step.undo)[-1 if step.undo.kind == KIND_ON_RAY else 0]
    return f"what run {run_id} has made on host {_host_of(step)} ({where}); `plinth clean {run_id}` there would undo it"


def _words(what: Undo) -> list[str]:
    """Return the words of a place, for people: at least one, even of a damaged place."""
    try:
        return shlex.split(what.path) or [what.path]
    except ValueError:
        return [what.path]


def _host_of(step: Step) -> str | None:
    """Return the name of the host that a step is the one of; None for other steps."""
    is_of_host = step.undo is not None and step.undo.kind in HOST_UNDO
    return step.id.removeprefix("host.").removesuffix(".agent") if is_of_host else None


_unanswered: "WeakKeyDictionary[Runner, dict[_Place, str]]" = WeakKeyDictionary()
"""Hosts that did not answer, and why: in one clean, each is waited for once, and not for each run that has used it."""


def _clean(what: Undo, runner: Runner) -> None:
    """Run `plinth clean` for the run there, as soon as its agent has ended. Raises RunError, Refused."""
    place = _Place.of(what)
    run_id = what.label.removeprefix(label_of(""))
    unanswered = _unanswered.setdefault(runner, {})
    asked = place._replace(name="")
    if asked in unanswered:
        raise _no_answer(place, run_id, f"{unanswered[asked]} (for another run, a moment ago)")
    command = ssh_command(place.ssh(), place.destination, f"exec {place.remote} clean {run_id}")
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            runner.run(command, timeout_s=_TIMEOUT_S, most_output_bytes=_MOST_OUTPUT_BYTES)
            return
        except CommandError as error:
            if error.timed_out or error.completed.exit_code == SSH_FAILED:
                unanswered[asked] = error.message if error.timed_out or not error.details else error.details[-1]
                raise _no_answer(place, run_id, unanswered[asked]) from error
            still_runs = error.completed.exit_code == REFUSED and "still going" in "\n".join(error.details)
            if still_runs and time.monotonic() < deadline:
                cancel.sleep(_LOOK_AGAIN_S)
                continue
            kind = Refused if error.completed.exit_code == REFUSED else RunError
            raise kind(
                f"what the run has made on {place.destination} could not be undone from here: {error.message}",
                where=place.destination,
                hint=f"`{place.remote} clean {run_id}` there does it",
                details=error.details,
            ) from error


def _no_answer(place: _Place, run_id: str, reason: str) -> RunError:
    name = shlex.quote(place.name) if place.name else "NAME, as the experiment names it"
    return RunError(
        f"what the run has made on {place.destination} is not undone: the host does not answer: {reason}",
        where=place.destination,
        hint=f"clean again once it answers; if it never will: plinth clean {run_id} --forget-host {name}",
    )


def _clean_on_ray(what: Undo, runner: Runner) -> None:
    """Have an agent that Ray starts there undo what an earlier one has left."""
    from plinth.run.hosts.link import HostLink  # whose agent knows all handlers, these among them

    name, address, node = shlex.split(what.path)
    with _ended_after(_TIMEOUT_S, name), HostLink(name, HostSpec(address=address, node=node), runner, None) as link:
        link.call(("run",), "clean_up", {"run_id": what.label.removeprefix(label_of(""))})


@contextmanager
def _ended_after(timeout_s: float, name: str) -> Iterator[None]:
    """Cancel what waits within, which a host could keep waiting forever by giving signs of life only."""
    with cancel.scope() as token:
        reason = RunError(
            f"host {name} has not undone what the run made there within {timeout_s:g} s", where=f"host.{name}"
        )
        timer = threading.Timer(timeout_s, token.cancel, [reason])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


HOST_UNDO: UndoHandlers = {
    KIND_ON_RAY: UndoHandler(
        _clean_on_ray,
        lambda what: f"undo what the run has made on {_words(what)[-1]}, by an agent that Ray starts there",
    ),
    KIND: UndoHandler(_clean, lambda what: f"undo what the run has made on {_words(what)[0]}, by `plinth clean` there"),
}
