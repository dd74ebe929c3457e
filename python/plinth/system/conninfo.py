"""Connection strings, services, password files and PG* variables, resolved by libpq's rules.

libpq reads PG* variables from C's environment at every connect, and some of them cannot be overridden (PGSERVICE, PGTZ). So they are
hidden from it, except where a connection string is resolved; `os.environ` keeps them.
"""

import locale
import os
import pwd
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, get_args

from plinth.common.connection_keys import is_engine
from plinth.common.libpq import make_conninfo
from plinth.common.secrets import UnreadableConnection, split
from plinth.model.connection import Connection, Host, Tcp, Tls, TlsVersion
from plinth.model.errors import MissingCapability, UsageError
from plinth.system.libpq import Unconnected, stopped
from plinth.system.libpq_files import STOP, check_early_files, check_files_of, libpq_folder

_WHERE = "connection string"
_FORMS_HINT = 'write it as "host=db1 dbname=bench" or "postgresql://user@db1/bench"'
_STOP_EARLIER = {"target_session_attrs": "stop here"}
# Variables that set session parameters and are not connection options of libpq.
_SESSION_VARIABLES = {"PGDATESTYLE": "datestyle", "PGTZ": "timezone", "PGGEQO": "geqo"}
_USUAL_SSLMODE = "prefer"
_OLD_TLS = ("TLSv1", "TLSv1.1")
_DEFAULT_FILES = {"sslrootcert": "root.crt", "sslcert": "postgresql.crt", "sslcrl": "root.crl"}
_DEFAULT_KEY = "postgresql.key"
_LIBPQ_PREFIX = "PG"


class _Visibility:
    """Whether libpq sees the PG* variables of this process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._hidden = False

    def hide(self) -> None:
        with self._lock:
            self._hidden = True
            for name in self._names():
                os.unsetenv(name)

    @contextmanager
    def shown(self) -> Iterator[None]:
        with self._lock:
            was_hidden = self._hidden
            for name in self._names():
                os.putenv(name, os.environ[name])
            try:
                yield
            finally:
                if was_hidden:
                    self.hide()

    @staticmethod
    def _names() -> list[str]:
        return [name for name in os.environ if name.startswith(_LIBPQ_PREFIX)]


_visibility = _Visibility()


def hide_variables() -> None:
    """Hide the inherited PG* variables from libpq, for connections to which only explicit parameters may apply."""
    _visibility.hide()


def resolve(connection_string: str = "", where: str = _WHERE, usual_encoding: str = "UTF8") -> Connection:
    """Resolve a connection string as libpq would in this process's environment, without connecting.

    `where` is what errors name as their place; `usual_encoding` is the client's when nothing names one, the database's if
    it is empty. Raises UsageError for what libpq does not take, MissingCapability for
    what it takes and Plinth does not speak.
    """
    probe = _Probe(connection_string, where)
    found = probe.parameters
    _refuse(found, where)
    first, *further = probe.hosts()
    timeout_s = probe.integer("connect_timeout")
    return Connection(
        **vars(first),
        user=found["user"],
        database=found["dbname"],
        options=_options(found.get("options", "")) or None,
        application_name=found.get("application_name") or found.get("fallback_application_name") or "plinth",
        client_encoding=_encoding(found.get("client_encoding", usual_encoding)),
        further_hosts=tuple(further),
        target_session_attrs=found["target_session_attrs"],  # type: ignore[arg-type] - libpq has checked it
        load_balance_hosts=probe.balances_load(),
        connect_timeout_s=None if timeout_s is None else float(timeout_s),
        tcp=Tcp(
            keepalives=probe.integer("keepalives") != 0,
            keepalives_idle_s=probe.natural("keepalives_idle"),
            keepalives_interval_s=probe.natural("keepalives_interval"),
            keepalives_count=probe.natural("keepalives_count"),
            tcp_user_timeout_ms=probe.natural("tcp_user_timeout"),
        ),
        tls=_tls(found),
        channel_binding=found["channel_binding"],  # type: ignore[arg-type]
        require_auth=found.get("require_auth"),
        requirepeer_uid=_uid(found.get("requirepeer"), where),
    )


def keywords(to: Connection) -> dict[str, Any]:
    """Return a connection to one host as libpq's keywords; None for parameters that are not set."""
    return {
        "host": to.host or None,
        "hostaddr": to.hostaddr,
        "port": to.port,
        "user": to.user,
        "dbname": to.database,
        "password": to.password,
        "options": to.options,
        "application_name": to.application_name,
        "client_encoding": to.client_encoding or None,
        "target_session_attrs": None if to.target_session_attrs == "any" else to.target_session_attrs,
        "connect_timeout": None if to.connect_timeout_s is None else int(to.connect_timeout_s),
        "keepalives": None if to.tcp.keepalives else 0,
        "keepalives_idle": to.tcp.keepalives_idle_s,
        "keepalives_interval": to.tcp.keepalives_interval_s,
        "keepalives_count": to.tcp.keepalives_count,
        "tcp_user_timeout": to.tcp.tcp_user_timeout_ms,
        **vars(to.tls),
        "sslnegotiation": None if to.tls.sslnegotiation == "postgres" else to.tls.sslnegotiation,
        "sslsni": None if to.tls.sslsni else 0,
        "gssencmode": "disable",
        "channel_binding": None if to.channel_binding == "prefer" else to.channel_binding,
        "require_auth": to.require_auth,
        "requirepeer": None if to.requirepeer_uid is None else pwd.getpwuid(to.requirepeer_uid).pw_name,
    }


def place(to: Connection) -> str:
    """Return a connection string for the first host, without secrets, with which another process can connect."""
    kept = ["host", "hostaddr", "port", "user", "dbname"]
    if to.tls != Tls():
        kept += ["sslnegotiation", "sslrootcert", "sslcert", "sslkey"]
        kept += ["sslmode"] if to.tls.sslmode != _USUAL_SSLMODE else []
    return make_conninfo(**{name: value for name, value in keywords(to).items() if name in kept})


class _Probe:
    """The parameters of a connection string as libpq completes them."""

    def __init__(self, connection_string: str, where: str) -> None:
        self._string = connection_string
        self._where = where
        try:
            self._masked = split(connection_string).masked
        except UnreadableConnection as error:
            raise self._unreadable(str(error), error.hint or _FORMS_HINT) from None
        try:
            check_early_files(connection_string)
            self.parameters = self._stop(STOP).parameters
            check_files_of(self.parameters)
        except OSError as error:
            hint = "libpq reads it for each connection: name another, or move it away"
            raise self._unreadable(f"{error.filename}: {error.strerror}", hint) from error

    def hosts(self) -> list[Host]:
        """Return each host with its port and password; libpq has checked the lengths of the lists."""
        lists = [self.parameters.get(name, "").split(",") for name in ("host", "hostaddr", "port")]
        count = max(len(lists[0]), len(lists[1]))
        hosts, addresses, ports = [entries * count if len(entries) == 1 else entries for entries in lists]
        return [self._host(*one) for one in zip(hosts, addresses, ports, strict=True)]

    def _host(self, host: str, hostaddr: str, port: str) -> Host:
        alone = self._stop(STOP | {"host": host, "hostaddr": hostaddr, "port": port}).first
        return Host(
            host="" if hostaddr and not host else alone.host,
            port=self._port(alone.port),
            hostaddr=hostaddr or None,
            password=alone.password or None,
        )

    def balances_load(self) -> bool:
        """Return whether hosts are tried in random order."""
        wanted = self._stop(_STOP_EARLIER).parameters.get("load_balance_hosts", "disable")
        if wanted not in ("disable", "random"):
            raise self._usage(f'invalid load_balance_hosts value: "{wanted}"', "allowed are disable and random")
        return wanted == "random"

    def integer(self, name: str) -> int | None:
        """Return an integer parameter."""
        text = self.parameters.get(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise self._usage(f'invalid integer value "{text}" for connection option "{name}"') from None

    def natural(self, name: str) -> int | None:
        """Return a positive parameter; None otherwise, which means the system's default."""
        value = self.integer(name)
        return value if value is not None and value > 0 else None

    def _port(self, text: str) -> int:
        if not (text.strip().isdecimal() and 1 <= int(text) <= 65535):
            raise self._usage(f'invalid port number: "{text}"', "ports are numbers from 1 to 65535")
        return int(text)

    def _stop(self, overrides: Mapping[str, str]) -> Unconnected:
        """Return libpq's parameters after it was stopped before connecting. Raises UsageError if libpq rejects them."""
        with _visibility.shown():
            found = stopped(make_conninfo(self._string, **overrides))
        if not any(f"invalid {name} value" in found.message for name in overrides):
            raise self._usage(found.message)
        return found

    def _usage(self, message: str, hint: str = _FORMS_HINT) -> UsageError:
        return self._unreadable(self._masked(message.strip()), hint)

    def _unreadable(self, message: str, hint: str) -> UsageError:
        return UsageError(f"the connection string cannot be read: {message}", where=self._where, hint=hint)


def _refuse(found: Mapping[str, str], where: str) -> None:
    """Raise MissingCapability for parameters that libpq supports and Plinth does not."""
    wanted = {name: found.get(name, "") for name in ("gssencmode", "sslcertmode")}
    reasons = {
        "gssencmode=require": wanted["gssencmode"] == "require" and "GSSAPI is not supported",
        "sslcertmode=require": wanted["sslcertmode"] == "require"
        and "whether the server asks for a certificate is not checked",
        "replication": found.get("replication", "false") not in ("false", "off", "no", "0")
        and "a load is no replication",
        "min_protocol_version": found.get("min_protocol_version", "3.0") != "3.0" and "protocol 3.0 is used",
        "scram_client_key": "scram_client_key" in found and "a password is needed",
        "sslkeylogfile": "sslkeylogfile" in found and "keys are shown to nobody",
        "sslkey=ENGINE:KEY": is_engine(found.get("sslkey", "")) and "libpq would load the library that is the engine",
        "ssl_max_protocol_version": found.get("ssl_max_protocol_version") in _OLD_TLS
        and "TLS before 1.2 is not supported",
    }
    for name, reason in reasons.items():
        if reason:
            raise MissingCapability(
                f"the connection asks for {name}, which Plinth does not do: {reason}",
                where=where,
                hint="see docs/guides/connections.md for what is supported",
            )


def _tls(found: Mapping[str, str]) -> Tls:
    files = {name: _file(found, name, default) for name, default in _DEFAULT_FILES.items()}
    if found.get("sslcertmode") == "disable":
        files["sslcert"] = None
    if found.get("sslcrldir") and "sslcrl" not in found:
        files["sslcrl"] = None
    return Tls(
        sslmode=found["sslmode"],  # type: ignore[arg-type] - libpq has checked it
        sslnegotiation=found.get("sslnegotiation", "postgres"),  # type: ignore[arg-type]
        **files,
        sslkey=(found.get("sslkey") or str(libpq_folder() / _DEFAULT_KEY)) if files["sslcert"] else None,
        sslpassword=found.get("sslpassword"),
        sslcrldir=found.get("sslcrldir"),
        sslsni=found.get("sslsni", "1") != "0",
        ssl_min_protocol_version=_version(found, "ssl_min_protocol_version"),
        ssl_max_protocol_version=_version(found, "ssl_max_protocol_version"),
    )


def _version(found: Mapping[str, str], name: str) -> TlsVersion | None:
    """Return a supported version; None for older ones, which as a minimum mean the oldest supported one."""
    return next((version for version in get_args(TlsVersion) if version == found.get(name)), None)


def _file(found: Mapping[str, str], name: str, default: str) -> str | None:
    """Return the given file, or libpq's default if it exists."""
    if named := found.get(name):
        return named
    path = libpq_folder() / default
    return str(path) if path.exists() else None


def _options(given: str) -> str:
    """Add session parameters of variables to the options; given options come last and take precedence."""
    asked = [
        f"-c {name}={_escaped(value)}"
        for variable, name in _SESSION_VARIABLES.items()
        if (value := os.environ.get(variable)) and value.lower() != "default"
    ]
    return " ".join([*asked, given]).strip()


def _escaped(value: str) -> str:
    return re.sub(r"([\\ ])", r"\\\1", value)


def _encoding(name: str) -> str:
    return locale.getencoding() if name == "auto" else name


def _uid(user: str | None, where: str) -> int | None:
    if user is None:
        return None
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        raise UsageError(f"requirepeer: there is no user {user!r} on this machine", where=where) from None
