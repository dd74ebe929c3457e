"""A recorded workload: the replay file of a workload, which is made of a server's log if that is what the experiment names."""

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from plinth.common.shown import shown
from plinth.model.errors import UsageError
from plinth.model.replay import OutOfReplay, PlannedRecording, RecordedClass
from plinth.model.workload import SessionFilter, WorkloadSpec
from plinth.system.confinement import Brought
from plinth.system.failures import from_os_error
from plinth.system.owner import server_owner
from plinth.system.paths import cache_dir, ensure
from plinth.system.regular_file import read_small_file
from plinth.system.runner import Runner
from plinth.workload.server_log import Chosen, ReadingLog, copy_replay, prepare_replay, read_replay, replay_files

LEAD_S = 1.0
"""The load engine begins a recording this long after the load, so that sessions that were open before it are connected."""
_KEPT_S = 30 * 86_400.0


def recording_of(
    spec: WorkloadSpec, files: Sequence[Path], reading: ReadingLog
) -> tuple[PlannedRecording, tuple[RecordedClass, ...]]:
    """Return the recording of a workload, whose `files` are a replay file or a log, and its classes of statements.

    A replay file that is made of a log is kept in the cache, by the names, sizes and times of the log's files and by what is chosen of
    it, until it has not been planned with for 30 days. Raises UsageError for files that are neither, and for a recording of several
    databases.
    """
    replays = replay_files(files)
    if replays:
        if len(files) > 1:
            raise UsageError(
                f"workload.replay: {shown(replays[0].name)} is a replay file, and there are {len(files)} files",
                hint="one replay file, or files of a log",
            )
        if spec.sessions != "all" or spec.log_line_prefix is not None:
            raise UsageError(
                "workload.sessions and workload.log_line_prefix are for logs, and workload.replay is a replay file",
                hint="plinth replay prepare has both as options",
            )
        file, left_out = _own(files[0]), None
    else:
        file, left_out = _prepared(spec, files, reading)
    facts = read_replay(file, spec.classes)
    if len(facts.databases) > 1:
        raise UsageError(
            f"the recording is of {len(facts.databases)} databases: {', '.join(facts.databases)}; a replay has one",
            hint=f'choose one: plinth replay prepare ... --database {facts.databases[0]}, or workload.sessions = {{ database = "..." }}',
        )
    planned = PlannedRecording(
        file=str(file),
        first_us=facts.first_us,
        span_us=facts.span_us,
        statements=facts.statements,
        sessions=facts.sessions,
        sessions_at_once=facts.sessions_at_once,
        left_out=left_out,
    )
    return planned, facts.classes


def replay_s(recording: PlannedRecording, workload: WorkloadSpec) -> float:
    """Return how long a replay takes at most, in seconds: of a closed loop, as long as the recording."""
    speed = workload.speed if isinstance(workload.speed, int | float) else 1.0
    return LEAD_S + recording.span_us / 1e6 / speed


def _is_current(output: Path) -> bool:
    """Return whether a file of the cache is there, and of this version."""
    try:
        read_replay(output, 1)
    except UsageError:
        return False
    return True


def _prepared(spec: WorkloadSpec, files: Sequence[Path], reading: ReadingLog) -> tuple[Path, OutOfReplay]:
    chosen = _chosen(spec.sessions)
    output = _place(files, [spec.log_line_prefix, spec.model_dump(mode="json")["sessions"]])
    reasons = output.with_suffix(".json")  # why the replay leaves out what it does
    if _is_current(output) and (left_out := _known_left_out(reasons)) is not None:
        os.utime(output)
        os.utime(reasons)
        return output, left_out
    with reading(files) as progress:
        prepared = prepare_replay(
            files, output, log_line_prefix=spec.log_line_prefix, chosen=chosen, overwrite=True, progress=progress
        )
    if not prepared.written.statements:
        raise UsageError(
            f"nothing of the log can be replayed: {prepared.check.statements.count:,} statements were read, and "
            f"{prepared.left_out:,} left out",
            hint="plinth replay check says why",
        )
    left_out = OutOfReplay.of(prepared)
    _keep_left_out(reasons, left_out)
    return output, left_out


def _known_left_out(file: Path) -> OutOfReplay | None:
    """Return what the replay file next to this one leaves out; None where that is not known."""
    try:
        return OutOfReplay.model_validate_json(read_small_file(file))
    except (OSError, ValueError):
        return None


def _keep_left_out(file: Path, left_out: OutOfReplay) -> None:
    """Write the file in one step, since another run may read it meanwhile. Raises PlinthError."""
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=file.name, delete=False) as written:
            written.write(left_out.model_dump_json().encode())
        Path(written.name).replace(file)
    except OSError as error:
        raise from_os_error(error, "keep what the replay leaves out", file) from error


def _own(file: Path) -> Path:
    """Return a copy of a replay file that was brought, which the load engine reads: nobody else can change it meanwhile.

    An ordinary user's file is its own.
    """
    if server_owner().is_current_user:
        return file
    output = _place([file], ["copy"])
    if not _is_current(output):
        copy_replay(file, output)
    os.utime(output)
    return output


def _place(files: Sequence[Path], chosen: object) -> Path:
    """Return where the replay file of these files is kept in the cache, by what identifies them and by what is chosen of them."""
    found = Runner().resolve(files, server_owner())
    known = [(str(one.path), *one[2:]) for one in found if isinstance(one, Brought)]
    made_of = json.dumps([known, chosen])
    folder = ensure(cache_dir() / "replays")
    _remove_old(folder)
    return folder / f"{hashlib.sha256(made_of.encode()).hexdigest()[:32]}.replay"


def _remove_old(folder: Path) -> None:
    """Remove what nobody has planned with for a while: it holds what the log holds, personal data too."""
    for file in folder.iterdir():
        with suppress(FileNotFoundError):  # another run was faster
            if time.time() - file.lstat().st_mtime > _KEPT_S:
                shutil.rmtree(file) if file.is_dir() else file.unlink()


def _chosen(sessions: str | SessionFilter) -> Chosen:
    if not isinstance(sessions, SessionFilter):
        return Chosen()
    return Chosen(
        users=sessions.user,
        databases=sessions.database,
        applications=sessions.application_name,
        begin=sessions.begin,
        end=sessions.end,
    )
