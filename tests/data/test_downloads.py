"""Servers that cut, stall, drip or never end; nothing gets a name before its digest is right."""

import hashlib
import http.server
import ssl
import threading
import time
from contextlib import suppress

import pytest

from gsa.data import _download as download
from gsa.data._download import ATTEMPTS, alone_in, fetch

CONTENT = bytes(range(256)) * 1000
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server:
    """A local server; `answer` is given the number of the request and what can be written to."""

    def __init__(self, answer):
        self.requests = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(handler):
                self.requests += 1
                handler.send_response(200)
                handler.end_headers()
                with suppress(OSError):  # nobody reads on
                    answer(self.requests, handler.wfile)

            def log_message(handler, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/file.zip"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def half(number, stream):
    stream.write(CONTENT[: len(CONTENT) // 2])


def stall(number, stream):
    half(number, stream)
    stream.flush()
    time.sleep(1.5)


def drip(number, stream):
    for _ in range(100):
        stream.write(b"x")
        stream.flush()
        time.sleep(0.1)


def endless(number, stream):
    while True:
        stream.write(CONTENT)


@pytest.mark.parametrize(
    "answer, reason",
    [
        (half, f"its MD5 should be {MD5}, but is"),
        (stall, "timed out"),
        (drip, r"only \d bytes were sent in 0.5 seconds"),
        (endless, "more than 256,000 bytes were sent"),
    ],
)
def test_a_bad_server_is_given_up_and_nothing_is_written(tmp_path, monkeypatch, answer, reason):
    monkeypatch.setattr(download, "STALL", 0.5)
    begun = time.monotonic()
    with Server(answer) as server, pytest.raises(ValueError, match=f"file.zip could not be .* 3 attempts.*{reason}"):
        fetch(server.url, tmp_path / "file.zip", MD5, len(CONTENT))
    assert server.requests == ATTEMPTS and not list(tmp_path.iterdir()) and time.monotonic() - begun < 10


def test_a_download_that_is_cut_is_tried_again(tmp_path):
    with Server(lambda number, stream: stream.write(CONTENT[: None if number == 3 else 99])) as server:
        fetch(server.url, tmp_path / "file.zip", MD5, len(CONTENT))
    assert (tmp_path / "file.zip").read_bytes() == CONTENT and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("secure", [True, False])
def test_https_is_tried_first_and_http_is_good_enough_for_what_has_a_digest(tmp_path, monkeypatch, secure):
    asked, opened = [], download.urlopen
    with Server(lambda number, stream: stream.write(CONTENT)) as server:

        def answer(request, timeout):
            asked.append(request.type)
            if request.type == "https":
                if not secure:
                    raise ssl.SSLError("no certificate")
                request.full_url = server.url
            return opened(request, timeout=timeout)

        monkeypatch.setattr(download, "urlopen", answer)
        fetch(server.url, tmp_path / "file.zip", MD5, len(CONTENT))
    assert asked == (["https"] if secure else ["https", "http"])


def test_links_in_the_way_are_not_followed_and_leftovers_go(tmp_path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    root = tmp_path / "root"
    root.mkdir()
    for name in ("file.zip", "file.part", ".file.zip.part", "file.zip.part"):
        (root / name).symlink_to(outside)
    with Server(lambda number, stream: stream.write(CONTENT)) as server, alone_in(root):
        assert not (root / ".file.zip.part").is_symlink()
        fetch(server.url, root / "file.zip", MD5, len(CONTENT))
    assert outside.read_bytes() == b"precious" and not (root / "file.zip").is_symlink()


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(download.os, "access", lambda *_: False)
    with pytest.raises(ValueError, match="must be a folder that can be written"), alone_in(tmp_path):
        pass
