"""Classifies PostgreSQL processes by their process title."""

import re

BACKENDS = "backends"
OTHER_POSTGRES = "other postgres"
SHORT_LIVED = "short-lived backends"
"""CPU time of the postmaster's children that no reading of theirs had: of sessions shorter than the pause between two readings."""
LOAD_ENGINE = "load engine"
OBSERVER = "observer"
REST_OF_RUN = "rest of run"
"""Processes of the run that are none of the above: other nodes, the daemons of emulated disks and networks, local agents."""
REST_OF_HOST = "rest of host"
# The titles of init_ps_display() and set_ps_display(), PostgreSQL 13 to 18. Those without arguments must end
# there: a backend's title begins with its user's name.
_TITLES = (
    ("checkpointer", r"checkpointer"),
    ("background writer", r"background writer"),
    ("walwriter", r"walwriter"),
    ("autovacuum", r"autovacuum launcher|autovacuum worker .*"),
    ("walsender", r"walsender .*"),
    ("walreceiver", r"walreceiver.*"),
    ("io workers", r"io worker \d+"),
    ("logger", r"logger"),
    (
        OTHER_POSTGRES,
        r"archiver.*|startup.*|stats collector|walsummarizer|slotsync worker.*|logical replication launcher"
        r"|logical replication (?:\w+ )*worker for .*",
    ),
)
_PREFIX = "postgres: "
# cluster_name, where it is set, is before the title.
_AUXILIARY = re.compile(
    _PREFIX + "(?:.*: )?(?:" + "|".join(f"(?P<g{i}>{title})" for i, (_, title) in enumerate(_TITLES)) + ")"
)
POSTGRES_GROUPS = (BACKENDS, *(group for group, _ in _TITLES))
"""Groups of the server's processes. Parallel workers are backends: they do a backend's work."""
PROCESS_GROUPS = (*POSTGRES_GROUPS, SHORT_LIVED, LOAD_ENGINE, OBSERVER, REST_OF_RUN, REST_OF_HOST)


def group_of_title(cmdline: bytes) -> str | None:
    """Return the group of a server process from /proc/PID/cmdline; None while it has the postmaster's command line."""
    title = cmdline.replace(b"\0", b" ").decode(errors="replace").strip()
    if match := _AUXILIARY.fullmatch(title):
        return _TITLES[int(str(match.lastgroup)[1:])][0]
    return BACKENDS if title.startswith(_PREFIX) else None
