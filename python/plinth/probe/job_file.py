"""Reads a user's job file for fio, restricted to parameters that affect only the probe's file.

fio can run programs, delete directories and write to any device. So only parameters that are known to shape I/O are taken:
a parameter that can name a file or device (also in its value, as iomem=mmap:FILE) or that is unknown is refused, and so is an
I/O engine that does not go to a file.

The grammar is fio's (init.c, __parse_jobs_ini; parse.c, strip_blank_end): a comment begins at the first ; or # of a line, in or
after a value, too, and what fio gets holds none. Every section whose name begins with "global" sets defaults for the jobs below it.
A job runs together with the one before it unless it has stonewall.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from plinth.common.nearest import nearest
from plinth.model.errors import PlinthError, Refused, UsageError
from plinth.model.probe_io import IoJob
from plinth.system.failures import from_os_error
from plinth.system.regular_file import read_given

_COMMENT = re.compile("[;#].*")
_WAITS = ("stonewall", "wait_for_previous")
"""One parameter of fio's, by its name and its alias."""
_LONGEST_VALUE = 1000
"""fio reads lines of at most 8191 bytes (OPT_LEN_MAX), and takes the rest for another line, with any parameter."""
ENGINES = ("sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "posixaio", "io_uring", "mmap")
_SHAPING = """
    rw readwrite rw_sequencer bs blocksize bsrange bssplit blockalign ba bs_unaligned bs_is_seq_rand size io_size
    io_limit offset offset_increment offset_align number_ios ioengine iodepth iodepth_batch iodepth_batch_submit
    iodepth_batch_complete iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low io_submit_mode numjobs
    thread group_reporting new_group stonewall wait_for_previous runtime timeout time_based ramp_time startdelay loops
    direct buffered atomic sync fsync fdatasync sync_file_range end_fsync fsync_on_close rwmixread rwmixwrite
    random_distribution percentage_random norandommap softrandommap random_generator randrepeat allrandrepeat randseed
    use_os_rand fadvise_hint invalidate overwrite fallocate rate rate_min rate_iops rate_iops_min rate_process
    rate_cycle thinktime thinktime_spin thinktime_blocks thinktime_iotime latency_target latency_window
    latency_percentile latency_run max_latency unified_rw_reporting clat_percentiles lat_percentiles slat_percentiles
    percentile_list significant_figures gtod_reduce disable_lat disable_clat disable_slat clocksource zero_buffers
    refill_buffers scramble_buffers buffer_compress_percentage buffer_compress_chunk buffer_pattern dedupe_percentage
    hipri fixedbufs registerfiles sqthread_poll nonvectored uncached nowait userspace_reap description name prio
    prioclass nice cpus_allowed cpus_allowed_policy cpumask steadystate steadystate_duration steadystate_ramp_time
    iomem_align mem_align
    """
"""The parameters that shape I/O and name nothing."""
ALLOWED = frozenset(_SHAPING.split())
_HINT = "the probe gives every job its own new file; leave out what names files, runs programs or writes elsewhere"


def read_job_file(path: Path) -> tuple[IoJob, ...]:
    """Return the jobs of the file at `path`, each with the preceding [global] parameters.

    Raises Refused or UsageError, the first of all that is wrong with the others as its details.
    """
    try:
        text = read_given(path).decode()
    except FileNotFoundError:
        raise UsageError("there is no such job file", where=str(path), hint="correct the path") from None
    except (OSError, UnicodeDecodeError) as error:
        cause = error if isinstance(error, OSError) else OSError(None, "it is not text")
        raise from_os_error(cause, "read the job file", path) from error
    jobs = _jobs(text, path)
    title = f"of {path.name}"
    return tuple(
        IoJob(name=name, shape="job_file", title=title, parameters=parameters, group=group)
        for (name, parameters), group in zip(jobs, _groups([parameters for _, parameters in jobs]), strict=True)
    )


def _jobs(text: str, path: Path) -> list[tuple[str, dict[str, str]]]:
    """Return the names of jobs with their parameters. Raises as `read_job_file`."""
    defaults: dict[str, str] = {}
    jobs: list[tuple[str, dict[str, str]]] = []
    section: dict[str, str] | None = None
    problems: list[PlinthError] = []
    for number, written in enumerate(text.splitlines(), 1):
        line, where = _COMMENT.sub("", written).strip(), f"{path}:{number}"
        if not line:
            continue
        try:
            if line.startswith("["):
                section = _section(line, where, defaults, jobs)
                continue
            if section is None:
                raise UsageError(f"got {line!r} before the first [section]", where=where)
            key, _, value = line.partition("=")
            name = _checked(key.strip(), value.strip(), where)
            section.pop(name, None)  # of a parameter and its alias, fio takes the later one
            section[name] = value.strip() or "1"
        except PlinthError as problem:
            problems.append(problem)
    if problems:
        first, *others = sorted(problems, key=lambda problem: not isinstance(problem, Refused))
        first.details = tuple(f"{other.where}: {other.message}" for other in others)
        raise first
    if not jobs:
        raise UsageError("no job in it: a section other than [global] is needed", where=str(path))
    return jobs


def _groups(jobs: Sequence[Mapping[str, str]]) -> list[int | None]:
    """Return a number for each job that runs together with others, the same for these, and None for those that run alone."""
    group, groups = 0, list[int]()
    for parameters in jobs:
        group += any(parameters.get(key, "0") != "0" for key in _WAITS)
        groups.append(group)
    sizes = Counter(groups)
    return [group if sizes[group] > 1 else None for group in groups]


def _section(line: str, where: str, defaults: dict[str, str], jobs: list[tuple[str, dict[str, str]]]) -> dict[str, str]:
    name, bracket, rest = line[1:].partition("]")
    if not bracket or not name.strip() or rest.strip():
        raise UsageError(f"got {line!r}; a section such as [random-read] is needed", where=where)
    if name.strip().startswith("global"):
        return defaults
    jobs.append((name.strip(), dict(defaults)))
    return jobs[-1][1]


def _checked(key: str, value: str, where: str) -> str:
    if key not in ALLOWED:
        near = nearest(key, sorted(ALLOWED))
        raise Refused(f"{key} is refused in a job file", where=where, hint=f"{near}; {_HINT}" if near else _HINT)
    if key == "ioengine" and value not in ENGINES:
        raise Refused(
            f"ioengine={value} is refused in a job file; allowed: {', '.join(ENGINES)}", where=where, hint=_HINT
        )
    if "'" in value:  # as in buffer_pattern='FILE'
        raise Refused(f"{key}={value}: names of files are refused in a job file", where=where, hint=_HINT)
    if len(value) > _LONGEST_VALUE:
        raise Refused(
            f"{key}: got a value of {len(value)} characters; at most {_LONGEST_VALUE} are taken",
            where=where,
            hint="shorten it: fio takes what follows in a long line for another parameter",
        )
    if "$" in value:
        raise Refused(f"{key}={value}: variables are refused in a job file", where=where, hint="write the value itself")
    return key
