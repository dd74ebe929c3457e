"""What a check is: what it looks at, why that matters, and how what it sees becomes findings and gaps."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from plinth.doctor.machine import Unreadable
from plinth.model.base import Gap
from plinth.model.doctor import Finding, Remedy, Severity
from plinth.model.facts import Fact

Subject = TypeVar("Subject")


class Seen(NamedTuple):
    """What a check sees; `saw` is for people, with figures."""

    severity: Severity
    saw: str
    readings: tuple[Fact, ...]
    remedy: Remedy | None = None


class NotSeen(NamedTuple):
    """What a check could not see of its subject, while it may see other things."""

    what: str
    reason: str


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """One check. `look` yields what it sees, and raises Unreadable when it can see nothing at all."""

    id: str
    what: str
    why: str
    look: Callable[[Subject], Iterable[Seen | NotSeen]]

    def examine(self, subject: Subject, about: str) -> Iterator[Finding | Gap]:
        """Its findings about `subject`, and gaps for what cannot be read."""
        try:
            for seen in self.look(subject):
                if isinstance(seen, NotSeen):
                    yield Gap(what=f"{about}: {seen.what}", reason=seen.reason)
                else:
                    yield Finding(
                        id=self.id,
                        about=about,
                        severity=seen.severity,
                        saw=seen.saw,
                        readings=seen.readings,
                        why=self.why,
                        remedy=seen.remedy,
                    )
        except Unreadable as error:
            yield Gap(what=f"{about}: {self.what}", reason=str(error))


def set_to(path: str, value: object, before: object, advice: str | None = None) -> Remedy:
    """Write `value` to a file of /sys or /proc; the undo writes what was there."""
    return Remedy(
        commands=(f"echo {value} | sudo tee {path}",), undo=(f"echo {before} | sudo tee {path}",), advice=advice
    )


def sysctl(values: Mapping[str, object], before: Mapping[str, object]) -> Remedy:
    """Set kernel settings; the undo sets those of `before`."""

    def command(settings: Mapping[str, object]) -> str:
        return "sudo sysctl -w " + " ".join(f"{name}={value}" for name, value in settings.items())

    return Remedy(commands=(command(values),), undo=(command(before),))
