"""Reads text files that a user names, and those that an experiment names: scripts of clients, the SQL of a dataset, published results.

Only regular files of limited size are accepted.
An experiment may be another's. Of a bundle only what is in its folder files/ is read; otherwise root reads for it, outside of the
experiment's own folder, only what the user who called sudo or every user may read: the text goes into the bundle.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from plinth.experiment.toml_document import list_of, table_at
from plinth.model.dataset import SqlDataset
from plinth.model.errors import Problem
from plinth.model.files import weighted
from plinth.model.plan import kept_path
from plinth.system.regular_file import MOST_TEXT_BYTES, open_regular_file, read_up_to

MOST_BYTES = MOST_TEXT_BYTES
"""Maximum size of an experiment, a script or a dataset's SQL, which the bundle contains."""


class UnreadableFile(Exception):
    """A file cannot be read; the message is the reason."""


MayRead = Callable[[Path, os.stat_result], None]
"""Raises UnreadableFile where a file that was opened may not be read. The path is its real one, after all links."""


def read_text(path: Path, *, follow_link: bool = True, may_read: MayRead | None = None) -> str:
    """Return the text of a regular file, without a byte order mark.

    Raises UnreadableFile, also for devices and pipes, which might never end, and without `follow_link` for a symbolic link.
    `may_read` decides once the file is open, so that it cannot be exchanged in between.
    """
    try:
        content = _content(path, follow_link, may_read)
    except OSError as error:
        if not follow_link and path.is_symlink():
            raise UnreadableFile("it is a symbolic link, and a bundle holds none") from error
        raise UnreadableFile(error.strerror or str(error)) from error
    except ValueError:
        raise UnreadableFile("the path has a NUL in it") from None
    if len(content) > MOST_BYTES:
        raise UnreadableFile(f"it is larger than {MOST_BYTES // 2**20} MiB")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise UnreadableFile(str(error)) from error


def _content(path: Path, follow_link: bool, may_read: MayRead | None) -> bytes:
    """Return the content, at most one byte more than is allowed."""
    with open_regular_file(path, follow_links=follow_link) as file:
        if may_read is not None:
            may_read(Path(f"/proc/self/fd/{file.fileno()}").readlink(), os.fstat(file.fileno()))
        return read_up_to(file, MOST_BYTES + 1)


_KEYS = ("workload.script", *(f"dataset.{key}" for key in SqlDataset.file_keys))


def read_files(document: dict[str, Any], folder: Path, problems: list[Problem]) -> dict[str, str]:
    """Return the text of each file that a raw document with a flat matrix names, by its path as written.

    Paths are relative to `folder`; those that the experiment of a bundle names are in the bundle. Files that cannot be read are added
    to `problems`.
    """
    files: dict[str, str] = {}
    for name, path in _named(document):
        try:
            files[name] = read_named(folder, name, path)
        except Problem as problem:
            problems.append(problem)
    return files


def read_named(folder: Path, name: str, key: Sequence[str], what: str = "file") -> str:
    """Return the text of a file that the experiment in `folder` names at `key`. Raises Problem."""
    is_shared = is_bundle(folder)
    place = folder / (kept_path(name) if is_shared else name)
    hint = "the path is relative to the experiment file"
    try:
        return read_text(place, may_read=_reading_rule(folder))
    except UnreadableFile as error:
        reason = f"cannot read the {what} {name!r}: {error}"
        if isinstance(error, _Private):
            hint = f"look at it, and copy it to the experiment file, in {folder}"
        elif is_shared and (isinstance(error, _OutsideBundle) or not os.path.lexists(place)):
            reason = f"the bundle does not hold the {what} {name!r}"
            hint = "the experiment of a bundle reads nothing but what is in its folder files/"
    raise Problem(reason, path=[*key], hint=hint)


def resolve_paths(document: dict[str, Any], folder: Path) -> None:
    """Make the paths of a dump or a backup absolute, without links, in a raw document with a flat matrix; they are relative to `folder`.

    Links are followed here and never again: what a link leads to later is not what was planned.
    """
    dataset, matrix = table_at(document, "dataset"), table_at(document, "matrix")
    if dataset.get("kind") not in ("dump", "backup"):
        return
    for key in ("path", "globals"):
        if isinstance(dataset.get(key), str):
            dataset[key] = _without_links(folder, dataset[key])
        if (factor := f"dataset.{key}") in matrix:
            levels = list_of(matrix[factor])
            matrix[factor] = [_without_links(folder, level) if isinstance(level, str) else level for level in levels]


def _without_links(folder: Path, path: str) -> str:
    try:
        return os.path.realpath(folder / path)
    except ValueError:  # a NUL
        return path


def recorded_files(folder: Path, patterns: Sequence[str], key: Sequence[str]) -> tuple[Path, ...]:
    """Return the regular files, by their real paths, that an experiment in `folder` names at `key` by paths or patterns.

    Raises Problem where there is none, and for one that may not be read by the rule for all files of an experiment: texts of statements
    go into the bundle.
    """
    if is_bundle(folder):
        reason = "a bundle does not hold the recording that was replayed"
        raise Problem(
            reason, path=[*key], hint="give it: --set workload.replay=FILE with the experiment in another folder"
        )
    may_read = _reading_rule(folder)
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = folder / pattern
        try:
            matching = [path] if path.exists() else sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        except ValueError as error:  # such as ** within a word
            raise Problem(f"{pattern!r} is no path and no pattern: {error}", path=[*key]) from error
        if not matching:
            hint = "a path or a pattern, relative to the experiment file"
            raise Problem(f"there is no file {pattern!r}", path=[*key], hint=hint)
        for file in matching:
            real = Path(os.path.realpath(file))  # of a loop of links, too
            try:
                status = real.stat()
                if not stat.S_ISREG(status.st_mode):
                    raise UnreadableFile("it is not a regular file")
                may_read(real, status)
            except OSError as error:
                raise Problem(f"cannot read {str(file)!r}: {error.strerror}", path=[*key]) from error
            except UnreadableFile as error:
                hint = f"copy it to the experiment file, in {folder}" if isinstance(error, _Private) else None
                raise Problem(f"cannot read {str(file)!r}: {error}", path=[*key], hint=hint) from error
            found[real] = None
    return tuple(found)


def _reading_rule(folder: Path) -> MayRead:
    """Return what decides whether a file that an experiment in `folder` names may be read."""
    is_shared = is_bundle(folder)
    within = folder.resolve() / "files" if is_shared else folder.resolve()

    def may_read(real: Path, status: os.stat_result) -> None:
        if real.is_relative_to(within):
            return
        if is_shared:
            raise _OutsideBundle
        if os.geteuid() == 0 and not (_is_callers(status) or _is_public(real, status)):
            raise _Private

    return may_read


def is_bundle(folder: Path) -> bool:
    """Return whether `folder` is a bundle, also if its manifest.json is a symbolic link."""
    return os.path.lexists(folder / "manifest.json")


class _OutsideBundle(UnreadableFile):
    """The experiment of a bundle names a file outside of it."""


class _Private(UnreadableFile):
    """The experiment names a file that not every user may read, and root would."""

    def __init__(self) -> None:
        super().__init__("not every user may read it, and what root reads for an experiment is kept in the bundle")


def _is_callers(status: os.stat_result) -> bool:
    """Return whether it belongs to the user who called sudo."""
    return os.environ.get("SUDO_UID") == str(status.st_uid)


def _is_public(real: Path, status: os.stat_result) -> bool:
    """Return whether every user may read it, and enter every folder that it is in."""
    return bool(status.st_mode & stat.S_IROTH) and all(folder.stat().st_mode & stat.S_IXOTH for folder in real.parents)


def _named(document: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield each key with the files that it or its levels name."""
    for key in _KEYS:
        table, name = key.split(".")
        if table == "dataset" and table_at(document, table).get("kind") != "sql":
            continue
        path_of = (lambda script: weighted(script)[0]) if table == "workload" else str
        yield from ((path_of(file), [table, name]) for file in _texts(table_at(document, table).get(name)))
        for level in list_of(table_at(document, "matrix").get(key)):
            yield from ((path_of(file), ["matrix", key]) for file in _texts(level))


def _texts(value: Any) -> list[str]:
    """Return one name or a list of names as a list; other values are reported by the validation of the experiment."""
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, str)]
