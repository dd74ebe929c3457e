"""What an experiment may have root do: every key that takes text is in a list that says how it is treated."""

import os
import re
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from plinth.experiment import KEYS, confirmations, read_experiment_text
from plinth.model.errors import ExperimentError
from plinth.model.experiment import Experiment
from public_folder import PUBLIC
from ramdisk_experiment import VALID


def _pattern(metadata: tuple[Any, ...]) -> str | None:
    for one in metadata:
        found = _pattern(tuple(one.metadata)) if isinstance(one, FieldInfo) else getattr(one, "pattern", None)
        if found is not None:
            return found
    return None


def _names_nothing(pattern: str | None) -> bool:
    """Whether a whole text of the pattern can be no path, no address and no option."""
    return (
        pattern is not None
        and (pattern[0], pattern[-1]) == ("^", "$")
        and "/" not in pattern
        and not any(re.search(pattern, text) for text in ("/x", "../x", "x/y", "-x", "a:1", "a b", "a=b", "a,b"))
    )


def _keys_of_text(annotation: Any, key: str, pattern: str | None = None) -> Iterator[str]:
    """The keys of a type whose values are text of the experiment's own."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _keys_of_text(arguments[0], key, _pattern(arguments[1:]) or pattern)
    elif origin is dict:
        names = list(_keys_of_text(arguments[0], f"{key}.NAME"))
        yield from names or _keys_of_text(arguments[1], f"{key}.NAME")
        assert not names or not any(issubclass(one, BaseModel) for one in arguments if isinstance(one, type)), key
    elif origin in (Union, types.UnionType, tuple, list):
        for argument in arguments:
            if argument is not Ellipsis:
                yield from _keys_of_text(argument, key, pattern)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            inner = f"{key}.{field.alias or name}".removeprefix(".")
            yield from _keys_of_text(field.annotation, inner, _pattern(tuple(field.metadata)))
    elif origin is not Literal and annotation in (str, Any, object, bytes, Path) and not _names_nothing(pattern):
        yield key


def test_every_key_that_takes_text_is_in_the_list_and_no_other() -> None:
    assert set(_keys_of_text(Experiment, "")) == set(KEYS)


def test_a_new_key_of_text_would_be_seen() -> None:
    class Inner(BaseModel):
        program: list[dict[str, tuple[int | str, ...]]]
        kind: Literal["a"]
        name: Annotated[str, FieldInfo(pattern=r"^[a-z]+$")]

    class Outer(BaseModel):
        inner: dict[Annotated[str, FieldInfo(pattern=r"^[a-z]+$")], Inner | None]

    assert set(_keys_of_text(Outer, "")) == {"inner.NAME.program.NAME"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('[storage.x]\nkind = "directory"\npath = "/mnt/there"', ["/mnt/there"]),
        (
            '[storage.x]\nkind = "device"\nid = "/dev/disk/by-id/one"\nserial = "s"\nsize = "1GB"',
            ["/dev/disk/by-id/one"],
        ),
        ('[server]\nbindir = "/opt/bin"', ["/opt/bin"]),
        (
            '[fleet]\nexecutor = "ray"\nray_address = "ray://head:10001"\nmachines = 2',
            ['Ray cluster at "ray://head:10001"'],
        ),
        ('[fleet]\nexecutor = "ray"\nmachines = 2', ["joins the Ray cluster of this machine"]),
        (
            '[fleet]\nexecutor = "ssh"\nhosts = ["a", "b"]\ncommand = "/tmp/x"',
            ['"a" by ssh', '"b" by ssh', 'the command "/tmp/x"'],
        ),
    ],
)
def test_what_is_confirmed_is_said_of_values_and_of_factors(tmp_path: Path, more: str, said: list[str]) -> None:
    text = VALID.replace("[matrix]\n", '[matrix]\n"storage.disk.path" = ["/mnt/1", "/mnt/2"]\n')
    lines = list(confirmations(read_experiment_text(f"{text}\n{more}\n", "x.toml", tmp_path).experiment))
    for words in ("/mnt/1", "/mnt/2", *said):
        assert any(words in line for line in lines), (words, lines)


def test_a_server_that_is_connected_to_is_confirmed_without_its_password(tmp_path: Path) -> None:
    connection = "host=db1 hostaddr=192.0.2.1 password=s3cr3t"
    head, tables = re.sub(r"storage = .*\n", "", VALID).split("[storage.disk]")[0], VALID.partition("[dataset]")[2]
    tables = re.sub(r"storage = .*\n", "", tables)
    text = f'{head}[server]\nconnection = "{connection}"\n[dataset]{tables}'
    (line,) = confirmations(read_experiment_text(text, "x.toml", tmp_path).experiment)
    assert "host=db1 hostaddr=192.0.2.1" in line and "s3cr3t" not in line


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("host=db1 sslkey=/tmp/engine.so:key", "sslkey: only the path of a file"),
        ("host=db1 passfile=/etc/pgpass", "use ~/.pgpass, or PGPASSFILE"),
        ("host=db1 sslkeylogfile=/etc/cron.d/x", "sslkeylogfile: not in the connection string"),
        ("postgresql://db1/x?passfile=%2Fetc%2Fshadow", "passfile: not in the connection string"),
    ],
)
def test_a_connection_string_of_an_experiment_reads_and_writes_no_file_of_roots(
    tmp_path: Path, parameters: str, words: str
) -> None:
    for text in (
        f'{VALID}\n[server]\nconnection = "{parameters}"\n',
        VALID.replace("[matrix]\n", f'[matrix]\n"server.connection" = ["{parameters}"]\n'),
        f'{VALID}\n[full]\n"server.connection" = "{parameters}"\n',
    ):
        with pytest.raises(ExperimentError) as refused:
            read_experiment_text(text, "x.toml", tmp_path)
        assert any(words in problem.message for problem in refused.value.problems)


def _naming(key: str, name: str) -> str:
    if key == "reference":
        return f'reference = "{name}"\n{VALID}'
    if key == "dataset.schema":
        return VALID.replace('kind = "tpcb"\nscale = 3', f'kind = "sql"\nschema = "{name}"')
    return VALID.replace('builtin = "tpcb-like"', f'script = "{name}"')


@pytest.mark.parametrize("key", ["reference", "workload.script", "dataset.schema"])
def test_root_reads_for_an_experiment_no_private_file_outside_of_its_folder(
    tmp_path_factory: pytest.TempPathFactory, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, is_root = tmp_path_factory.mktemp("experiment"), os.geteuid() == 0
    with tempfile.TemporaryDirectory(dir=PUBLIC) as public:
        secret = Path(public) / "secret.toml"
        secret.write_text("SELECT 'root:$6$secret';\n")
        link = folder / "link.toml"
        link.symlink_to(secret)

        def is_refused(name: Path) -> bool:
            said = problems(name)
            assert "$6$" not in said and (f"{key}: cannot read the " in said) == ("not every user" in said)
            return "not every user may read it" in said

        def problems(name: Path) -> str:
            try:
                read_experiment_text(_naming(key, str(name)), "x.toml", folder)
            except ExperimentError as error:
                return " ".join(f"{one.key}: {one.message} {one.hint}" for one in error.problems)
            return ""

        Path(public).chmod(0o755)
        secret.chmod(0o600)
        for name in (secret, link, Path(os.path.relpath(secret, folder))):
            assert is_refused(name) == is_root
        monkeypatch.setenv("SUDO_UID", str(secret.stat().st_uid))
        assert not is_refused(secret)
        monkeypatch.delenv("SUDO_UID")
        secret.chmod(0o644)
        assert not is_refused(secret)
        Path(public).chmod(0o700)
        assert is_refused(secret) == is_root
        inside = folder / "inside.toml"
        inside.write_text("SELECT 1;\n")
        inside.chmod(0o600)
        assert not is_refused(Path("inside.toml"))


def test_each_confirmed_key_says_what_it_asks_for_and_no_other_does() -> None:
    assert {key for key, one in KEYS.items() if one.shown} == {
        key for key, one in KEYS.items() if one.treatment == "confirmed"
    }
