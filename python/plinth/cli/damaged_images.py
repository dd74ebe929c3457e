"""The commands `plinth durability open` and `minimise`, for images in which an atlas found damage."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plinth.cli.console import error_console
from plinth.cli.printing import print_plain
from plinth.model.errors import Interrupted, PlinthError, UsageError

if TYPE_CHECKING:
    from plinth.run.power_cuts.recorded_disks import ServerImage
    from plinth.tasks.kept_images import KeptImage

Bundle = Annotated[Path, Parameter(help="The bundle of a run with an atlas.")]
Image = Annotated[int, Parameter(help="The number of the cut, as the report has it.")]


def open_image(
    bundle: Bundle,
    image: Image,
    /,
    *,
    points: Annotated[
        str | None,
        Parameter(
            name="--points",
            help="Other records of the disks that come before the cut, one number a disk: 1200,430.",
        ),
    ] = None,
    start: Annotated[
        bool,
        Parameter(
            name="--start", negative="--no-start", help="Start the server; without, the file systems are only mounted."
        ),
    ] = True,
) -> int:
    """Serve an image in which damage was found, as it was before its recovery, until Ctrl-C.

    Its disks are served as copies on write of the recording in the bundle, its file systems are mounted, and PostgreSQL is started on
    them, which recovers: to be looked at with psql, pg_waldump, pageinspect. What is changed is forgotten at the end. Only bundles
    of runs that you began on this machine are opened, and only when they are as they were sealed.

      plinth durability open bundles/fpw-20261123 9
      plinth durability open bundles/fpw-20261123 9 --no-start
    """
    from plinth.tasks.kept_images import kept_image

    notes = error_console(soft_wrap=True)
    is_served = False
    try:
        with kept_image(bundle, image, notes.print) as kept:
            served = kept.at(kept.cut.points if points is None else _points(points, len(kept.cut.points)))
            _mount(served)
            if start:
                _start(served, kept)
            sys.stdout.flush()
            notes.print("Ctrl-C ends it.")
            is_served = True
            _sleep()
    except Interrupted:
        if not is_served:
            raise
    return 0


def minimise_image(bundle: Bundle, image: Image, /) -> int:
    """Find the shortest beginning of the recording whose image is damaged: the write that does it.

    Halves the changes of the disks before the cut, with its mode and seed, and checks an image at each step: about 15 images of
    a recording of 20,000 writes.

      plinth durability minimise bundles/fpw-20261123 9
    """
    from plinth.tasks.kept_images import kept_image, minimise

    notes = error_console(soft_wrap=True)
    with kept_image(bundle, image, notes.print) as kept:
        least = minimise(kept, lambda tried, all_: notes.print(f"{tried} of about {all_} images checked"))
        seconds = (kept.disks.time_ns(kept.cut.points) - least.at_ns) / 1e9
        written = ",".join(map(str, least.points))
        print_plain(f"damaged from the records {written} on, {seconds:.3f} s before the cut of image {image}")
        print_plain(f"whole after the records {','.join(map(str, least.before))}, one change before")
        for damage in least.found.damage:
            print_plain(f"  {damage.kind} ({damage.count}): {damage.evidence[0]}")
        print_plain(f"to look at it: plinth durability open {bundle} {image} --points {written}")
    return 0


def _mount(served: "ServerImage") -> None:
    served.attach()
    try:
        served.mount()
        served.relocate()
    except PlinthError as error:
        error.hint = error.hint or "the power cut damaged the file system itself"
        raise
    print_plain(f"data directory: {served.server.layout.data_directory}")


def _start(served: "ServerImage", kept: "KeptImage") -> None:
    """Start the server. A failure is reported, not raised, since the image was kept to examine it."""
    server = served.server
    try:
        server.start(kept.variant.settings)
    except PlinthError as error:
        print_plain(f"the server does not start: {error.message}")
        for line in error.details:
            print_plain(f"  {line}")
        return
    to = server.connection
    print_plain(f"psql: psql -h {to.host} -p {to.port} -U {to.user} {to.database}")
    print_plain(f"log: {server.layout.log.path}")


def _sleep() -> None:
    """Wait until the interrupt, which is raised here."""
    from plinth.system import cancel

    while True:
        cancel.sleep(3600)


def _points(text: str, disks: int) -> tuple[int, ...]:
    numbers = text.split(",")
    if len(numbers) != disks or not all(number.strip().isdecimal() for number in numbers):
        raise UsageError(
            f"--points: got {text!r}; {disks} numbers are needed, one a disk", hint="as in --points 1200,430"
        )
    return tuple(map(int, numbers))
