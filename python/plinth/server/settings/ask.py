"""Checks of settings before a server runs: which ones an installation has, and whether it takes a value.

The judge is the installation's own `postgres -C NAME`, which takes a value as a starting server does and then prints
it: units, ranges, enums, aliases and what the build lacks are the server's knowledge, not a copy of it.
"""

import re
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from plinth.common.nearest import nearest
from plinth.model.base import SettingValue
from plinth.model.errors import Problem
from plinth.model.facts import Installation
from plinth.model.server_spec import SETTING_NAME
from plinth.model.synchronous_standby_names import quorum_of
from plinth.server.settings.values import setting_text
from plinth.system.confinement import View, program_folders
from plinth.system.owner import Owner
from plinth.system.runner import Completed, Runner

OWNED = {
    "data_directory": "the data directory is stored on server.storage",
    "config_file": "Plinth writes the configuration",
    "hba_file": "Plinth writes it; see server.listen",
    "ident_file": "Plinth writes the configuration",
    "hosts_file": "Plinth writes the configuration",
    "external_pid_file": "Plinth watches the server itself",
    "unix_socket_directories": "the socket has its own directory",
    "unix_socket_group": "the socket has its own directory",
    "unix_socket_permissions": "the socket has its own directory",
    "listen_addresses": 'see server.listen = "unix" or "tcp"',
    "port": "see server.port",
    "logging_collector": "Plinth keeps the log itself",
    "log_destination": "Plinth keeps the log itself",
}
"""Settings that Plinth sets itself, each with a hint for users who set them."""

BUILD_OPTIONS = {
    "io_method": ("io_uring",),
    "wal_compression": ("lz4", "zstd"),
    "default_toast_compression": ("lz4",),
}
"""Values that PostgreSQL knows, and a server takes only if it was built with what they need."""

STANDBY_SETTINGS = ("synchronous_standby_names", "synchronous_commit", "max_wal_senders")
"""The settings that together decide whether a commit waits for a standby (SyncRepWaitForLSN of PostgreSQL's
syncrep.c)."""
_WAITS_FOR_NO_STANDBY = ("off", "local")

_HOSTS_FILE_SINCE = 19
_COMPLAINT = re.compile(r"(?P<kind>FATAL|ERROR|DETAIL|HINT):\s+(?P<text>.*)")


class SettingDefinition(NamedTuple):
    """A setting as `postgres --describe-config` has it; minimum and maximum are in the server's base unit."""

    name: str
    context: str
    vartype: str
    minimum: str
    maximum: str
    description: str


class Answer(NamedTuple):
    """The installation's check of one value: its own spelling of it, or an error with perhaps a hint."""

    canonical: str | None
    complaint: str | None = None
    hint: str | None = None


class SettingsProbe:
    """Asks an installation about settings. Answers are kept: a matrix asks the same things again and again."""

    def __init__(self, installation: Installation, owner: Owner, runner: Runner) -> None:
        self._postgres = f"{installation.bindir}/postgres"
        self._view = View(programs=program_folders(Path(installation.bindir)))
        self._version = installation.version
        self._major = installation.major
        self._owner = owner
        self._runner = runner
        self._answers: dict[tuple[str, str], Answer] = {}

    @cached_property
    def definitions(self) -> dict[str, SettingDefinition]:
        """Return every setting that `--describe-config` lists; it leaves out those meant for developers."""
        rows = self._run("--describe-config").stdout
        found: dict[str, SettingDefinition] = {}
        for row in rows.splitlines():
            name, context, _group, vartype, _value, minimum, maximum, *texts = row.split("\t")
            found[name] = SettingDefinition(name, context, vartype.lower(), minimum, maximum, texts[0])
        return found

    def problems(self, settings: Mapping[str, SettingValue]) -> list[Problem]:
        """Find everything that is wrong with `settings`; each problem's path is server.settings.NAME.

        Settings of extensions (names with a dot) are known only to a server that has loaded the
        extension: they are read back when it runs.
        """
        found = [self._problem(name, value) for name, value in settings.items()]
        return [problem for problem in found if problem is not None]

    def standby_problem(self, settings: Mapping[str, SettingValue], standbys: Collection[str] = ()) -> Problem | None:
        """Find what is wrong with `settings` together if every commit would wait forever, for more standbys than there are.

        `standbys` are those that stream from the primary. Of settings that `problems` finds nothing wrong with.
        """
        written = {name.lower(): name for name in settings}
        asked = {key: settings[written[key]] for key in STANDBY_SETTINGS if key in written}
        taken = self.canonical(asked)
        names, commit, senders = map(taken.get, STANDBY_SETTINGS)
        quorum = quorum_of(names or "")
        if quorum is None or commit in _WAITS_FOR_NO_STANDBY or (senders == "0" and not standbys):
            return None
        possible = quorum.possible(standbys)
        if len(possible) >= quorum.needed:
            return None
        if standbys:
            of_them = ", ".join(possible) or "none of them"
            why = f"it needs {quorum.needed} of {', '.join(standbys)}, and may count {of_them}"
        else:
            why = "a server that Plinth starts has no standby but those of [server.standby]"
        return Problem(
            f"synchronous_standby_names = {names!r} with synchronous_commit = {commit or 'on'}: every commit would wait "
            f"forever, because {why}",
            path=["server", "settings", written["synchronous_standby_names"]],
            hint='name fewer, describe more of them in [server.standby.NAME], set synchronous_commit to "local" or "off", or '
            "measure your own primary: server.connection",
        )

    def lacking(self, settings: Mapping[str, SettingValue]) -> list[Problem]:
        """Return those of `problems` whose values this build lacks and another of the same version might have."""
        optional = {name: value for name, value in settings.items() if value in BUILD_OPTIONS.get(name.lower(), ())}
        return [problem for problem in self.problems(optional) if "invalid value for parameter" in problem.message]

    def canonical(self, settings: Mapping[str, SettingValue]) -> dict[str, str]:
        """Return the installation's own spelling of each value that it accepts: wal_compression = on is pglz."""
        answers = {name: self._ask(name, setting_text(value)) for name, value in settings.items()}
        return {name: answer.canonical for name, answer in answers.items() if answer.canonical is not None}

    def _problem(self, name: str, value: SettingValue) -> Problem | None:
        path = ["server", "settings", name]
        text = setting_text(value)
        if (why := OWNED.get(name.lower())) is not None:
            return Problem(f"{name} is set by Plinth", path=path, hint=why)
        if SETTING_NAME.fullmatch(name) is None:
            return Problem(f"{name!r} is not the name of a setting", path=path, hint=self._near(name))
        if not text.isprintable():
            return Problem(f"{name}: the value has a line break or another control character", path=path)
        answer = self._ask(name, text)
        if answer.complaint is None:
            return None
        if "unrecognized configuration parameter" in answer.complaint:
            return Problem(f"PostgreSQL {self._version} has no setting {name!r}", path=path, hint=self._near(name))
        got = "" if repr(text).strip("'") in answer.complaint else f"; got {text!r}"
        return Problem(answer.complaint + got, path=path, hint=answer.hint)

    def _near(self, name: str) -> str | None:
        return nearest(name.lower(), self.definitions)

    def _run(self, *words: str, allowed_exit_codes: Collection[int] = (0,)) -> Completed:
        argv = [self._postgres, *words]
        return self._runner.run_confined(
            "settings", argv, self._view, self._owner, allowed_exit_codes=allowed_exit_codes
        )

    def _ask(self, name: str, text: str) -> Answer:
        key = (name.lower(), text)
        if key not in self._answers:
            self._answers[key] = self._asked(name, text)
        return self._answers[key]

    def _asked(self, name: str, text: str) -> Answer:
        """Ask with an empty configuration and no data directory: nothing is started and no file is read."""
        nothing = [f"{key}=/dev/null" for key in (*configuration_files(self._major), "data_directory")]
        options = [part for option in (*nothing, f"{name}={text}") for part in ("-c", option)]
        done = self._run("-C", name, *options, allowed_exit_codes=(0, 1))
        if done.exit_code == 0:
            return Answer(done.stdout.rstrip("\n"))
        return Answer(None, *complaint_of(done.stderr))


def configuration_files(major: int) -> tuple[str, ...]:
    """Return the settings that name the files that a server reads before all else, config_file first: it must find each of them."""
    files = ("config_file", "hba_file", "ident_file")
    return (*files, "hosts_file") if major >= _HOSTS_FILE_SINCE else files


def complaint_of(stderr: str) -> tuple[str, str | None]:
    """Return what a server said before it ended, with its detail, and its hint."""
    said = {match["kind"]: match["text"] for match in _COMPLAINT.finditer(stderr)}
    last = (stderr.strip().splitlines() or ["it said nothing"])[
        -1
    ]  # before it has a log, the server writes "postgres: ..."
    complaint = said.get("FATAL") or said.get("ERROR") or last.removeprefix("postgres: ")
    detail = f": {said['DETAIL']}" if "DETAIL" in said else ""
    return complaint + detail, said.get("HINT")
