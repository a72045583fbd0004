"""The page: it stands alone, its numbers are those of the networks, and marks say what stayed."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch

import gsa
from gsa import explore
from gsa.cli import main
from gsa.explore import _page
from gsa.explore._made import made
from gsa.explore._packed import packed
from gsa.explore._turning import _feature_errors, lifted_feature
from gsa.saved import read
from tests.explore.test_made import KIND
from tests.explore.unpacking import unpacked
from tests.test_core import ROOT, with_the_core_alone


@pytest.fixture(scope="module")
def document():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_page, "weights", dict)  # they have a file of tests
        patched.setattr(_page, "turning", partial(explore.turning, digits=("2", "7")))
        return explore.page(read("digits_gsa"), read("digits_gsa_z2"), steps=4)


def data_of(document):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', document, re.S)[1])


def addresses(document):
    """What a browser would have to fetch."""
    return re.findall(r"https?://|//[a-z]+\.[a-z]|(?:src|href)=|@import|url\(|fetch\(|XMLHttpRequest", document)


def test_the_page_stands_alone(document):
    program = document.replace(re.search(r'id="data">(.*?)</script>', document, re.S)[1], "")
    assert not addresses(program) and "{{" not in program and not re.search(r"https?://", document)
    assert addresses('<script src="x.js">') and addresses("see http://x") and addresses("fetch('data')")


def test_the_page_names_itself_and_the_one_that_is_served(document):
    assert "<title>gsa: " in document and "<code>gsa explore</code> without" in document and 'id="pad"' not in document
    served = _page.filled({}, live=True)
    assert "<code>gsa explore</code> without" not in served and 'id="pad"' in served


def test_text_in_the_data_cannot_end_its_element():
    document = _page.filled({"name": "</script><script>alert(1)</script> {{SCRIPT}}"})
    assert data_of(document)["name"].startswith("</script>") and "<script>alert" not in document


def test_quarter_turns_are_exact_with_the_group_and_broken_without(document):
    turn = data_of(document)["turn"]
    still = turn["shifts"].index(0)
    assert turn["angles"][1] == 90
    own, plain = unpacked(turn["errors"])[..., still, still, :]  # [digits, mirrored or not, angles]
    assert not own[:, 0, 0].any() and not plain[:, 0, 0].any()
    assert 0 < own[:, 0, 1:].max() < 1e-5 and plain[:, 0, 1:].min() > 1e-2
    assert own[:, 1].min() > 1e-3, "mirrors are not in R4"
    assert max(error for errors in turn["feature_errors"] for error in errors.values()) < 1e-5


def test_features_of_a_group_with_mirrors_are_judged_by_its_turns():
    network = gsa.create_model("digits_gsa", group="R4M").eval()
    picture = torch.nn.functional.pad(torch.rand(1, 1, 12, 12), [2] * 4)
    with torch.no_grad():
        lifted = lifted_feature(network, torch.cat([picture.rot90(quarters, (2, 3)) for quarters in range(4)]))
    errors = _feature_errors(lifted, network, steps=4)
    assert [*errors] == ["0", "90", "180", "270"] and max(errors.values()) < 1e-5
    assert _feature_errors(lifted.flip(0), network, steps=4)["90"] > 1e-2  # planted: the other way round


def test_the_network_knows_the_digits_and_its_poses_move_on(document):
    turn = data_of(document)["turn"]
    probabilities, lifted = unpacked(turn["probabilities"]), unpacked(turn["lifted"])
    for i, digit in enumerate(turn["digits"]):
        assert probabilities[0, i, 0, 2, 2, 0].argmax() == turn["classes"].index(digit)
        start, turned = lifted[i, 0, :2]
        moved = gsa.group("R4").act(start[None], 1)[0]
        assert (turned - moved).abs().max() <= turn["lifted"]["scale"] * 1.01 < start.abs().max() / 50
        start, turned = unpacked(turn["layers"]["last"]["attention"])[i, 0, 2, 2, :2]
        assert (turned - gsa.group("R4").act(start[None], 1)[0]).abs().max() < 0.01 < (turned - start).abs().max()


def test_pictures_are_shifted_along_both_axes(document):
    """State by state, from the windows that the page cuts out of a picture with its margin."""
    turn, networks = data_of(document)["turn"], [read(name) for name in ("digits_gsa", "digits_gsa_z2")]
    wide, found = unpacked(turn["picture"])[1, 0, 3], unpacked(turn["probabilities"])[:, 1, 0, :, :, 3]
    assert turn["shifts"] == [-2, -1, 0, 1, 2]
    for row, down in enumerate(turn["shifts"]):
        for column, right in enumerate(turn["shifts"]):
            window = wide[None, None, 2 - down : 14 - down, 2 - right : 14 - right]
            for saved, expected in zip(networks, found[:, row, column], strict=True):
                actual = saved.network(saved.pictures.normalise(window)).softmax(-1)[0]
                assert (actual - expected).abs().max() < 0.05, (down, right)
    assert (found[:, 0, 4] - found[:, 4, 0]).abs().max() > 0.05, "planted: the axes exchanged"


def of_other_classes(saved):
    return replace(saved, pictures=replace(saved.pictures, classes=saved.pictures.classes[::-1]))


def test_a_network_that_is_made_otherwise_is_refused():
    saved, plain = read("digits_gsa"), read("digits_gsa_z2")
    with pytest.raises(ValueError, match="multiple of 4"):
        explore.turning(saved, plain, steps=6)
    with pytest.raises(ValueError, match="but got digits of 12 pixels and 10 classes, and rotmnist of 28 and 10"):
        explore.turning(saved, read("rotmnist_gsa"), steps=4)
    with pytest.raises(ValueError, match="the same pictures"):
        explore.turning(saved, of_other_classes(plain), steps=4)
    saved.network.stem_pool = torch.nn.MaxPool3d((1, 3, 3), 1, (0, 1, 1))  # sees the border
    with pytest.raises(ValueError, match="sees no border"):
        explore.turning(saved, plain, steps=4, digits=("2",))
    with pytest.raises(ValueError, match="first attention is by position"):
        explore.turning(made(KIND), plain, steps=4, digits=("2",))


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
    monkeypatch.setattr(_explore, "page", lambda saved, plain, reports: given.update(reports) or document)
    named = ["--model", "torch.nn:Identity", "--input", "1,4,4", "--group", "R4M"]
    assert main(["explore", "--save", str(tmp_path / "page.html"), *named]) == 0
    assert (tmp_path / "page.html").read_text() == document and "needs no server" in capsys.readouterr().out
    assert given["torch.nn:Identity"].symmetry.name == "R4M" and not given["torch.nn:Identity"].broken
    assert given["torch.nn:Identity"].tolerance == 1e-10
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
    made = "turning(*map(read, ('digits_gsa', 'digits_gsa_z2')), 4, '2'), weights(1, 1), words(1)"
    done = with_the_core_alone(f"from gsa.explore import *\nfrom gsa.saved import read\n{made}", ROOT)
    assert done.returncode == 0, done.stderr


def test_the_parts_of_the_page_are_small():
    parts = [path for path in _page.files("gsa.explore").joinpath("page").iterdir() if path.suffix == ".js"]
    assert {path.name for path in parts} == {*_page._SCRIPTS, *_page._LIVE}
    assert all(len(path.read_text().splitlines()) <= 300 for path in parts)
