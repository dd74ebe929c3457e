"""--full by the command: what it needs is said first, and refused where it is not there."""

import re

NEED_MORE = '\n[full]\ndataset.scale = 1_000_000\nmeasure.duration = "6min"\n'


def test_a_plan_says_hours_and_space_first_and_ends_as_the_run_would(project) -> None:
    project.write(project.experiment + NEED_MORE)
    done = project.plinth("plan", "x.toml", "--full")
    assert done.returncode == 5, done.stderr
    assert "this machine lacks what the plan needs" in done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("At the published size (--full): about ")
    assert " h " in first and "TiB of data" in first and "TiB written" in first
    assert "NOT ENOUGH" in done.stdout


def test_with_the_sizes_that_a_hint_gives_it_fits(project) -> None:
    small = {f"storage.{name}.size": "300MiB" for name in ("file", "memory")}
    project.write(
        'spec = 1\nname = "small"\nquestion = "Does it fit?"\ndataset = { kind = "tpcb", scale = 20 }\n'
        'workload = { builtin = "tpcb-like" }\nmatrix = { storage = ["file", "memory"] }\n'
        'storage.file = { kind = "loop", size = "1GiB" }\nstorage.memory = { kind = "tmpfs", size = "1GiB" }\n'
    )
    refused = project.plinth(
        "plan", "x.toml", *(word for key, size in small.items() for word in ("--set", f"{key}={size}"))
    )
    assert refused.returncode == 5, refused.stderr
    hints = re.findall(r"--set (storage\.\w+\.size=\d+GiB)", refused.stderr)
    assert [hint.partition("=")[0] for hint in hints] == list(small)
    done = project.plinth("plan", "x.toml", *(word for hint in hints for word in ("--set", hint)))
    assert done.returncode == 0, done.stderr


def test_a_run_is_refused_before_anything_is_made(project, nothing_left) -> None:
    project.write(project.experiment + NEED_MORE)
    done = project.run("--full")
    assert done.returncode == 5, done.stdout
    assert "TiB of data" in done.stderr.splitlines()[0]
    assert "this machine lacks what the plan needs" in done.stderr
    assert not project.bundle.exists()
    nothing_left()
