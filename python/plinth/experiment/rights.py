"""What the keys of an experiment could have root do, and what is done about it.

An experiment may be another's. Keys that are numbers, names or words of a list can do no harm. Every key that takes text is
in `KEYS`, which a test compares with the schema: it is harmless, or what it can ask for is confined, or what it asks for is shown and
has to be confirmed before the experiment of a bundle is used. docs/concepts/rights.md is made from it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from plinth.model.experiment import Experiment

Treatment = Literal["harmless", "confined", "confirmed"]


@dataclass(frozen=True)
class KeyRights:
    """How a key is treated, and why that is enough; `shown` says what a confirmed value asks for."""

    treatment: Treatment
    why: str
    shown: Callable[[str, Experiment], str] | None = None


def confirmations(experiment: Experiment) -> Iterator[str]:
    """Yield what is confirmed before the experiment of a bundle is used, one line for each value, of factors too."""
    for key, rights in KEYS.items():
        if rights.shown is not None:
            for value in dict.fromkeys(_values(experiment, key)):
                if words := rights.shown(value, experiment):
                    yield words


def _values(experiment: Experiment, key: str) -> Iterator[str]:
    """Yield the texts at a key, and those of the factors that are of it."""
    yield from _texts(_at(experiment, key.split(".")))
    for factor, levels in experiment.matrix.items():
        if _is_of(factor.split("."), key.split(".")):
            yield from _texts(levels)


def _at(value: Any, words: list[str]) -> list[Any]:
    for word in words:
        tables = value if isinstance(value, list) else [value]
        if word == "NAME":
            value = [one for table in tables if isinstance(table, dict) for one in table.values()]
        else:
            value = [one for table in tables if (one := getattr(table, word, None)) is not None]
    return value if isinstance(value, list) else [value]


def _is_of(factor: list[str], key: list[str]) -> bool:
    return len(factor) == len(key) and all(word in ("NAME", part) for part, word in zip(factor, key, strict=True))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _by_ssh(host: str, experiment: Experiment) -> str:
    command = experiment.fleet.command if experiment.fleet is not None else "plinth"
    return f"logs in to the host {host} by ssh, with your keys, and runs the command {command} there"


def _command_at(address: str, experiment: Experiment) -> str:
    host = next((one for one in experiment.host.values() if one.address == address), None)
    return "plinth" if host is None else " ".join(filter(None, (host.become, host.command)))


def _address(address: str, experiment: Experiment) -> str:
    if experiment.fleet is None or not experiment.fleet.is_on_ray:
        return ""  # processes of this machine, or hosts, each of which has a line of its own
    which = "of this machine" if address == "auto" else f"at {address}"
    return f"joins the Ray cluster {which}, whose machines can then run code here with your rights"


_SERVER_USER = "takes effect in the server, which runs as its own user"
_SQL = "is run by the managed server, as its user; on an external one with the rights of its connection"
_FILE = (
    "a text file of at most 16 MiB; of a bundle one in its folder files/; for root one that every user may read, or in the "
    "experiment's own folder"
)
_IN_LEVELS = "each value is checked as that of the key that it is for"
_OPTIONS = "only options that name no file, device or program (an allow list for each program)"
_SAID = "is shown only, with control characters escaped"
_COMPARED = "names something of this experiment, or is a number with a unit"

KEYS: Mapping[str, KeyRights] = {
    "question": KeyRights("harmless", _SAID),
    "reference": KeyRights("confined", f"results that Plinth brings along, or {_FILE}"),
    "matrix.NAME": KeyRights("harmless", _IN_LEVELS),
    "full.NAME": KeyRights("harmless", _IN_LEVELS),
    "host.NAME.address": KeyRights(
        "confirmed",
        "hosts of the user's known_hosts only, reached by the user's own configuration of ssh; a Ray cluster can run code on each of its "
        "machines, and auto is one that root or the user who called sudo has started",
        lambda address, experiment: (
            f"joins the Ray cluster {address}, whose machines can then run code here with your rights, and makes storages and starts "
            "servers on one of them"
            if not address.startswith("ssh://")
            else f"logs in to {address} by ssh, with your keys, and runs the command {_command_at(address, experiment)} there, which makes "
            "storages and starts servers"
        ),
    ),
    "host.NAME.node": KeyRights("harmless", "is compared with the machines of a Ray cluster"),
    "host.NAME.command": KeyRights(
        "confined", "one path without arguments, run on the host; it is shown with its address"
    ),
    "host.NAME.listen_address": KeyRights(
        "harmless", "a numeric address; a server listens there with a random password"
    ),
    "storage.NAME.path": KeyRights(
        "confirmed",
        "a folder of the run's own is made there, and removed; nothing that is there is changed",
        lambda path, _: f"puts a folder of its own into the directory {path}",
    ),
    "storage.NAME.id": KeyRights(
        "confirmed",
        "the command line must name the disk as well, by --destroy; see guards",
        lambda disk, _: f"destroys what is on the disk {disk}, which --destroy has to name",
    ),
    "storage.NAME.serial": KeyRights("harmless", "is compared with the disk's own"),
    "storage.NAME.profile": KeyRights("harmless", "one of the profiles of `plinth disk profiles`"),
    "storage.NAME.mkfs_options": KeyRights("confined", _OPTIONS),
    "storage.NAME.mount_options": KeyRights("confined", _OPTIONS),
    "storage.NAME.pool_properties.NAME": KeyRights("confined", _OPTIONS),
    "storage.NAME.properties.NAME": KeyRights("confined", _OPTIONS),
    "server.bindir": KeyRights(
        "confirmed",
        "its programs run as the server's user, never as root",
        lambda bindir, _: f"runs programs of the directory {bindir}, as the server's user",
    ),
    "server.connection": KeyRights(
        "confirmed",
        "only parameters that reach a server: no password file, no key log, no engine of OpenSSL",
        lambda string, _: (
            f"connects to the server {string}, with your passwords (PGPASSWORD, ~/.pgpass) and certificates"
        ),
    ),
    "server.listen_address": KeyRights("confined", "an address of this machine; a random password is needed there"),
    "server.connection_options.NAME": KeyRights(
        "confined", "settings of sessions of the server that the user names, with that login's rights"
    ),
    "server.settings.NAME": KeyRights("confined", _SERVER_USER),
    "server.synchronous_standby_names": KeyRights("confined", _SERVER_USER),
    "server.standby.NAME.settings.NAME": KeyRights("confined", _SERVER_USER),
    "dataset.load_settings.NAME": KeyRights("confined", _SERVER_USER),
    "dataset.path": KeyRights(
        "confined",
        "a dump that the server's user can read, restored by a role without rights of a superuser, or a backup of which servers of ours "
        "are made; neither is in the bundle",
    ),
    "dataset.globals": KeyRights(
        "confined",
        "a file that the server's user can read, of which names of roles and their memberships are taken; it is not in the bundle",
    ),
    "dataset.database": KeyRights("confined", "a database of the servers that are made of a backup"),
    "dataset.schema": KeyRights("confined", f"{_FILE}; it {_SQL}"),
    "dataset.load": KeyRights("confined", f"{_FILE}; it {_SQL}"),
    "dataset.after_load": KeyRights("confined", f"{_FILE}; it {_SQL}"),
    "dataset.before_trial": KeyRights("confined", f"{_FILE}; it {_SQL}"),
    "dataset.checks.NAME": KeyRights("confined", f"a number or an expression with variables, which {_SQL}"),
    "dataset.variables.NAME": KeyRights("confined", f"text of the dataset's SQL, which {_SQL}"),
    "workload.script": KeyRights("confined", f"{_FILE}; its SQL {_SQL}, its \\shell is run as the server's user"),
    "workload.replay": KeyRights(
        "confined",
        "a log or a replay file; for root one that every user may read, or in the experiment's own folder; of a bundle none. The bundle "
        f"holds its texts without constants; its SQL {_SQL}",
    ),
    "workload.log_line_prefix": KeyRights("harmless", "how lines of a log are read"),
    "workload.sessions.database": KeyRights("harmless", _COMPARED),
    "workload.sessions.user": KeyRights("harmless", _COMPARED),
    "workload.sessions.application_name": KeyRights("harmless", _COMPARED),
    "workload.sessions.begin": KeyRights("harmless", _COMPARED),
    "workload.sessions.end": KeyRights("harmless", _COMPARED),
    "workload.variables.NAME": KeyRights("confined", f"text of the scripts' SQL, which {_SQL}"),
    "measure.action.sql": KeyRights("confined", _SQL),
    "measure.baseline.NAME": KeyRights("harmless", _COMPARED),
    "measure.compare": KeyRights("harmless", _COMPARED),
    "objective.max": KeyRights("harmless", _COMPARED),
    "objective.min": KeyRights("harmless", _COMPARED),
    "objective.where.NAME": KeyRights("harmless", _COMPARED),
    "prices.currency": KeyRights("harmless", _COMPARED),
    "prices.storage.NAME.currency": KeyRights("harmless", _COMPARED),
    "fleet.address": KeyRights(
        "confirmed",
        "a Ray cluster can run code on each of its machines; auto is one that root or the user who called sudo has started",
        _address,
    ),
    "fleet.hosts": KeyRights(
        "confirmed", "hosts of the user's known_hosts only, reached by the user's own configuration of ssh", _by_ssh
    ),
    "fleet.command": KeyRights(
        "confined", "one path without arguments, run on the hosts; it is shown with each of them"
    ),
}
"""Every key that takes text. NAME stands for a name that the experiment chooses."""
