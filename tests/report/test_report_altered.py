"""A bundle that was changed after its run says so in every form."""

import json

import pytest

from plinth.bundle import verify_bundle
from plinth.cli import main
from plinth.model.errors import RunError
from small_bundles import change, written


def forms(folder, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    found = {}
    for options in ((), ("--full",), ("--markdown",), ("--json",)):
        assert main(["report", str(folder), *options]) == 0
        found[" ".join(options)] = " ".join(capsys.readouterr().out.split())
    assert main(["report", str(folder), "--html", "--output", str(folder.parent / "page.html")]) == 0
    capsys.readouterr()
    found["--html"] = (folder.parent / "page.html").read_text()
    return found


def spoil_trial(folder):
    (trial, *_) = sorted(folder.glob("trials/*/trial.json"))
    change(trial, tps=1e6)
    return f"changed: {trial.relative_to(folder)}"


def remove_server(folder):
    (server, *_) = sorted(folder.glob("env/server-*.json"))
    server.unlink()
    return f"missing: {server.relative_to(folder)}"


def add_file(folder):
    (folder / "env" / "more.json").write_text("{}")
    return "not in the seal: env/more.json"


def remove_seal(folder):
    (folder / "SHA256SUMS").unlink()
    return "missing: SHA256SUMS"


@pytest.mark.long
@pytest.mark.parametrize("alter", [spoil_trial, remove_server, add_file, remove_seal])
def test_every_form_names_what_was_changed(alter, tmp_path, capsys) -> None:
    folder = written(tmp_path / "bundle")
    said = alter(folder)
    with pytest.raises(RunError):
        verify_bundle(folder)
    for form, text in forms(folder, capsys).items():
        assert "changed after its run" in text and said in text, form
        if form in ("", "--full"):
            assert text.startswith("This bundle was changed after its run")
        if form == "--json":
            assert json.loads(text)["analysis"]["altered"] == [said]


def test_of_one_that_is_as_its_run_left_it_nothing_is_said(tmp_path, capsys) -> None:
    folder = written(tmp_path / "bundle")
    (folder / "derived").mkdir(exist_ok=True)
    (folder / "derived" / "mine.txt").write_text("derived files are made again at will")
    for form, text in forms(folder, capsys).items():
        if form != "--html":  # whose viewer has the words
            assert "changed after its run" not in text, form


def test_of_one_whose_run_was_killed_nothing_is_said(tmp_path, capsys) -> None:
    folder = written(tmp_path / "bundle", finished=False)
    assert "changed after its run" not in forms(folder, capsys)[""]


def test_many_changes_are_named_in_part_and_listed_as_json(tmp_path, capsys) -> None:
    folder = written(tmp_path / "bundle")
    for number in range(8):
        (folder / "env" / f"{number}.json").write_text("{}")
    shown = forms(folder, capsys)
    assert "3 more, which `plinth verify` lists" in shown[""]
    assert len(json.loads(shown["--json"])["analysis"]["altered"]) == 8


def test_the_catalogue_marks_its_answer(tmp_path, capsys) -> None:
    folder = written(tmp_path / "bundle")
    assert main(["history", str(tmp_path), "--json"]) == 0
    assert "Changed after its run" not in capsys.readouterr().out
    spoil_trial(folder)
    assert main(["history", str(tmp_path), "--json"]) == 0
    assert "Changed after its run: " in capsys.readouterr().out
