"""The answers of bundles, kept in Plinth's cache: each takes an analysis to work out."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from plinth import __version__
from plinth.bundle import BundleFolder
from plinth.model.analysis import Analysis
from plinth.model.base import Frozen
from plinth.model.errors import PlinthError
from plinth.model.figures import bounds, number, times
from plinth.model.history import BundleAnswer, ListedHeadline
from plinth.system.paths import cache_dir, ensure
from plinth.system.regular_file import read_small_file
from plinth.tasks.analysis import analyse_bundle


class _CachedAnswer(Frozen):
    """`state` is what the bundle was when it was analysed; in any other, and for another Plinth, the answer is void."""

    state: str
    answer: BundleAnswer


def answer_of(folder: BundleFolder) -> BundleAnswer:
    """Return the answer of a bundle's analysis; from the cache when none of its files has changed since."""
    real_path = os.path.realpath(folder.path)
    file = cache_dir() / "answers" / f"{hashlib.sha256(os.fsencode(real_path)).hexdigest()}.json"
    state = bundle_state(folder)
    kept = _read(file)
    if kept is not None and kept.state == state:
        return kept.answer
    analysis = analyse_bundle(folder)[1]
    text = f"Changed after its run: {analysis.answer}" if analysis.altered else analysis.answer
    answer = BundleAnswer(text=text, headline=_headline(analysis))
    _write(file, _CachedAnswer(state=state, answer=answer))
    return answer


def _headline(analysis: Analysis) -> ListedHeadline | None:
    """Return the largest figure of the report; where nothing is compared, the throughput; None if nothing was measured."""
    headline = analysis.headline
    if headline is None:
        return _throughput(analysis)
    if headline.missing is not None:
        return ListedHeadline(figure="undecided", value=None, note=headline.missing)
    if headline.ratio is None:
        if headline.figure is None:
            return None
        return ListedHeadline(figure=headline.figure, value=None, note=headline.note)
    return ListedHeadline(figure=times(headline.ratio), value=headline.ratio.value, note=headline.note)


def _throughput(analysis: Analysis) -> ListedHeadline | None:
    measured = next(((one, one.tps) for one in analysis.variants if one.tps is not None), None)
    if measured is None:
        return None
    variant, tps = measured
    return ListedHeadline(
        figure=f"{number(tps.value)} tps{bounds(tps, number)}", value=tps.value, note=f"throughput of {variant.label}"
    )


def bundle_state(folder: BundleFolder) -> str:
    """Return a digest of all files that an analysis reads: their identity, length and time of change (inode(7))."""
    digest = hashlib.sha256(__version__.encode())
    for entry in folder.walk():
        if not entry.is_file or entry.name.startswith(("derived/", "logs/")):
            continue
        with suppress(FileNotFoundError):  # its run is writing
            found = os.stat(entry.name, dir_fd=folder.descriptor, follow_symlinks=False)
            facts = (entry.name, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            digest.update(repr(facts).encode())
    return digest.hexdigest()


def _read(file: Path) -> _CachedAnswer | None:
    try:
        return _CachedAnswer.model_validate_json(read_small_file(file))
    except (OSError, ValidationError):  # there is none yet, or it is not one of this version
        return None


def _write(file: Path, answer: _CachedAnswer) -> None:
    """Write the answer to the cache. Without a writable state directory the next listing takes as long as this one."""
    partial = file.with_suffix(f".{os.getpid()}")
    with suppress(OSError, PlinthError):
        ensure(file.parent)
        partial.write_text(answer.model_dump_json())
        partial.replace(file)
