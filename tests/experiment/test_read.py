"""Reading experiment files: what is accepted, and how errors teach."""

import re
import subprocess
from pathlib import Path

import pytest

from plinth.experiment import read_experiment_text
from plinth.experiment.files import read_text
from plinth.model.dataset import GeneratedDataset, TpcbDataset
from plinth.model.errors import ExperimentError, UsageError
from plinth.model.storage import DeviceStorage, TmpfsStorage
from plinth.model.units import parse_size
from plinth.workload import scripts_of
from ramdisk_experiment import VALID
from typed import of, present


def load(text, overrides=(), folder=Path()):
    return read_experiment_text(text, "x.toml", folder, tuple(overrides)).experiment


def problems(text, overrides=(), folder=Path()):
    with pytest.raises(ExperimentError) as caught:
        load(text, overrides, folder)
    return [(p.where, p.key, p.message, p.hint) for p in caught.value.problems]


def test_units_become_si():
    experiment = load(VALID)
    assert experiment.measure.warmup_s == 0.5
    assert experiment.measure.duration_s == 60.0
    assert of(TmpfsStorage, experiment.storage["memory"]).size_bytes == 2 * 2**30


def test_dotted_factors_may_be_written_without_quotes():
    unquoted = VALID.replace(
        '"workload.clients" = [1, 16]', "workload.clients = [1, 16]\nserver.settings.fsync = [true, false]"
    )
    assert load(unquoted).matrix == {
        "storage": ["disk", "memory"],
        "workload.clients": [1, 16],
        "server.settings.fsync": [True, False],
    }


WRONG = [
    # change, line, key, words of the message, words of the hint
    (('name = "ramdisk"', 'name = "ram disk"'), 2, "name", "'ram disk'", None),
    (('kind = "tmpfs"', 'kind = "tmfs"'), 8, "storage.memory.kind", "allowed: directory, tmpfs", "'tmpfs'"),
    (('size = "2GiB"', 'sze = "2GiB"'), 9, "storage.memory.sze", "allowed: fill, host, kind, size", "'size'"),
    (('size = "2GiB"', 'size = "2 gigs"'), 9, "storage.memory.size", "unknown unit 'gigs'", None),
    (('size = "2GiB"', 'size = "lots"'), 9, "storage.memory.size", "a number with a unit", None),
    (('kind = "directory"', 'path = "/tmp"'), 5, "storage.disk.kind", "'kind' is missing; allowed: directory, tmpfs", None),
    (('kind = "tpcb"', 'knd = "tpcb"'), 11, "dataset.kind", "'kind' is missing; allowed: tpcb", "'knd' is not a key here: did you mean 'kind'?"),
    (("scale = 3", "scale = 0"), 13, "dataset.scale", "got 0; must be greater than or equal to 1", None),
    (("scale = 3", "scale = 1.5"), 13, "dataset.scale", "got 1.5", None),
    (("scale = 3", "rows = 3"), 13, "dataset.rows", "unknown key 'rows'; allowed: fillfactor", None),
    (('kind = "tpcb"', 'kind = "number"'), 12, "dataset.kind", "allowed: tpcb, tpcc, numbers", "'numbers'"),
    (('builtin = "tpcb-like"', 'builtin = "tpcb-like"\nkeys = "normal"'), 17, "workload.keys", "allowed: uniform, gaussian", None),
    (('builtin = "tpcb-like"', 'builtin = "tpcb-like"\nkeys_parameter = 3.0'), 15, "workload", "not with uniform", None),
    (('builtin = "tpcb-like"', 'builtin = "tpcb"'), 16, "workload.builtin", "allowed: tpcb-like", "'tpcb-like'"),
    (('builtin = "tpcb-like"', "clients = 2"), 15, "workload", "exactly one of builtin", None),
    (('builtin = "tpcb-like"', 'script = "nope.sql"'), 16, "workload.script", "cannot read the file 'nope.sql'", "relative"),
    (('"disk", "memory"', '"disk", "memry"'), 19, "matrix.storage", "'memry' is not one of: disk, memory", "'memory'"),
    (("[1, 16]", "[1, 0]"), 20, "matrix.workload.clients", "level 0: got 0", None),
    (("[1, 16]", "[1, 16, 1]"), 20, "matrix.workload.clients", "the level 1 is there twice", None),
    (("[1, 16]", "[]"), 20, "matrix.workload.clients", "at least one level", None),
    (('"workload.clients" = [1', '"workload.client" = [1'), 20, "matrix.workload.client", "unknown key 'client'", "'clients'"),
    (('"workload.clients"', '"measure.seed"'), 20, "matrix.measure.seed", "cannot be a factor", None),
    (('duration = "1min"', 'duration = "1 parsec"'), 24, "measure.duration", "unknown unit 'parsec'; allowed: ms, s", None),
    (('duration = "1min"', "duration = inf"), 24, "measure.duration", "allowed are at most 366 d", None),
    (('size = "2GiB"', f'size = "{"9" * 400}GiB"'), 9, "storage.memory.size", "more than any number has room for", None),
    (('builtin = "tpcb-like"', 'builtin = "tpcb-like"\nrate = inf'), 17, "workload.rate", "got inf; must be less than or equal to 10000", None),
    (('builtin = "tpcb-like"', 'builtin = "tpcb-like"\nvariables."a b" = 1'), 17, "workload.variables.a b", "got 'a b'; allowed: what", None),
    (('builtin = "tpcb-like"', 'script = "x.sql@99999999999"'), 15, "workload", "allowed are at most 2147483647", None),
    (("scale = 3", 'scale = 3\nmaintenance_work_mem = "1gb"'), 14, "dataset.maintenance_work_mem", "(kB|MB|GB|TB)", None),
    (('kind = "tpcb"\nscale = 3', 'kind = "generated"\ntable = "plinth_load"\ncolumns.a.kind = "sequence"'), 11, "dataset", "'plinth_load' is the name of Plinth's own table", None),
    (('kind = "tpcb"\nscale = 3', 'kind = "generated"\ntable = "t"\ncolumns.ctid.kind = "sequence"'), 11, "dataset", "ctid: PostgreSQL has a column of that name", None),
    (("scale = 3", "scale = 3\nload_settings = 4"), 14, "dataset.load_settings", "got 4; must be a table", None),
    (("[1, 16]", '["1", 1]'), 20, "matrix.workload.clients", "the level 1 is there twice", None),
    (('"workload.clients"', '"dataset.scale.x"'), 20, "matrix.dataset.scale.x", "'dataset.scale' is a value, not a table", None),
    (('"workload.clients" = [1, 16]', 'server.storage = ["memory"]'), 20, "matrix.server.storage", "is the same key as 'storage'", "leave one out"),
    (('"workload.clients" = [1, 16]', 'workload.driver = ["plinth", "psycopg"]\nworkload.rate = [9]'), 18, "matrix", "workload.driver = 'psycopg' with workload.rate = 9: workload: rate: of driver plinth only", "in two experiments"),
    (('duration = "1min"', 'durration = "1min"'), 24, "measure.durration", "unknown key 'durration'", "'duration'"),
    (('duration = "1min"', "baseline = { storage = 'dsk' }"), 24, "measure.baseline.storage", "allowed: 'disk', 'memory'", "'disk'"),
    (('duration = "1min"', "baseline = { storag = 'disk' }"), 24, "measure.baseline.storag", "not a factor", "'storage'"),
    (('duration = "1min"', "compare = 'storag'"), 24, "measure.compare", "'storag' is not a factor; allowed: storage, workload.clients", "'storage'"),
    (('duration = "1min"', "compare = ['storage', 'dataset.scale']"), 24, "measure.compare", "'dataset.scale' is not a factor; allowed: storage, workload.clients", "factors of [matrix]"),
    (('"workload.clients" = [1, 16]\n\n[measure]', '"workload.clients" = [1]\n\n[measure]\ncompare = "workload.clients"'), 23, "measure.compare", "'workload.clients' has one level only; allowed: storage", None),
    (('duration = "1min"', "compare = 5"), 24, "measure.compare", "got 5", None),
    (('duration = "1min"', 'cache = "hot"'), 24, "measure.cache", "got 'hot'; allowed: as-is, cold, warm", None),
    (('duration = "1min"', 'cache = "cold"\nfresh_server = false'), 22, "measure", "a server that runs on keeps its shared buffers", None),
    (('duration = "1min"', 'restore = "auto"\nfresh_server = false'), 22, "measure", "the server is stopped for it: leave fresh_server out", None),
    (("spec = 1", "spec = 2"), 1, "spec", "got 2; allowed: 1", None),
    (('question = "Which is faster?"', ""), 1, "question", "'question' is missing", None),
    (("[workload]", "[server]\nversion = 12\n[workload]"), 16, "server.version", "got 12; must be greater than or equal to 13", None),
    (("[workload]", "[server]\nstorage = 'dsk'\n[workload]"), 16, "server.storage", "'dsk' is not one of", "'disk'"),
    (("[workload]", "[server]\nsettings.work_mem = [1]\n[workload]"), 16, "server.settings.work_mem", "got [1]; must be", None),
    (("[workload]", "[servr]\nversion = 18\n[workload]"), 15, "servr", "unknown key 'servr'", "'server'"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "line", "key", "message", "hint"), WRONG, ids=[row[0][1][:40] for row in WRONG])
def test_an_error_names_line_key_got_and_allowed(change, line, key, message, hint):
    assert change[0] in VALID
    found = problems(VALID.replace(change[0], change[1], 1))
    where, got_key, got_message, got_hint = next(p for p in found if p[1] == key)
    assert where == f"x.toml:{line}"
    assert got_key == key
    assert message in got_message
    assert (hint or "") in (got_hint or "")


def test_a_list_that_is_too_short_without_its_bad_items_has_their_problems_only():
    ((_, key, message, hint),) = problems(VALID, ['io_errors.holds=["tables"]'])
    assert (key, hint) == ("io_errors.holds.0", "did you mean 'tablespace'?")
    assert "got 'tables'; allowed: data, wal, tablespace" in message
    ((_, key, message, _),) = problems(VALID, ["io_errors.holds=[]"])
    assert key == "io_errors.holds" and "at least 1 item" in message


def test_all_errors_come_at_once_in_order_of_lines():
    text = VALID.replace("tmpfs", "tmfs").replace("scale = 3", "scale = 0").replace('"memory"]', '"memry"]')
    lines = [int(present(where).rpartition(":")[2]) for where, *_ in problems(text)]
    assert lines == sorted(lines)
    assert {8, 13, 19} <= set(lines)


def test_invalid_toml_says_line_and_column():
    ((where, _, message, _),) = problems("spec = 1\nname = ramdisk\n")
    assert where == "x.toml:2"
    assert "not valid TOML" in message
    assert "column 8" in message


DEVICE = """\
spec = 1
name = "x"
question = "?"
[storage.d]
kind = "device"
path = "/dev/sdb"
[dataset]
kind = "tpcb"
[workload]
builtin = "tpcb-like"
[[objective]]
metric = "p99"
max = "3ms"
"""


def test_a_device_says_where_its_id_serial_number_and_size_come_from():
    found = {key: hint for _, key, _, hint in problems(DEVICE)}
    assert "/dev/disk/by-id" in present(found["storage.d.id"])
    assert "lsblk" in present(found["storage.d.serial"]) and "lsblk" in present(found["storage.d.size"])
    assert 'kind = "directory"' in present(found["storage.d.path"])


def test_the_end_of_a_word_is_enough_for_a_suggestion():
    assert "'latency_p99'" in present(next(hint for _, key, _, hint in problems(DEVICE) if key == "objective.0.metric"))


@pytest.mark.parametrize("hint", ["serial", "size"])
def test_what_a_device_is_told_to_look_at_shows_it(hint):
    command = DeviceStorage.found_by[hint].split("`")[1]
    shown = subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout
    assert hint.upper() in shown.splitlines()[0]


def test_a_size_as_the_hint_writes_it_is_taken():
    written = present(re.search(r"\d+B", DeviceStorage.found_by["size"]))[0]
    assert parse_size(written) == int(written[:-1])


@pytest.mark.parametrize("version", [19, 25])
def test_a_version_of_tomorrow_is_one(version):
    assert load(VALID.replace("[workload]", f"[server]\nversion = {version}\n[workload]")).server.version == version


EXTERNAL = "[server]\nconnection = 'host=x'\n[workload]"
NO_STORAGE = VALID.replace(VALID[VALID.index("[storage.disk]") : VALID.index("[dataset]")], "").replace(
    'storage = ["disk", "memory"]\n', ""
)
PAGES = VALID.replace("scale = 3", 'scale = 3\nloader = "pages"')


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        (PAGES.replace('"pages"', '"page"'), 14, "dataset.loader", "got 'page'; allowed: copy, pages"),
        (
            PAGES.replace("[workload]", "unlogged = true\n[workload]"),
            11,
            "dataset",
            "unlogged: got True, with loader pages",
        ),
        (
            PAGES.replace("[workload]", "maintenance_workers = 0\n[workload]"),
            11,
            "dataset",
            "maintenance_workers: got 0, with loader pages; no key is built",
        ),
        (
            PAGES.replace("[workload]", 'maintenance_work_mem = "1GB"\n[workload]'),
            11,
            "dataset",
            "no key is sorted where pages are written: leave it out, or take loader copy",
        ),
        (
            NO_STORAGE.replace("scale = 3", 'scale = 3\nloader = "pages"').replace("[workload]", EXTERNAL),
            8,
            "dataset.loader",
            "an external server is neither ours to stop nor to write to",
        ),
        (
            NO_STORAGE.replace("[workload]", EXTERNAL).replace(
                "[matrix]", '[matrix]\ndataset.loader = ["copy", "pages"]'
            ),
            15,
            "matrix.dataset.loader",
            "an external server is neither ours to stop",
        ),
    ],
)
def test_pages_are_written_only_where_they_can_be(text, line, key, words):
    ((where, got, message, _),) = problems(text)
    assert (where, got) == (f"x.toml:{line}", key)
    assert words in message


@pytest.mark.parametrize(
    ("text", "keys", "words"),
    [
        (
            NO_STORAGE.replace(
                "[workload]", EXTERNAL.replace("[workload]", "version = 15\ndata_checksums = false\n[workload]")
            ),
            ["server"],
            "version, data_checksums: not with connection",
        ),
        (
            NO_STORAGE.replace("scale = 3", 'scale = 3\nload_settings.max_wal_size = "2GB"').replace(
                "[workload]", EXTERNAL
            ),
            ["dataset.load_settings"],
            "load_settings: not with connection",
        ),
        (
            NO_STORAGE.replace("[workload]", EXTERNAL).replace(
                "[matrix]", '[matrix]\nserver.settings.fsync = ["on", "off"]'
            ),
            ["matrix.server.settings.fsync"],  # once, not for each level
            "settings: not with connection",
        ),
        (
            NO_STORAGE.replace("[workload]", EXTERNAL).replace("[measure]", '[measure]\ncache = "cold"'),
            ["measure.cache"],
            "an external server is not ours to stop",
        ),
        (
            NO_STORAGE.replace("[workload]", EXTERNAL).replace("[measure]", '[measure]\nrestore = "copy"'),
            ["measure.restore"],
            "an external server is not ours to stop",
        ),
    ],
)
def test_an_external_server_is_not_changed(text, keys, words):
    found = problems(text)
    assert [key for _, key, _, _ in found] == keys
    assert all(words in message for _, _, message, _ in found)


def test_more_combinations_than_a_report_can_show_are_refused_with_their_number():
    factors = "\n".join(
        f"server.settings.{name} = {list(range(1000))}" for name in ("commit_delay", "work_mem", "geqo_seed")
    )
    (found,) = problems(VALID.replace("[matrix]", f"[matrix]\n{factors}"))
    _, key, message, hint = found
    assert key == "matrix"
    assert "000,000,000 combinations of levels (1,000 x 1,000 x 1,000" in message and "at most 1,000" in message
    assert hint is not None and "fewer factors" in hint


def test_servers_may_be_given_by_the_matrix_alone():
    text = NO_STORAGE.replace("[matrix]", "[matrix]\nserver.connection = ['host=a', 'host=b']")
    assert load(text).matrix["server.connection"] == ["host=a", "host=b"]


def test_an_external_server_takes_no_settings_and_no_storage():
    text = VALID.replace("[workload]", "[server]\nconnection = 'host=x'\nsettings.fsync = false\n[workload]")
    found = problems(text)
    assert any("does not change a server" in message for _, _, message, _ in found)
    assert any("has its own storage" in message for _, _, message, _ in found)


OVERRIDES = [
    ("measure.repeats=3", lambda e: e.measure.repeats == 3),
    ("measure.duration=2s", lambda e: e.measure.duration_s == 2.0),
    ("storage=memory", lambda e: e.matrix["storage"] == ["memory"]),
    ("workload.clients=4", lambda e: e.matrix["workload.clients"] == [4]),
    ("workload.clients=[4, 5]", lambda e: e.matrix["workload.clients"] == [4, 5]),
    ('matrix."workload.clients"=[7]', lambda e: e.matrix["workload.clients"] == [7]),
    ("server.settings.fsync=false", lambda e: e.server.settings == {"fsync": False}),
    ("storage.memory.size=1GiB", lambda e: e.storage["memory"].size_bytes == 2**30),
    ('question="Why = not?"', lambda e: e.question == "Why = not?"),
    ("workload.protocol = simple", lambda e: e.workload.protocol == "simple"),
    ('dataset={kind = "numbers", rows = 7}', lambda e: e.dataset.rows == 7),
    ('dataset={kind = "tpcb"}', lambda e: e.dataset.scale == 10),
    ('storage.memory={kind = "directory"}', lambda e: e.storage["memory"].kind == "directory"),
    ('matrix={storage = ["disk"]}', lambda e: e.matrix == {"storage": ["disk"]}),
]


@pytest.mark.parametrize(("override", "holds"), OVERRIDES, ids=[row[0] for row in OVERRIDES])
def test_set_replaces_one_key(override, holds):
    assert holds(load(VALID, [override]))


def test_another_kind_resets_its_table_to_what_set_says_of_it():
    loaded = load(VALID, ["storage.memory.path=/tmp", "storage.memory.kind=directory"]).storage["memory"]
    assert loaded.model_dump(exclude_defaults=True) == {"kind": "directory", "path": "/tmp"}
    assert of(TpcbDataset, load(VALID, ["dataset.kind=tpcb"]).dataset).scale == 3, "it is of that kind already"


def test_factors_of_keys_that_a_new_kind_does_not_have_are_removed_and_named():
    text = VALID.replace(
        "[matrix]\n", '[matrix]\n"storage.memory.size" = ["1GiB", "2GiB"]\nserver.settings.fsync = [true, false]\n'
    )
    for override in ("storage.memory.kind=directory", 'storage.memory={kind = "directory"}'):
        loaded = read_experiment_text(text, "x.toml", Path(), (override,))
        assert loaded.removed_factors == ("storage.memory.size",)
        assert list(loaded.experiment.matrix) == ["server.settings.fsync", "storage", "workload.clients"]
    kept = read_experiment_text(text, "x.toml", Path(), ('storage.memory={kind = "loop", size = "1GiB"}',))
    assert kept.removed_factors == ()
    assert kept.experiment.matrix["storage.memory.size"] == ["1GiB", "2GiB"]


def test_a_nested_factor_of_a_replaced_kind_leaves_no_empty_table():
    nested = 'storage.memory.physics.flush_latency = ["1ms", "2ms"]'
    text = VALID.replace('storage = ["disk", "memory"]', nested)
    loaded = read_experiment_text(text, "x.toml", Path(), ('storage.memory={kind = "directory"}',))
    assert loaded.removed_factors == ("storage.memory.physics.flush_latency",)
    assert not any(factor.startswith("storage.memory") for factor in loaded.experiment.matrix)


def test_members_of_nothing_but_a_replaced_storage_go_with_it():
    pool = """\
[storage.half]
kind = "loop"
size = "1GiB"
count = 2

[storage.pool]
kind = "btrfs"
members = ["half"]

"""
    text = VALID.replace("[dataset]", pool + "[dataset]")
    assert set(load(text).storage) == {"disk", "memory", "half", "pool"}
    assert set(load(text, ['storage.pool={kind = "directory"}']).storage) == {"disk", "memory", "pool"}
    ((_, _, message, _),) = problems(text, ['storage.pool={kind = "directory"}', "storage.half.size=2GiB"])
    assert "no storage has 'half' as a member" in message, "what --set names is there to be used"


def test_an_unknown_kind_removes_nothing():
    ((where, _, message, _),) = problems(VALID, ["storage.memory.kind=tmps"])
    assert where == "--set storage.memory.kind=tmps"
    assert "allowed:" in message


def test_an_error_of_an_override_is_placed_at_it():
    ((where, key, message, hint),) = problems(VALID, ["measure.repeat=3"])
    assert where == "--set measure.repeat=3"
    assert key == "measure.repeat"
    assert hint == "did you mean 'repeats'?"
    assert "unknown key" in message


def test_an_error_of_a_table_that_an_override_made_is_placed_at_it():
    ((where, key, _, hint),) = problems(VALID, ["mesure.repeats=3"])
    assert where == "--set mesure.repeats=3"
    assert key == "mesure"
    assert hint == "did you mean 'measure'?"


@pytest.mark.parametrize("override", ["", "repeats", "=3", "measure.repeats.x=3"])
def test_an_override_without_form_is_bad_usage(override):
    with pytest.raises(UsageError):
        load(VALID.replace("[measure]", "[measure]\nrepeats = 2"), [override])


def test_scripts_are_read_from_the_folder_of_the_file(tmp_path):
    (tmp_path / "upsert.sql").write_text("SELECT 1;\n")
    text = VALID.replace('builtin = "tpcb-like"', 'script = "upsert.sql"')
    assert read_experiment_text(text, "x.toml", tmp_path).files == {"upsert.sql": "SELECT 1;\n"}


def test_of_several_scripts_each_has_its_weight(tmp_path):
    for name in ("read.sql", "write@2.sql"):
        (tmp_path / name).write_text("SELECT 1;\n")
    text = VALID.replace('builtin = "tpcb-like"', 'script = ["read.sql@9", "write@2.sql"]')
    loaded = read_experiment_text(text, "x.toml", tmp_path)
    assert sorted(loaded.files) == ["read.sql", "write@2.sql"]
    scripts = scripts_of(loaded.experiment.workload, "tpcb", loaded.files)
    assert [(script.name, script.weight) for script in scripts] == [("read.sql", 9), ("write@2.sql", 1)]
    for wrong, words in ((["read.sql@9", "read.sql"], "is there twice"), (["read.sql@0"], "every weight is 0")):
        found = problems(text.replace('["read.sql@9", "write@2.sql"]', str(wrong)), folder=tmp_path)
        assert any(words in message for _, _, message, _ in found), found


@pytest.mark.parametrize(
    ("rate", "stages"),
    [
        ("500", 500),
        (
            '[{ tps = 100, duration = "10s" }, { tps = 100, to = 500 , duration = "1min"}]',
            [(100, None, 10), (100, 500, 60)],
        ),
        ("[{ tps = 7 }]", [(7, None, None)]),
    ],
)
def test_rates_are_a_number_or_stages(rate, stages):
    workload = load(VALID.replace("[workload]", f'[workload]\nrate = {rate}\nlatency_limit = "50ms"')).workload
    assert workload.latency_limit_s == 0.05
    found = workload.rate
    assert (found if isinstance(stages, int) else [(s.tps, s.to_tps, s.duration_s) for s in of(list, found)]) == stages


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ("0", "above 0"),
        ("[]", "above 0"),
        ("[{ tps = 0 }]", "every stage has a rate of 0"),
        ("[{ tps = 1 }, { tps = 2 }]", "every stage but the last needs a duration"),
        ("[{ tps = 1, to = 2 }]", "needs a duration"),
        ("[{ tps = -1 }]", "greater than or equal to 0"),
    ],
)
def test_rates_that_make_no_sense(rate, words):
    found = problems(VALID.replace("[workload]", f"[workload]\nrate = {rate}"))
    assert any(words in message for _, _, message, _ in found), found


def test_a_factor_in_a_storage_next_to_the_storage_is_to_be_quoted():
    text = VALID.replace("[matrix]", "[matrix]\nstorage.memory.size = ['1GiB', '2GiB']")
    ((_, _, message, hint),) = problems(text)
    assert "'matrix.storage' is a value here, and a table in line" in message
    assert '"storage.slow.profile" = [..]' in present(hint)


COLUMNS = """\
[dataset]
kind = "generated"
table = "events"
rows = 1000
key = "id"
[dataset.columns]
id = { kind = "sequence" }
customer = { kind = "zipfian", min = 1, max = 100 }
note = { kind = "text", size = 200, compressibility = 0.5 }
at = { kind = "timestamp", first = 2020-01-01T00:00:00, last = 2020-12-31T00:00:00 }
"""
WITH_COLUMNS = VALID.replace('[dataset]\nkind = "tpcb"\nscale = 3\n', COLUMNS).replace("tpcb-like", "select-only")


def test_columns_are_read_in_their_order():
    assert list(of(GeneratedDataset, load(WITH_COLUMNS).dataset).columns) == ["id", "customer", "note", "at"]


@pytest.mark.parametrize(
    ("change", "line", "key", "message"),
    [
        (('kind = "sequence"', "first = 5"), 17, "dataset.columns.id.kind", "allowed: sequence, uniform, gaussian"),
        (('"zipfian"', '"zipf"'), 18, "dataset.columns.customer.kind", "kind 'zipf' is unknown; allowed: sequence"),
        (("min = 1", "mn = 1"), 18, "dataset.columns.customer.mn", "unknown key 'mn'; allowed: kind, max, min"),
        (("min = 1", "parameter = nan, min = 1"), 18, "dataset.columns.customer", "parameter: got nan; zipfian takes 1.001 to 1000"),
        (("min = 1", "parameter = inf, min = 1"), 18, "dataset.columns.customer", "parameter: got inf; zipfian takes 1.001 to 1000"),
        (("min = 1", "min = 101"), 18, "dataset.columns.customer", "min: got 101, which is above max, 100"),
        (("max = 100", "max = 40_000, type = 'smallint'"), 11, "dataset", "columns.customer: 40,000 does not fit in smallint"),
        (("size = 200", "size = 0"), 19, "dataset.columns.note.size", "got 0; must be greater than or equal to 1"),
        (("compressibility = 0.5", "compressibility = 1"), 19, "dataset.columns.note.compressibility", "less than 1"),
        (("first = 2020", "first = 2021"), 20, "dataset.columns.at", "which is after last"),
        (('key = "id"', 'key = "ident"'), 11, "dataset", "key: 'ident' is not one of: id, customer, note, at"),
        (('key = "id"', 'key = "customer"'), 11, "dataset", "key: values of 'customer' may repeat"),
    ],
)  # fmt: skip
def test_columns_that_make_no_sense(change, line, key, message):
    assert change[0] in WITH_COLUMNS
    found = problems(WITH_COLUMNS.replace(change[0], change[1], 1))
    assert (f"x.toml:{line}", key) in [(where, got) for where, got, *_ in found]
    assert any(message in got for _, _, got, _ in found), found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ('kind = "sequence"', 'kind = "sequence", step = -1'),
            "key: 'id' descends, by 1; pages are written for keys that",
        ),
        (("size = 200", "size = 1983"), "columns: a row takes 2,040 bytes; pages are written of rows up to 2,032"),
        (("size = 200", "size = 1976"), None),  # up to 2,032 with the timestamp, which is aligned behind it
    ],
)
def test_pages_are_of_keys_that_ascend_and_rows_that_are_not_compressed(change, message):
    text = WITH_COLUMNS.replace(change[0], change[1], 1)
    load(text)
    paged = text.replace('key = "id"', 'key = "id"\nloader = "pages"')
    if message is None:
        assert of(GeneratedDataset, load(paged).dataset).writes_pages
    else:
        assert [(where, key, message in said) for where, key, said, _ in problems(paged)] == [
            ("x.toml:11", "dataset", True)
        ]


def test_a_byte_order_mark_and_line_ends_of_windows_are_no_part_of_a_file(tmp_path: Path) -> None:
    """As editors there save it."""
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbf" + VALID.replace("\n", "\r\n").encode())
    assert read_text(path) == VALID


def test_levels_need_to_be_valid_only_with_those_that_they_are_combined_with():
    """The driver that the file has outside of its matrix is in no variant; with it, no number of threads may be given."""
    text = VALID.replace('builtin = "tpcb-like"', 'builtin = "tpcb-like"\ndriver = "psycopg"').replace(
        '"workload.clients" = [1, 16]', 'workload.driver = ["plinth"]\nworkload.threads = [1, 2]'
    )
    assert load(text).matrix["workload.threads"] == [1, 2]
