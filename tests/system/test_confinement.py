"""What confined processes can do: the attacks that a backup, a dump, a log or a program of a colleague could try."""

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth.model.errors import MissingCapability, PlinthError, Refused
from plinth.system.confinement import WAYS, NotReadable, View, is_confined, own_code, program_folders
from plinth.system.directory import filled_by, make_directory_to_fill, take_filled
from plinth.system.owner import server_owner
from plinth.system.runner import CommandError, Completed, Runner
from public_folder import PUBLIC

ALLOWED = range(-64, 256)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter; `brought`, `target` and `secret` are in it, and `canary` shows that another process was root."""
    assert is_confined(server_owner()), "these tests need root with CAP_SYS_ADMIN"
    folder = Path(tempfile.mkdtemp(prefix="plinth-confined-", dir=PUBLIC)).resolve()
    folder.chmod(0o755)
    (folder / "brought").mkdir(mode=0o755)
    (folder / "brought" / "file").write_text("brought")
    (folder / "neighbour").write_text("of another user")
    (folder / "root-only").mkdir(mode=0o700)
    (folder / "root-only" / "secret").write_text("secret")
    make_directory_to_fill(folder / "target", server_owner())
    yield folder
    shutil.rmtree(folder)


def confined(place: Path, script: str, way: str = "unpack a backup", **view: object) -> Completed:
    """Run a shell script that sees `brought` and may write to `target`."""
    seen = View(**{"originals": (place / "brought",), "targets": (place / "target",), **view})  # type: ignore[arg-type]
    return Runner().run_confined(way, ["sh", "-c", script], seen, server_owner(), allowed_exit_codes=ALLOWED)


def test_it_runs_as_the_servers_user_and_sees_what_was_named(place: Path) -> None:
    done = confined(place, f"id -u; cat {place}/brought/file; echo; ls {place}; ls /; echo made > {place}/target/made")
    owner = server_owner()
    lines = done.stdout.split()
    assert lines[:2] == [str(owner.uid), "brought"], done
    assert "neighbour" not in lines and "root-only" not in lines
    assert not {"root", "home", "var", "srv", "boot", "sys", "mnt"} & set(lines)
    made = place / "target" / "made"
    assert made.read_text() == "made\n" and made.stat().st_uid == owner.uid


FORBIDDEN = {
    "write to the original": "echo x > PLACE/brought/file",
    "make a file in the original": "echo x > PLACE/brought/new",
    "delete the original": "rm -f PLACE/brought/file",
    "change the rights of the original": "chmod 777 PLACE/brought PLACE/brought/file",
    "replace the original": "mv PLACE/brought PLACE/other",
    "make something next to the target": "mkdir PLACE/other",
    "read what is next to it": "cat PLACE/neighbour",
    "read a secret of root": "cat PLACE/root-only/secret",
    "read the passwords": "cat /etc/shadow",
    "write to the system": "echo x > /etc/plinth-was-here || echo x > /usr/plinth-was-here",
    "see other processes": "ls /proc/OURS/root/",
    "end other processes": "kill -0 OURS",
    "mount": "mount -t tmpfs none PLACE/target",
    "unmount": "umount PLACE/brought",
    "mount it to be written to, in a namespace of its own": (
        "unshare --user --map-root-user --mount mount -o remount,rw,bind PLACE/brought && echo x > PLACE/brought/file"
    ),
    "unmount in a namespace of its own": "unshare --user --map-root-user --mount umount -l PLACE/brought",
    "become root": "su -c true || sudo -n true || setpriv --reuid 0 true",
    "enter the namespaces of others": "nsenter --target 1 --mount --pid ls PLACE/neighbour",
    "open a device": "head -c 1 /dev/vda || head -c 1 /dev/mem || head -c 1 /dev/kmsg || mknod PLACE/target/n b 254 0",
    "look at our sockets": "ls /run/* /var/run/*",
    "reach the network": "ls /sys/class/net || exec 3<>/dev/tcp/127.0.0.1/PORT",
    "run a program of the original": "PLACE/brought/program",
    "run a program that it has made": "cp /bin/true PLACE/target/p && PLACE/target/p",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_it_can_do_nothing_else(place: Path, what: str) -> None:
    shutil.copy("/bin/true", place / "brought" / "program")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        script = FORBIDDEN[what].replace("PLACE", str(place)).replace("OURS", str(os.getpid())).replace("PORT", port)
        before = sorted((str(path), path.lstat().st_mode) for path in place.rglob("*"))
        done = Runner().run_confined(
            "unpack a backup",
            ["bash", "-c", f"exec 2>&1; {script}"],
            View(originals=(place / "brought",), targets=(place / "target",)),
            server_owner(),
            allowed_exit_codes=ALLOWED,
        )
    assert done.exit_code != 0, done
    after = sorted((str(path), path.lstat().st_mode) for path in place.rglob("*") if "target/" not in str(path))
    assert after == before
    assert (place / "brought" / "file").read_text() == "brought"


def test_the_attacks_succeed_where_nothing_confines_them(place: Path) -> None:
    """The control: root can do what the table forbids."""
    for what in (
        "write to the original",
        "read what is next to it",
        "read a secret of root",
        "run a program of the original",
    ):
        shutil.copy("/bin/true", place / "brought" / "program")
        script = FORBIDDEN[what].replace("PLACE", str(place))
        assert Runner().run(["bash", "-c", script]).exit_code == 0, what


def test_a_set_uid_program_gains_nothing(place: Path) -> None:
    program = shutil.copy("/usr/bin/id", place / "target" / "id")
    Path(program).chmod(0o4755)
    done = confined(place, f"{place}/target/id -u; su --version >/dev/null && grep NoNewPrivs /proc/self/status")
    assert "NoNewPrivs:\t1" in done.stdout and "\n0\n" not in f"\n{done.stdout}"


def test_nothing_outlives_it(place: Path) -> None:
    mark = f"plinth-outlives-{os.getpid()}"
    done = confined(
        place, f"setsid sh -c 'exec -a {mark} sleep 1000' >/dev/null 2>&1 & setsid sleep 1000 & echo started"
    )
    assert done.stdout == "started\n"
    running = subprocess.run(["ps", "-eo", "uid,args"], capture_output=True, text=True, check=True).stdout
    assert mark not in running


def test_it_inherits_nothing_of_our_environment(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("PGPASSWORD", "secret")
    assert "secret" not in confined(place, "env; cat /proc/1/environ | tr '\\0' '\\n'").stdout


@pytest.mark.parametrize("kind", ["link", "link in the middle", "gone", "fifo", "socket", "device", "hidden"])
def test_a_path_that_is_exchanged_is_refused(place: Path, kind: str) -> None:
    """Between its check and its use. Nothing is opened that could wait, and no link is followed."""
    brought, other = place / "brought", place / "other"
    brought.rename(other)
    listening = socket.socket(socket.AF_UNIX)
    match kind:
        case "link":
            brought.symlink_to(place / "root-only")
        case "link in the middle":
            (place / "folder").mkdir()
            (place / "folder" / "brought").mkdir()
            (place / "link").symlink_to("folder")
            brought = place / "link" / "brought"
        case "fifo":
            os.mkfifo(brought, 0o666)
        case "socket":
            listening.bind(str(brought))
        case "device":
            os.mknod(brought, 0o020666, os.makedev(1, 5))
        case "hidden":
            brought.mkdir(mode=0o700)
        case _:
            pass
    with listening, pytest.raises(MissingCapability, match="was not started as user"):
        confined(place, "true", originals=(brought,))


def test_a_target_that_is_exchanged_is_refused(place: Path) -> None:
    (place / "target").rmdir()
    (place / "target").symlink_to(place / "root-only")
    with pytest.raises(MissingCapability, match="was not started"):
        confined(place, "true")
    (place / "target").unlink()
    (place / "target").mkdir()  # of root
    assert "Permission denied" in confined(place, f"touch {place}/target/new").stderr


@pytest.mark.parametrize("path", ["/", "/usr", "/bin"])
def test_the_system_was_not_brought(path: str) -> None:
    with pytest.raises(Refused, match="holds the system's own programs"):
        Runner().run_confined("look at a backup", ["true"], View(originals=(Path(path),)), server_owner())


def test_a_way_shows_no_more_than_the_table_says(place: Path) -> None:
    with pytest.raises(ValueError, match="does not show target"):
        confined(place, "true", way="look at a dump")


def test_it_is_bounded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match="wrote more than"):
        confined(place, "yes", way="version", originals=(), targets=())
    used = 'python3 -c "bytearray(6 * 2**30)"'
    assert "MemoryError" in confined(place, used, way="look at a backup", targets=()).stderr
    monkeypatch.setitem(WAYS, "version", WAYS["version"].__class__(**{**vars(WAYS["version"]), "timeout_s": 0.5}))
    with pytest.raises(CommandError, match="took longer than"):
        confined(place, "sleep 100", way="version", originals=(), targets=())


def test_its_end_is_that_of_the_program(place: Path) -> None:
    assert confined(place, "exit 125").exit_code == 125
    assert confined(place, "exit 7").exit_code == 7
    assert confined(place, "kill -TERM $$").exit_code == -15
    assert confined(place, "kill -KILL $$").exit_code == -9
    with pytest.raises(MissingCapability, match="there is no such program"):
        Runner().run_confined("version", ["/nonexistent/postgres"], View(), server_owner())


def test_it_begins_with_the_usual_signals_and_limits(place: Path) -> None:
    done = confined(place, "ulimit -n; grep SigIgn /proc/self/status")
    number, ignored = done.stdout.split("\n")[:2]
    assert int(number) == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert not int(ignored.split()[1], 16) & (1 << signal.SIGPIPE - 1)


def test_names_of_any_kind_are_shown_in_place(place: Path) -> None:
    for name in ("with blank", "with\nline", "with\\040", 'with"quote', "x" * 250, "ünïcode", "-rf"):
        folder = place / name
        folder.mkdir()
        (folder / "file").write_text("it is here")
        done = Runner().run_confined(
            "look at a backup", ["cat", f"{folder}/file"], View(originals=(folder,)), server_owner()
        )
        assert done.stdout == "it is here", name
        with pytest.raises(CommandError):
            Runner().run_confined(
                "look at a backup", ["touch", f"{folder}/new"], View(originals=(folder,)), server_owner()
            )


def test_what_is_mounted_below_the_original_is_read_only_too(place: Path) -> None:
    below = place / "brought" / "below"
    below.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=777", "none", str(below)], check=True)
    try:
        (below / "file").write_text("below")
        done = confined(place, f"cat {below}/file; echo x > {below}/file || echo x > {below}/new || exit 9")
        assert (done.stdout, done.exit_code) == ("below", 9)
    finally:
        subprocess.run(["umount", str(below)], check=True)


def test_paths_are_resolved_as_the_servers_user_sees_them(place: Path) -> None:
    (place / "latest").symlink_to("brought")
    (place / "to-secret").symlink_to("root-only/secret")
    os.mkfifo(place / "fifo")
    names = ("brought", "latest", "to-secret", "root-only/secret", "fifo", "absent")
    found = Runner().resolve([place / name for name in names] + [Path("/dev/zero")], server_owner())
    reached = {name: one.path for name, one in zip(names, found, strict=False) if not isinstance(one, NotReadable)}
    assert reached == {"brought": place / "brought", "latest": place / "brought"}
    reasons = {
        name: one.reason for name, one in zip((*names, "zero"), found, strict=True) if isinstance(one, NotReadable)
    }
    assert reasons == {
        "to-secret": "Permission denied",
        "root-only/secret": "Permission denied",
        "fifo": "neither a regular file nor a directory",
        "absent": "No such file or directory",
        "zero": "neither a regular file nor a directory",
    }


def test_thousands_of_paths_are_shown(place: Path, request: pytest.FixtureRequest) -> None:
    files = [place / "brought" / f"postgresql-{number}.log" for number in range(3000)]
    for file in files:
        file.write_text("x")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    request.addfinalizer(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))
    found = Runner().resolve(files, server_owner())
    assert not [one for one in found if isinstance(one, NotReadable)]
    done = Runner().run_confined(
        "read a log", ["sh", "-c", f"ls {place}/brought | wc -l"], View(originals=tuple(files)), server_owner()
    )
    assert done.stdout.strip() == "3000"


@pytest.mark.parametrize("kind", ["link", "second name", "fifo", "absent", "directory"])
def test_what_was_written_is_taken_only_as_a_file(place: Path, kind: str) -> None:
    owner = server_owner()
    output = place / "output"
    output.write_text("before")
    with filled_by(owner, output, "write") as folder:
        match kind:
            case "link":
                (folder / "made").symlink_to(place / "root-only" / "secret")
            case "second name":
                (folder / "made").hardlink_to(place / "root-only" / "secret")
            case "fifo":
                os.mkfifo(folder / "made")
            case "directory":
                (folder / "made").mkdir()
            case _:
                pass
        with pytest.raises(PlinthError):
            take_filled(folder, "made", output, overwrite=True)
    assert output.read_text() == "before"
    assert (place / "root-only" / "secret").read_text() == "secret"
    assert not list(place.glob(".plinth-*"))


def test_a_file_that_is_taken_is_ours_alone(place: Path) -> None:
    output = place / "output"
    with filled_by(server_owner(), output, "write") as folder:
        (folder / "made").write_text("made")
        os.chown(folder / "made", server_owner().uid, server_owner().gid)
        take_filled(folder, "made", output, overwrite=False)
    status = output.stat()
    assert (status.st_uid, status.st_mode & 0o777, status.st_nlink) == (os.geteuid(), 0o600, 1)
    with filled_by(server_owner(), output, "write") as folder:
        (folder / "made").write_text("again")
        with pytest.raises(Refused, match="there already"):
            take_filled(folder, "made", output, overwrite=False)
    assert output.read_text() == "made"


def test_an_empty_directory_is_made_where_its_path_says(place: Path) -> None:
    (place / "link").symlink_to("root-only")
    with pytest.raises(Refused, match="is a link by now"):
        make_directory_to_fill(place / "link" / "data", server_owner())
    assert sorted(path.name for path in (place / "root-only").iterdir()) == ["secret"]
    make_directory_to_fill(place / "link", server_owner())
    make_directory_to_fill(place / "root-only", server_owner())
    assert (place / "root-only").stat().st_uid == os.geteuid(), "what is there stays as it is"


def test_programs_are_shown_with_their_libraries_and_nothing_next_to_them(place: Path) -> None:
    for name in ("bin", "lib", "share", "private"):
        (place / "prefix" / name).mkdir(parents=True)
    shown = program_folders(place / "prefix" / "bin")
    assert {one for one in shown if one.is_relative_to(place)} == {
        place / "prefix" / name for name in ("bin", "lib", "share")
    }
    assert all(folder.is_absolute() for folder in own_code())


def test_the_launcher_imports_nothing_but_the_standard_library() -> None:
    code = (
        "import json, runpy, sys; runpy.run_path(sys.argv[1]); "
        "print(json.dumps(sorted(name for name in sys.modules if name.partition('.')[0] not in sys.stdlib_module_names)))"
    )
    import sys

    from plinth.system import confined_process

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, confined_process.__file__], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) in ([], ["__main__"])


def test_what_root_has_closed_is_left_out_or_shown_by_root(place: Path) -> None:
    """Plinth's own code is shown in a confinement even where its user could not reach it; folders of programs are not."""
    closed, code = place / "root-only" / "lib", place / "root-only" / "code"
    for folder in (closed, code):
        folder.mkdir()
        (folder / "file").write_text("here")
    script = f"cat {code}/file; cat {closed}/file"
    done = confined(place, script, programs=(place / "brought", closed), own=(code,))
    assert (done.stdout, done.exit_code) == ("here", 1), done
    with pytest.raises(MissingCapability, match="Permission denied"):
        Runner().run_confined("version", [f"{closed}/file"], View(programs=(closed,)), server_owner())


@pytest.mark.parametrize("target", ["/initdb", "/../initdb", "/usr/../initdb"])
def test_a_link_of_the_bindir_does_not_show_the_machine(place: Path, target: str) -> None:
    bindir = place / "brought"
    (bindir / "initdb").symlink_to(target)
    shown = program_folders(bindir)
    assert bindir in shown and Path("/") not in shown and Path("/usr") not in shown
    assert "neighbour" not in confined(place, f"ls {place} /", programs=shown, originals=()).stdout.split()
    assert Path("/") not in program_folders(Path("/"))
    with pytest.raises(Refused, match="holds the system's own programs"):
        confined(place, "true", programs=(Path("/"),))


def test_the_working_directory_is_no_code_of_ours(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(place / "root-only"))
    monkeypatch.syspath_prepend("/")
    assert not {Path("/"), place / "root-only"} & set(own_code())
