"""The command kubernetes."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plinth.cli.options import Full, Overrides
from plinth.cli.printing import print_json
from plinth.model.errors import UsageError


def kubernetes(
    file: Annotated[Path, Parameter(help="Experiment file.")],
    /,
    *,
    storage_class: Annotated[
        tuple[str, ...],
        Parameter(
            name="--storage-class", help="A storage class to compare, as in --storage-class gp3. May be repeated."
        ),
    ] = (),
    image: Annotated[str, Parameter(name="--image", help="The image, as built from the Dockerfile.")] = "plinth:latest",
    size: Annotated[str, Parameter(name="--size", help="Size of the volume under test.")] = "100GiB",
    cpus: Annotated[float, Parameter(name="--cpus", help="Processors of each Pod.")] = 4,
    memory: Annotated[
        str, Parameter(name="--memory", help="Memory of each Pod; half of it may be used in /dev/shm.")
    ] = "16GiB",
    copy: Annotated[
        bool, Parameter(name="--copy", help="Print the Pods from which `kubectl cp` copies the bundles instead.")
    ] = False,
    overrides: Overrides = (),
    full: Full = False,
) -> int:
    """Print Kubernetes Jobs that run an experiment, one for each storage class.

    Every storage of kind "directory" is then on a volume of that class; their bundles are compared by `plinth compare`. Nothing is asked
    of a cluster: kubectl applies what is printed.

      plinth kubernetes mine.toml --storage-class gp3 --storage-class io2 > jobs.json
      kubectl apply -f jobs.json
      plinth kubernetes mine.toml --storage-class gp3 --storage-class io2 --copy | kubectl apply -f -
      kubectl cp plinth-mine-gp3-copy:/bundle/mine-gp3 bundles/mine-gp3

    See docs/guides/kubernetes.md.
    """
    from plinth.experiment import read_experiment
    from plinth.tasks.kubernetes import JobOptions, copying_pods, jobs

    options = JobOptions(
        storage_classes=storage_class,
        image=image,
        volume_bytes=_size(size, "--size"),
        bundle_bytes=5 << 30,
        cpus=_cpus(cpus),
        memory_bytes=_size(memory, "--memory"),
    )
    loaded = read_experiment(file, overrides, full)
    made = copying_pods(loaded, options) if copy else jobs(loaded, options)
    print_json(json.dumps(made, indent=2))
    return 0


def _size(text: str, option: str) -> int:
    from plinth.model.units import parse_size

    try:
        found = parse_size(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}", hint=f"as in {option} 100GiB") from error
    if found <= 0:
        raise UsageError(f"{option} {text}: it must be above 0", hint=f"as in {option} 100GiB")
    return found


def _cpus(cpus: float) -> float:
    if not 0 < cpus <= 4096:  # false for nan, too
        raise UsageError(f"--cpus {cpus:g}: it must be above 0, and at most 4096", hint="as in --cpus 4")
    return cpus
