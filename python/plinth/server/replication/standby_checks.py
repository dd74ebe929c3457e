"""Problems that would keep the standbys of a plan from being made or from following, found before anything is made."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from plinth.model.base import SettingValue
from plinth.model.errors import Problem
from plinth.model.standby import PRIMARY, StandbySpec
from plinth.model.units import format_count
from plinth.server.settings.ask import SettingsProbe

_DEFAULT_SLOTS = 10
_DEFAULT_SENDERS = 10
_SENDERS_OF_A_BACKUP = 2
"""One for the files, one for the WAL (pg_basebackup --wal-method=stream)."""


def standbys_of(upstream: str, standbys: Mapping[str, StandbySpec]) -> list[str]:
    """Return the standbys that stream from a node."""
    return [name for name, standby in standbys.items() if standby.upstream == upstream]


def followers_once_promoted(
    standbys: Mapping[str, StandbySpec], to: str | None, *, rejoins: bool
) -> dict[str, list[str]]:
    """Return the standbys that a failover may promote (`to`, or the one with the most WAL), each with the nodes that stream from it then."""
    return {
        name: [
            *dict.fromkeys(
                other for other in standbys_of(PRIMARY, standbys) + standbys_of(name, standbys) if other != name
            ),
            *([PRIMARY] if rejoins else []),
        ]
        for name in standbys
        if to in (None, name)
    }


def standby_problems(
    probe: SettingsProbe,
    settings: Mapping[str, SettingValue],
    standbys: Mapping[str, StandbySpec],
    own: Mapping[str, Mapping[str, SettingValue]],
    promoted: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[Problem]:
    """Find problems of a variant's settings with its standbys; `own` are the settings of standbys that differ from the primary's, and
    `promoted` has those that a failover may promote, each with the nodes that stream from it then."""
    for name, of_standby in own.items():
        for problem in probe.problems(of_standby):
            yield Problem(problem.message, path=["server", "standby", name, *problem.path[1:]], hint=problem.hint)
    if not standbys:
        return
    for node in (PRIMARY, *standbys):
        asked = {**settings, **own.get(node, {})}
        written = {name.lower(): name for name in asked}
        taken = {name.lower(): value for name, value in probe.canonical(asked).items()}
        followers = promoted.get(node, standbys_of(node, standbys))
        of_node = f"{node} once it is promoted" if node in promoted else node

        def blamed(
            setting: str, why: str, hint: str, node: str = node, written: Mapping[str, str] = written
        ) -> Problem:
            name = written[setting]
            path = ["server", "settings"] if name in settings else ["server", "standby", node, "settings"]
            return Problem(f"{name}: {why}", path=[*path, name], hint=hint)

        if taken.get("wal_level") == "minimal":
            yield blamed(
                "wal_level", "standbys cannot follow WAL of level minimal", "leave it out: replica is the default"
            )
        if taken.get("hot_standby") == "off":
            yield blamed("hot_standby", "Plinth reads back what a standby has taken", "leave it out")
        if not followers:
            continue
        who = f"{format_count(len(followers), 'standby')} of {of_node} need{'s' if len(followers) == 1 else ''}"
        slots = int(taken.get("max_replication_slots", _DEFAULT_SLOTS))
        if slots < len(followers):
            yield blamed(
                "max_replication_slots",
                f"got {slots}; {who} a slot each ({', '.join(followers)})",
                f"at least {len(followers)}",
            )
        senders = int(taken.get("max_wal_senders", _DEFAULT_SENDERS))
        needed = len(followers) - 1 + _SENDERS_OF_A_BACKUP
        if senders < needed:
            yield blamed(
                "max_wal_senders",
                f"got {senders}; {who} {needed} while the last of them is made",
                f"at least {needed}",
            )
