"""Where a server is and how to log in: the JSON of the native module's `connection`, by libpq's names."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen

SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
TlsVersion = Literal["TLSv1.2", "TLSv1.3"]
SessionAttrs = Literal["any", "read-write", "read-only", "primary", "standby", "prefer-standby"]


class Host(Frozen):
    """One of several hosts: a socket directory (`/...`, or `@...` for an abstract socket), a host name or an address."""

    host: str
    port: int
    hostaddr: str | None = Field(default=None, description="Numeric address of the host, which is then not looked up.")
    password: str | None = Field(default=None, repr=False)


class Tcp(Frozen):
    """Settings of TCP connections; what is None is left to the system."""

    keepalives: bool = True
    keepalives_idle_s: int | None = None
    keepalives_interval_s: int | None = None
    keepalives_count: int | None = None
    tcp_user_timeout_ms: int | None = None


class Tls(Frozen):
    """Encryption, over TCP only. None stands for "no such file": libpq's default files have been looked for already."""

    sslmode: SslMode = "disable"
    sslnegotiation: Literal["postgres", "direct"] = "postgres"
    sslrootcert: str | None = Field(default=None, description='A file of trusted authorities, or "system".')
    sslcert: str | None = None
    sslkey: str | None = None
    sslpassword: str | None = Field(default=None, repr=False)
    sslcrl: str | None = None
    sslcrldir: str | None = None
    sslsni: bool = True
    ssl_min_protocol_version: TlsVersion | None = None
    ssl_max_protocol_version: TlsVersion | None = None


class Connection(Frozen):
    """Where the server is, who logs in, and how: without defaults of the environment, all of which are in here."""

    host: str
    port: int
    hostaddr: str | None = None
    user: str
    database: str
    password: str | None = Field(default=None, repr=False)
    options: str | None = None
    application_name: str = "plinth"
    client_encoding: str = Field(default="UTF8", description="Empty for the encoding of the database.")
    further_hosts: tuple[Host, ...] = Field(default=(), description="Hosts to try after the first.")
    target_session_attrs: SessionAttrs = "any"
    load_balance_hosts: bool = Field(default=False, description="Whether hosts are tried in random order.")
    connect_timeout_s: float | None = Field(
        default=None, description="For each address; 0 for no limit, None for whatever who connects thinks right."
    )
    tcp: Tcp = Tcp()
    tls: Tls = Tls()
    channel_binding: Literal["disable", "prefer", "require"] = "prefer"
    require_auth: str | None = Field(default=None, description="How the server may ask who we are.")
    requirepeer_uid: int | None = Field(default=None, description="Who must run the server at a Unix socket.")

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts, in the order given."""
        first = Host(host=self.host, port=self.port, hostaddr=self.hostaddr, password=self.password)
        return (first, *self.further_hosts)

    def only(self, host: Host) -> "Connection":
        """The same with no other host than `host`."""
        return self.model_copy(update={**dict(host), "further_hosts": ()})
