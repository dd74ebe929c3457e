"""Commands that serve an emulated disk and control one that is being served."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from plinth.cli.changes import parse_changes, parse_value, validated
from plinth.cli.options import AsJson
from plinth.cli.printing import print_json, print_plain
from plinth.common.nearest import nearest
from plinth.model.choices import CutMode
from plinth.model.errors import UsageError

if TYPE_CHECKING:
    from plinth.model.disk import Physics

_EXAMPLE = """
Example for a shell (as root), with D=/tmp/disk:

  mkdir -p $D/mount
  plinth disk serve --profile hdd-10k-sas --size 4GiB \\
      --backing $D/data --mount $D/mount --control $D/control &
  losetup --show -f --direct-io=on $D/mount/disk.img
  mkfs.ext4 /dev/loopN; mount /dev/loopN /mnt
  plinth disk cut $D/control --mode drop
  umount /mnt; losetup -d /dev/loopN; umount $D/mount

Always in this order: unmount what is stored on the disk, detach the loop device, then unmount the disk.
"""

disk = App(
    name="disk",
    help="Serve an emulated disk, cut its power, change its physics and faults.",
    help_epilogue=_EXAMPLE,
    help_format="plaintext",
)

Socket = Annotated[Path, Parameter(help="The disk's control socket.")]
Changes = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        help="Change one number of the profile, as in --set flush_latency=8ms; `plinth disk profiles` names them all. "
        "May be repeated.",
    ),
]
Faults = Annotated[
    tuple[str, ...],
    Parameter(
        name="--fault",
        help="EIO, as in flush,nth=3 or read,offset=1MiB,length=4KiB,count=all. May be repeated.",
    ),
]


@disk.command
def serve(
    *,
    profile: Annotated[str, Parameter(help="The drive to emulate: see `plinth disk profiles`.")],
    size: Annotated[str, Parameter(help="Size, such as 4GiB.")],
    backing: Annotated[Path, Parameter(help="Sparse file of the data; created if missing.")],
    mount: Annotated[Path, Parameter(help="Empty directory to mount on; the disk is the file disk.img in it.")],
    control: Annotated[Path, Parameter(help="Path of the control socket.")],
    label: Annotated[str, Parameter(help="Source of the mount in the mount table.")] = "plinth-disk",
    seed: Annotated[int, Parameter(help="Seed of latencies, lies and cuts.")] = 1,
    changes: Changes = (),
    lie: Annotated[
        str | None, Parameter(help="About flushes: ignore-flush, late-flush=FLUSHES or drop-fraction=FRACTION.")
    ] = None,
    faults: Faults = (),
    recording: Annotated[
        Path | None,
        Parameter(
            help="Serve what a power cut left of a disk that was recorded in this folder; what is written goes to the "
            "backing file, which has to be new."
        ),
    ] = None,
    point: Annotated[int, Parameter(help="Records before that cut: see `plinth disk points`.")] = 0,
    cut: Annotated[CutMode, Parameter(help="What that cut left of unflushed writes.")] = "drop",
    cut_seed: Annotated[int, Parameter(help="Of its choices.")] = 0,
    tear: Annotated[
        str, Parameter(help="It tears a write at a multiple of this, where that is more than the disk's atomic unit.")
    ] = "512",
) -> int:
    """Serve a disk in the foreground, until it is unmounted or SIGTERM or Ctrl-C arrives.

    One line of JSON on stdout says that it is ready. With --lie, the disk lies from the start.
    """
    from plinth.model.disk import DiskConfig
    from plinth.storage.devices.disk_process import serve as serve_disk

    config = validated(
        DiskConfig,
        {
            "profile": profile,
            "physics": _physics(changes),
            "size_bytes": parse_value(size),
            "backing": str(backing.absolute()),
            "mount": str(mount.absolute()),
            "control": str(control.absolute()),
            "label": label,
            "seed": seed,
            "lie": lie,
            "faults": faults,
            "image": None
            if recording is None
            else {
                "recording": str(recording.absolute()),
                "point": point,
                "mode": cut,
                "seed": cut_seed,
                "tear_bytes": parse_value(tear),
            },
        },
        {"size_bytes": "--size", "label": "--label", "seed": "--seed", "lie": "--lie", "faults": "--fault"},
    )
    serve_disk(config.model_dump(mode="json"), lambda ready: print_json(json.dumps(ready), flush=True))
    return 0


@disk.command
def profiles(
    name: Annotated[str | None, Parameter(help="One profile: every number of it, and where it is from.")] = None,
    /,
    *,
    as_json: AsJson = False,
) -> int:
    """Show the built-in profiles with their resulting figures; with a name, all parameters and their sources."""
    from plinth.cli.disk_view import profile_table, profile_text
    from plinth.storage.devices.disk_daemon import disk_profiles

    found = {profile.name: profile for profile in disk_profiles()}
    if name is not None and name not in found:
        raise UsageError(f"no profile {name!r}; there are {', '.join(found)}", hint=nearest(name, list(found)))
    shown = list(found.values()) if name is None else [found[name]]
    if as_json:
        print_json("[" + ",".join(profile.model_dump_json() for profile in shown) + "]")
    elif name is None:
        profile_table(shown)
    else:
        print_plain(profile_text(found[name]))
    return 0


@disk.command
def status(socket: Socket, /, *, as_json: AsJson = False) -> int:
    """Show the state of a disk: power, current physics, bytes that a power cut would lose, counters, faults."""
    from plinth.cli.disk_view import physics_text
    from plinth.model.units import format_size

    found = _control(socket).status()
    if as_json:
        print_json(found.model_dump_json(indent=1))
        return 0
    print_plain(
        f"{found.label}: {found.profile}, {format_size(found.size_bytes)}, power {found.power}, pid {found.pid}"
    )
    print_plain(f"  mount    {found.mount}\n  backing  {found.backing}")
    dirty, room = format_size(found.cache_dirty_bytes), format_size(found.cache_capacity_bytes)
    print_plain(f"  not durable: {dirty} of at most {room}")
    if found.physics.iops_credits or found.physics.bytes_credits:
        of_requests = f"{found.credits.requests:,} of {found.physics.iops_credits or 0:,} requests"
        of_bytes = f"{format_size(found.credits.bytes)} of {format_size(found.physics.bytes_credits or 0)}"
        print_plain(f"  credits: {of_requests}, {of_bytes}")
    print_plain(f"  lie: {found.lie.words if found.lie else 'none'}")
    for fault in found.faults:
        print_plain(f"  fault: {fault.words}: seen {fault.seen}, fired {fault.fired}")
    print_plain("  counters: " + ", ".join(f"{name} {count}" for name, count in found.counters.items()))
    print_plain(physics_text(found.physics))
    return 0


@disk.command(name="set")
def set_physics(
    socket: Socket, changes: Annotated[tuple[str, ...], Parameter(help="Such as flush_latency=8ms read_iops=500.")], /
) -> int:
    """Change a disk's physics while it is served, and show the result."""
    from plinth.cli.disk_view import physics_text

    print_plain(physics_text(_control(socket).set_physics(_physics(changes))))
    return 0


@disk.command
def cut(
    socket: Socket,
    /,
    *,
    mode: Annotated[
        CutMode,
        Parameter(
            help="What is left of unflushed writes. drop: nothing; subset: each or not, by the seed; prefix: those up "
            "to one of them; torn: as prefix, and a part of the next."
        ),
    ] = "drop",
    seed: Annotated[int, Parameter(help="Of the choices.")] = 0,
) -> int:
    """Cut the power and report what was lost. Every request fails until `plinth disk power-on`."""
    print_json(_control(socket).power_cut(mode, seed).model_dump_json())
    return 0


@disk.command
def power_on(socket: Socket, /) -> int:
    """Restore the power after a cut."""
    _control(socket).power_on()
    return 0


@disk.command
def fault(
    socket: Socket,
    faults: Annotated[tuple[str, ...], Parameter(help="Such as flush,nth=3 or read,offset=1MiB,length=4KiB.")] = (),
    /,
    *,
    clear: Annotated[bool, Parameter(help="Disarm all faults first.")] = False,
    lie: Annotated[
        str | None,
        Parameter(help="About flushes from now on: none, ignore-flush, late-flush=FLUSHES or drop-fraction=FRACTION."),
    ] = None,
) -> int:
    """Arm faults or lies while a disk is served, and show the armed faults with their counts."""
    from plinth.model.disk import Fault, Lie

    control = _control(socket)
    armed = [validated(Fault, words, {"": "fault"}) for words in faults]
    reported = None if lie in (None, "none") else validated(Lie, lie, {"": "--lie"})
    if clear:
        control.clear_faults()
    for one in armed:
        control.arm(one)
    if lie is not None:
        control.set_lie(reported)
    found = control.status()
    print_plain(f"lie: {found.lie.words if found.lie else 'none'}")
    for state in found.faults:
        print_plain(f"fault: {state.words}: seen {state.seen}, fired {state.fired}")
    return 0


@disk.command
def record(
    socket: Socket,
    folder: Annotated[Path | None, Parameter(help="Where to record: an empty folder that is not on the disk.")] = None,
    /,
    *,
    stop: Annotated[bool, Parameter(help="Stop recording.")] = False,
) -> int:
    """Record every change of a disk, so that a power cut at any moment can be examined later; or stop recording.

    The recording begins with a copy of the disk's data, and then takes as much space as is written.
    """
    if stop == (folder is not None):
        raise UsageError("name the folder to record in, or --stop", hint="as in: plinth disk record SOCKET FOLDER")
    control = _control(socket)
    done = control.stop_recording() if folder is None else control.start_recording(folder.absolute())
    print_json(done.model_dump_json())
    return 0


@disk.command
def points(folder: Annotated[Path, Parameter(help="The folder of a recording.")], /, *, as_json: AsJson = False) -> int:
    """Check a recording, and show its flushes, the points where the power can be cut; --json also has their times."""
    from plinth.storage.devices.disk_recording import read_recording

    found = read_recording(folder)
    flushes = [int(point) for point in found.flush_points()]
    if as_json:
        shown = {"size_bytes": found.size_bytes, "began_ns": found.began_ns, "is_complete": found.is_complete}
        print_json(json.dumps(shown | {"flush_points": flushes, "times_ns": found.times_ns.tolist()}))
        return 0
    elapsed_s = (found.time_ns(found.last_point) - found.began_ns) / 1e9
    print_plain(f"points 0 to {found.last_point}, {elapsed_s:.3f} s, {len(flushes)} flushes")
    if not found.is_complete:
        print_plain("the recording was not stopped: changes after its last record are unknown")
    for point in flushes:
        print_plain(f"  {point:>8}  {(found.time_ns(point) - found.began_ns) / 1e9:.6f} s")
    return 0


@disk.command
def flush_now(socket: Socket, /) -> int:
    """Make everything durable, despite any lie, and show how many bytes were not durable."""
    print_plain(str(_control(socket).flush_now()))
    return 0


def _control(socket: Path):
    from plinth.storage.devices.disk_control import LocalDiskControl

    return LocalDiskControl(socket)


def _physics(changes: Sequence[str]) -> "Physics":
    from plinth.model.disk import Physics

    return validated(Physics, parse_changes(changes), {})
