"""What a witness is known by and what it asks for, and the options of the commands that say so."""

import ssl
from pathlib import Path

import pytest

from certificates import Authority
from plinth.cli import main
from plinth.model.errors import RunError, UsageError
from plinth.witness.credentials import (
    TOKEN_VARIABLE,
    connect_to_witness,
    parsed_fingerprint,
    token_of,
    witness_credentials,
)
from witnessing import WitnessHere

DIGITS = "0123456789abcdef" * 4
TOKEN = "t" * 43


@pytest.mark.parametrize(
    "text",
    [f"sha256:{DIGITS}", DIGITS, DIGITS.upper(), ":".join(DIGITS[at : at + 2].upper() for at in range(0, 64, 2))],
)
def test_a_fingerprint_is_read_as_we_and_as_openssl_print_it(text: str):
    assert parsed_fingerprint(text) == f"sha256:{DIGITS}"


@pytest.mark.parametrize("text", ["", "sha256:", DIGITS[:-1], DIGITS + "0", f"sha1:{DIGITS}", "g" + DIGITS[1:]])
def test_what_is_no_fingerprint_is_refused(text: str):
    with pytest.raises(UsageError, match="64 hexadecimal digits"):
        parsed_fingerprint(text)


def test_a_token_is_read_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert token_of(file) == TOKEN
    monkeypatch.setenv(TOKEN_VARIABLE, "e" * 43)
    assert token_of(None) == "e" * 43
    assert token_of(file) == TOKEN, "the file that is named counts"
    monkeypatch.delenv(TOKEN_VARIABLE)
    with pytest.raises(UsageError, match="no token"):
        token_of(None)


@pytest.mark.parametrize("content", [b"", b"short", b"with two words in it", b"\xff" * 32, b"x" * 300])
def test_what_is_no_token_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(UsageError, match="no token"):
        token_of(tmp_path / "token")


def test_a_certificate_of_ones_own_is_shown_and_known_by_its_fingerprint(tmp_path: Path):
    authority = Authority(tmp_path / "authority")
    own = authority.issue("own", "witness", key="p256")
    folder = tmp_path / "rounds"
    folder.mkdir()
    credentials = witness_credentials(folder, own.certificate, own.key)
    der = ssl.PEM_cert_to_DER_cert(own.certificate.read_text())
    with WitnessHere(tmp_path / "other") as witness:
        witness.credentials.context.load_cert_chain(own.certificate, own.key)
        link = connect_to_witness("127.0.0.1", witness.port, credentials.fingerprint, 20)
        assert isinstance(link.socket, ssl.SSLSocket)
        assert link.socket.getpeercert(binary_form=True) == der
        assert link.socket.version() == "TLSv1.3"
        link.close()
    assert not (folder / "key.pem").exists()


def test_a_certificate_that_its_key_does_not_fit_is_refused(tmp_path: Path):
    authority = Authority(tmp_path / "authority")
    one, other = authority.issue("one", "witness", key="p256"), authority.issue("other", "witness", key="p256")
    with pytest.raises(UsageError, match="certificate and key cannot be used"):
        witness_credentials(tmp_path, one.certificate, other.key)
    with pytest.raises(UsageError, match="--cert and --key go together"):
        witness_credentials(tmp_path, one.certificate, None)


def test_a_witness_that_speaks_no_tls_gets_no_token(tmp_path: Path):
    import socket
    import threading

    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                received.append(peer.recv(65536))
                peer.sendall(b"SSH-2.0-none\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(RunError, match="there is no TLS"):
            connect_to_witness("127.0.0.1", listener.getsockname()[1], f"sha256:{DIGITS}", 20)
        thread.join()
    assert received[0][:1] == b"\x16", "a handshake, and nothing else"


LOAD = ("load", "host=/nonexistent", "--witness", "127.0.0.1:1", "--fingerprint", DIGITS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*LOAD[:-1], "abc"), "--fingerprint: got 'abc'"),
        ((*LOAD[:3], "localhost", *LOAD[4:]), "--witness: got 'localhost'"),
        ((*LOAD[:3], "localhost:99999", *LOAD[4:]), "--witness: got 'localhost:99999'"),
        ((*LOAD, "--clients", "0"), "--clients: got 0"),
        ((*LOAD, "--duration", "soon"), "--duration: "),
        ((*LOAD,), "no token for the witness"),
        (("load",), "`plinth durability load --help` explains"),
        (("verify",), "`plinth durability verify --help` explains"),
        (("lod",), "`plinth durability --help` explains"),
        (("witness", "FOLDER", "--listen", "8434"), "--listen: got '8434'"),
        (("witness", "FOLDER", "--listen", "203.0.113.1:0"), "cannot listen on 203.0.113.1:0"),
        (("witness", "FOLDER", "--silence", "0"), "--silence: got 0"),
        (("witness", "FOLDER", "--max-size", "much"), "--max-size: "),
        (("witness", "FOLDER", "--cert", "x"), "--cert and --key go together"),
        (("verify", "FOLDER/none"), "there is no such folder"),
        (
            ("verify", "FOLDER", "dbname=x", "--recovery-refused", "PANIC"),
            "--recovery-refused and a connection exclude each other",
        ),
    ],
)
def test_bad_options_say_what_is_needed(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    said: str,
):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert main(["durability", *(word.replace("FOLDER", str(tmp_path)) for word in words)]) == 2
    assert said in capsys.readouterr().err
