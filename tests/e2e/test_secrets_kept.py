"""Passwords in every spelling: no byte of a bundle, of the state directory or of what is printed has one."""

import json
import os
import re
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from external_experiment import EXTERNAL
from plinth.bundle import BundleFolder, BundleWriter
from plinth.cli import main
from plinth.experiment import read_experiment
from plinth.run.planning.make_plan import make_plan
from plinth.system.run_key import create_key
from typed import present

HEAD, _, _REST = EXTERNAL.partition("[server]\n")
TAIL = _REST.partition("\n\n")[2].replace("[matrix]\nworkload.clients = [1, 4]\n\n", "")
# Nobody listens there: what is written and said before and after connecting is the same, and comes at once.
TO = "host=127.0.0.1 port=1 dbname=x"
URI = "127.0.0.1:1/x"


class Case(NamedTuple):
    """A spelling: `$` is replaced by the secret, each time it is there. `server` follows [server]; `end` ends the file."""

    server: str = ""
    end: str = ""
    words: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    taken: bool = True
    """Whether it is taken as a connection string; else it is refused."""
    ends: int = 1
    """The exit code of plan and run, if it is taken."""


def keyword(password: str) -> str:
    return uri(f"{TO} {password}")


def uri(text: str) -> str:
    return f"connection = {json.dumps(text, ensure_ascii=False)}"


CASES = {
    # keyword = value
    "plain": Case(keyword("password=$")),
    "ampersand": Case(keyword("password=$&$")),
    "escaped space": Case(keyword(r"password=$\ $")),
    "quoted": Case(keyword("password='$ and $'")),
    "escaped quote": Case(keyword(r"password='$\'$'")),
    "escaped quote, unquoted value": Case(keyword(r"password=$\'$\\$")),
    "spaces around =": Case(keyword("password \t=\n  $")),
    "double quotes within": Case(keyword('password=$"$"')),
    "twice": Case(keyword("password=$ password=$")),
    "of the key": Case(keyword("sslpassword=$ sslkey=/nowhere")),
    "of OAuth": Case(keyword("oauth_client_secret=$")),
    "of SCRAM, the client's": Case(keyword("scram_client_key=$"), ends=2),
    "of SCRAM, the server's": Case(keyword("scram_server_key=$"), ends=2),
    "first": Case(f"connection = 'password=$ {TO}'"),
    "unicode": Case(keyword("password=ü$ß$💾$")),
    "percent is not decoded": Case(keyword("password=$%26$")),
    "backslash at the end of a quoted value": Case(keyword(r"password='$\\'")),
    "hash": Case(keyword("password=$#$")),
    "several hosts": Case("connection = 'host=127.0.0.1,127.0.0.1 port=1 password=$ dbname=x'"),
    # URI
    "URI": Case(uri(f"postgresql://u:$@{URI}")),
    "URI, short scheme": Case(uri(f"postgres://u:$@{URI}")),
    "URI, percent-encoded": Case(uri(f"postgresql://u:$%40$%2F%24$@{URI}")),
    "URI, query": Case(uri(f"postgresql://u@{URI}?password=$")),
    "URI, query, percent-encoded key": Case(uri(f"postgresql://u@{URI}?p%61ss%77ord=$")),
    "URI, query, percent-encoded value": Case(uri(f"postgresql://u@{URI}?password=$%20$%26$")),
    "URI, key's password": Case(uri(f"postgresql://u@{URI}?sslp%61ssword=$&sslmode=prefer")),
    "URI, both": Case(uri(f"postgresql://u:$@{URI}?password=$")),
    "URI, question mark": Case(uri(f"postgresql://u:$?$@{URI}")),
    "URI, hash": Case(uri(f"postgresql://u:$#$@{URI}")),
    "URI, no user": Case(uri(f"postgresql://:$@{URI}")),
    "URI, no host": Case(uri("postgresql://u:$@/x?host=127.0.0.1&port=1")),
    "URI, several hosts": Case(uri("postgresql://u:$@127.0.0.1:1,127.0.0.1:1/x")),
    "URI, unicode": Case(uri(f"postgresql://u:ü$%C3%BC$@{URI}")),
    # what libpq does not take, or takes for something else
    "raw space": Case(keyword("password=$ $"), taken=False),
    "raw space and =": Case(keyword("password=$ $=$"), taken=False),
    "open quote": Case(keyword("password='$"), taken=False),
    "a colon for =": Case(keyword("password:$"), taken=False),
    "URI, raw space": Case(uri(f"postgresql://u:$ $@{URI}"), taken=False),
    "URI, raw slash": Case(uri(f"postgresql://u:$/$@{URI}"), taken=False),
    "URI, raw at": Case(uri(f"postgresql://u:$@$@{URI}"), taken=False),
    "URI, raw percent": Case(uri(f"postgresql://u:$%$@{URI}"), taken=False),
    "URI, open bracket": Case(uri("postgresql://u:$@[::1/x"), taken=False),
    "URI of SQLAlchemy": Case(uri(f"postgresql+psycopg://u:$@{URI}"), taken=False),
    "URI in dbname": Case("connection = \"host=127.0.0.1 port=1 dbname='postgresql://u:$@h/d'\"", taken=False),
    "only the password": Case("connection = '$'", taken=False),
    "NUL": Case(f'connection = "{TO}\\u0000 password=$"', taken=False),
    # TOML
    "comment": Case(keyword("password=$"), end="# the old one was password=$\n"),
    "comment, secret elsewhere": Case(f"connection = '{TO}'  # password=$", end="# postgresql://u:$@h/d\n"),
    "escapes": Case(f'connection = "{TO} p\\u0061ssword=$\\u0026$"'),
    "long escapes": Case(f'connection = "{TO} \\U00000070assword=$"'),
    "several lines": Case(f'connection = """\n{TO} \\\n   password=$"""'),
    "several lines, literal": Case(f"connection = '''{TO}\npassword='$ \\\\ $'\n'''"),
    "dotted key": Case("", end=f"[workload.variables]\n[\"server\"]\n'connection' = '{TO} password=$'\n"),
    "factor": Case("", end=f"[matrix]\nserver.connection = ['{TO} password=$', '{TO} user=two password=$']\n"),
    "factor, quoted": Case("", end=f"[matrix]\n\"server.connection\" = ['{TO} password=$', 'postgres://u:$@{URI}']\n"),
    "baseline": Case(
        "",
        end=f"baseline = {{'server.connection' = '{TO} user=two password=$'}}\n"
        f"[matrix]\nserver.connection = ['{TO} password=$', '{TO} user=two password=$']\n",
    ),
    "full": Case(keyword("password=$"), end=f"[full]\nserver.connection = '{TO} user=two password=$'\n"),
    "list": Case(f"connection = ['{TO} password=$']", taken=False),
    "misspelt key": Case(f"conection = '{TO} password=$'", taken=False),
    "wrong table": Case("", end=f"[drive]\nconnection = '{TO} password=$'\n", taken=False),
    "misspelt factor": Case("", end=f"[matrix]\nserver.conection = ['{TO} password=$']\n", taken=False),
    "in the question": Case(f"connection = '{TO}'\n[dataset.x]\nquestion = 'Is postgres://u:$@h fast?'", taken=False),
    "the same level twice": Case(
        "", end=f"[matrix]\nserver.connection = ['{TO} password=$', '{TO} password=a$']\n", taken=False
    ),
    "TOML that ends too early": Case(f"connection = '{TO} password=$", taken=False),
    # the command line and the environment
    "--set": Case(words=("--set", f"server.connection={TO} password=$")),
    "--set, a TOML string": Case(words=("--set", f'server.connection="{TO} p\\u0061ssword=$"')),
    "--set, a table": Case(words=("--set", f"server={{connection='{TO} password=$'}}")),
    "--set, levels": Case(words=("--set", f"matrix={{'server.connection'=['{TO} password=$']}}")),
    "--set, another file's": Case(keyword("password=$"), words=("--set", f"server.connection={TO} password=new$")),
    "--set, a comment": Case(words=("--set", f"server.connection='{TO}' # password=$")),
    "--set, a line more": Case(f"connection = '{TO}'", words=("--set", "measure.repeats=1\npassword='$'")),
    "--set, raw space": Case(words=("--set", f"server.connection={TO} password=$ $"), taken=False),
    "--set, another key": Case(words=("--set", f"connection={TO} password=$"), taken=False),
    "--set, no key": Case(words=("--set", f"postgresql://u:$@{URI}"), taken=False),
    "--set, a part": Case(keyword("password=$"), words=("--set", "server.connection.password=$"), taken=False),
    "PGPASSWORD": Case(f"connection = '{TO}'", env=(("PGPASSWORD", "$"),)),
    "service file": Case(
        "connection = 'service=mine'", env=(("PGSERVICEFILE", "[mine]\nhost=127.0.0.1\nport=1\npassword=$\n"),)
    ),
    "password file": Case(f"connection = '{TO}'", env=(("PGPASSFILE", "*:*:*:*:$\n"),)),
}


def traces(texts: dict[str, bytes], secret: str) -> list[str]:
    return [name for name, text in texts.items() if secret.encode() in text]


def everything_in(*folders: Path) -> dict[str, bytes]:
    files = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return {f"content of {path}": path.read_bytes() for path in files if path.is_file()} | {
        f"name of {path}": os.fsencode(path) for path in files
    }


def keep(overrides: tuple[str, ...]) -> None:
    """Write the bundle of a run that had got as far as that; one whose server does not answer makes none."""
    loaded = read_experiment(Path("x.toml"), overrides)
    plan = make_plan(loaded, run_id="kept", bundle=Path("bundle"))
    writer = BundleWriter.create(BundleFolder.made(Path("bundle")), plan, loaded.kept_text, "0", create_key("kept"))
    writer.finish("failed", "its server did not answer")


@pytest.mark.parametrize("name", CASES)
def test_a_password_leaves_no_trace(
    name: str, scratch: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    case, secret = CASES[name], f"hush{list(CASES).index(name)}x"
    monkeypatch.chdir(scratch)
    monkeypatch.setenv("PLINTH_STATE_DIR", str(scratch / "state"))
    variables = {"PGCONNECT_TIMEOUT": "2"}
    for variable, text in case.env:
        value = text.replace("$", secret)
        if variable.endswith("FILE"):
            (scratch / variable).write_text(value)
            (scratch / variable).chmod(0o600)
            value = str(scratch / variable)
        variables[variable] = value
    server = f"[server]\n{case.server}\n\n" if case.server else ""
    (scratch / "x.toml").write_text((HEAD + server + TAIL + case.end).replace("$", secret))
    words = [word.replace("$", secret) for word in case.words]
    outcomes: list[int] = []
    for command in (["plan", "x.toml"], ["plan", "x.toml", "--json"], ["run", "x.toml", "--bundle", "bundle"]):
        for variable, value in variables.items():  # connecting has taken them out
            monkeypatch.setenv(variable, value)
        outcomes.append(main([*command, *words]))
    if case.taken:
        keep(tuple(words[1::2]))
    if (scratch / "bundle").exists():
        outcomes.append(main(["report", "bundle", "--json"]))
    said = capfd.readouterr()
    texts = everything_in(scratch / "bundle", scratch / "state")
    texts |= {"stdout": said.out.encode(), "stderr": said.err.encode()}
    assert traces(texts, secret) == []
    assert "Traceback" not in said.err
    assert outcomes[:3] == [case.ends if case.taken else 2] * 3, said.err
    if case.taken:
        assert (scratch / "bundle" / "experiment.toml").exists()


@pytest.mark.long
def test_a_bundle_of_an_external_server_is_its_owners_only(project, service) -> None:
    """With real logins, by passwords that the server asks for, all statements logged and a replication's password set."""
    string, _ = service
    with psycopg.connect(string, autocommit=True) as control:
        data = Path(str(present(control.execute("SHOW data_directory").fetchone())[0]))
        control.execute("SET log_statement = 'none'")
        for number in (1, 2):
            control.execute(f"CREATE ROLE role{number} LOGIN SUPERUSER PASSWORD 'hush{number} & ''q'' @/%'".encode())
        control.execute("ALTER SYSTEM SET log_statement = 'all'")
        control.execute("ALTER SYSTEM SET primary_conninfo = 'host=nowhere password=hush3 user=replica'")
        control.execute("ALTER SYSTEM SET ssl_passphrase_command = 'echo hush4'")
        (data / "pg_hba.conf").write_text("local all bench trust\nlocal all all scram-sha-256\n")
        control.execute("SELECT pg_reload_conf()")
    host = string.partition(" ")[0].removeprefix("host=")
    levels = [
        rf"host={host} user=role1 dbname=postgres password='hush1 & \'q\' @/%'",
        f"postgresql://role2:hush2%20%26%20%27q%27%20%40%2F%25@/postgres?host={host.replace('/', '%2F')}",
    ]
    log = data.parent.parent / "theirs.log"
    project.write(HEAD + TAIL + f"[matrix]\nserver.connection = {json.dumps(levels)}\n")
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    assert all(trial["status"] == "complete" for trial in project.trials())
    reported = project.plinth("report", project.bundle, "--html")
    assert reported.returncode == 0, reported.stderr
    texts = everything_in(project.bundle, project.state)
    texts |= {"stdout": done.stdout.encode(), "stderr": done.stderr.encode()}
    for number in (1, 2, 3, 4):
        assert traces(texts, f"hush{number}") == []
    assert re.findall("hush[12]", log.read_text()) == []
    assert "role1" in (project.bundle / "experiment.toml").read_text()
    modes = {path: path.stat().st_mode & 0o777 for path in (project.bundle, *project.bundle.rglob("*"))}
    assert [path for path, mode in modes.items() if mode & 0o077] == []


@pytest.mark.long
@pytest.mark.parametrize("logging", ["log_statement=all", "log_min_duration_statement=0"])
def test_the_password_of_our_own_server_is_not_in_its_log(project, logging: str) -> None:
    name, _, value = logging.partition("=")
    project.write(project.experiment + f'\n[server]\nlisten = "tcp"\n[server.settings]\n{name} = "{value}"\n')
    done = project.run("--set", "storage=memory", "--set", "measure.repeats=1", "--set", "measure.aa=false")
    assert done.returncode in (0, 3), done.stderr
    log = next(project.bundle.glob("logs/postgresql-*.log")).read_text()
    changes = re.findall(r"alter role .*", log)
    assert changes
    assert all("SCRAM-SHA-256$" in change for change in changes)
