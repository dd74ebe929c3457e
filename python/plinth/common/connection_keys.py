"""Which parameters a connection string of an experiment may have: those that reach the server, and none that make libpq load a library,
write a file, or take a password from a file that another user chose."""

from plinth.common.libpq import ConninfoError, parameters

_ALLOWED = frozenset(
    (
        *("host", "hostaddr", "port", "dbname", "user", "password", "service"),
        *("application_name", "fallback_application_name", "client_encoding", "options", "replication"),
        *(
            "connect_timeout",
            "keepalives",
            "keepalives_idle",
            "keepalives_interval",
            "keepalives_count",
            "tcp_user_timeout",
        ),
        *("target_session_attrs", "load_balance_hosts", "requirepeer", "require_auth", "channel_binding"),
        *(
            "sslmode",
            "sslnegotiation",
            "sslcompression",
            "sslcert",
            "sslkey",
            "sslpassword",
            "sslcertmode",
            "sslrootcert",
        ),
        *("sslcrl", "sslcrldir", "sslsni", "ssl_min_protocol_version", "ssl_max_protocol_version", "requiressl"),
        *("gssencmode", "krbsrvname", "gsslib", "gssdelegation", "min_protocol_version", "max_protocol_version"),
    )
)
_YOUR_OWN = {
    "passfile": "use ~/.pgpass, or PGPASSFILE in the environment",
    "servicefile": "use ~/.pg_service.conf, or PGSERVICEFILE in the environment",
    "sslkeylogfile": "leave it out",
}


def is_engine(sslkey: str) -> bool:
    """Return whether libpq takes the name of a key for ENGINE:KEY, and has OpenSSL load the engine: any library, by its path."""
    return ":" in sslkey


def check_keys(connection: str) -> None:
    """Raise ValueError for what a connection string of an experiment may not have. One that cannot be parsed passes."""
    try:
        given = parameters(connection)
    except (ConninfoError, UnicodeError):
        return  # the code that connects says what is wrong
    for name, value in given.items():
        if name not in _ALLOWED:
            hint = _YOUR_OWN.get(name, "leave it out")
            raise ValueError(f"{name}: not in the connection string of an experiment, which may be another's: {hint}")
        if name == "sslkey" and is_engine(value):
            raise ValueError(
                "sslkey: only the path of a file is allowed, without a colon: before one, libpq reads the name of an engine, "
                "which is a library that it loads"
            )
