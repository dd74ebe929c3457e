"""The base of all checks: a subject, the reason to check it, and the conversion of observations to findings and gaps."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from plinth.doctor.machine import Unreadable
from plinth.model.base import Gap
from plinth.model.doctor import Finding, Remedy, Severity
from plinth.model.facts import Fact

Subject = TypeVar("Subject")


class Observation(NamedTuple):
    """The result of a check; `saw` describes it for people, with figures."""

    severity: Severity
    saw: str
    readings: tuple[Fact, ...]
    remedy: Remedy | None = None


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """One check. `run` yields observations, and gaps for parts that cannot be read; it raises Unreadable when nothing can."""

    id: str
    what: str
    why: str
    run: Callable[[Subject], Iterable[Observation | Gap]]

    def examine(self, subject: Subject, about: str) -> Iterator[Finding | Gap]:
        """Yield findings about `subject`, and a gap for each part that cannot be read."""
        try:
            for observation in self.run(subject):
                if isinstance(observation, Gap):
                    yield Gap(what=f"{about}: {observation.what}", reason=observation.reason)
                else:
                    yield Finding(
                        id=self.id,
                        about=about,
                        severity=observation.severity,
                        saw=observation.saw,
                        readings=observation.readings,
                        why=self.why,
                        remedy=observation.remedy,
                    )
        except Unreadable as error:
            yield Gap(what=f"{about}: {self.what}", reason=str(error))


def set_to(path: str, value: object, before: object, advice: str | None = None) -> Remedy:
    """Return a remedy that writes `value` to a file in /sys or /proc; its undo writes `before`."""
    return Remedy(
        commands=(f"echo {value} | sudo tee {path}",), undo=(f"echo {before} | sudo tee {path}",), advice=advice
    )


def sysctl(values: Mapping[str, object], before: Mapping[str, object]) -> Remedy:
    """Return a remedy that sets kernel parameters; its undo sets those of `before`."""

    def command(settings: Mapping[str, object]) -> str:
        return "sudo sysctl -w " + " ".join(f"{name}={value}" for name, value in settings.items())

    return Remedy(commands=(command(values),), undo=(command(before),))
