"""Networks of any kind on the served page: exact as their group says, refused in words, and few are kept."""

import json
import re

import pytest
import torch
from starlette.testclient import TestClient

import gsa
from gsa.explore import server
from gsa.explore._looking import looking
from gsa.explore._made import CHOICES, made
from gsa.explore._strokes import drawn
from gsa.explore._turning import described
from gsa.explore.server import application
from gsa.saved import Saved, read
from tests.explore.unpacking import unpacked

KIND = {"group": "R4", "encoding": "functional", "form": "regular", "neighbourhood": "5", "window": "square"}
STILL = {"mirror": 0, "down": 2, "right": 2, "angle": 0}
THREE = (255 * drawn("3")).round().to(torch.uint8).numpy().tobytes()


@pytest.fixture(scope="module")
def client():
    answers = application({name: read(name) for name in ("digits_gsa", "digits_gsa_z2")})
    return TestClient(answers, base_url="http://127.0.0.1:8000")


def data_of(answer):
    return json.loads(re.search(r'id="data">(.*?)</script>', answer.text, re.S)[1])


def state(client, **changes):
    return client.post("/state", params=KIND | STILL | changes, content=THREE)


@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"group": "R8", "encoding": "fourier", "form": "summed", "neighbourhood": "all"},
        {"group": "R4M", "encoding": "table", "neighbourhood": "3"},
        {"group": "R8M", "encoding": "rotary", "window": "disk"},
        {"group": "R16", "encoding": "quadratic", "form": "summed", "neighbourhood": "7"},
    ],
)
def test_a_quarter_turn_is_exact_for_every_kind_with_a_group(client, kind):
    found = state(client, **kind, angle=36).json()
    assert found["errors"][0] < 1e-5 and found["moved"] < 1e-5 and found["errors"][1] > 1e-2
    assert state(client, **kind, angle=18).json()["errors"][0] > 1e-2, "between the pixels"


def test_what_knows_where_it_stands_loses_the_group_and_what_knows_nothing_needs_none(client):
    assert min(state(client, encoding="absolute", angle=36).json()["errors"]) > 1e-2
    assert '"keeps":false' in client.get("/", params=KIND | {"encoding": "absolute"}).text
    assert max(state(client, encoding="constant", neighbourhood="all", angle=36).json()["errors"]) < 1e-5
    saved = read("digits_gsa")
    saved.network.lifting.encoding.keeps = frozenset()  # planted: one of several
    assert not described(saved, (), 4)["keeps"]


@pytest.mark.parametrize("name, turns", [("Z2M", 1), ("R8", 8), ("R16", 16)])
def test_the_turns_of_every_group_are_among_the_angles(client, name, turns):
    shown = data_of(client.get("/", params=KIND | {"group": name}))["turn"]
    assert shown["turns"] == [360 * turn / turns for turn in range(turns)] and {*shown["turns"]} <= {*shown["angles"]}
    assert shown["mirrors"] is (name == "Z2M") and len(shown["angles"][:: shown["every"]]) == 72, "as many questions"


def test_attention_is_that_of_the_pixel_and_turns_with_it(client):
    start = unpacked(state(client, row=0, column=3).json()["attention"]["first"])
    assert (start.sum((-2, -1)) - 1).abs().max() < 0.05 and not start[..., :2, :].any(), "above it is the border"
    turned = unpacked(state(client, row=8, column=0, angle=36).json()["attention"]["first"])
    assert (turned[:, 1] - start[:, 0].rot90(1, (-2, -1))).abs().max() < 0.01
    other = unpacked(state(client, row=0, column=4, angle=0).json()["attention"]["first"])
    assert (other - start).abs().max() > 0.05, "planted: another pixel"
    refused = state(client, row=0, column=12)
    assert refused.status_code == 422 and "must be from 0 to 11, but got (0, 12)" in refused.text


@pytest.mark.parametrize("encoding, turns", [("fourier", True), ("rotary", True), ("absolute", False)])
def test_an_encoding_is_turned_by_the_pose_that_sees_it(encoding, turns):
    saved = made(KIND | {"encoding": encoding})
    for layer in looking(saved.network, saved.pictures.normalise(drawn("3")[None])).values():
        seen = unpacked(layer["encoding"])
        moved = seen[:, 0].rot90(1, (-2, -1))
        assert (moved - seen[:, 1]).abs().max() < 0.02 * seen.abs().max() or not turns
        assert (seen[:, 1] - seen[:, 0]).abs().max() > 0.1 * seen.abs().max() or not turns
        assert turns or (moved - seen[:, 1]).abs().max() > 0.1 * seen.abs().max()


def test_encodings_that_place_heads_are_shown_as_they_are():
    saved = read("digits_gsa")
    lifting = saved.network.lifting
    scores = lifting.encoding.position_scores(lifting.neighbourhood, 12, 12).mean(2)
    layers = looking(saved.network, saved.pictures.normalise(drawn("3")[None]))
    assert [layer["cell"] for layer in layers.values()] == [1, 2]  # pixels, before and after they are pooled
    shown = unpacked(layers["first"]["encoding"])
    expected = scores - scores.flatten(1).amax(1)[:, None, None, None]
    assert (shown - expected).abs().max() < 0.01 * expected.abs().max()


@pytest.mark.parametrize("options, by", [({}, "content"), ({"content_heads": None}, "position")])
def test_other_networks_of_a_run_are_shown_too(options, by):
    known = read("digits_gsa").pictures
    network = gsa.create_model("digits_gsa", group="R8M", **options).eval()
    shown = TestClient(application({"mine": Saved(network, {}, known)}), base_url="http://127.0.0.1:8000")
    found = shown.post("/state", params=STILL | {"angle": 36, "mirror": 1}, content=THREE).json()
    assert found["errors"][0] < 1e-5 and found["moved"] < 1e-5 and [*found["attention"]] == ["last"] * (by == "content")
    data = data_of(shown.get("/"))
    last = data["turn"]["layers"]["last"]
    assert last["by"] == by and ("attention" in last) is (by == "position")


@pytest.mark.parametrize("name", ["rotmnist_vit", "rotmnist_r4_cnn"])
def test_networks_without_attention_that_lifts_are_refused(name):
    with pytest.raises(ValueError, match="whose first layer is lifting self-attention"):
        application({name: Saved(gsa.create_model(name).eval(), {}, read("rotmnist_gsa").pictures)})


@pytest.mark.parametrize(
    "kind, told",
    [
        ({"group": "R8", "encoding": "table"}, "its group must map the grid to itself"),
        ({"encoding": "rotary", "form": "summed"}, "cannot serve form='summed'"),
        ({"encoding": "table", "neighbourhood": "all"}, "needs a finite neighbourhood"),
        ({"group": "R999"}, "group must be one of Z2, Z2M, R4"),
        ({"neighbourhood": "9" * 99}, "neighbourhood must be one of 3, 5, 7, all"),
        ({"window": "<b>"}, "window must be one of square, disk, but got '<b>'"),
    ],
)
def test_what_cannot_be_made_is_refused_in_words(client, kind, told):
    for refused in (client.get("/", params=KIND | kind), state(client, **kind)):
        assert refused.status_code == 422 and told in refused.text and len(refused.text) < 400
        assert refused.headers["content-type"].startswith("text/plain")


def test_the_page_says_that_it_is_untrained_and_measures_its_layers(client):
    data = data_of(client.get("/", params=KIND))
    assert data["turn"]["kind"] == "R4, functional, regular, 5×5"
    assert data_of(client.get("/"))["turn"]["kind"] == "R4, quadratic, regular, 3×3"
    disk = data_of(client.get("/", params=KIND | {"neighbourhood": "7", "window": "disk"}))
    assert disk["turn"]["kind"] == "R4, functional, regular, 7×7 disk"
    assert data["names"] == ["untrained R4", "untrained Z2"] and data["turn"]["keeps"]
    assert data["asks"] == KIND | {"key": ""}
    assert {name: [*values] for name, values in data["choices"].items()} == {n: [*v] for n, v in CHOICES.items()}
    own, plain, *others = client.get("/part/layers", params=KIND).json()
    assert own["first_broken"] is None and plain["first_broken"] == "lifting.out" and plain["group"] == "R4"
    assert [other["name"] for other in others] == ["digits_gsa", "digits_gsa_z2"]


def test_few_are_kept_and_one_that_was_forgotten_is_made_again(monkeypatch):
    monkeypatch.setattr(server, "_KEPT", 2)
    served = server._Served({"digits_gsa": read("digits_gsa")}, dict)
    before = torch.random.get_rng_state()
    first, *_ = [served.made(*(KIND | {"neighbourhood": size}).values()) for size in CHOICES["neighbourhood"]]
    assert served.made.cache_info().currsize == 2
    assert torch.equal(torch.random.get_rng_state(), before), "nobody else's random numbers"
    torch.manual_seed(1)
    again = served.made(*(KIND | {"neighbourhood": "3"}).values())
    assert again is not first and again.turn == first.turn and again.own.network is not first.own.network
