"""The page: it stands alone, its numbers are those of the networks, and marks say what stayed."""

import base64
import json
import re
import subprocess
import sys
import zlib

import pytest
import torch

import gsa
from gsa import explore
from gsa.cli import main
from gsa.explore import _page
from gsa.explore._packed import packed
from gsa.saved import read
from tests.test_core import ROOT, with_the_core_alone


def unpacked(stored):
    """What `packed` was given, to rounding."""
    content = bytearray(zlib.decompress(base64.b64decode(stored["data"])))
    return torch.frombuffer(content, dtype=getattr(torch, stored["type"])).view(stored["shape"]) * stored["scale"]


@pytest.fixture(scope="module")
def document():
    return explore.page(read("digits_gsa"), steps=4)


def data_of(document):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', document, re.S)[1])


def addresses(document):
    """What a browser would have to fetch."""
    return re.findall(r"https?://|//[a-z]+\.[a-z]|(?:src|href)=|@import|url\(|fetch\(|XMLHttpRequest", document)


def test_the_page_stands_alone(document):
    program = document.replace(re.search(r'id="data">(.*?)</script>', document, re.S)[1], "")
    assert not addresses(program) and "{{" not in program and not re.search(r"https?://", document)
    assert addresses('<script src="x.js">') and addresses("see http://x") and addresses("fetch('data')")


def test_text_in_the_data_cannot_end_its_element():
    document = _page.filled({"name": "</script><script>alert(1)</script> {{SCRIPT}}"})
    assert data_of(document)["name"].startswith("</script>") and "<script>alert" not in document


def test_quarter_turns_are_exact_with_the_group_and_broken_without(document):
    turn = data_of(document)["turn"]
    still = turn["shifts"].index(0)
    for digit in range(len(turn["digits"])):
        own, plain = (errors[digit][0][still] for errors in turn["errors"])
        assert turn["angles"][1] == 90 and own[0] == plain[0] == 0
        assert 0 < max(own[1:]) < 1e-5 and min(plain[1:]) > 1e-2
        assert max(turn["feature_errors"][digit].values()) < 1e-5
        assert min(errors[still][0] for errors in turn["errors"][0][digit][1:]) > 1e-3, "mirrors are not in R4"


def test_the_network_knows_the_digits_and_its_poses_move_on(document):
    turn = data_of(document)["turn"]
    probabilities, lifted = unpacked(turn["probabilities"]), unpacked(turn["lifted"])
    for i, digit in enumerate(turn["digits"]):
        assert probabilities[0, i, 0, 2, 0].argmax() == turn["classes"].index(digit)
        start, turned = lifted[i, 0, 2, :2]
        moved = gsa.group("R4").act(start[None], 1)[0]
        assert (turned - moved).abs().max() <= turn["lifted"]["scale"] * 1.01 < start.abs().max() / 50
        start, turned = unpacked(turn["layers"]["content"]["attention"])[i, 0, 2, :2]
        assert (turned - gsa.group("R4").act(start[None], 1)[0]).abs().max() < 0.01 < (turned - start).abs().max()


def test_without_action_all_poses_see_the_same():
    network = read("digits_gsa").network
    picture = torch.rand(1, 1, 12, 12)
    poses = explore.without_action(network).forward_features(picture)
    assert (poses - poses[:, :, :1]).abs().max() < 1e-6
    assert gsa.symmetry.equivariance_error(network, picture, "R4")[1] < 1e-5, "the network itself stays as it is"


def test_a_network_that_is_made_otherwise_is_refused():
    saved = read("digits_gsa")
    with pytest.raises(ValueError, match="multiple of 4"):
        explore.turning(saved, steps=6)
    saved.network.lifting.content_heads = 1
    with pytest.raises(ValueError, match="by position"):
        explore.turning(saved, steps=4, digits=("2",))


def test_rows_stay_with_their_words_without_an_encoding_and_not_with_indices():
    stayed = explore.words(positions=3)["stayed"]
    none, indices, rotary = 0, 1, 3
    for name in ("query", "key", "value", "attention", "output"):
        assert all(all(rows) for order in stayed[name][none] for rows in order), name
        shuffled = [rows for order in stayed[name][indices][1:] for rows in order]
        assert not any(all(rows) for rows in shuffled), name
    assert all(all(rows) for rows in stayed["output"][rotary][0]), "rotary: wherever the sentence stands"
    assert not all(all(rows) for order in stayed["output"][rotary][1:] for rows in order)


def test_layers_of_the_network_keep_its_group_and_without_it_the_first_loses_it(document):
    own, plain = data_of(document)["layers"]
    assert own["first_broken"] is None and plain["first_broken"] == "lifting"
    assert max(errors["90°"] for errors in own["layers"].values()) < 1e-10
    assert list(own["layers"]) == list(plain["layers"])


def test_what_is_packed_comes_back():
    values = torch.randn(3, 4, dtype=torch.float64)
    assert torch.equal(unpacked(packed(values)), values)
    for picture in (values.float(), values.float().abs()):
        assert (unpacked(packed(picture, bits=8)) - picture).abs().max() <= packed(picture, bits=8)["scale"] / 2 * 1.001


def test_the_command_writes_the_page(tmp_path, monkeypatch, capsys, document):
    from gsa.cli import _explore

    given = {}
    monkeypatch.setattr(_explore, "page", lambda saved, reports: given.update(reports) or document)
    named = ["--model", "torch.nn:Identity", "--input", "1,4,4", "--group", "R4M"]
    assert main(["explore", "--save", str(tmp_path / "page.html"), *named]) == 0
    assert (tmp_path / "page.html").read_text() == document and "needs no server" in capsys.readouterr().out
    assert given["torch.nn:Identity"].group.name == "R4M" and not given["torch.nn:Identity"].broken
    assert main(["explore", "--save", str(tmp_path / "nowhere" / "page.html")]) == 2
    assert main(["explore", "--save", str(tmp_path / "page.html"), "--model", "torch.nn:Nothing"]) == 2


def imported(code):
    """Large packages that are there once the code has run, and what it printed."""
    heavy = "torch", "lightning", "hydra", "matplotlib", "sklearn"
    code = f"import sys\n{code}\nprint('\\n', *(m for m in {heavy} if m in sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(told.splitlines()[-1].split()), told


def test_help_needs_no_torch_and_the_page_needs_the_core_alone():
    packages, told = imported("from gsa.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass")
    assert not packages and "explore" in told
    done = with_the_core_alone("from gsa import explore, saved\nexplore.page(saved.read('digits_gsa'), steps=4)", ROOT)
    assert done.returncode == 0, done.stderr


def test_the_parts_of_the_page_are_small():
    parts = [path for path in _page.files("gsa.explore").joinpath("page").iterdir() if path.suffix == ".js"]
    assert {path.name for path in parts} == set(_page._SCRIPTS)
    assert all(len(path.read_text().splitlines()) <= 300 for path in parts)
