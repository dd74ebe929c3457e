"""What the keys of an experiment could have root do, and what is done about it.

An experiment may be another's. Keys that are numbers, names or words of a list can do no harm. Every key that takes text is
in `KEYS`, which a test compares with the schema: it is harmless, or what it can ask for is confined, or what it asks for is shown and
has to be confirmed before the experiment of a bundle is used. docs/concepts/rights.md is made from it.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from plinth.common.shown import quoted
from plinth.model.experiment import Experiment, factor_path

Treatment = Literal["harmless", "confined", "confirmed"]
Names = Literal[
    "nothing",
    "SQL",
    "settings of the server",
    "options of a program",
    "a path that is read",
    "a path that is written to",
    "a disk that is emptied",
    "a program that is run",
    "an address that is connected to",
    "an address that is listened at",
]
OUTSIDE: frozenset[Names] = frozenset(
    (
        "a path that is read",
        "a path that is written to",
        "a disk that is emptied",
        "a program that is run",
        "an address that is connected to",
        "an address that is listened at",
    )
)
"""What is outside of the experiment: each value that names it is shown before the experiment of a bundle is used."""
By = Literal["nobody", "you", "the server's user", "a host's user"]
"""Who does it: "you" are the user who runs the experiment, often root."""


@dataclass(frozen=True)
class KeyRights:
    """What the values of a key name, who acts on it, how it is treated, and why that is enough.

    `shown` says in a sentence what a value that names something outside asks for.
    """

    treatment: Treatment
    names: Names
    by: By
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
        if _is_of(factor_path(factor), key.split(".")):
            yield from _texts(levels)


def _at(value: Any, words: list[str]) -> list[Any]:
    for word in words:
        tables = value if isinstance(value, list) else [value]
        if word == "NAME":
            value = [one for table in tables if isinstance(table, dict) for one in table.values()]
        else:
            value = [one for table in tables if (one := _field(table, word)) is not None]
    return value if isinstance(value, list) else [value]


def _field(table: BaseModel, key: str) -> Any:
    """Return the value of a key as the experiment has it; some fields are called otherwise. None if the table has no such key."""
    fields = type(table).model_fields.items()
    return next((getattr(table, name) for name, field in fields if key == (field.alias or name)), None)


def _is_of(factor: Sequence[str], key: Sequence[str]) -> bool:
    return len(factor) == len(key) and all(word in ("NAME", part) for part, word in zip(factor, key, strict=True))


def _place(path: str) -> str:
    """Return a path as it is shown, with where links lead from it."""
    real = os.path.realpath(path)
    return quoted(path) if real == path else f"{quoted(path)}, which leads to {quoted(real)}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _by_ssh(host: str, experiment: Experiment) -> str:
    command = experiment.fleet.command if experiment.fleet is not None else "plinth"
    return f"logs in to the host {quoted(host)} by ssh, with your keys, and runs the command {quoted(command)} there"


def _host(address: str, experiment: Experiment) -> str:
    if not address.startswith("ssh://"):
        return (
            f"joins the Ray cluster {quoted(address)}, whose machines can then run code here with your rights, and makes storages and "
            "starts servers on one of them"
        )
    host = next((one for one in experiment.host.values() if one.address == address), None)
    command = "plinth" if host is None else " ".join(filter(None, (host.become, host.command)))
    return (
        f"logs in to {quoted(address)} by ssh, with your keys, and runs the command {quoted(command)} there, which makes storages and "
        "starts servers"
    )


def _address(address: str, experiment: Experiment) -> str:
    if experiment.fleet is None or experiment.fleet.executor != "ray":
        return ""  # processes of this machine, or hosts, each of which has a line of its own
    which = "of this machine" if address == "auto" else f"at {quoted(address)}"
    return f"joins the Ray cluster {which}, whose machines can then run code here with your rights"


def _sql(what: str) -> Callable[[str, Experiment], str]:
    return lambda file, _: f"{what} {quoted(file)} of the bundle, which is shown above"


_SERVER_USER = "takes effect in the server, which runs as its own user"
_SQL = "is run by the managed server, as its user; on an external one with the rights of its connection"
_FILE = (
    "a text file of at most 16 MiB; of a bundle one in its folder files/; for root one that every user may read, or in the "
    "experiment's own folder"
)
_CONFINED = (
    "in a mount namespace that shows only folders of the system, the programs, the original (read-only) and the target"
)
_IN_LEVELS = "each value is checked as that of the key that it is for"
_OPTIONS = "only options that name no file, device or program (an allow list for each program)"
_SAID = "is shown only, with control characters escaped"
_COMPARED = "names something of this experiment, or is a number with a unit"


def _harmless(why: str) -> KeyRights:
    return KeyRights("harmless", "nothing", "nobody", why)


def _settings(why: str = _SERVER_USER) -> KeyRights:
    return KeyRights("confined", "settings of the server", "the server's user", why)


def _statements(why: str) -> KeyRights:
    return KeyRights("confined", "SQL", "the server's user", why)


def _file(why: str, shown: Callable[[str, Experiment], str]) -> KeyRights:
    return KeyRights("confirmed", "a path that is read", "you", why, shown)


def _brought(why: str, shown: Callable[[str, Experiment], str]) -> KeyRights:
    return KeyRights("confirmed", "a path that is read", "the server's user", why, shown)


def _options() -> KeyRights:
    return KeyRights("confined", "options of a program", "you", _OPTIONS)


def _listening(why: str, where: str) -> KeyRights:
    return KeyRights(
        "confirmed",
        "an address that is listened at",
        "the server's user",
        why,
        lambda address, _: f"has servers listen at {quoted(address)} {where}, with a random password",
    )


KEYS: Mapping[str, KeyRights] = {
    "question": _harmless(_SAID),
    "reference": _file(
        f"results that Plinth brings along, or {_FILE}; they are shown next to those that are measured",
        lambda name, _: f"shows the published results {quoted(name)} of the bundle" if name.endswith(".toml") else "",
    ),
    "matrix.NAME": _harmless(_IN_LEVELS),
    "full.NAME": _harmless(_IN_LEVELS),
    "host.NAME.address": KeyRights(
        "confirmed",
        "an address that is connected to",
        "you",
        "hosts of the user's known_hosts only, reached by the user's own configuration of ssh; a Ray cluster can run code on each of its "
        "machines, and auto is one that root or the user who called sudo has started",
        _host,
    ),
    "host.NAME.node": _harmless("is compared with the machines of a Ray cluster"),
    "host.NAME.command": KeyRights(
        "confirmed",
        "a program that is run",
        "a host's user",
        "one path without arguments, run on the host",
        lambda command, _: f"runs the command {quoted(command)} on a host",
    ),
    "host.NAME.listen_address": _listening(
        "a numeric address; a server listens there with a random password", "of a host"
    ),
    "storage.NAME.path": KeyRights(
        "confirmed",
        "a path that is written to",
        "you",
        "a folder of the run's own is made there, and removed; nothing that is there is changed",
        lambda path, _: f"puts a folder of its own into the directory {_place(path)}",
    ),
    "storage.NAME.id": KeyRights(
        "confirmed",
        "a disk that is emptied",
        "you",
        "the command line must name the disk as well, by --destroy; see guards",
        lambda disk, _: f"destroys what is on the disk {_place(disk)}, which --destroy has to name",
    ),
    "storage.NAME.serial": _harmless("is compared with the disk's own"),
    "storage.NAME.profile": _harmless("one of the profiles of `plinth disk profiles`"),
    "storage.NAME.mkfs_options": _options(),
    "storage.NAME.mount_options": _options(),
    "storage.NAME.pool_properties.NAME": _options(),
    "storage.NAME.properties.NAME": _options(),
    "server.bindir": KeyRights(
        "confirmed",
        "a program that is run",
        "the server's user",
        "its programs run as the server's user, never as root",
        lambda bindir, _: f"runs programs of the directory {_place(bindir)}, as the server's user",
    ),
    "server.connection": KeyRights(
        "confirmed",
        "an address that is connected to",
        "you",
        "only parameters that reach a server, or name certificates: no password file, no key log, no engine of OpenSSL",
        lambda string, _: (
            f"connects to the server {quoted(string)}, with your passwords (PGPASSWORD, ~/.pgpass) and certificates"
        ),
    ),
    "server.listen_address": _listening(
        "an address of this machine; a random password is needed there", "of this machine"
    ),
    "server.connection_options.NAME": _settings(
        "settings of sessions of the server that the user names, with that login's rights"
    ),
    "server.settings.NAME": _settings(),
    "server.synchronous_standby_names": _settings(),
    "server.standby.NAME.settings.NAME": _settings(),
    "dataset.load_settings.NAME": _settings(),
    "dataset.path": _brought(
        f"a dump or a backup, read by the server's user, {_CONFINED}; a dump is restored by a role without rights of a superuser, and "
        "servers of ours are made of a backup; neither is in the bundle",
        lambda path, _: f"reads the dump or backup {_place(path)}, as the server's user, confined",
    ),
    "dataset.globals": _brought(
        f"read by the server's user, {_CONFINED}; names of roles and their memberships are taken of it; it is not in the bundle",
        lambda path, _: f"reads the roles of {_place(path)}, as the server's user, confined",
    ),
    "dataset.database": KeyRights(
        "confined", "nothing", "the server's user", "a database of the servers that are made of a backup"
    ),
    "dataset.schema": _file(f"{_FILE}; it {_SQL}", _sql("runs the SQL of the file")),
    "dataset.load": _file(f"{_FILE}; it {_SQL}", _sql("runs the SQL of the file")),
    "dataset.after_load": _file(f"{_FILE}; it {_SQL}", _sql("runs the SQL of the file")),
    "dataset.before_trial": _file(f"{_FILE}; it {_SQL}", _sql("runs the SQL of the file")),
    "dataset.checks.NAME": _statements(f"a number or an expression with variables, which {_SQL}"),
    "dataset.variables.NAME": _statements(f"text of the dataset's SQL, which {_SQL}"),
    "workload.script": _file(
        f"{_FILE}; its SQL {_SQL}, its \\shell is run as the server's user", _sql("runs the script")
    ),
    "workload.replay": _brought(
        f"a log or a replay file, read by the server's user, {_CONFINED}; of a bundle none. The bundle holds its texts without "
        f"constants; its SQL {_SQL}",
        lambda path, _: f"replays the recording {_place(path)}, which a bundle does not hold",
    ),
    "workload.log_line_prefix": _harmless("how lines of a log are read"),
    "workload.sessions.database": _harmless(_COMPARED),
    "workload.sessions.user": _harmless(_COMPARED),
    "workload.sessions.application_name": _harmless(_COMPARED),
    "workload.sessions.begin": _harmless(_COMPARED),
    "workload.sessions.end": _harmless(_COMPARED),
    "workload.variables.NAME": _statements(f"text of the scripts' SQL, which {_SQL}"),
    "measure.action.sql": _statements(_SQL),
    "measure.baseline.NAME": _harmless(_COMPARED),
    "measure.compare": _harmless(_COMPARED),
    "objective.max": _harmless(_COMPARED),
    "objective.min": _harmless(_COMPARED),
    "objective.where.NAME": _harmless(_COMPARED),
    "prices.currency": _harmless(_COMPARED),
    "prices.storage.NAME.currency": _harmless(_COMPARED),
    "fleet.ray_address": KeyRights(
        "confirmed",
        "an address that is connected to",
        "you",
        "a Ray cluster can run code on each of its machines; auto is one that root or the user who called sudo has started",
        _address,
    ),
    "fleet.hosts": KeyRights(
        "confirmed",
        "an address that is connected to",
        "you",
        "hosts of the user's known_hosts only, reached by the user's own configuration of ssh",
        _by_ssh,
    ),
    "fleet.command": KeyRights(
        "confirmed",
        "a program that is run",
        "a host's user",
        "one path without arguments, run on the hosts",
        lambda command, _: f"runs the command {quoted(command)} on each host",
    ),
}
"""Every key that takes text. NAME stands for a name that the experiment chooses."""
