"""The agent of a host that was broken into: a process that speaks the real protocol, and does what the file says that its first word names.

It shares no code with Plinth. The file is JSON: `hello` has what it says of itself, `lies` what it does in the place of an answer, by the
kind of the request, or "call.METHOD" for calls. A lie is a list of what it does in turn:

    {"send": DOCUMENT}   a frame; "NUMBER" in it is the number of the request
    {"text": TEXT}       the same for a document that is no JSON; {"hex": BYTES} for one that is no text
    {"raw": HEX}         bytes without a frame
    {"stderr": BYTES}    as many on standard error
    {"repeat": N, "do": [...]}, {"sleep": SECONDS}, {"end": true}
"""

import contextlib
import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any

IN, OUT = 0, 1


def main() -> None:
    script = json.loads(Path(sys.argv[1]).read_text())
    for one in script.get("first", []):
        do(one, 0)
    with contextlib.suppress(BrokenPipeError, EOFError):
        while True:
            json_bytes, other_bytes = struct.unpack("<II", read(8))
            request = json.loads(read(json_bytes))
            read(other_bytes)
            answer(request, script)


def read(size: int) -> bytes:
    got = b""
    while len(got) < size:
        piece = os.read(IN, size - len(got))
        if not piece:
            raise EOFError
        got += piece
    return got


def answer(request: dict[str, Any], script: dict[str, Any]) -> None:
    number, kind = request["number"], request["kind"]
    name = f"call.{request.get('method', '')}" if kind == "call" else kind
    lies = script["lies"].get(name)
    if lies is not None:
        for one in lies:
            do(one, number)
    elif kind == "hello":
        send({"number": number, "hello": script["hello"]})
    elif kind == "clock":
        now_ns = time.monotonic_ns()
        send({"number": number, "clock": {"received_ns": now_ns, "sent_ns": now_ns}})
    else:
        send({"number": number})


def do(what: dict[str, Any], number: int) -> None:
    if "send" in what:
        write_frame(json.dumps(what["send"]).replace('"NUMBER"', str(number)).encode())
    elif "text" in what:
        write_frame(what["text"].replace('"NUMBER"', str(number)).encode())
    elif "hex" in what:
        write_frame(bytes.fromhex(what["hex"]))
    elif "raw" in what:
        write(bytes.fromhex(what["raw"]))
    elif "stderr" in what:
        for _ in range(what["stderr"] // 4096):
            os.write(2, b"x" * 4095 + b"\n")
    elif "repeat" in what:
        for _ in range(what["repeat"]):
            for one in what["do"]:
                do(one, number)
    elif "sleep" in what:
        time.sleep(what["sleep"])
    elif what.get("end"):
        sys.exit(0)


def send(document: object) -> None:
    write_frame(json.dumps(document).encode())


def write_frame(document: bytes) -> None:
    write(struct.pack("<II", len(document), 0) + document)


def write(content: bytes) -> None:
    while content:
        content = content[os.write(OUT, content) :]


if __name__ == "__main__":
    main()
