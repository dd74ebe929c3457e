"""What a server's log holds, as `plinth replay check` reports it."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.units import format_count
from plinth.model.workload import WorkloadSpec

LogFormat = Literal["jsonlog", "csvlog", "stderr"]
NotReplayableReason = Literal[
    "end_uncertain", "parameters_absent", "parameters_cut", "copy_data", "fastpath_call", "nul_byte", "too_long"
]

NOT_REPLAYABLE: dict[NotReplayableReason, str] = {
    "end_uncertain": "its end is not certain: the file ends there, a line follows that is not of the server, or its text is cut",
    "parameters_absent": "its parameters are not in the log",
    "parameters_cut": "a parameter may be cut: it ends with ...",
    "copy_data": "COPY FROM STDIN: its rows are not in the log",
    "fastpath_call": "function call by the fast path: its arguments are not in the log",
    "nul_byte": "its text has a NUL byte",
    "too_long": "longer than 64 MiB",
}
"""Why a statement cannot be replayed."""


class LogFileFacts(Frozen):
    """One file of a log."""

    path: str
    format: LogFormat
    compression: Literal["none", "gzip", "zstd"]
    size_bytes: int
    content_bytes: int = Field(description="Without compression.")
    entries: int
    malformed: int = Field(description="Records that are no entries of this format.")
    too_long: int = Field(description="Records longer than 64 MiB, which are skipped.")
    first_us: int | None = Field(description="Time of its first entry, in microseconds since 1970.")
    last_us: int | None


class SessionCounts(Frozen):
    """The sessions of a log."""

    count: int
    with_beginning: int = Field(description="Sessions whose connection is in the log.")
    with_end: int = Field(description="Sessions whose end is in the log.")
    most_at_once: int | None = Field(description="None if there are too many sessions to tell.")


class StatementCounts(Frozen):
    """The statements of a log."""

    count: int
    simple: int = Field(description="Of the simple protocol.")
    extended: int = Field(description="Of the extended protocol: executions of portals.")
    with_duration: int
    failed: int
    replayable: int
    fetches: int = Field(description="More rows of portals, which are replayed with their statement.")
    replication_commands: int
    lone_durations: int = Field(description="Durations of statements that are not logged.")
    other_errors: int = Field(description="Errors of sessions outside of statements, such as a lost connection.")
    duration_us: int = Field(description="Of all statements with a duration.")


class LogPlace(Frozen):
    """Where the first of its kind is."""

    path: str
    line: int


class LogExample(LogPlace):
    """The first of its kind."""

    text: str


class LeftOut(LogPlace):
    """Statements that a replay leaves out, since they cannot be replayed for one reason."""

    reason: NotReplayableReason
    count: int


class NotReplayable(LogExample):
    """The same, with the text of the first."""

    reason: NotReplayableReason
    count: int


class UnreadRecords(LogExample):
    """Records that are no entries, for one reason; None of those that are too long."""

    reason: str | None
    count: int


class StatementClass(Frozen):
    """Statements that differ in nothing but constants, comments and spacing."""

    text: str = Field(description="Without constants.")
    count: int
    failed: int
    with_duration: int
    duration_us: int = Field(description="Of all with a duration.")
    longest_us: int
    not_replayable: int


class CountedName(Frozen):
    """A database, user or application, empty if the log does not name it."""

    name: str
    sessions: int
    statements: int


class LogCheck(Frozen):
    """What a log holds, and what of it can be replayed."""

    files: tuple[LogFileFacts, ...] = Field(description="In the order of their first times.")
    sessions: SessionCounts
    statements: StatementCounts
    not_replayable: tuple[NotReplayable, ...]
    classes: tuple[StatementClass, ...] = Field(description="Those with the most time first.")
    further_classes: int
    further_statements: int
    databases: tuple[CountedName, ...]
    users: tuple[CountedName, ...]
    applications: tuple[CountedName, ...]
    unread: tuple[UnreadRecords, ...]
    is_to_the_second: bool = Field(description="Whether no time has a fraction of a second.")
    unknown_zones: tuple[str, str] | None = Field(
        description="Two time zones, one of which is not known, between which times may jump."
    )
    steps_back: int = Field(description="How often a time is more than a second before the one before it.")

    @property
    def span_us(self) -> int | None:
        """Time from the first to the last entry; None without entries."""
        first = [one.first_us for one in self.files if one.first_us is not None]
        last = [one.last_us for one in self.files if one.last_us is not None]
        return max(last) - min(first) if first and last else None


class WrittenReplay(Frozen):
    """What a replay file holds."""

    statements: int
    sessions: int = Field(description="Those with a statement.")
    sessions_at_once: int
    texts: int = Field(description="Texts that are kept once each.")
    classes: int = Field(description="Texts that differ by more than their constants.")
    size_bytes: int
    span_us: int = Field(description="From the first to the last moment of a session.")


class PreparedReplay(Frozen):
    """What was read of a log, and written to a replay file."""

    check: LogCheck = Field(description="Of the statements and sessions that were chosen.")
    written: WrittenReplay
    left_out: int = Field(description="Statements that were not chosen.")


class RecordedClass(Frozen):
    """A class of recorded statements, which takes the place of a script."""

    name: str = Field(description="The text without constants.")
    weight: int = Field(description="How many statements were recorded of it.")


class OutOfReplay(Frozen):
    """What a replay leaves out of its log."""

    not_chosen: int = Field(description="Statements of other sessions or times.")
    not_replayable: tuple[LeftOut, ...]

    @classmethod
    def of(cls, prepared: PreparedReplay) -> "OutOfReplay":
        """Return what is not in a replay file, without the texts of statements."""
        left_out = (LeftOut(**one.model_dump(exclude={"text"})) for one in prepared.check.not_replayable)
        return cls(not_chosen=prepared.left_out, not_replayable=tuple(left_out))


class PlannedRecording(Frozen):
    """The recording that a variant replays."""

    file: str = Field(description="The replay file.")
    first_us: int = Field(description="Its beginning, in microseconds since 1970.")
    span_us: int = Field(description="From the first to the last moment of a session.")
    statements: int
    sessions: int
    sessions_at_once: int
    left_out: OutOfReplay | None = Field(
        default=None, description="None for a replay file that was given: what it leaves out was said when it was made."
    )


class ReplayFacts(Frozen):
    """What a replay file says of its recording."""

    first_us: int = Field(description="Its beginning, in microseconds since 1970.")
    span_us: int = Field(description="From the first to the last moment of a session.")
    statements: int
    sessions: int
    sessions_at_once: int
    classes: tuple[RecordedClass, ...] = Field(
        description="Those with the most time when they were recorded, then one of all further statements."
    )
    databases: tuple[str, ...]
    users: tuple[str, ...]
    with_duration: int = Field(description="Statements whose duration is known.")
    duration_us: int = Field(description="Of all of them.")


def recording_words(recording: PlannedRecording, workload: WorkloadSpec) -> str:
    """Return what is replayed, and how: "12,345 recorded statements of 8 sessions, at 2x speed, through 4 connections"."""
    speed = "closed loop" if workload.speed == "closed" else f"at {workload.speed:g}x speed"
    pool = "" if workload.connections is None else f", through {format_count(workload.connections, 'connection')}"
    writes = "" if workload.writes else ", read-only"
    statements = f"{recording.statements:,} recorded statement{'s' * (recording.statements != 1)}"
    return f"{statements} of {format_count(recording.sessions, 'session')}, {speed}{pool}{writes}"


def advice(check: LogCheck) -> tuple[str, ...]:
    """Return which settings of the server would put into its log what is missing there."""
    statements, sessions = check.statements, check.sessions
    reasons = {one.reason for one in check.not_replayable}
    lines = []
    if statements.count == 0:
        lines.append(
            "no statement is in the log: log_min_duration_statement = 0 logs all, with their durations; "
            "messages have to be in English: lc_messages = 'C'"
        )
    elif statements.with_duration < statements.count - statements.failed:
        lines.append(
            "durations are missing: log_min_duration_statement = 0, or log_duration = on with log_statement = all"
        )
    if statements.lone_durations:
        lines.append(
            "durations are of statements that are not logged: log_min_duration_statement = 0, or log_statement = all"
        )
    if "end_uncertain" in reasons:
        lines.append(
            "ends of statements are not certain: jsonlog or csvlog, or the files as the server has written them, without a "
            "program between that splits, wraps or cuts lines"
        )
    if "parameters_absent" in reasons:
        lines.append("parameters are missing: log_parameter_max_length = -1, and log_error_verbosity not terse")
    if "parameters_cut" in reasons:
        lines.append("parameters may be cut: log_parameter_max_length = -1")
    if sessions.with_beginning < sessions.count:
        lines.append("beginnings of sessions are missing: log_connections = on")
    if sessions.with_end < sessions.count:
        lines.append("ends of sessions are missing: log_disconnections = on")
    if check.is_to_the_second and statements.count:
        lines.append("times are to the second: %m in log_line_prefix instead of %t")
    if check.unknown_zones:
        lines.append("the time zone changes, and one of them is unknown: log_timezone = 'UTC'")
    return tuple(lines)
