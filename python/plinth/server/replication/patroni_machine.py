"""Patroni and etcd on one machine: their files, and their processes, which the journal of that machine undoes."""

import json
import shutil
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from typing_extensions import override

from plinth.common.complete import complete
from plinth.model.base import Frozen, Port
from plinth.model.errors import MissingCapability, PlinthError
from plinth.model.facts import Installation
from plinth.model.patroni import ETCD, PATRONI
from plinth.model.step import Step, Undo
from plinth.server.layout import SUPERUSER
from plinth.server.node import Server
from plinth.server.port import find_free
from plinth.server.replication.cluster_manager import MARK, end_cluster_manager
from plinth.server.replication.etcd import EtcdMember, etcd_command, in_url
from plinth.server.settings.configuration import hba, replace_file
from plinth.system import cancel
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner
from plinth.system.paths import ensure, work_dir
from plinth.system.process import Child
from plinth.system.runner import Runner

PATRONI_STEPS = "patroni."
"""What the ids of all its steps begin with."""
SCOPE = "plinth"
_LOG_BYTES = 2**20
_PROGRAMS = ("pg_basebackup", "pg_controldata", "pg_ctl", "pg_isready", "pg_rewind")
"""What Patroni runs, of the server's own installation."""
_HBA_MEMBERS = ("host all all samehost scram-sha-256", "host replication all samehost scram-sha-256")
"""Members on one machine reach one another's servers by TCP."""


def patroni_folder(label: str, cluster: str) -> Path:
    """Return where the files of a cluster's Patroni and etcd are on this machine, for the run of a label."""
    return work_dir() / f"{label}-patroni-{cluster}"


def log_name(program: str, cluster: str) -> str:
    """Return the name of the log of a program of a cluster."""
    return f"{program}-{cluster}.log"


def patroni_program_errors(installations: Sequence[Installation], owner: Owner, runner: Runner) -> list[PlinthError]:
    """Return, with what installs it, each of Patroni, etcd and PostgreSQL's programs that is not on this machine, or that `owner`, the
    servers' user, cannot execute.
    """
    bindirs = {one.bindir: one for one in installations}
    found: list[PlinthError] = []
    for check in (
        *(partial(_require_program, program, owner, runner) for program in (PATRONI, ETCD)),
        *(partial(_require_programs, installation) for installation in bindirs.values()),
    ):
        try:
            check()
        except PlinthError as error:
            found.append(error)
    return found


def _require_program(program: str, owner: Owner, runner: Runner) -> None:
    runner.require(program)
    try:
        runner.run((program, "--version"), owner=owner)
    except PlinthError as error:
        raise MissingCapability(
            f"{owner.name}, the user of the servers, cannot execute {program}",
            where=shutil.which(program) or program,
            details=(error.message, *error.details),
            hint="install it where every user can read it: by its package, or in a virtual environment below /opt that is first in PATH",
        ) from error


def _require_programs(installation: Installation) -> None:
    missing = [name for name in _PROGRAMS if not (Path(installation.bindir) / name).is_file()]
    if missing:
        raise MissingCapability(
            f'{"server.failover"} = "patroni" needs {", ".join(missing)} of PostgreSQL {installation.version}, which are not there',
            where=installation.bindir,
            hint="Debian and Ubuntu have all programs of a version in the packages postgresql-VERSION and postgresql-client-VERSION; "
            "choose it by server.version or server.bindir",
        )


class PatroniMember(Frozen):
    """The Patroni of one node: where its REST API listens, the etcds, and how the server of a primary that failed comes back."""

    node: str
    address: str
    rest_port: int
    etcds: tuple[str, ...]
    by_rewind: bool

    @property
    def program(self) -> str:
        """Return what it is called on its machine."""
        return f"patroni-{self.node}"


@dataclass
class _Program:
    """A program that was started: `path` is what its mark names."""

    path: Path
    log: LogFile
    child: Child
    log_begin_bytes: int


class PatroniMachine(Protocol):
    """The programs of one machine: Patronis and etcds, which are called "patroni-NODE" and "etcd-NAME". Call `end` in any case."""

    @abstractmethod
    def free_port(self, address: str) -> Port:
        """Find a free port of an address of this machine."""

    @abstractmethod
    def begin(self, certificate: str, key: str) -> None:
        """Make the folder, with the certificate and the key that all of the cluster's programs share, in PEM. Nothing has been started."""

    @abstractmethod
    def start_etcd(self, own: EtcdMember, members: tuple[EtcdMember, ...]) -> None:
        """Start an etcd, which is one of `members`; it makes its data, or goes on with them."""

    @abstractmethod
    def start_patroni(self, member: PatroniMember) -> None:
        """Start the Patroni of a node, whose server it takes over as it runs."""

    @abstractmethod
    def kill(self, program: str) -> None:
        """Kill a program, and those that it is running (SIGKILL). The servers go on."""

    @abstractmethod
    def runs(self, program: str) -> bool:
        """Return whether a program has been started and has not ended."""

    @abstractmethod
    def log(self, program: str) -> str:
        """Return the end of what a program has logged since it was started last."""

    @abstractmethod
    def logs(self) -> dict[str, str]:
        """Return the end of what all programs have logged since `begin`, by the names of the logs."""

    @abstractmethod
    def end(self) -> None:
        """Kill all of it, and remove its folder; servers stay. Raises what keeps one from being undone."""


@complete
class LocalPatroniMachine(PatroniMachine):
    """The Patronis of `servers`, by node, and the etcds that are on this machine. `name` is that of the cluster."""

    def __init__(
        self,
        name: str,
        folder: Path,
        servers: Mapping[str, Server],
        owner: Owner,
        log_of: Callable[[str], LogFile],
        runner: Runner,
        journal: Journal,
    ) -> None:
        self._name = name
        self._folder = folder
        self._servers = dict(servers)
        self._owner = owner
        self._log_of = log_of
        self._runner = runner
        self._journal = journal
        self._programs: dict[str, _Program] = {}
        self._logs_began: dict[str, int] = {}

    @override
    def free_port(self, address: str) -> Port:
        return find_free(address)

    @override
    def begin(self, certificate: str, key: str) -> None:
        self._programs.clear()
        self._logs_began.clear()
        folder = Undo(kind="remove_directory", path=str(self._folder), label=self._journal.label)
        self._journal.record(self._step("folder", f"make the folder {self._folder}", folder))
        ensure(self._folder.parent)  # of a machine without a storage of the run
        make_directory(self._folder, self._journal.label, self._owner)
        replace_file(self._certificate, certificate, self._owner)
        replace_file(self._key, key, self._owner)

    @override
    def start_etcd(self, own: EtcdMember, members: tuple[EtcdMember, ...]) -> None:
        data = self._folder / own.program
        command = etcd_command(own, members, data, self._certificate, self._key)
        self._start(own.program, "start etcd", command, data)

    @override
    def start_patroni(self, member: PatroniMember) -> None:
        config = self._folder / f"{member.program}.json"
        replace_file(config, json.dumps(self._config(member), indent=1), self._owner)
        self._start(member.program, f"start the Patroni of {member.node}", (PATRONI, str(config)), config)

    @override
    def kill(self, program: str) -> None:
        known = self._programs[program]
        end_cluster_manager(known.path)
        known.child.wait()

    @override
    def runs(self, program: str) -> bool:
        known = self._programs.get(program)
        return known is not None and not known.child.has_ended()

    @override
    def log(self, program: str) -> str:
        known = self._programs.get(program)
        return "" if known is None else known.log.tail(_LOG_BYTES, since=known.log_begin_bytes)

    @override
    def logs(self) -> dict[str, str]:
        return {
            name: self._log_of(name).tail(_LOG_BYTES, since=begin_bytes)
            for name, begin_bytes in self._logs_began.items()
        }

    @override
    def end(self) -> None:
        with cancel.masked():
            kept = self._journal.undo_steps(self._step_id(""), self._runner)
            for program in self._programs.values():
                if not kept:
                    program.child.wait()
            for server in self._servers.values():  # it may have been killed while it was replacing one
                directory = ("mkdir", "--parents", "--mode=700", "--", str(server.layout.data_directory))
                self._runner.run(directory, owner=self._owner)
            if kept:
                raise kept[0].error

    @property
    def _certificate(self) -> Path:
        return self._folder / "certificate.pem"

    @property
    def _key(self) -> Path:
        return self._folder / "key.pem"

    def _start(self, program: str, title: str, command: Sequence[str], path: Path) -> None:
        undo = Undo(kind="stop_cluster_manager", path=str(path), label=self._journal.label)
        self._journal.record(self._step(program, title, undo))
        name = log_name(program, self._name)
        log = self._log_of(name)
        begin_bytes = log.size_bytes()
        self._logs_began.setdefault(name, begin_bytes)
        child = self._runner.spawn(command, owner=self._owner, cwd=self._folder, env={MARK: str(path)}, log=log)
        self._programs[program] = _Program(path, log, child, begin_bytes)

    def _step_id(self, what: str) -> str:
        return f"{PATRONI_STEPS}{self._name}.{what}"

    def _step(self, what: str, title: str, undo: Undo) -> Step:
        return Step(id=self._step_id(what), title=title, undo=undo)

    def _config(self, member: PatroniMember) -> dict[str, Any]:
        """Return the configuration of one Patroni; JSON is YAML."""
        server = self._servers[member.node]
        spec = server.layout.spec
        reached = f"{in_url(server.connection.host)}:{server.port}"
        login = {"username": SUPERUSER, "password": server.password}
        rest = f"{in_url(member.address)}:{member.rest_port}"
        certificate, key = str(self._certificate), str(self._key)
        return {
            "scope": SCOPE,
            "name": member.node,
            "restapi": {
                "listen": rest,
                "connect_address": rest,
                "certfile": certificate,
                "keyfile": key,
                "cafile": certificate,
                "verify_client": "required",
            },
            "ctl": {"certfile": certificate, "keyfile": key, "cacert": certificate},
            "etcd3": {
                "hosts": list(member.etcds),
                "protocol": "https",
                "cacert": certificate,
                "cert": certificate,
                "key": key,
            },
            "watchdog": {"mode": "off"},  # one that Patroni held when it was killed would reset this machine
            "postgresql": {
                "listen": reached,
                "connect_address": reached,
                "data_dir": str(server.layout.data_directory),
                "bin_dir": server.layout.installation.bindir,
                "pgpass": str(self._folder / f"{member.node}.pgpass"),
                "authentication": {"superuser": login, "replication": login, "rewind": login},
                "parameters": {"unix_socket_directories": str(server.layout.socket_directory)},
                "pg_hba": [*hba(reachable=spec.listen_address is not None).splitlines(), *_HBA_MEMBERS],
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": not member.by_rewind,
            },
        }
