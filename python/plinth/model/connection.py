"""Where a server is and how to log in: the JSON of the native module's `connection`, by libpq's names.

These are dataclasses of the standard library and no models, since pydantic takes longer to import than `plinth bench`
may take until its first transaction. Within a model pydantic checks them all the same, unknown keys too.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
TlsVersion = Literal["TLSv1.2", "TLSv1.3"]
SessionAttrs = Literal["any", "read-write", "read-only", "primary", "standby", "prefer-standby"]
_CLOSED: Any = {"extra": "forbid"}


@dataclass(frozen=True, kw_only=True)
class Host:
    """One of several hosts: a socket directory (`/...`, or `@...` for an abstract socket), a host name or an address."""

    __pydantic_config__ = _CLOSED

    host: str
    port: int
    hostaddr: str | None = None
    """Numeric address of the host, which is then not looked up."""
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Tcp:
    """Settings of TCP connections; what is None is left to the system."""

    __pydantic_config__ = _CLOSED

    keepalives: bool = True
    keepalives_idle_s: int | None = None
    keepalives_interval_s: int | None = None
    keepalives_count: int | None = None
    tcp_user_timeout_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class Tls:
    """Encryption, over TCP only. None means "no such file": libpq's default files have been looked for already."""

    __pydantic_config__ = _CLOSED

    sslmode: SslMode = "disable"
    sslnegotiation: Literal["postgres", "direct"] = "postgres"
    sslrootcert: str | None = None
    """A file of trusted authorities, or "system"."""
    sslcert: str | None = None
    sslkey: str | None = None
    sslpassword: str | None = field(default=None, repr=False)
    sslcrl: str | None = None
    sslcrldir: str | None = None
    sslsni: bool = True
    ssl_min_protocol_version: TlsVersion | None = None
    ssl_max_protocol_version: TlsVersion | None = None


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Where the server is, who logs in, and how: without defaults of the environment, all of which are in here."""

    __pydantic_config__ = _CLOSED

    host: str
    port: int
    hostaddr: str | None = None
    user: str
    database: str
    password: str | None = field(default=None, repr=False)
    options: str | None = None
    application_name: str = "plinth"
    client_encoding: str = "UTF8"
    """Empty for the encoding of the database."""
    further_hosts: tuple[Host, ...] = ()
    """Hosts to try after the first."""
    target_session_attrs: SessionAttrs = "any"
    load_balance_hosts: bool = False
    """Whether hosts are tried in random order."""
    connect_timeout_s: float | None = None
    """The timeout for each address; 0 is no limit, None leaves it to the caller."""
    tcp: Tcp = Tcp()
    tls: Tls = Tls()
    channel_binding: Literal["disable", "prefer", "require"] = "prefer"
    require_auth: str | None = None
    """The authentication methods that the server may use."""
    requirepeer_uid: int | None = None
    """Who must run the server at a Unix socket."""

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts, in the order given."""
        first = Host(host=self.host, port=self.port, hostaddr=self.hostaddr, password=self.password)
        return (first, *self.further_hosts)

    def only(self, host: Host) -> "Connection":
        """Return the connection with `host` as its only host."""
        return replace(self, **vars(host), further_hosts=())

    def for_engine(self) -> dict[str, Any]:
        """Return the native module's `connection`."""
        return asdict(self)
