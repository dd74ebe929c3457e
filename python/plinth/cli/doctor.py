"""The command doctor: finds conditions that distort measurements."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plinth.cli.console import output_console
from plinth.cli.options import AsJson, seconds_of
from plinth.cli.printing import print_json

if TYPE_CHECKING:
    from plinth.model.doctor import Noise

_NOISE_S = 12.0


def doctor(
    path: Annotated[
        Path | None,
        Parameter(help="Directory where a data directory would be stored. Default: where Plinth makes its storages."),
    ] = None,
    /,
    *,
    noise: Annotated[
        tuple[float, ...] | None,
        Parameter(
            name="--noise",
            consume_multiple=(0, 1),
            help=f"Measure this machine's noise, too: [SECONDS], default {_NOISE_S:g}. Writes 32 MiB in PATH.",
        ),
    ] = None,
    verbose: Annotated[
        bool,
        Parameter(name="--verbose", help="Also show checks without findings, and the source of each figure."),
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Find conditions that distort measurements on this machine and in PATH, with their remedies.

    Looks at processors, memory, neighbours, hypervisor and cloud, at the file system of PATH and at the devices below it.
    Each finding is a problem (figures will not mean what they are taken for), a warning (they will be noisy, or other than
    they seem), a note (know it when you read them) or ok, with the commands that correct it and those that set it back. What
    cannot be read is n/a, with the reason. Nothing is changed. `plinth run` does the same before it measures, and keeps
    it in the bundle.

    With --noise the same fixed work is measured in blocks of two sides that are the same, as an A/A test: what they differ by
    is the machine's doing, and smaller differences between variants cannot be shown.

    Exit code 0, with or without findings; 2 when there is no such directory.

      plinth doctor /var/lib/postgresql
      plinth doctor /mnt/nvme --noise 30
    """
    from plinth.cli.doctor_view import show_examination, show_noise
    from plinth.model.doctor import DoctorRecord
    from plinth.tasks.doctor import default_place, examine_path, measure_noise

    noise_s = None if noise is None else seconds_of("--noise", noise[0]) if noise else _NOISE_S
    place = default_place() if path is None else path
    examination = examine_path(place)

    def measured() -> "Noise | None":
        return None if noise_s is None else measure_noise(place, noise_s)

    if as_json:
        print_json(DoctorRecord(examinations=(examination,), noise=measured()).model_dump_json(indent=1))
        return 0
    console = output_console()
    show_examination(examination, console, verbose)  # before the noise measurement, which takes long and may fail
    if (found := measured()) is not None:
        show_noise(found, console)
    return 0
