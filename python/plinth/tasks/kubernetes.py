"""`plinth kubernetes`: the objects of Kubernetes that run an experiment on the volumes of one storage class after another.

A Job and two claims for each storage class: the volume under test, which takes all data directories, and one for the bundle, whose writes
would otherwise be measured too. Of the Jobs' Pods one at a time runs on a node, so that they do not share its disks and processors. API
objects as in the Kubernetes API reference: core/v1 and batch/v1.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from plinth.experiment import ParsedExperiment
from plinth.model.errors import UsageError
from plinth.model.experiment import Experiment
from plinth.model.units import format_size

_VOLUME, _BUNDLE, _EXPERIMENT = "/volume", "/bundle", "/experiment"
_USER = 1000
"""Of the image, by the Dockerfile: PostgreSQL refuses root."""
_KINDS = ("directory", "tmpfs")
"""The kinds of storage that need no privilege."""
_MOST_BYTES = 1_000_000
"""Of the files in a ConfigMap, which may have 1 MiB with all else in it."""
_LONGEST_NAME = 52
"""A Job's name may have 63 characters, as it becomes a label; a Pod of it has another eleven."""
_STORAGE_CLASS = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LABEL = "app.kubernetes.io/name"

Object = dict[str, Any]


@dataclass(frozen=True)
class JobOptions:
    """What the Jobs ask of the cluster; memory and processors are both requested and the limit."""

    storage_classes: tuple[str, ...]
    image: str
    volume_bytes: int
    bundle_bytes: int
    cpus: float
    memory_bytes: int


def jobs(loaded: ParsedExperiment, options: JobOptions) -> Object:
    """Return a List of the ConfigMap of the experiment and, for each storage class, its claims and its Job.

    Raises UsageError with all that an experiment cannot have in a Pod, and for options.
    """
    _check(loaded)
    runs = _runs(loaded, options)
    files = _files(loaded)
    name = f"plinth-{_word(loaded.experiment.name)}"
    config_map = _object("v1", "ConfigMap", name, data={_key(place): text for place, text in enumerate(files.values())})
    mount = {
        "name": "experiment",
        "configMap": {
            "name": name,
            "items": [{"key": _key(place), "path": path} for place, path in enumerate(files)],
        },
    }
    items = [config_map]
    for run in runs:
        items.append(_claim(run.name, run.storage_class, options.volume_bytes))
        items.append(_claim(f"{run.name}-bundle", None, options.bundle_bytes))
        items.append(_job(run, loaded, options, mount))
    return _list(items)


def copying_pods(loaded: ParsedExperiment, options: JobOptions) -> Object:
    """Return a List of a Pod for each storage class, from which `kubectl cp` copies the bundle."""
    pods: list[Object] = []
    for run in _runs(loaded, options):
        container = {
            "name": "copy",
            "image": options.image,
            "command": ["sleep", "infinity"],
            "securityContext": _unprivileged(),
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}},
            "volumeMounts": [{"name": "bundle", "mountPath": _BUNDLE, "readOnly": True}],
        }
        spec = {**_pod_base(), "containers": [container], "volumes": [_claimed("bundle", f"{run.name}-bundle")]}
        pods.append(_object("v1", "Pod", f"{run.name}-copy", spec=spec))
    return _list(pods)


@dataclass(frozen=True)
class _Run:
    """The run on one storage class: the name of its objects, and that of its bundle."""

    storage_class: str
    name: str
    bundle: str


def _runs(loaded: ParsedExperiment, options: JobOptions) -> list[_Run]:
    if not options.storage_classes:
        raise UsageError("no storage class is given", hint="`kubectl get storageclass` lists them: --storage-class gp3")
    if not options.image or any(not c.isprintable() or c.isspace() for c in options.image):
        raise UsageError(f"--image {options.image!r} is no name of an image", hint="as in --image registry/plinth:1.0")
    found: dict[str, _Run] = {}
    for storage_class in options.storage_classes:
        if not _STORAGE_CLASS.fullmatch(storage_class):
            raise UsageError(
                f"--storage-class {storage_class!r} is no name of one: lower-case letters, digits, - and . are allowed",
                hint="`kubectl get storageclass` lists them",
            )
        bundle = f"{loaded.experiment.name}-{storage_class.replace('.', '-')}"
        name = f"plinth-{_word(bundle)}"
        if len(name) > _LONGEST_NAME:
            raise UsageError(
                f"the Job's name {name} has {len(name)} characters; at most {_LONGEST_NAME} are allowed",
                hint="give the experiment a shorter name: --set name=short",
            )
        if name in found:
            raise UsageError(
                f"--storage-class {storage_class} and {found[name].storage_class} have the same Job: {name}"
            )
        found[name] = _Run(storage_class, name, bundle)
    return list(found.values())


def _check(loaded: ParsedExperiment) -> None:
    """Raise UsageError with all that a Pod without privileges, or without the files of this machine, cannot have."""
    problems = list(_obstacles(loaded.experiment))
    if loaded.connections:
        problems.append("a connection string may hold a password, and the experiment is stored in a ConfigMap")
    if problems:
        raise UsageError(
            f"the experiment cannot run in a Pod without privileges: {'; '.join(problems)}",
            where=loaded.file,
            hint='a [storage.NAME] of kind = "directory" without a path is on the volume, one of kind = "tmpfs" in memory',
        )


def _obstacles(experiment: Experiment) -> Iterator[str]:
    for name, storage in experiment.storage.items():
        if storage.kind not in _KINDS:
            yield f"storage {name} is of kind {storage.kind}; allowed: {', '.join(_KINDS)}"
        elif storage.kind == "directory" and storage.path is not None:
            yield f"storage {name} has a path, {storage.path}, of this machine"
    if experiment.host:
        yield "[host] names other machines"
    if experiment.fleet is not None:
        yield "[fleet] names other machines"
    if experiment.network is not None:
        yield "[network] needs network namespaces"
    if experiment.server.bindir is not None:
        yield f"server.bindir is a directory of this machine, {experiment.server.bindir}"
    if experiment.workload.replay:
        yield "workload.replay is a file of this machine"
    if experiment.dataset.kind in ("dump", "backup"):
        yield f"the dataset is of kind {experiment.dataset.kind}, and stored on this machine"
    if experiment.measure.cache == "cold":
        yield 'measure.cache = "cold" needs the page cache of the node'


def _files(loaded: ParsedExperiment) -> dict[str, str]:
    """Return the experiment and the files that it names, by their path in the mounted ConfigMap."""
    files = {"experiment.toml": loaded.kept_text}
    for path, text in loaded.files.items():
        parts = PurePosixPath(path)
        if parts.is_absolute() or ".." in parts.parts or str(parts) in files:
            raise UsageError(
                f"the file {path} must be in the folder of the experiment or below it, under another name than experiment.toml",
                where=loaded.file,
            )
        files[str(parts)] = text
    size_bytes = sum(len(text.encode()) for text in files.values())
    if size_bytes > _MOST_BYTES:
        raise UsageError(
            f"the experiment and its files have {format_size(size_bytes)}; a ConfigMap takes {format_size(_MOST_BYTES)}",
            where=loaded.file,
            hint="build an image that has them, and run them from there",
        )
    return files


def _job(run: _Run, loaded: ParsedExperiment, options: JobOptions, experiment: Object) -> Object:
    words = ["run", f"{_EXPERIMENT}/experiment.toml", "--bundle", f"{_BUNDLE}/{run.bundle}"]
    if loaded.full:
        words.append("--full")
    for override in loaded.overrides:
        words += ["--set", override]
    resources = {"cpu": f"{options.cpus:g}", "memory": str(options.memory_bytes)}
    container = {
        "name": "plinth",
        "image": options.image,
        "args": words,
        # Work directories, and so all storages of kind directory, are on the volume under test.
        "env": [{"name": "PLINTH_STATE_DIR", "value": f"{_VOLUME}/plinth"}],
        "workingDir": _BUNDLE,
        "resources": {"requests": resources, "limits": resources},
        "securityContext": _unprivileged(),
        "volumeMounts": [
            {"name": "experiment", "mountPath": _EXPERIMENT, "readOnly": True},
            {"name": "volume", "mountPath": _VOLUME},
            {"name": "bundle", "mountPath": _BUNDLE},
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    volumes = [
        experiment,
        _claimed("volume", run.name),
        _claimed("bundle", f"{run.name}-bundle"),
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(options.memory_bytes // 2)}},
    ]
    alone = {"labelSelector": {"matchLabels": {_LABEL: "plinth"}}, "topologyKey": "kubernetes.io/hostname"}
    spec = {
        **_pod_base(),
        "terminationGracePeriodSeconds": 120,  # to end the server and to undo the storages
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}},
        "containers": [container],
        "volumes": volumes,
    }
    template = {"metadata": {"labels": {_LABEL: "plinth"}}, "spec": spec}
    # A failed run is not tried again: its bundle says why, and `plinth resume` would go on.
    return _object("batch/v1", "Job", run.name, spec={"backoffLimit": 0, "template": template})


def _claim(name: str, storage_class: str | None, size_bytes: int) -> Object:
    chosen = {} if storage_class is None else {"storageClassName": storage_class}
    resources = {"requests": {"storage": str(size_bytes)}}
    spec = {"accessModes": ["ReadWriteOnce"], **chosen, "resources": resources}
    return _object("v1", "PersistentVolumeClaim", name, spec=spec)


def _pod_base() -> Object:
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def _unprivileged() -> Object:
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _claimed(name: str, claim: str) -> Object:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}


def _object(version: str, kind: str, name: str, **content: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": {_LABEL: "plinth"}}, **content}


def _list(items: list[Object]) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _word(name: str) -> str:
    """Return a name as Kubernetes allows it (RFC 1123)."""
    return name.lower().replace("_", "-").strip("-")


def _key(place: int) -> str:
    return f"file-{place}"
