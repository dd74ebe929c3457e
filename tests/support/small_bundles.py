"""A small bundle of invented figures in a folder, in the states that a run may leave it in."""

import json
from dataclasses import replace

from report_bundles import ramdisk
from written_bundles import write_bundle

CONTENTS = ramdisk(repeats=2, seconds=3)


def written(path, *, trials=True, created_unix_ns=None, finished=True):
    """A bundle of `CONTENTS`; one that is not finished is as a run leaves it that was killed."""
    write_bundle(path, CONTENTS if trials else replace(CONTENTS, trials=()))
    if not finished:
        change(path / "manifest.json", status="running", ended_unix_ns=None)
        (path / "SHA256SUMS").unlink()
    if created_unix_ns is not None:
        change(path / "manifest.json", created_unix_ns=created_unix_ns)
    return path


def change(file, **fields):
    """Rewrite a JSON document with other values of `fields`."""
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))
