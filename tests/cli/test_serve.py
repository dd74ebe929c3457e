"""`plinth serve`: the catalogue and the reports, by a real server in a process of its own."""

import http.cookiejar
import os
import re
import shutil
import signal
import socket
import urllib.request
from contextlib import ExitStack, closing, suppress
from html import escape, unescape

import pytest

from command_line import SLOW, loaded_by, plinth
from other_port import server_on_another_port
from plinth.bundle import BundleFolder
from plinth.bundle.seal import seal_bundle
from plinth.model.figures import times
from plinth.serve.catalogue import Catalogue
from plinth.tasks.analysis import analyse_bundle
from serving import Served, catalogue
from small_bundles import CONTENTS, change, written
from spoilt_bundles import SPOILT
from typed import present
from waiting import wait_until


@pytest.fixture(autouse=True)
def state(tmp_path_factory, monkeypatch):
    """Where answers are kept."""
    monkeypatch.setenv("PLINTH_STATE_DIR", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for the tests that leave its bundle alone; next to its directory is a file that it must not serve."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_text("top secret")
    written(outside / "in" / "b", trials=False)
    with Served(outside / "in", PLINTH_STATE_DIR=str(tmp_path_factory.mktemp("served"))) as served:
        yield served


def changed(served, state):
    """The first page that is not that of the state."""
    pages = [""]

    def has_changed():
        pages.append(served.ask(f"/changes?since={state}")[2])
        return pages[-1]

    wait_until(has_changed, timeout_s=60)
    return pages[-1]


def state_of(page):
    return present(re.search(r'<main data-state="([^"]+)"', page))[1]


def keys(page):
    return re.findall(r'href="/[^/"]+/bundles/([0-9a-f]{20})"', page)


@pytest.mark.long
def test_the_catalogue_lists_question_answer_machine_date_and_state(tmp_path):
    written(tmp_path / "old", created_unix_ns=10**18)
    written(tmp_path / "deeper" / "new", created_unix_ns=2 * 10**18)
    with Served(tmp_path) as served:
        page = catalogue(served)
    assert page.index("deeper/new") < page.index("/old")
    assert "2 bundles below" in page
    assert page.count(escape(CONTENTS.plan.experiment.question)) == 2
    assert CONTENTS.host.cpu_model in page
    assert "2033-05-1" in page
    assert 'class="state complete"' in page
    assert "memory" in present(re.search(r'class="answer">(.*?)</div>', page))[1]
    headline = present(analyse_bundle(tmp_path / "old")[1].headline)
    for value, figure, note in re.findall(
        r'class="headline" data-value="(.*?)"><strong>(.*?)</strong> <small>(.*?)</small>', page
    ):
        assert float(value) == present(headline.ratio).value
        assert (unescape(figure), unescape(note)) == (times(present(headline.ratio)), headline.note)
    assert page.count('class="headline"') == page.count("<strong>") == 2


def test_a_page_that_is_open_gets_what_has_changed_and_nothing_else(tmp_path):
    with Served(tmp_path) as served:
        catalogue(served)
        state = state_of(served.ask("/")[2])
        status, headers, page = served.ask(f"/changes?since={state}")
        assert (status, page) == (204, "")
        assert float(headers["Plinth-Ask-Again-S"]) >= 1
        written(tmp_path / "b")
        page = changed(served, state)
        assert "1 bundle below" in page
        assert state_of(page) != state
        page = catalogue(served)  # with its answer
        assert "memory" in page
        shutil.rmtree(tmp_path / "b")
        assert "0 bundles" in changed(served, state_of(page))
        for since in ("", "0-0", "x" * 1000, "%00%ff"):  # of a server before this one, or of none
            assert served.ask(f"/changes?since={since}")[0] == 200


def test_pages_that_ask_at_once_share_one_reading_of_the_bundles(tmp_path, monkeypatch):
    """They may be open while a run measures."""
    monkeypatch.setattr("plinth.serve.catalogue._SHORTEST_WAIT_S", 3600.0)
    with closing(Catalogue(BundleFolder(tmp_path))) as bundles:
        written(tmp_path / "b", trials=False)
        assert bundles.recent().bundles == ()
        assert len(bundles.listing().bundles) == 1  # a page that is opened shows what is there now
        assert len(bundles.recent().bundles) == 1


@pytest.mark.long
def test_the_catalogue_follows_what_changes(tmp_path):
    with Served(tmp_path) as served:
        assert "0 bundles" in served.ask("/")[2]
        path = written(tmp_path / "b")
        (key,) = keys(catalogue(served))
        change(path / "manifest.json", status="interrupted", reason="the power was cut")
        assert "the power was cut" in catalogue(served)
        shutil.rmtree(path)
        assert "0 bundles" in served.ask("/")[2]
        assert served.ask(f"/bundles/{key}")[0] == 404


@pytest.mark.long
def test_a_report_is_the_same_page_as_that_of_the_command(tmp_path):
    path = written(tmp_path / "b")
    with Served(tmp_path) as served:
        (key,) = keys(served.ask("/")[2])
        status, headers, page = served.ask(f"/bundles/{key}")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert plinth("report", path, "--html", "--output", tmp_path / "r.html").returncode == 0
    assert page == (tmp_path / "r.html").read_text()


@pytest.mark.long
def test_ticked_runs_are_compared_with_the_oldest(tmp_path):
    for number, name in enumerate(("new", "old")):
        path = written(tmp_path / name, created_unix_ns=10**18 - number)
        for part in ("manifest.json", "plan.json"):
            change(path / part, run_id=name)
        seal_bundle(BundleFolder(path))
    with Served(tmp_path) as served:
        ticked = "&".join(f"bundle={key}" for key in keys(catalogue(served)))
        status, headers, page = served.ask(f"/compare?{ticked}")
    assert status == 200, page
    assert "unsafe-inline" not in headers["Content-Security-Policy"]
    assert "Runs compared" in page and "<table>" in page
    assert page.index("A: " + str(tmp_path / "old")) < page.index("B: " + str(tmp_path / "new"))


@pytest.mark.parametrize(
    "query", ["", "?bundle=", "?bundle=..", "?bundle=%3Cscript%3E", "?bundle={key}", "?bundle={key}&bundle={key}"]
)
def test_what_cannot_be_compared_is_a_page_that_says_why(server, query):
    (key,) = keys(catalogue(server))
    status, _, page = server.ask("/compare" + query.format(key=key))
    assert status in (404, 422)
    assert "<script" not in page
    assert status == 404 or "two runs are needed" in page


@pytest.mark.long
def test_nothing_is_written_into_bundles(tmp_path):
    path = written(tmp_path / "b")
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    with Served(tmp_path) as served:
        assert served.ask(f"/bundles/{keys(catalogue(served))[0]}")[0] == 200
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before


def test_what_cannot_be_read_is_listed_with_the_reason_next_to_what_can(tmp_path):
    written(tmp_path / "whole", trials=False)
    for spoil in SPOILT:
        spoil(written(tmp_path / spoil.__name__, trials=False))
    with Served(tmp_path) as served:
        page = catalogue(served)
    assert f"{1 + len(SPOILT)} bundles" in page
    assert len(keys(page)) == 1
    rows = {row.rpartition("/")[2]: row for row in re.findall(r"<tr [^>]*>(.*?)</td></tr>", page)}
    for spoil, reason in SPOILT.items():
        assert 'class="state unreadable"' in rows[spoil.__name__]
        assert reason in rows[spoil.__name__]


@pytest.mark.long
def test_a_damaged_trial_is_a_page_that_says_which(tmp_path):
    bundle = written(tmp_path / "b")
    (next((bundle / "trials").iterdir()) / "hist.parquet").write_bytes(b"PAR1 of another kind PAR1")
    with Served(tmp_path) as served:
        page = catalogue(served)
        assert "hist.parquet" in page
        status, _, problem = served.ask(f"/bundles/{keys(page)[0]}")
    assert status == 422
    assert "hist.parquet" in problem


def test_a_run_that_was_killed_while_it_wrote_is_listed_as_such(tmp_path):
    written(tmp_path / "b", trials=False, finished=False)
    with Served(tmp_path) as served:
        assert "its run was killed" in catalogue(served)


def test_names_and_texts_of_bundles_are_text(tmp_path):
    name = os.fsencode(tmp_path) + b'/"><script>alert(1)<script>$(id)\x1b]0;x\x07\xff'
    bundle = written(tmp_path / "b", trials=False, created_unix_ns=10**40)
    text = '</td><script>alert("q")</script><img src=x onerror=alert(2)>\u202e'
    change(bundle / "manifest.json", experiment=text, reason=text)
    bundle.rename(os.fsdecode(name))
    with Served(tmp_path) as served:
        page = catalogue(served)
        report = served.ask(f"/bundles/{keys(page)[0]}")[2]
    assert page.count("<script") == 1 == page.count('<script type="module" src="')
    assert "<img" not in page
    assert "\x1b" not in page + report
    assert "\u202e" not in page + report
    assert "&lt;script&gt;alert(1)&lt;script&gt;$(id)\\x1b]0;x\\x07\\xff" in page
    assert "not a date" in page
    assert "<script>alert" not in report


def test_links_to_bundles_are_not_followed(tmp_path):
    written(tmp_path / "outside" / "b", trials=False)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "outside" / "b")
    with Served(tmp_path / "in") as served:
        assert "0 bundles" in served.ask("/")[2]


def test_a_bundle_that_became_a_link_is_not_read(tmp_path):
    written(tmp_path / "outside", trials=False)
    written(tmp_path / "in" / "b", trials=False)
    with Served(tmp_path / "in") as served:
        (key,) = keys(served.ask("/")[2])
        shutil.rmtree(tmp_path / "in" / "b")
        (tmp_path / "in" / "b").symlink_to(tmp_path / "outside")
        assert served.ask(f"/bundles/{key}")[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "/../secret",
        "/bundles/../../secret",
        "/bundles/%2e%2e%2f%2e%2e%2fsecret",
        "/bundles/..%2fsecret",
        "/bundles/%2fetc%2fpasswd",
        "/bundles//etc/passwd",
        "/bundles/b/../../secret",
        "/bundles/b%00",
        "/bundles/%ff%fe",
        "/bundles/b",
        "/catalogue.css/../../secret",
        "//127.0.0.1/secret",
    ],
)
def test_no_path_leads_to_a_file(server, path):
    request = f"GET {server.root}{path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {server.cookie}\r\nConnection: close\r\n\r\n"
    answer = server.send(request.encode())
    assert re.match(rb"HTTP/1.1 (404|400) ", answer)
    assert b"top secret" not in answer
    assert b"root:" not in answer


def test_a_damaged_request_ends_only_itself(server):
    for request in (b"\x00\xff\r\n\r\n", b"GET / HTTP/1.1\r\nHost", b"GET /\xff HTTP/1.1\r\n\r\n"):
        answer = server.send(request, ends=True)
        assert not answer or answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 421 "))
    assert server.ask("/")[0] == 200


def odd_requests(served):
    """Requests that no browser sends, and the first digits of the status that each must get."""

    def request(path, *fields, method="GET", body=b""):
        lines = (
            f"{method} {path} HTTP/1.1",
            f"Host: 127.0.0.1:{served.port}",
            f"Cookie: {served.cookie}",
            "Connection: close",
            *fields,
        )
        return "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1") + body

    root = served.root
    many = "&".join(f"bundle={number:020}" for number in range(1001))
    return {
        "1,001 parameters": (400, request(f"{root}/?{many}")),
        "1,001 ticks": (400, request(f"{root}/compare?{many}")),
        "only separators": (400, request(f"{root}/?{'&' * 1001}")),
        "a long address": (404, request(f"{root}/{'a' * 60_000}")),
        "a token of no text": (200, request(f"{root}/?token=%ff&since=%")),
        "no Unicode": (404, request(f"{root}/%ff%fe%80")),
        "half a character": (404, request(f"{root}/%ed%a0%80")),
        "a zero byte": (404, request(f"{root}/bundles/%00")),
        "a byte that is none of an address": (400, request(f"{root}/\xff")),
        "ticks of no Unicode": (404, request(f"{root}/compare?bundle=%ff&bundle=%00&;&=&bundle")),
        "many headers": (200, request(f"{root}/", *(f"X-{number}: y" for number in range(3000)))),
        "two hosts": (400, request(f"{root}/", "Host: x")),
        "a method that is none": (405, request(f"{root}/", method="BREW")),
        "a method in small letters": (405, request(f"{root}/", method="get")),
        "another server": (405, request("127.0.0.1:80", method="CONNECT")),
        "no address": (403, request("*")),
        "no slash": (404, request(f"{root[1:]}/")),
        "a body": (200, request(f"{root}/", "Content-Length: 3", body=b"abc")),
        "a body that never ends": (200, request(f"{root}/", "Content-Length: 99999999999", body=b"abc")),
        "a negative length": (400, request(f"{root}/", "Content-Length: -3")),
        "two lengths": (400, request(f"{root}/", "Content-Length: 3", "Content-Length: 4")),
        "a damaged body": (400, request(f"{root}/", "Transfer-Encoding: chunked", body=b"ZZZ\r\n\r\n")),
        "an unknown coding": (400, request(f"{root}/", "Transfer-Encoding: gzip")),
        "a body to be stored": (405, request(f"{root}/", "Content-Length: 9", method="POST", body=b"x" * 9)),
        "a web socket": (200, request(f"{root}/", "Connection: Upgrade", "Upgrade: websocket")),
        "a place of no text": (404, request(f"{root}/live/x/events", "Last-Event-ID: \xff")),
        "HTTP 2": (421, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        "HTTP 0.9": (400, f"GET {root}/\r\n\r\n".encode()),
        "TLS": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 50),
    }


def test_odd_requests_get_an_answer_of_their_own_and_nothing_is_written(tmp_path):
    written(tmp_path / "b", trials=False)
    served = Served(tmp_path)
    for name, (status, request) in odd_requests(served).items():
        answer = served.send(request)
        assert answer.startswith(b"HTTP/1.1 %d " % status), (name, answer[:200])
    assert served.ask("/")[0] == 200
    code, errors = served.interrupt()
    assert code == 130
    assert errors.splitlines() == ["error: interrupted by SIGINT"]


def test_a_body_that_is_damaged_after_the_answer_ends_the_connection(tmp_path):
    served = Served(tmp_path)
    head = f"GET {served.root}/ HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nCookie: {served.cookie}\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection:
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"</html>\n"):
            answer += connection.recv(65536)
        connection.sendall(b"ZZZ\r\n\r\n")
        assert connection.recv(65536) == b""
    code, errors = served.interrupt()
    assert (code, errors.splitlines()) == (130, ["error: interrupted by SIGINT"])


def test_connections_without_a_whole_request_are_closed_and_keep_nobody_out(server):
    """Any user of the machine can open them. The limit of connections is 200; they are closed after 3 s."""
    begun = (b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n", b"", b"GET / HTTP/1.1\r\nHost: ")
    with ExitStack() as held:
        opened = []
        for number in range(210):
            connection = held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
            connection.sendall(begun[number // 70])
            opened.append(connection)
            if number < 70:  # above the limit it would be refused, and closed at once
                assert b" 421 " in connection.recv(65536)
        assert server.ask("/")[0] == 503
        for connection in opened:
            with suppress(ConnectionResetError):
                while connection.recv(65536):
                    pass
        assert server.ask("/")[0] == 200


def test_without_the_token_nothing_is_shown(server):
    for address in ("/", "/catalogue.css", "/catalogue.js", "/changes", "/?token=", "/?token=wrong", "/bundles/x"):
        status, _, body = server.ask(address, cookie=False)
        assert status == 403
        assert "plinth serve" in body
    for other in (
        f"plinth=wrong; other={server.token}",
        f"other=plinth={server.token}",
        f"plinth={server.token}x",
        "=; plinth",
    ):
        assert server.ask("/", cookie=False, headers={"Cookie": other})[0] == 403


def test_cookies_that_other_ports_set_do_not_hide_ours(server):
    for other in ("plinth=wrong", 'a b=c"d', "x={}; plinth=", "="):
        for cookies in (f"{other}; {server.cookie}", f"{server.cookie}; {other}"):
            assert server.ask("/", cookie=False, headers={"Cookie": cookies})[0] == 200


def test_without_the_folder_of_its_addresses_the_token_shows_nothing(server):
    paths = (
        "",
        "/",
        f"/{server.token}/",
        server.root[:-1] + "/",
        server.root + "x/",
        f"/x{server.root}/",
        f"/%2e{server.root}/",
    )
    for path in paths:
        for query in ("", f"?token={server.token}"):
            status, headers, body = server.ask_whole((path or "*") + query)
            assert status == 403
            assert server.root[1:] not in f"{headers}{body}"


def test_a_server_on_another_port_is_not_sent_the_cookie_and_could_not_use_it(server):
    """Cookies are of a host, not of a port: this jar keeps them as browsers do."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    with browser.open(server.address) as catalogue:
        assert catalogue.url == f"http://127.0.0.1:{server.port}{server.root}/"
        assert "1 bundle below" in catalogue.read().decode()
    (cookie,) = jar
    with server_on_another_port() as other:
        for path in ("/", "/bundles/x", "/plinth/", "/changes"):
            browser.open(other.address + path).close()
        assert [sent for _, sent, _ in other.sent] == [None] * 4
        browser.open(f"{other.address}{server.root}/").close()  # it would have to know the folder; then it is told
    assert other.sent[-1][1] == f"{cookie.name}={cookie.value}"
    stolen = {"Cookie": other.sent[-1][1]}
    for path in ("/", "/changes", "/catalogue.js", "/bundles/x"):
        assert server.ask_whole(path, cookie=False, headers=stolen)[0] == 403


def test_the_token_in_the_address_becomes_a_cookie_that_scripts_and_other_sites_do_not_have(server):
    status, headers, _ = server.ask(f"/?token={server.token}", cookie=False)
    assert (status, headers["Location"]) == (303, server.root + "/")
    cookie = headers["Set-Cookie"]
    assert cookie.startswith(f"plinth={server.token};")
    assert f"Path={server.root};" in cookie
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert server.token not in headers["Location"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "127.0.0.1:{port}.evil.example"]
)
def test_another_name_of_this_machine_is_refused(server, host):
    assert server.ask("/", headers={"Host": host.format(port=server.port)})[0] in (400, 421)
    assert server.ask("/", headers={"Host": f"localhost:{server.port}"})[0] == 200


def test_pages_of_other_origins_are_refused(server):
    for origin in ("null", "https://evil.example", "http://127.0.0.1:1", f"https://127.0.0.1:{server.port}"):
        assert server.ask("/", headers={"Origin": origin})[0] == 403
    assert server.ask("/", headers={"Origin": f"http://127.0.0.1:{server.port}"})[0] == 200
    embedded = {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Site": "same-site"}  # another port of this host
    assert server.ask("/", headers=embedded)[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_it_only_reads(server, method):
    status, headers, _ = server.ask("/", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert server.ask("/", "HEAD")[::2] == (200, "")


def test_its_pages_run_no_inline_script_and_a_report_has_an_origin_of_its_own(server):
    _, headers, page = server.ask("/")
    _, of_report, _ = server.ask(f"/bundles/{keys(page)[0]}")
    _, of_refusal, _ = server.ask("/", cookie=False)
    for found in (headers, of_report, of_refusal):
        policy = found["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
        assert found["X-Content-Type-Options"] == "nosniff"
        assert found["Cache-Control"] == "no-store"
        assert found["Referrer-Policy"] == "no-referrer"
        assert found["Cross-Origin-Resource-Policy"] == "same-origin"
    assert of_report["Content-Security-Policy"].startswith("sandbox allow-scripts;")
    assert "connect-src" not in of_report["Content-Security-Policy"]


def test_it_listens_on_the_loopback_alone(server):
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.2", server.port), timeout=5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_with_the_exit_code_of_interrupted_commands(tmp_path, number):
    written(tmp_path / "b")
    served = Served(tmp_path)
    served.ask("/")  # an answer is being worked out by now
    code, errors = served.interrupt(number)
    assert code == 130, errors
    assert "interrupted by" in errors
    assert "Traceback" not in errors


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do(tmp_path):
    with Served(tmp_path) as served:
        done = plinth("serve", tmp_path, "--port", served.port)
    assert done.returncode == 2
    assert f"port {served.port}" in done.stderr
    assert "--port 0" in done.stderr


@pytest.mark.parametrize("port", ["-1", "65536", "x"])
def test_a_port_that_is_none_is_refused(tmp_path, port):
    done = plinth("serve", tmp_path, "--port", port)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_directory_that_is_not_there_is_an_error_that_names_it(tmp_path):
    done = plinth("serve", tmp_path / "none")
    assert done.returncode == 2
    assert str(tmp_path / "none") in done.stderr


def test_other_commands_do_not_load_the_server(tmp_path):
    written(tmp_path / "b", trials=False)
    loaded = loaded_by("history", tmp_path, "--no-answers")
    assert not loaded & {*SLOW, "starlette", "uvicorn", "plinth.serve"}
