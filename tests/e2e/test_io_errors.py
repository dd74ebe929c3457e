"""Storages that fail after the trials of a run: what the server does, how it comes back, and what is lost."""

import json

import pytest

TEXT = """\
spec = 1
name = "errors"
question = "What is lost when storage fails?"
[storage.disk]
kind = "emulated"
profile = "nvme"
size = "600MiB"
[storage.wal]
kind = "emulated"
profile = "nvme"
size = "600MiB"
[server]
storage = "disk"
wal_storage = "wal"
[server.settings]
shared_buffers = "2MB"
max_wal_size = "128MB"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
clients = 2
ledger = true
[measure]
warmup = "100ms"
duration = "300ms"
repeats = 1
aa = false
probe = "0s"
"""
ERRORS = """\
[io_errors]
errors = ["flush", "full", "hang"]
times = ["always"]
lasts = "1s"
back_within = "3s"
"""


def _errors(project) -> dict[tuple[str, str], dict]:
    found = [json.loads(path.read_text()) for path in sorted(project.bundle.glob("io-errors/*.json"))]
    assert [one["failure"] for one in found] == [None] * len(found)
    return {(one["error"], one["holds"]): one for one in found}


@pytest.mark.long
def test_what_the_server_does_and_how_it_comes_back(project, nothing_left):
    project.write(TEXT + ERRORS)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    found = _errors(project)
    assert list(found) == [(error, holds) for error in ("flush", "full", "hang") for holds in ("data", "wal")]
    assert found["flush", "wal"]["server"] == "PANIC" and found["flush", "wal"]["struck"] > 0
    assert "Input/output error" in found["flush", "wal"]["said"][0]
    assert found["full", "wal"]["server"] == "PANIC" and "No space left on device" in found["full", "wal"]["said"][0]
    assert found["hang", "wal"]["server"] == "waits" and found["hang", "wal"]["came_back"] == "went on"
    for one in found.values():
        assert one["acknowledged"] > 0 and one["came_back"] != "never"
        assert [damage for damage in one["damage"] if damage["kind"] == "lost commit"] == []
    shown = project.plinth("report", project.bundle, "--full").stdout
    assert "Errors of storage" in shown and "no space on the storage of the WAL" in " ".join(shown.split())
    nothing_left()


@pytest.mark.long
def test_a_quota_that_is_used_up_on_btrfs(project, nothing_left):
    on_btrfs = TEXT.replace('size = "600MiB"\n', 'size = "600MiB"\nfilesystem = "btrfs"\n')
    project.write(on_btrfs + ERRORS.replace('["flush", "full", "hang"]', '["quota"]'))
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    found = _errors(project)
    assert list(found) == [("quota", "data"), ("quota", "wal")]
    for one in found.values():
        assert one["acknowledged"] > 0 and one["came_back"] != "never"
        assert [damage for damage in one["damage"] if damage["kind"] == "lost commit"] == []
    assert found["quota", "wal"]["server"] == "PANIC" and "Disk quota exceeded" in found["quota", "wal"]["said"][0]
    nothing_left()


@pytest.mark.long
def test_the_storage_of_a_tablespace_fails_alone(project, nothing_left):
    with_keys = TEXT.replace(
        "[server]\n", '[storage.keys]\nkind = "emulated"\nprofile = "nvme"\nsize = "600MiB"\n[server]\n'
    )
    with_keys = with_keys.replace('wal_storage = "wal"\n', 'wal_storage = "wal"\ntablespaces = { keys = "keys" }\n')
    with_keys = with_keys.replace("scale = 1\n", 'scale = 1\nindex_tablespace = "keys"\n')
    errors = ERRORS.replace('["flush", "full", "hang"]', '["bad-sectors", "full"]') + 'holds = ["tablespace"]\n'
    project.write(with_keys + errors)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    found = _errors(project)
    assert list(found) == [("bad-sectors", "tablespace"), ("full", "tablespace")]
    assert found["bad-sectors", "tablespace"]["struck"] > 0
    assert found["bad-sectors", "tablespace"]["server"] == "PANIC", found
    assert '"pg_tblspc/' in found["bad-sectors", "tablespace"]["said"][0]
    for one in found.values():
        assert one["acknowledged"] > 0 and one["came_back"] != "never"
        assert one["damage"] == []
    nothing_left()


SECTORS = """\
[io_errors]
errors = ["bad-sectors"]
times = ["always"]
holds = ["data"]
lasts = "1s"
back_within = "3s"
"""


@pytest.mark.parametrize(
    ("retry", "server", "is_lost"),
    [
        pytest.param("off", "PANIC", False, marks=pytest.mark.long, id="panic"),
        pytest.param("on", "ERROR", True, id="retried"),
    ],
)
def test_a_page_whose_write_failed_is_lost_where_the_server_tries_again(project, retry, server, is_lost):
    """The control: with data_sync_retry = on the next checkpoint is taken for a success. On XFS: ext4 loses new blocks in either case."""
    on_xfs = TEXT.replace('size = "600MiB"\n[storage.wal]', 'size = "600MiB"\nfilesystem = "xfs"\n[storage.wal]')
    project.write(on_xfs.replace('"128MB"', f'"128MB"\ndata_sync_retry = "{retry}"') + SECTORS)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    one = _errors(project)["bad-sectors", "data"]
    assert one["struck"] > 0 and one["server"] == server, one
    assert bool(one["damage"]) is is_lost, one["damage"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'kind = "emulated"\nprofile = "nvme"\nsize = "600MiB"\n[storage.wal]',
            'kind = "directory"\n[storage.wal]',
            "the power cannot be cut",
        ),
        (
            'kind = "emulated"\nprofile = "nvme"\nsize = "600MiB"\n[storage.wal]',
            'kind = "tmpfs"\nsize = "600MiB"\n[storage.wal]',
            "whose requests cannot be made to fail",
        ),
        (
            'errors = ["flush", "full", "hang"]',
            'errors = ["flush", "quota"]',
            "'quota', which can be made on btrfs only",
        ),
        ('builtin = "tpcb-like"\nclients = 2\nledger = true', 'builtin = "select-only"\nclients = 2', "which commits"),
    ],
)
def test_what_cannot_fail_on_purpose_is_refused_by_its_key(project, old, new, said):
    project.write((TEXT + ERRORS).replace(old, new))
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 2 and said in " ".join(planned.stderr.split())
