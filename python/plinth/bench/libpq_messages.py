"""The engine's errors as messages of libpq, which pgbench prints."""

import re

_SERVERS = re.compile(r"^([A-Z]+): (.*?) \(SQLSTATE \w{5}\)(?:; detail: (.*?))?(?:; hint: (.*))?$", re.DOTALL)
_LOGIN = re.compile(r"^cannot log in at (\S+): (.*)$", re.DOTALL)
_REFUSED = re.compile(r"^cannot connect to (\S+): (.*?)(?: \(os error \d+\))?; is the server running")


def as_libpq(message: str) -> str:
    """Return an error as libpq words it: of a server, a refused login, a server that is not there; other messages as they are."""
    if login := _LOGIN.match(message):
        return f"connection to server {_place(login[1])} failed: {_servers(login[2])}"
    if refused := _REFUSED.match(message):
        where = "locally" if _is_socket(refused[1]) else "on that host"
        how = "connections on that socket" if _is_socket(refused[1]) else "TCP/IP connections"
        question = f"Is the server running {where} and accepting {how}?"
        return f"connection to server {_place(refused[1])} failed: {refused[2]}\n\t{question}"
    return _servers(message)


def _servers(message: str) -> str:
    """Return a server's message as libpq has it: no SQLSTATE, detail and hint in separate lines, two blanks after the severity."""
    match = _SERVERS.match(message)
    if match is None:
        return message
    severity, primary, detail, hint = match.groups()
    lines = [f"{severity}:  {primary}"]
    lines += [f"{name}:  {text}" for name, text in (("DETAIL", detail), ("HINT", hint)) if text is not None]
    return "\n".join(lines)


def _is_socket(address: str) -> bool:
    return address.startswith(("/", "@"))


def _place(address: str) -> str:
    if _is_socket(address):
        return f'on socket "{address}"'
    host, _, port = address.rpartition(":")
    return f'at "{host.strip("[]")}", port {port}'
