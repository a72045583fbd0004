"""The page on this machine: its states are those of the page without a server, and what is not its own is refused."""

import asyncio
import io
import json
import os
import re
import signal
import socket
import sys
import threading
import webbrowser
from types import SimpleNamespace

import pytest
import torch
from PIL import Image
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

import gsa
from gsa import explore
from gsa.cli import main
from gsa.explore import _guard, _turning, server
from gsa.explore._strokes import drawn
from gsa.explore.server import application
from gsa.saved import Saved, read
from tests.explore.test_page import of_other_classes
from tests.explore.unpacking import unpacked

HERE = "http://127.0.0.1:8000"
STILL = {"mirror": 0, "down": 2, "right": 2, "angle": 0}


@pytest.fixture(scope="module")
def answers():
    return application({name: read(name) for name in ("digits_gsa", "digits_gsa_z2", "rotmnist_gsa")})


@pytest.fixture
def client(answers):
    return TestClient(answers, base_url=HERE)


def in_bytes(digit, side=12):
    return (255 * drawn(digit, side)).round().to(torch.uint8).numpy().tobytes()


def asked(client, pixels, **changes):
    return client.post("/state", params=STILL | changes, content=pixels)


def test_a_state_is_the_one_that_is_computed_in_advance(client, monkeypatch):
    monkeypatch.setattr(_turning, "drawn", lambda *given: (255 * drawn(*given)).round() / 255)
    table = explore.turning(read("digits_gsa"), read("digits_gsa_z2"), steps=8, digits=("2", "7"))
    errors, probabilities, pictures = (unpacked(table[name]) for name in ("errors", "probabilities", "picture"))
    maps, looks = unpacked(table["lifted"]), unpacked(table["layers"]["last"]["attention"])
    for digit, mirror, down, right, step in ((0, 0, 2, 2, 2), (1, 1, 0, 3, 1), (1, 0, 2, 2, 0)):
        changes = {"mirror": mirror, "down": down, "right": right, "angle": 18 * step}
        found = asked(client, in_bytes("27"[digit]), **changes).json()
        where, rows, columns = (
            (digit, mirror, down, right, step),
            slice(4 - down, 16 - down),
            slice(4 - right, 16 - right),
        )
        assert torch.allclose(torch.tensor(found["errors"]).float(), errors[:, *where], rtol=0.02, atol=2e-6)
        assert (torch.tensor(found["probabilities"]) - probabilities[:, *where]).abs().max() < 0.005
        assert (unpacked(found["picture"]) - pictures[digit, mirror, step][rows, columns]).abs().max() < 0.01
        assert (unpacked(found["attention"]["last"]) - looks[where]).abs().max() < 0.01
        window = maps[digit, mirror, step][..., 2:-2, 2:-2] if (down, right) == (2, 2) else None
        assert window is None or (unpacked(found["lifted"]) - window).abs().max() < 0.02 * window.abs().max()


def test_a_quarter_turn_is_exact_with_the_group_of_any_network(client):
    for network, side in ((0, 12), (2, 28)):
        found = asked(client, in_bytes("3", side), network=network, angle=36).json()
        assert found["errors"][0] < 1e-5 and found["moved"] < 1e-5 and len(found["errors"]) == 2 - network // 2
        assert asked(client, in_bytes("3", side), network=network, angle=5).json()["moved"] is None
        assert max(range(10), key=found["start"][0].__getitem__) == 3, "as large as the digits it was trained on"


def test_limits_are_those_of_the_picture_as_it_was_drawn_and_shifts_are_not_in_the_group(client):
    start = asked(client, in_bytes("3")).json()
    for place in ({"angle": 5}, {"angle": 36, "down": 1}, {"right": 3}):
        moved = asked(client, in_bytes("3"), **place).json()
        assert start["moved"] == 0 and moved["moved"] is None and moved["limits"] == pytest.approx(start["limits"])


def test_files_are_framed_as_the_network_was_trained_and_bad_ones_are_refused(client, monkeypatch):
    file = io.BytesIO()
    Image.linear_gradient("L").resize((120, 60)).convert("RGB").save(file, "PNG")
    sent = client.post("/picture", content=file.getvalue())
    assert sent.status_code == 200 and len(sent.content) == 144 and sent.content[0] < 20 and sent.content[-1] > 235
    assert not sent.headers["Told"]
    strokes = io.BytesIO()
    Image.new("RGBA", (120, 60)).save(strokes, "PNG")
    assert "transparent pixels" in client.post("/picture", content=strokes.getvalue()).headers["Told"]
    for content, told in (
        (b"<svg/>", "it is not a whole file of PNG"),
        (file.getvalue()[:60], "cannot be read"),
        (b"", ""),
    ):
        refused = client.post("/picture", content=content)
        assert refused.status_code == 422 and told in refused.text
    monkeypatch.setattr(_guard, "MOST_BYTES", 100)
    assert client.post("/picture", content=bytes(101)).status_code == 413
    assert asked(client, bytes(101)).status_code == 413

    async def in_parts():
        for part in (bytes(60), bytes(41)):
            yield part

    with pytest.raises(HTTPException, match="at most 100 bytes"):
        asyncio.run(_guard.body(SimpleNamespace(stream=in_parts)))


@pytest.mark.parametrize(
    "changes",
    [{"angle": 144}, {"angle": -1}, {"mirror": 2}, {"down": "x"}, {"right": 5}, {"network": 3}, {"angle": "1" * 9}],
)
def test_states_that_are_not_there_are_refused(client, changes):
    assert asked(client, in_bytes("2"), **changes).status_code in (404, 422)
    assert asked(client, in_bytes("2")[1:]).status_code == 422
    assert asked(client, in_bytes("2")).status_code == 200


def test_only_the_page_itself_may_ask(answers, client):
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", "[::1]:8000", "10.0.0.1:8000", ""):
        assert client.get("/", headers={"Host": host}).status_code == 403, host
    for origin in ("http://evil.example", "https://127.0.0.1:8000", "http://127.0.0.1:9000", "null"):
        refused = client.post("/state", params=STILL, content=in_bytes("2"), headers={"Origin": origin})
        assert refused.status_code == 403, origin
    for site, code in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert client.get("/part/words", headers={"Sec-Fetch-Site": site}).status_code == code, site
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200  # a link leads here
    for host in ("localhost:8000", "127.0.0.1:8000"):
        assert client.get("/", headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200
    everywhere = _guard.Guard(answers, "0.0.0.0")
    assert everywhere._is_own("192.168.1.2:80") and not everywhere._is_own("evil.example:80")


def test_who_has_no_key_sees_nothing():
    guarded = TestClient(application({"digits_gsa": read("digits_gsa")}, key="Zm9v_1"), base_url=HERE)
    for key in (None, "", "Zm9v_", "zm9v_1", "ключ"):
        params = {} if key is None else {"key": key}
        for address in ("/", "/part/words", "/part/nothing", "/?network=7"):
            refused = guarded.get(address, params=params)
            assert refused.status_code == 403 and "the whole address that gsa explore has printed" in refused.text
        assert guarded.post("/state", params=STILL | params, content=in_bytes("2")).status_code == 403
    page = guarded.get("/", params={"key": "Zm9v_1"})
    asks = json.loads(re.search(r'id="data">(.*?)</script>', page.text, re.S)[1])["asks"]
    assert asks == {"network": "0", "key": "Zm9v_1"}
    assert asked(guarded, in_bytes("2"), **asks).status_code == 200


def test_nothing_but_the_page_runs_on_it(client):
    answer = client.get("/")
    rules = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in rules and "unsafe" not in rules and "'sha256-" in rules
    data = json.loads(re.search(r'id="data">(.*?)</script>', answer.text, re.S)[1])
    assert data["offered"] == ["digits_gsa", "digits_gsa_z2", "rotmnist_gsa"] and data["turn"]["live"]
    assert client.get("/part/words").json()["words"] and client.get("/part/..%2f..%2fetc").status_code == 404
    assert client.get("/?network=7").status_code == 404 and client.get("/docs").status_code == 404


def test_the_command_answers_until_ctrl_c(monkeypatch, capsys):
    interrupt = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    monkeypatch.setattr(server, "application", lambda networks, *more: given.extend([*networks, more]) or Starlette())
    monkeypatch.setattr(webbrowser, "open", lambda address: given.append(address) or interrupt.start())
    given = []
    assert main(["explore", "--open", "--checkpoint", "rotmnist_gsa"]) == 0
    *names, (host, _, name, key), address = given
    told = capsys.readouterr()
    assert names == ["rotmnist_gsa", "digits_gsa", "digits_gsa_z2"] and not told.err
    assert host == name == "127.0.0.1" and len(key) > 20
    assert address.startswith("http://127.0.0.1:") and address.endswith(f"/?key={key}")
    assert told.out.startswith(f"open {address} in")


def test_what_the_command_cannot_do_is_said(monkeypatch, capsys):
    for asked_for, told in (
        (["--save", "page.html", "--checkpoint", "digits_gsa"], "leave one of them out"),
        (["--no-browser", "--port", "70000"], "from 0 to 65535"),
    ):
        assert main(["explore", *asked_for]) == 2 and told in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["explore", "--port", str(taken.getsockname()[1])]) == 2
    assert "in use" in (said := capsys.readouterr().err) and "leave --port out, and a free one is taken" in said
    monkeypatch.delitem(sys.modules, "gsa.explore.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["explore"]) == 2
    assert 'uvicorn is not installed: pip install "gsa-nets[explore]"' in capsys.readouterr().err


def test_beside_a_network_stands_one_without_a_group_of_the_same_pictures(monkeypatch):
    monkeypatch.setattr(server, "offered", lambda saved: {})
    own, plain, larger = (read(name) for name in ("digits_gsa", "digits_gsa_z2", "rotmnist_gsa"))
    networks = {"own": own, "larger": larger, "other": of_other_classes(plain)}
    assert [*server._with_twin("own", networks)] == ["own"]
    assert [*server._with_twin("own", networks | {"plain": plain})] == ["own", "plain"]
    without = Saved(gsa.create_model("rotmnist_z2_sa").eval(), {}, larger.pictures)
    measured = server._Served({"larger": larger, "without": without}, dict)._measured()
    assert [of.name for _, of in measured.values()] == ["R8", "R8"]  # by the group that it lacks


def test_the_address_and_its_name_are_answered_and_no_others():
    networks = {"digits_gsa": read("digits_gsa")}
    for host, code in (("127.0.1.1:80", 200), ("my-machine:80", 200), ("elsewhere:80", 403), ("10.0.0.1:80", 403)):
        served = server.application(networks, "127.0.1.1", name="my-machine")
        assert TestClient(served, base_url=f"http://{host}").get("/").status_code == code


def test_networks_that_cannot_be_shown_are_refused_before_anything_is_served(capsys, tmp_path):
    assert main(["explore", "--model", "nope"]) == 2 and "nope" in capsys.readouterr().err
    assert main(["explore", "--group", "R8"]) == 2 and "--group R8 without it" in capsys.readouterr().err
    assert main(["explore", "--save", str(tmp_path / "nope" / "page.html")]) == 2
    assert "--save must be a file in a folder that can be written" in capsys.readouterr().err
