"""Ways to spoil a bundle, each a function of its folder."""

import os
import shutil

from small_bundles import change


def truncated(bundle):
    text = (bundle / "manifest.json").read_bytes()
    (bundle / "manifest.json").write_bytes(text[: len(text) // 2])


def newer(bundle):
    change(bundle / "manifest.json", schema_version=99)


def foreign(bundle):
    shutil.rmtree(bundle)
    bundle.mkdir()
    (bundle / "manifest.json").write_text('{"name": "an extension of a browser", "manifest_version": 3}')


def half_written(bundle):
    (bundle / "manifest.json").unlink()


def a_fifo(bundle):
    (bundle / "plan.json").unlink()
    os.mkfifo(bundle / "plan.json")


def a_link(bundle):
    (bundle / "manifest.json").rename(bundle.with_name("aside.json"))
    (bundle / "manifest.json").symlink_to(bundle.with_name("aside.json"))


SPOILT = {
    truncated: "manifest.json: cannot read",
    newer: "version 99",
    foreign: "not of a bundle",
    half_written: "half-written",
    a_fifo: "a FIFO",
    a_link: "a symbolic link",
}
"""With what each is refused."""
