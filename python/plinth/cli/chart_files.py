"""Writes the charts of a report to files: `plinth report --svg DIR --png DIR`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from plinth.cli.printing import print_json, print_plain
from plinth.model.errors import RunError
from plinth.system.failures import from_os_error

if TYPE_CHECKING:
    from plinth.model.report import Report


def write_charts(report: "Report", bundle: Path, svg: Path | None, png: Path | None, as_json: bool) -> None:
    """Write every chart of the report of `bundle` to the given directories, and print the path and title of each.

    Files are written under a temporary name and renamed, so that a symbolic link of that name is replaced, not followed.
    Raises RunError when there is nothing to draw.
    """
    from plinth.bundle.files import BundleFolder
    from plinth.report.charts import draw_charts, png_of

    folders = {
        form: _created_folder(folder, form) for form, folder in (("svg", svg), ("png", png)) if folder is not None
    }
    drawings = draw_charts(report)
    if not drawings:
        raise RunError(
            "there is no chart to write: no trial of this run was measured",
            where=str(bundle),
            hint="`plinth report BUNDLE` says what failed; `plinth resume BUNDLE` runs the trials that are missing",
        )
    index: list[dict[str, str]] = []
    for form, folder in folders.items():
        opened = BundleFolder(folder)
        for drawing in drawings:
            name = f"{drawing.name}.{form}"
            opened.write_durably(name, drawing.svg if form == "svg" else png_of(drawing))
            index.append({"file": str(folder / name), "title": drawing.title})
    if as_json:
        print_json(json.dumps(index, indent=1, ensure_ascii=False))
        return
    for entry in index:
        print_plain(f"{entry['file']}: {entry['title']}")


def _created_folder(folder: Path, form: str) -> Path:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        hint = f"--{form} names another folder for them"
        raise from_os_error(error, "write the charts", folder, hint=hint) from error
    return folder
