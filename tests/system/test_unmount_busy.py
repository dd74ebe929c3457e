"""What another process looks at for a moment is unmounted all the same; what is in use stays, and that is said."""

import threading
from pathlib import Path

import pytest

from plinth.system.runner import CommandError, Runner
from plinth.system.unmount import run_umount


@pytest.mark.parametrize("lets_go", [True, False])
def test_a_busy_file_system_is_tried_again_for_two_seconds(scratch: Path, lets_go: bool) -> None:
    runner = Runner()
    runner.run(("mount", "-t", "tmpfs", "none", str(scratch)))
    with (scratch / "looked-at").open("w") as held:
        letting_go = threading.Timer(0.5, held.close)
        try:
            if lets_go:
                letting_go.start()
                run_umount(scratch, runner)
            else:
                with pytest.raises(CommandError, match="umount"):
                    run_umount(scratch, runner)
        finally:
            letting_go.cancel()
            held.close()
            if not lets_go:
                run_umount(scratch, runner)
