"""The command servers."""

from plinth.cli.console import output_console, plain_table
from plinth.cli.options import AsJson
from plinth.cli.printing import print_json


def servers(*, as_json: AsJson = False) -> int:
    """List the PostgreSQL installations that can be used, and those that were found but do not run.

    An experiment chooses one by `server.version` or `server.bindir`.

      plinth servers
    """
    from plinth.server.installations.find import find_installations
    from plinth.system.owner import server_owner
    from plinth.system.runner import Runner

    survey = find_installations(server_owner(), Runner())
    if as_json:
        print_json("[" + ",".join(installation.model_dump_json() for installation in survey.installations) + "]")
        return 0
    table = plain_table()
    for title in ("version", "origin", "bindir"):
        table.add_column(title, no_wrap=title == "version", overflow="fold")
    for installation in survey.installations:
        table.add_row(installation.version, installation.origin, installation.bindir)
    for place, reason in survey.rejected:
        table.add_row("n/a", place.origin, f"{place.bindir}: {reason}")
    output_console().print(table)
    return 0
