"""Rules of the architecture that no linter knows: who may use the native module, and what pure crates may not touch."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "plinth"
PURE_CRATES = ("wire", "script", "tpcc")
PURE_PLACES = (
    *(f"{crate}/src" for crate in PURE_CRATES),
    "disk/src/model",
    "network/src/model",
    "probe/src/plan.rs",
    "probe/src/case.rs",
)
IMPURE = re.compile(r"\bstd::(net|fs|thread|process|os|env|time::(Instant|SystemTime))\b")


def imported_modules(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_nothing_is_imported_from_a_test_module_or_a_conftest():
    """Pytest loads these by their paths, and their folders are not searched. Programs of child processes count, too."""
    imports = re.compile(r"\b(?:from|import) (?:[\w.]+\.)?(?:test_\w+|conftest)\b")
    importing = [path.name for path in (ROOT / "tests").rglob("*.py") if imports.search(path.read_text())]
    assert importing == [], "move it to tests/support"


def invariants() -> dict[int, str]:
    """Return the invariants of ARCHITECTURE.md by their numbers, each as one line."""
    section = (ROOT / "ARCHITECTURE.md").read_text().split("## Invariants")[1].split("\n## ")[0]
    numbered = re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |\n\n)", section, re.MULTILINE | re.DOTALL)
    return {int(number): " ".join(text.split()) for number, text in numbered}


def contracts() -> dict[str, dict[str, str]]:
    """Return the contracts of import-linter by their ids."""
    parser = ConfigParser()
    parser.read(ROOT / ".importlinter")
    return {name.rpartition(":")[2]: dict(parser[name]) for name in parser.sections() if ":" in name}


def unchecked(text: str, known: set[str]) -> list[str]:
    """Return what an invariant says that it is checked by and that is not there; a "checked" that names nothing."""
    by = re.findall(r"\bchecked\b(:(?: `\w+`,?)+)?", text)
    return [name for names in by for name in re.findall(r"\w+", names) or ["nothing"] if name not in known]


def test_what_an_invariant_is_checked_by_is_there():
    tests = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    known = {*contracts(), *tests}
    texts = invariants()
    assert list(texts) == list(range(1, len(texts) + 1))
    assert {number: wrong for number, text in texts.items() if (wrong := unchecked(text, known))} == {}
    assert sum("checked" in text for text in texts.values()) >= 5
    assert unchecked("Nothing burns (checked: `pure`, `test_fire`); nor here (checked).", known) == [
        "test_fire",
        "nothing",
    ]


def test_the_invariants_name_the_packages_and_their_order_as_the_linter_has_them():
    def words(layers: str, prefix: str = "") -> list[set[str]]:
        return [set(line.replace(prefix, "").split(" | ")) for line in layers.strip().split("\n")]

    def spans(text: str) -> list[list[set[str]]]:
        found = (span.split(" > ") for span in re.findall(r"`([^`]* > [^`]*)`", text))
        return [[set(level.split(", ")) for level in levels] for levels in found]

    first, linted = invariants()[1], contracts()
    packages, storage = spans(first)
    stages = re.search(r"stages \(([\w, ]+)\)", first)
    assert stages is not None
    named = [set(stages[1].split(", ")) if level == {"stages"} else level for level in packages]
    assert named == words(linted["layers"]["layers"], "plinth.")
    assert storage == words(linted["storage"]["layers"])
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set().union(*named) == folders - {"reference"}, "reference is data"
    users_of_duckdb = {name.rpartition(".")[2] for name in linted["duckdb"]["source_modules"].split()}
    assert users_of_duckdb == set().union(*named) - {"bundle"}


def circles_of(graph: grimp.ImportGraph) -> set[frozenset[str]]:
    """Return the modules that import one another in a circle (Tarjan's strongly connected components)."""
    found: set[frozenset[str]] = set()
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_ones: list[str] = []

    def visit(module: str) -> None:
        index[module] = lowest[module] = len(index)
        open_ones.append(module)
        for imported in graph.find_modules_directly_imported_by(module):
            if imported not in index:
                visit(imported)
            if imported in open_ones:
                lowest[module] = min(lowest[module], lowest[imported])
        if lowest[module] == index[module]:
            circle = open_ones[open_ones.index(module) :]
            del open_ones[-len(circle) :]
            if len(circle) > 1:
                found.add(frozenset(circle))

    for module in graph.modules:
        if module not in index:
            visit(module)
    return found


def test_no_modules_form_a_circle():
    """Imports within functions and under TYPE_CHECKING count, and those of packages."""
    graph = grimp.build_graph("plinth", exclude_type_checking_imports=False, cache_dir=None)
    assert circles_of(graph) == set()
    graph.add_import(importer="plinth.common.nearest", imported="plinth.run.listener")
    graph.add_import(importer="plinth.run.listener", imported="plinth.common.nearest")
    assert frozenset({"plinth.common.nearest", "plinth.run.listener"}) in circles_of(graph)


def test_the_native_module_is_imported_by_few():
    users = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if "plinth._native" in imported_modules(path)
    }
    only = re.search(r"`plinth\._native` is imported by ([\w, ]+) only", invariants()[3])
    assert only is not None and users == set(re.split(", | and ", only[1]))


def test_nothing_depends_on_the_native_crate_and_pure_crates_depend_on_pure_ones():
    done = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    packages = {package["name"]: package for package in json.loads(done.stdout)["packages"]}
    needs = {
        name: {dependency["name"] for dependency in package["dependencies"] if dependency["kind"] is None}
        for name, package in packages.items()
    }
    assert not [name for name, wanted in needs.items() if "plinth-native" in wanted]
    pure = {f"plinth-{crate}" for crate in PURE_CRATES}
    for crate in pure:
        assert {wanted for wanted in needs[crate] if wanted.startswith("plinth-")} <= pure
        assert not needs[crate] & {"mio", "rustix", "nix", "libc", "socket2"}
    assert not needs["plinth-log"] & {"mio", "socket2", "plinth-connect"}


def rust_files(place: str) -> list[Path]:
    path = ROOT / "crates" / place
    found = [path] if path.is_file() else list(path.rglob("*.rs"))
    assert found, f"{place} is not there"
    return found


def test_pure_crates_the_models_of_disk_and_network_and_the_plan_of_probe_do_no_io_and_read_no_clock():
    for path in (file for place in PURE_PLACES for file in rust_files(place)):
        found = IMPURE.search(path.read_text())
        assert found is None, f"{path.relative_to(ROOT)} uses {found[0] if found else ''}"


def test_the_log_crate_opens_no_socket():
    for path in rust_files("log/src"):
        assert not re.search(r"\b(std::net|std::os::unix::net|TcpStream|UnixStream)\b", path.read_text())


def test_rust_files_are_short():
    lines = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for folder in ("crates", "fuzz/fuzz_targets")
        for path in (ROOT / folder).rglob("*.rs")
    }
    assert lines
    assert {name: count for name, count in lines.items() if count > 700} == {}


def functions_of_modules() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield each function of the package with its place; not those of commands, whose parameters are the options and whose
    docstrings are the help."""
    for path in PACKAGE.rglob("*.py"):
        if path.parent != PACKAGE / "cli":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}", node


def test_functions_can_be_read_at_once():
    """At most 60 lines, and 8 parameters."""
    long, wide = {}, {}
    for name, node in functions_of_modules():
        parameters = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = len(parameters) - (parameters[:1] in (["self"], ["cls"]))
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > 60:
            long[name] = lines
        if count > 8:
            wide[name] = count
    assert (long, wide) == ({}, {})


def test_a_percent_sign_stands_apart_from_its_figure():
    """ "19 %", as plinth.model.figures.percent writes it. What `plinth bench` prints is in pgbench's own form."""
    attached = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "bench"
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.FormattedValue) and node.format_spec and ast.unparse(node.format_spec).endswith("%'"))
        or (isinstance(node, ast.Constant) and isinstance(node.value, str) and "%}" in node.value)
    ]
    assert attached == []


def strings_but_docstrings(path: Path) -> set[str]:
    """The text of every string of a file that is a value."""
    tree = ast.parse(path.read_text())
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
    }


def test_no_server_is_brought_up_by_pg_resetwal_or_zeroed_pages():
    """A server that does not recover is a result of a power cut. cut_problems.py refuses the settings by their names."""
    hiding = re.compile(r"pg_resetwal|zero_damaged_pages|ignore_checksum_failure|ignore_invalid_pages")
    users = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if any(hiding.search(text) for text in strings_but_docstrings(path))
    }
    assert users == {"run/checks/power_cuts.py"}
    crates = [path for path in (ROOT / "crates").rglob("*.rs") if hiding.search(path.read_text())]
    assert crates == []


def test_every_file_that_documents_name_is_there():
    """By its path from the root or within the package; by its name alone where the path is said elsewhere on the page."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    known = {*listed, *(Path(file).name for file in listed)}
    pages = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("internals/*.md")]
    named = {
        (page.name, name)
        for page in [*pages, *(ROOT / "docs").glob("concepts/*.md")]
        for name in re.findall(r"`([\w/.-]+\.(?:py|rs|ts|sh|css))`", page.read_text())
    }
    assert len(named) > 80
    beginnings = ("", "python/", "python/plinth/", "crates/disk/")
    assert {one for one in named if not any(f"{begin}{one[1]}" in known for begin in beginnings)} == set()


RUNS_ITSELF = {
    # The server itself, which is not confined.
    "server/postmaster.py:__init__",
    # PostgreSQL in the usual places, which is trusted.
    "server/installations/find.py:_run_version",
    "server/installations/reachable.py:_runs",
    "server/installations/reachable.py:_prefix",
    "server/installations/reachable.py:_libraries",
    "tasks/probe_backup.py:_back_up",
    # Patroni and etcd in PATH, of which Patroni starts servers.
    "server/replication/patroni_machine.py:_require_program",
    "server/replication/patroni_machine.py:_start",
    "server/replication/patroni_machine.py:end",
    # A function of the check's, and no process.
    "server/integrity/amcheck.py:check_database",
    # In the confinement of the task.
    "server/backup_task.py:_copy",
    "server/backup_task.py:_extract",
}
"""Functions that start a program of an installation, or one on what was brought, otherwise than by `run_confined`."""
STARTS = {"run", "spawn", "spawn_connected", "Popen", "check_output", "check_call", "call", "system", "popen"}
STARTS |= {"execv", "execve", "execvp", "execvpe", "posix_spawn"}
PROGRAMS = re.compile(
    r"bindir|\b(initdb|backup|start)_step\b|backup_command|\bprogram\b|\bpg_\w+\b|_postgres\b|\bPROGRAMS\b"
)
BROUGHT = ("server/backup_task.py", "workload/brought_task.py", "workload/log_task.py")
"""Modules that open what was brought: tasks of confined processes."""
HANDLES_BROUGHT = {
    # What they open is Plinth's own: lists for pg_restore; replay files of the cache; copies that the caller makes for the reader.
    "server/unpack_backup.py": set[str](),
    "workload/backup.py": set[str](),
    "workload/brought_files.py": set[str](),
    "workload/dump.py": {"_restore_archive"},
    "workload/recording.py": {"_remove_old", "_known_left_out"},
    "workload/server_log.py": {"log_files", "prepare_replay", "_copy_for", "_is_own_replay", "read_replay"},
}
"""Modules that have paths of what was brought, and their functions that use files."""
OPENS = {
    "open",
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "iterdir",
    "glob",
    "rglob",
    "stat",
    "lstat",
    "exists",
    "is_file",
}
OPENS |= {
    "is_dir",
    "is_symlink",
    "readlink",
    "resolve",
    "realpath",
    "unlink",
    "rmtree",
    "copy",
    "copytree",
    "copyfile",
    "move",
    "walk",
}
OPENS |= {
    "scandir",
    "listdir",
    "chown",
    "chmod",
    "open_regular_file",
    "read_small_file",
    "touch",
    "mkdir",
    "rename",
    "replace_file",
}


def calls_in(node: ast.AST) -> set[str]:
    """Names of the functions and methods that are called; `Runner.resolve` opens paths as the server's user."""
    called = (one.func for one in ast.walk(node) if isinstance(one, ast.Call))
    called = (func for func in called if not re.fullmatch(r"(runner|Runner\(\))\.resolve", ast.unparse(func)))
    return {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in called}


def starting_in(source: str, name: str) -> set[str]:
    """Functions that start a process and speak of programs of an installation, or that any task has."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and calls_in(node) & STARTS:
            text = ast.unparse(ast.Module(node.body[1:] if ast.get_docstring(node) else node.body, []))
            if name in BROUGHT or PROGRAMS.search(text):
                found.add(f"{name}:{node.name}")
    return found


def test_what_was_brought_is_run_by_one_function():
    """Programs of a bindir, and programs that handle backups, dumps and logs."""
    starting = set[str]()
    folders = ("server", "workload", "run", "tasks")
    for path in (file for folder in folders for file in (PACKAGE / folder).rglob("*.py")):
        starting |= starting_in(path.read_text(), str(path.relative_to(PACKAGE)))
    assert starting == RUNS_ITSELF
    control = "def f(self, bindir): self._runner.run([f'{bindir}/initdb'])\ndef g(): subprocess.Popen(['pg_restore'])"
    assert starting_in(control, "a.py") == {"a.py:f", "a.py:g"}


def test_what_was_brought_is_opened_by_tasks_alone():
    for name, allowed in HANDLES_BROUGHT.items():
        tree = ast.parse((PACKAGE / name).read_text())
        opening = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and calls_in(node) & OPENS}
        assert opening <= allowed, f"{name} opens a file: is it one that was brought?"
    for path in PACKAGE.rglob("*.py"):
        importing = imported_modules(path) & {
            f"plinth.{name.removesuffix('.py').replace('/', '.')}" for name in BROUGHT
        }
        assert not importing, f"{path.name}: tasks run in confined processes alone"


def test_paths_of_what_was_brought_are_handed_on_by_few():
    """What names dumps, backups and logs: their modules above, the reading of the experiment, and what shows the plan."""
    naming = re.compile(r"BackupSource|DumpDataset|BackupDataset|recorded_files|check_log|prepare_replay")
    may = {*HANDLES_BROUGHT, *BROUGHT, "server/layout.py", "server/server.py", "run/context.py", "experiment/files.py"}
    may |= {
        "run/planning/make_plan.py",
        "run/checks/own_database.py",
        "run/checks/hosts.py",
        "cli/replay.py",
        "model/dataset.py",
    }
    may |= {"workload/registry.py", "plan/build.py"}
    found = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if naming.search(path.read_text())}
    assert found - may == set()


def test_the_import_linter_sees_every_module():
    """A folder without __init__.py would be skipped, and no rule would hold in it."""
    files = {path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts}
    seen = grimp.build_graph("plinth", cache_dir=None).modules
    names = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__") for path in files
    }
    assert names == seen
