"""WAL and tablespaces on storages of their own, through the command."""

import json

import pytest

MEASURE = """\
[measure]
warmup = "100ms"
duration = "400ms"
repeats = 1
probe = "10ms"
aa = false
"""


def elsewhere(project, server, dataset="", matrix=""):
    text = (project.folder / "x.toml").read_text()
    text = text.replace('storage = ["disk", "memory"]\n', matrix).replace("scale = 1\n", f"scale = 1\n{dataset}")
    project.write(text.partition("[measure]")[0].replace("[dataset]", f"[server]\n{server}\n[dataset]") + MEASURE)


def server_facts(project, variant):
    return json.loads((project.bundle / "env" / f"server-{variant}.json").read_text())


@pytest.mark.long
def test_wal_on_a_storage_of_its_own_as_a_factor(project, nothing_left):
    elsewhere(project, 'storage = "disk"', matrix='server.wal_storage = ["disk", "memory"]\n')
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    assert "--waldir=" in planned.stdout
    assert "plinth-RUN-memory/2-disk.wal" in planned.stdout
    assert "disk, WAL on memory" in " ".join(planned.stdout.split())

    done = project.run()
    assert done.returncode == 3, "one trial of each decides nothing"
    inside, apart = (server_facts(project, f"wal-on-{storage}") for storage in ("disk", "memory"))
    assert inside["wal_directory"] is None
    memory = json.loads((project.bundle / "env" / "storage-memory.json").read_text())
    assert apart["wal_directory"] == f"{memory['path']}/2-disk.wal"
    assert apart["data_directory"].endswith("-disk/2-disk")
    assert [t["status"] for t in project.trials()] == ["complete"] * 2
    nothing_left()


@pytest.mark.long
def test_commits_are_kept_only_if_all_storages_of_a_cluster_keep_them(project):
    elsewhere(project, 'storage = "disk"', matrix='server.wal_storage = ["disk", "memory"]\n')
    done = project.run("--json")
    assert done.returncode == 3, done.stderr
    grades = {v["id"]: v["safety"] for v in json.loads(done.stdout)["analysis"]["variants"]}
    assert grades["wal-on-disk"]["grade"] == "keeps"
    assert grades["wal-on-memory"]["grade"] == "does not keep"
    assert "WAL" in grades["wal-on-memory"]["reasons"][0]


@pytest.mark.long
def test_tables_and_keys_in_tablespaces(project, nothing_left):
    elsewhere(
        project,
        'storage = "disk"\ntablespaces = { bulk = "memory", keys = "disk" }',
        dataset='tablespace = "bulk"\nindex_tablespace = "keys"\n',
    )
    done = project.run()
    assert done.returncode == 0, done.stderr
    facts = server_facts(project, "disk")
    assert facts["tablespaces"]["bulk"].endswith("-memory/1-disk.tablespace-bulk")
    assert facts["tablespaces"]["keys"].endswith("-disk/1-disk.tablespace-keys")
    nothing_left()


@pytest.mark.parametrize(
    ("server", "dataset", "matrix", "said"),
    [
        ('wal_storage = "fats"', "", "", "server.wal_storage: storage 'fats' is not one of: disk, memory"),
        ('tablespaces.bulk = "slow"', "", "", "server.tablespaces.bulk: storage 'slow' is not one of"),
        ('tablespaces.pg_bulk = "disk"', "", "", "names that begin with pg_ are PostgreSQL's own"),
        ("", 'tablespace = "bulk"\n', "", "dataset.tablespace: tablespace 'bulk' is not one of: pg_default"),
        ("", "", 'server.wal_storage = ["disk", "memroy"]\n', "did you mean 'memory'?"),
        (
            'tablespaces.bulk = "disk"',
            "",
            'dataset.index_tablespace = ["bulk", "keys"]\n',
            "'keys' is not one of: bulk",
        ),
    ],
)
def test_names_that_point_at_nothing(project, server, dataset, matrix, said):
    elsewhere(project, server, dataset, matrix)
    done = project.run()
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert project.left_behind() == []


@pytest.mark.long
def test_a_storages_field_as_a_factor(project, nothing_left):
    """One loop file a level: made side by side, named by the level, undone."""
    text = (project.folder / "x.toml").read_text().partition("[matrix]")[0]
    text = text.replace("[dataset]", '[storage.file]\nkind = "loop"\nsize = "400MiB"\n[dataset]')
    project.write(f'{text}[matrix]\nstorage = ["file"]\n"storage.file.filesystem" = ["ext4", "xfs"]\n{MEASURE}')
    done = project.run()
    assert done.returncode == 3, done.stderr
    for filesystem in ("ext4", "xfs"):
        facts = json.loads((project.bundle / "env" / f"storage-file-{filesystem}.json").read_text())
        assert facts["filesystem"] == filesystem
    assert {t["variant"]: t["status"] for t in project.trials()} == {"file-ext4": "complete", "file-xfs": "complete"}
    nothing_left()
