"""The command init, which writes experiment files to start from."""

import json
import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plinth.cli.printing import print_plain
from plinth.model.errors import UsageError

_EXAMPLES_FILE = Path(__file__).parent.parent / "experiment" / "examples.json"


def _example_names() -> list[str]:
    """Return the names of the curated experiments: for --help, without the package that reads experiments, whose models take long to load."""
    return sorted(json.loads(_EXAMPLES_FILE.read_text(encoding="utf-8")))


def init(
    file: Annotated[
        Path | None,
        Parameter(help="File to write; it must not be there yet. Default: experiment.toml, or NAME.toml of --example."),
    ] = None,
    /,
    *,
    full: Annotated[
        bool,
        Parameter(name="--full", help="Write every key that there is, each with its meaning, most in comments."),
    ] = False,
    example: Annotated[
        str | None,
        Parameter(name="--example", help=f"Write one of the curated experiments: {', '.join(_example_names())}."),
    ] = None,
) -> int:
    """Write an experiment file to start from.

    It compares this machine's disk with its memory, and has in comments what is likely to be asked next. --full is the same with every key.

      plinth init mine.toml
      plinth init all-keys.toml --full
      plinth init --example power-cut

    The scripts and SQL files that a curated experiment names are written to where it expects them.
    """
    from plinth.experiment import example as example_of
    from plinth.experiment import full_template, template

    if example is not None:
        if full:
            raise UsageError(
                "give one of --full and --example; what is not in the experiment is in `plinth init --full`"
            )
        curated = example_of(example)
        file = file or Path(f"{example}.toml")
        texts = {file: curated.text, **{file.parent / name: text for name, text in curated.files.items()}}
    else:
        file = file or Path("experiment.toml")
        name = "".join(c if c.isalnum() or c in "-_" else "-" for c in file.stem)[:40]
        write = full_template if full else template
        texts = {file: write(name if name[:1].isalpha() else f"x{name}"[:40], str(file))}
    _write_new(texts)
    print_plain(f"Wrote {', '.join(map(str, texts))}. Next: plinth plan {shlex.quote(str(file))}")
    return 0


def _write_new(texts: dict[Path, str]) -> None:
    """Write files that are not there yet; where one is, none is written."""
    for file in texts:
        if file.exists() or file.is_symlink():
            raise UsageError(
                "the file exists already", where=str(file), hint="give another name, or one in another folder"
            )
    for file, text in texts.items():
        try:
            if file != next(iter(texts)):
                file.parent.mkdir(exist_ok=True)
            with file.open("x", encoding="utf-8") as target:
                target.write(text)
        except OSError as error:
            raise UsageError(f"cannot write the file: {error.strerror}", where=str(file)) from error
