"""--full by the command: what it needs is said first, and refused where it is not there."""

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


def test_a_run_is_refused_before_anything_is_made(project, nothing_left) -> None:
    project.write(project.experiment + NEED_MORE)
    done = project.run("--full")
    assert done.returncode == 5, done.stdout
    assert "TiB of data" in done.stderr.splitlines()[0]
    assert "this machine lacks what the plan needs" in done.stderr
    assert not project.bundle.exists()
    nothing_left()
