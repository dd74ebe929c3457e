"""Rules of the architecture that no linter knows: who may use the native module, and what pure crates may not touch."""

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "plinth"
MAY_USE_NATIVE = {"run", "bench", "load", "drivers", "probe", "storage", "workload", "analyse", "network"}
PURE_CRATES = ("wire", "script")
PURE_FOLDERS = (*(f"{crate}/src" for crate in PURE_CRATES), "disk/src/model", "network/src/model")
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


def test_the_native_module_is_imported_by_few():
    users = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if "plinth._native" in imported_modules(path)
    }
    assert users
    assert users <= MAY_USE_NATIVE


def test_nothing_depends_on_the_native_crate_and_pure_crates_depend_on_none_of_ours():
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
    for crate in PURE_CRATES:
        assert not [wanted for wanted in needs[f"plinth-{crate}"] if wanted.startswith("plinth-")]
        assert not needs[f"plinth-{crate}"] & {"mio", "rustix", "libc", "socket2"}


def test_pure_crates_and_the_models_of_disk_and_network_do_no_io_and_read_no_clock():
    for folder in PURE_FOLDERS:
        for path in (ROOT / "crates" / folder).rglob("*.rs"):
            found = IMPURE.search(path.read_text())
            assert found is None, f"{path.relative_to(ROOT)} uses {found[0] if found else ''}"


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
