"""The command verify."""

from plinth.cli.options import Bundle
from plinth.cli.printing import print_plain


def verify(bundle: Bundle, /) -> int:
    """Check that a bundle was not changed after its run: every file exists and has the checksum in the seal.

    Links, FIFOs, sockets and devices are refused: a run leaves none.

    plinth verify bundles/ramdisk-20261122-091717
    """
    from plinth.bundle import read_manifest, verify_bundle

    read_manifest(bundle)
    print_plain(f"{verify_bundle(bundle)} files are as the run left them")
    return 0
