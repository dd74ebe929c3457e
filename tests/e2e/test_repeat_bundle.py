"""`plinth run BUNDLE`: the experiment of a bundle, which may be from another user, is shown and must be confirmed."""

import os
import pty
import subprocess
import sys

import pytest

from shell_experiment import SHELL


@pytest.fixture
def bundle(project):
    """From another user: an experiment whose script leaves a trace if it runs, with bytes that steer the reader's terminal."""
    folder = project.folder / "shared"
    (folder / "files").mkdir(parents=True)
    (folder / "manifest.json").write_text(
        '{"schema_version": 1, "plinth_version": "0.1.0", "run_id": "r", "experiment": "shell", "created_unix_ns": 1, "status": "complete",'
        ' "overrides": ["measure.duration=\\"300ms\\""]}'
    )
    (folder / "experiment.toml").write_text(SHELL + "# \u202e hidden\n")
    (folder / "files" / "who.sql").write_text(f"-- \x1b]0;owned\x07\n\\shell id > {project.folder}/ran\nSELECT 1;\n")
    project.folder.chmod(0o777)
    return folder


@pytest.mark.parametrize("named", ["shared", "shared/experiment.toml"])
def test_without_a_word_it_is_shown_and_not_run(project, bundle, named, nothing_left):
    done = project.plinth("run", named, "--bundle", project.bundle)
    assert done.returncode == 4, done.stderr
    assert "--yes" in done.stderr
    assert f"\\shell id > {project.folder}/ran" in done.stderr
    assert 'set on the command line: "measure.duration=\\"300ms\\""' in done.stderr
    assert "\x1b" not in done.stderr and "\\x1b]0;owned\\x07" in done.stderr
    assert "\u202e" not in done.stderr and "\\u202e" in done.stderr
    assert not project.bundle.exists() and not (project.folder / "ran").exists()
    nothing_left()


def test_with_the_word_it_runs(project, bundle, nothing_left):
    done = project.plinth("run", bundle, "--bundle", project.bundle, "--yes")
    assert done.returncode in (0, 3), done.stderr
    assert (project.folder / "ran").stat().st_uid != 0
    assert [trial["status"] for trial in project.trials()] == ["complete"]
    nothing_left()


@pytest.mark.parametrize("answer", ["n\n", "\n", "yess\n"])
def test_who_does_not_say_yes_on_the_terminal_runs_nothing(project, bundle, answer, nothing_left):
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "r+b", buffering=0) as terminal:
        terminal.write(answer.encode())
        done = subprocess.run(
            [sys.executable, "-m", "plinth", "run", str(bundle), "--bundle", str(project.bundle)],
            cwd=project.folder,
            env=project.environment(),
            stdin=theirs,
            capture_output=True,
            timeout=60,
        )
        os.close(theirs)
    assert done.returncode == 130, done.stderr
    assert b"not confirmed" in done.stderr
    assert not project.bundle.exists()
    nothing_left()


def test_it_reads_no_file_outside_of_it(project, bundle):
    (project.folder / "secret.sql").write_text("SELECT 'secret';\n")
    for name in ("../secret.sql", str(project.folder / "secret.sql")):
        (bundle / "experiment.toml").write_text(SHELL.replace("who.sql", name))
        done = project.plinth("run", bundle, "--yes")
        assert done.returncode == 2, done.stderr
        assert "does not hold the file" in done.stderr
    (bundle / "files" / "who.sql").unlink()
    (bundle / "files" / "who.sql").symlink_to(project.folder / "secret.sql")
    (bundle / "experiment.toml").write_text(SHELL)
    done = project.plinth("run", bundle, "--yes")
    assert done.returncode == 2 and "does not hold the file" in done.stderr


def test_it_reads_no_published_results_outside_of_it(project, bundle):
    (project.folder / "secret.toml").write_text("secret = [\n")
    (bundle / "files" / "link.toml").symlink_to(project.folder / "secret.toml")
    for name in ("../secret.toml", str(project.folder / "secret.toml"), "link.toml"):
        (bundle / "experiment.toml").write_text(f'reference = "{name}"\n{SHELL}')
        done = project.plinth("run", bundle, "--yes")
        assert done.returncode == 2, done.stderr
        assert "reference: the bundle does not hold the reference" in done.stderr and "TOML" not in done.stderr


FLEET = '[fleet]\nexecutor = "ssh"\nhosts = ["nosuch.invalid"]\ncommand = "/tmp/x"\n'


@pytest.mark.parametrize("words", [("run",), ("fleet", "check")])
def test_what_it_starts_and_where_is_said_before_it_must_be_confirmed(project, bundle, words):
    server = '[server]\nbindir = "/opt/another/bin"\nlisten = "tcp"\nlisten_address = "192.0.2.1"\n'
    (bundle / "experiment.toml").write_text(SHELL + server + FLEET)
    done = project.plinth(*words, bundle / "experiment.toml")
    assert done.returncode == 4, done.stderr
    assert (
        'It logs in to the host "nosuch.invalid" by ssh, with your keys, and runs the command "/tmp/x" there'
        in done.stderr
    )
    assert 'It runs programs of the directory "/opt/another/bin", as the server\'s user.' in done.stderr
    assert "no agent" not in done.stderr and "/opt/another/bin: " not in done.stderr


@pytest.mark.parametrize("words", [("run",), ("fleet", "check")])
def test_a_configuration_of_ssh_in_it_starts_nothing(project, bundle, words):
    ran = project.folder / "ran"
    (bundle / "files" / "config").write_text(f'Match exec "touch {ran}"\n  ProxyCommand touch {ran}\n')
    (bundle / "experiment.toml").write_text(f'{SHELL}{FLEET}ssh_config = "{bundle}/files/config"\n')
    done = project.plinth(*words, bundle / "experiment.toml", "--yes")
    assert done.returncode == 2 and "fleet.ssh_config" in done.stderr, done.stderr
    assert not ran.exists()


def test_a_storage_of_it_is_made_when_confirmed_only(project, bundle, nothing_left):
    done = project.plinth("storage", "prepare", bundle / "experiment.toml", "disk")
    assert done.returncode == 4 and "--yes" in done.stderr, done.stderr
    nothing_left()


def test_a_dangling_link_for_its_manifest_does_not_make_it_ones_own(project, bundle):
    (bundle / "manifest.json").unlink()
    (bundle / "manifest.json").symlink_to(project.folder / "nowhere")
    (project.folder / "secret.sql").write_text("SELECT 'secret';\n")
    (bundle / "experiment.toml").write_text(SHELL.replace("who.sql", "../secret.sql"))
    done = project.plinth("run", bundle / "experiment.toml", "--bundle", project.bundle)
    assert done.returncode == 1 and "a symbolic link, not a file" in done.stderr
    planned = project.plinth("plan", bundle / "experiment.toml")
    assert planned.returncode == 2 and "does not hold the file" in planned.stderr
    assert not project.bundle.exists()


def test_a_link_for_its_experiment_is_not_followed(project, bundle):
    (bundle / "experiment.toml").rename(project.folder / "private.toml")
    (bundle / "experiment.toml").symlink_to(project.folder / "private.toml")
    for words in (("run", bundle, "--yes"), ("plan", bundle / "experiment.toml")):
        done = project.plinth(*words)
        assert done.returncode == 2, done.stderr
        assert "it is a symbolic link" in done.stderr and "Which" not in done.stderr
