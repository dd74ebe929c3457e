"""The command line from outside: help, usage errors, exit codes, streams."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import SLOW, loaded_by, plinth
from plinth.cli import COMMANDS
from plinth.common.lazy_exports import lazy_exports
from plinth.experiment import template
from prepared_plinth import run_prepared

REPOSITORY = Path(__file__).parents[2]
PLINTH = [sys.executable, "-m", "plinth"]


@pytest.mark.long
@pytest.mark.parametrize(
    "words", [("--version",), ("plan", "x.toml"), ("plan", "none.toml"), ("run",), ("bench", "-c")]
)
def test_a_prepared_command_is_like_one_of_its_own_process(tmp_path, words):
    (tmp_path / "x.toml").write_text(template("x", "x.toml"))
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "PLINTH_STATE_DIR": str(tmp_path / "state")}
    own = subprocess.run([*PLINTH, *words], capture_output=True, text=True, cwd=tmp_path, env=env)
    prepared = run_prepared(words, tmp_path, env)
    assert (prepared.returncode, prepared.stderr) == (own.returncode, own.stderr)
    assert prepared.stdout.splitlines()[:10] == own.stdout.splitlines()[:10]


def collections_by(*words):
    """How often the cyclic garbage collector ran while a command line did."""
    program = (
        "import gc, sys; from plinth.__main__ import main; sys.argv[0] = 'plinth'; "
        "ran = lambda: sum(one['collections'] for one in gc.get_stats()); before = ran(); code = main(); "
        "print(ran() - before, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.splitlines()[-1])


def test_a_short_command_is_not_slowed_by_the_garbage_collector(tmp_path):
    (tmp_path / "x.toml").write_text(template("x", "x.toml"))
    assert collections_by("plan", tmp_path / "x.toml") <= 5  # with Python's thresholds: some 150


def test_help_imports_nothing_heavy():
    loaded = loaded_by("--help")
    assert not loaded & {*SLOW, "cyclopts", "pydantic", "rich", "plinth.model", "plinth.run"}


@pytest.mark.parametrize("option", ["--help", "-?", "--version", "-V"])
def test_help_and_version_of_bench_import_nothing_but_their_text(option):
    loaded = loaded_by("bench", option)
    assert "plinth.bench.help" in loaded
    assert not loaded & {*SLOW, "cyclopts", "pydantic", "rich", "plinth.bench.command_line", "plinth.model"}


def test_the_load_of_bench_does_without_the_models_of_its_result_until_it_has_one():
    """What precedes the first transaction is waited for in every run."""
    program = "import sys, plinth.bench.conduct; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "plinth.bench.load" in loaded
    assert not loaded & {*SLOW, "cyclopts", "rich", "plinth.model.load"}


SUBCOMMANDS = [
    *([command.name] for command in COMMANDS if command.target is not None),
    ["disk", "serve"],
    ["disk", "cut"],
    ["probe", "fsync"],
    ["probe", "io"],
    ["storage", "prepare"],
]


@pytest.mark.long
@pytest.mark.parametrize("words", SUBCOMMANDS, ids=" ".join)
def test_help_of_a_command_needs_no_model_and_nothing_that_runs(words):
    loaded = loaded_by(*words, "--help")
    assert "cyclopts" in loaded
    assert not loaded & {
        *SLOW,
        "pydantic",
        "plinth._native",
        "plinth.run",
        "plinth.tasks",
        "plinth.report",
        "plinth.bundle",
    }


def test_a_plan_loads_no_statistics_no_database_and_nothing_that_runs():
    loaded = loaded_by("plan", REPOSITORY / "experiments" / "ramdisk.toml")
    assert "plinth.run.planning.make_plan" in loaded
    assert not loaded & {
        *SLOW,
        "plinth.run.conduct",
        "plinth.run.trial.trial",
        "plinth.bundle",
        "plinth.analyse",
        "plinth.report.build",
        "plinth.report.terminal",
        "plinth.cli.help",
        "plinth.observe.observer",
        "plinth.server.server",
        "plinth.storage.kinds.zfs",
        "plinth.workload.tpcc",
        "multiprocessing",
    }


def test_a_package_exports_lazily_only_what_no_module_of_it_is_named_like():
    find = lazy_exports("plinth.run", {"make_plan": "planning.make_plan"})
    assert find("make_plan").__module__ == "plinth.run.planning.make_plan"
    with pytest.raises(AttributeError, match=r"module 'plinth\.run' has no attribute 'plan'"):
        find("plan")
    with pytest.raises(ValueError, match=r"plinth\.server: relations: a module of that name"):
        lazy_exports("plinth.server", {"relations": "relations"})


def test_the_modules_of_runs_and_standalone_storages_load_no_statistics_and_no_database():
    program = "import sys, plinth.run.conduct, plinth.tasks.standalone; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"numpy", "duckdb", "scipy", "psycopg"}


def test_help_names_every_command_and_the_exit_codes():
    done = plinth("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert f"  {command.name} " in done.stdout
    assert "Exit codes" in done.stdout
    assert plinth().stdout == done.stdout
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_every_command_explains_itself(command):
    done = plinth(command.name, "--help", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert f"plinth {command.name}" in done.stdout
    assert len(done.stdout.splitlines()) > 3
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_version():
    assert plinth("--version").stdout.startswith("plinth 0.")


WRONG_USAGE = [
    (["rnu", "x.toml"], 'Did you mean "run"'),
    (["plan"], "FILE"),
    (["plan", "x.toml", "--jsno"], "--jsno"),
    (["plan", "no-such-file.toml"], "No such file or directory"),
    (["report", "."], "not a bundle"),
    (["report", "bundle", "--html", "out file.html"], "unexpected argument: 'out file.html'"),
    (["plan", "x.toml", "y.toml", "z.toml"], "unexpected arguments: y.toml z.toml"),
    (["resume", "no-such-bundle"], "there is no such folder"),
    (["verify", "."], "not a bundle"),
    (["endurance", "."], "not a bundle"),
    (["endurance", ".", "--tbw", "600"], "--tbw 600: expected a number with a unit"),
    (["endurance", ".", "--tps", "nan"], "--tps nan: a rate is a number above 0"),
    (["report", ".", "--html", "--output", "nosuch/below/x.html"], "the folder nosuch is not there"),
    (["report", ".", "--svg", "nosuch/charts"], "the folder nosuch is not there"),
    (["report", ".", "--junit", "/etc/passwd/x.xml"], "the folder /etc/passwd is not a folder"),
    (["run", "x.toml", "--junit", "nosuch/x.xml"], "the folder nosuch is not there"),
    (["compare", ".", ".", "--junit", "nosuch/x.xml"], "the folder nosuch is not there"),
    (["compare", ".", "--save-baseline", "nosuch/x.json"], "the folder nosuch is not there"),
    (["completion", "tcsh"], "tcsh"),
    (["storage", "describe"], "PATH"),
    (["clean", "../x"], "cannot be a run id"),
]


@pytest.mark.parametrize(("words", "said"), WRONG_USAGE, ids=[" ".join(row[0]) for row in WRONG_USAGE])
def test_wrong_usage_is_exit_2_with_a_reason_on_stderr(words, said, tmp_path):
    done = plinth(*words, cwd=tmp_path, PLINTH_STATE_DIR=str(tmp_path / "state"))
    assert done.returncode == 2, done
    assert said in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_init_writes_once_and_plan_accepts_it(tmp_path):
    done = plinth("init", "first.toml", cwd=tmp_path)
    assert done.returncode == 0
    assert "plinth plan first.toml" in done.stdout
    again = plinth("init", "first.toml", cwd=tmp_path)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    planned = plinth("plan", "first.toml", "--json", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["experiment"]["name"] == "first"


def test_errors_of_an_experiment_file_come_all_at_once(tmp_path):
    (tmp_path / "x.toml").write_text(
        "spec = 1\nname = 'x'\nquestion = '?'\n[dataset]\nkid = 'tpcb'\n[workload]\nclints = 3\n"
    )
    done = plinth("plan", "x.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "x.toml:4: dataset.kind" in done.stderr
    assert "x.toml:7: workload.clints: unknown key 'clints'" in done.stderr
    assert "hint: did you mean 'clients'?" in done.stderr


BAD_VALUES = [
    ("--set=measure.repeats=x", "got 'x'; must be a whole number"),
    ("--set=measure.aa=7", "got 7; must be true or false"),
    ("--set=name=7", "got 7; must be text in quotes"),
    ("--repeats=0", "measure.repeats: got 0; must be greater than or equal to 1"),
    ("--duration=abc", "--set measure.duration=abc: measure.duration: got 'abc'"),
    ("--clients=four", "workload.clients: got 'four'; must be a whole number"),
    ("--clients=4,-1", "level -1: got -1"),
    ("--clients=1,4,x", "--clients 1,4,x: got 'x'; must be whole numbers"),
    ("--clients=1,,4", "got ''; must be whole numbers"),
    ("--set=workload.clients=[4,8]", "--set matrix.workload.clients=[..]"),
    ("--set=matrix.workload.clients=[4,x]", "a list is written as [1, 16]"),
]


@pytest.mark.parametrize(("word", "said"), BAD_VALUES, ids=[row[0] for row in BAD_VALUES])
def test_a_value_of_the_wrong_type_is_refused_in_plain_words(word, said, tmp_path):
    plinth("init", "x.toml", cwd=tmp_path)
    done = plinth("plan", "x.toml", word, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "parse" not in done.stderr


def test_a_wrong_key_in_the_matrix_is_reported_once_for_all_its_levels(tmp_path):
    plinth("init", "x.toml", cwd=tmp_path)
    done = plinth("plan", "x.toml", "--set", "matrix.workload.clinets=[1,2,3]", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("unknown key 'clinets'") == 1
    assert "did you mean 'clients'?" in done.stderr


def test_shortcuts_are_overrides(tmp_path):
    plinth("init", "x.toml", cwd=tmp_path)
    words = ("plan", "x.toml", "--repeats", "2", "--duration", "3s", "--clients", "1,4", "--set", "measure.aa=false")
    plan = json.loads(plinth(*words, "--json", cwd=tmp_path).stdout)
    assert (plan["experiment"]["measure"]["repeats"], plan["experiment"]["measure"]["duration_s"]) == (2, 3.0)
    assert sorted({variant["workload"]["clients"] for variant in plan["variants"]}) == [1, 4]
    assert any(variant["label"].endswith("1 client") for variant in plan["variants"])
    assert len(plan["trials"]) == 2 * len(plan["variants"])


def test_a_plan_is_readable_in_80_columns(tmp_path):
    plinth("init", "x.toml", cwd=tmp_path)
    done = plinth("plan", "x.toml", "--clients", "1,4,16", "--repeats", "3", cwd=tmp_path, COLUMNS="80")
    lines = done.stdout.splitlines()
    too_wide = [line for line in lines if len(line) > 80 and not line.lstrip().startswith("$ ")]
    assert not [line for line in too_wide if not line.startswith("x: ")]
    assert any(line.split()[:2] == ["variant", "storage"] for line in lines), "only what differs is a column"
    assert "all variants: PostgreSQL" in done.stdout
    assert done.stdout.count("CHECKPOINT, then") == len({line for line in lines if "CHECKPOINT, then" in line}) == 7


def test_a_plan_has_a_column_for_each_factor(tmp_path):
    plinth("init", "x.toml", cwd=tmp_path)
    rates = ("--set", "matrix.workload.rate=[500,20_000]", "--set", "measure.aa=false")
    lines = plinth("plan", "x.toml", *rates, cwd=tmp_path).stdout.splitlines()
    (head,) = [place for place, line in enumerate(lines) if line.split()[:1] == ["variant"]]
    assert lines[head].split() == ["variant", "storage", "rate"]
    assert [line.split()[-1] for line in lines[head + 1 : head + 5]] == ["500", "20,000", "500", "20,000"]


def test_a_plan_whose_trials_can_end_at_the_last_only_says_one_number(tmp_path):
    plinth("init", "x.toml", cwd=tmp_path)
    target = ("--set", "measure.target=5%", "--repeats", "4")
    assert "3 variants, 12 trials of" in plinth("plan", "x.toml", *target, cwd=tmp_path).stdout


def test_a_plan_writes_settings_as_postgresql_does(tmp_path):
    plinth("init", "x.toml", cwd=tmp_path)
    done = plinth("plan", "x.toml", "--set", "matrix.server.settings.fsync=[true,false]", cwd=tmp_path)
    table = done.stdout.partition("Settings that differ")[2].partition("\n\n")[0]
    assert {line.split()[-1] for line in table.splitlines()[2:]} == {"on", "off"}


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    plinth("init", "x.toml", cwd=tmp_path)
    command = f"{sys.executable} -m plinth plan x.toml | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode in (0, 141), done
    assert done.stderr == ""


def test_schema_is_json_and_names_its_draft():
    schema = json.loads(plinth("schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "storage" in schema["properties"]


def test_a_setting_that_the_server_does_not_know_is_found_before_anything_runs(tmp_path):
    plinth("init", "x.toml", cwd=tmp_path)
    done = plinth("plan", "x.toml", "--set", "server.settings.shared_bufers=1GB", cwd=tmp_path)
    assert done.returncode == 2
    assert "--set server.settings.shared_bufers=1GB" in done.stderr
    assert "shared_buffers" in done.stderr


def test_a_script_with_a_syntax_error_says_file_line_and_column(tmp_path):
    plinth("init", "x.toml", cwd=tmp_path)
    (tmp_path / "bad.sql").write_text("\\set a 1\n\\set b 1 +\nSELECT :a;\n")
    text = (tmp_path / "x.toml").read_text().replace('builtin = "tpcb-like"', 'script = "bad.sql"')
    (tmp_path / "x.toml").write_text(text)
    done = plinth("plan", "x.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "bad.sql:2:" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_the_commands(shell):
    done = plinth("completion", shell)
    assert done.returncode == 0
    assert "resume" in done.stdout


def test_completion_for_bash_is_valid_bash(tmp_path):
    script = tmp_path / "plinth.bash"
    script.write_text(plinth("completion", "bash").stdout)
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_completion_is_installed_once_where_bash_looks_for_it(tmp_path):
    for _ in range(2):
        done = plinth("--install-completion", "bash", HOME=str(tmp_path))
        assert done.returncode == 0, done.stderr
    assert (tmp_path / ".bashrc").read_text().count("# Load plinth completion") == 1
    ask = ". ~/.bashrc; COMP_WORDS=(plinth {}); COMP_CWORD=1; $(complete -p plinth | sed 's/.*-F \\([^ ]*\\).*/\\1/'); "
    for begun, whole in (("resu", "resume"), ("ben", "bench")):
        script = ask.format(begun) + 'printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(
            ["bash", "-c", script], capture_output=True, text=True, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        )
        assert done.stdout.split() == [whole], done.stderr


def test_completion_of_an_unknown_shell_names_those_that_there_are(tmp_path):
    done = plinth("--install-completion", HOME=str(tmp_path), SHELL="/bin/tcsh")
    assert done.returncode == 2
    assert "/bin/tcsh" in done.stderr
    assert "bash, zsh, fish" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_output_may_be_cut_short():
    writer = subprocess.Popen([*PLINTH, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.read(10)
    writer.stdout.close()
    assert writer.stderr.read() == b""
    writer.wait(30)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--help"], ["schema"], ["bench", "--help"]])
def test_output_that_cannot_be_written_is_an_error_that_says_so(words, unbuffered):
    with Path("/dev/full").open("w") as full:
        environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run([*PLINTH, *words], stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    assert (done.returncode, done.stderr) == (1, "error: cannot write the output: No space left on device\n")


def test_a_script_from_a_closed_standard_input_is_an_error_that_says_so():
    done = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *PLINTH, "bench", "-f", "-"], capture_output=True, text=True)
    said = 'plinth bench: error: could not read file "-": standard input is closed\n'
    assert (done.returncode, done.stderr) == (1, said)


def test_progress_that_nobody_reads_any_more_is_lost_and_no_error():
    program = """
import sys
from plinth.cli.console import stderr
for line in range(3):
    print("progress", file=stderr(), flush=True)
print("done", flush=True)
sys.stderr.write("what Python says at its end")
"""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=writing, text=True)
    os.close(writing)
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_describing_a_path_as_json():
    facts = json.loads(plinth("storage", "describe", str(Path.cwd()), "--json").stdout)
    assert facts["total_bytes"] > 0
    assert facts["stack"]


def test_help_of_probe_describes_its_commands():
    words = " ".join(plinth("probe", "--help").stdout.replace("\u2502", " ").split())
    assert " fsync Measure how long PATHS take " in words
    assert " io Measure PATH by fio, " in words
    assert "1 to 64; sequential" in " ".join(plinth("probe", "io", "--help").stdout.split())


def test_a_new_experiment_file_is_valid_under_any_name(tmp_path):
    name = "a b\n[evil]\nx = \x1b.toml"
    assert plinth("init", tmp_path / name).returncode == 0
    (tmp_path / "plain.toml").write_bytes((tmp_path / name).read_bytes())
    assert template("x", os.fsdecode(b"\xff.toml")).encode()
    planned = plinth("plan", tmp_path / "plain.toml")
    assert planned.returncode == 0, planned.stderr


def test_names_of_files_and_storages_steer_no_terminal(tmp_path):
    made = plinth("init", tmp_path / "a\x1b]0;owned\x07b\u202e.toml")
    assert made.returncode == 0 and "a\\x1b]0;owned\\x07b\\u202e.toml" in made.stdout
    folder = tmp_path / "c\x9b2J\u202ed"
    folder.mkdir()
    (tmp_path / "e.toml").write_text(
        f'spec = 1\nname = "e"\nquestion = "Which?"\n[storage.disk]\nkind = "directory"\npath = "{folder}"\n'
        '[dataset]\nkind = "tpcb"\nscale = 1\n[workload]\nbuiltin = "select-only"\n'
    )
    steps = plinth("storage", "prepare", tmp_path / "e.toml", "disk", "--dry-run")
    assert steps.returncode == 0 and "c\\x9b2J\\u202ed" in steps.stdout
    plan = plinth("plan", tmp_path / "e.toml", "--json")
    assert json.loads(plan.stdout)["experiment"]["storage"]["disk"]["path"] == str(folder)
    assert not set("\x1b\x07\x9b\u202e") & set(made.stdout + steps.stdout + plan.stdout)


@pytest.fixture
def without_viewer(tmp_path):
    """A Python path on which Plinth is as in a source tree whose web page was not built."""
    package = REPOSITORY / "python" / "plinth"
    copy = tmp_path / "path" / "plinth"
    (copy / "report").mkdir(parents=True)
    for place, folder in ((copy, package), (copy / "report", package / "report")):
        for entry in folder.iterdir():
            if entry.name not in ("report", "viewer.html", "__pycache__"):
                (place / entry.name).symlink_to(entry)
    return str(copy.parent)


@pytest.mark.parametrize("command", ["plan", "run", "resume"])
def test_a_report_that_cannot_be_written_is_found_before_anything_is_made(tmp_path, without_viewer, command):
    (tmp_path / "x.toml").write_text(template("x", "x.toml"))
    env = {**os.environ, "PYTHONPATH": without_viewer, "PLINTH_STATE_DIR": str(tmp_path / "state")}
    before = set(tmp_path.iterdir())
    done = subprocess.run([*PLINTH, command, "x.toml"], capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.returncode == 5, done.stderr
    assert "the viewer of HTML reports is not built" in done.stderr
    assert "`make build` builds it" in done.stderr
    assert set(tmp_path.iterdir()) == before
