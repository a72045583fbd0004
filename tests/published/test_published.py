"""The public code's networks in ours: their weights, and their logits."""

import pytest
import torch

import gsa
from gsa import published
from gsa.encodings import FunctionalEncoding
from gsa.models._published import PublishedGroupTerm
from gsa.nn import GroupSelfAttention
from gsa.symmetry import equivariance_error, relative_error
from tests.published.freeze import FROZEN, GROUPS, SMALL, pictures

LOGITS = torch.load(FROZEN / "logits.pt", weights_only=True)


def theirs(name, pose_index="published", **keywords):
    return published.load(
        FROZEN / f"{name.lower()}.pt", "rotmnist_r4_sa", name, pose_index, **{**SMALL, "head_dim": None, **keywords}
    )


@pytest.mark.filterwarnings("ignore:with pose_index='published'")
@pytest.mark.parametrize("name", GROUPS)
@torch.no_grad()
def test_their_weights_give_their_logits(name):
    network, expected = theirs(name), LOGITS[name]
    assert relative_error(network(pictures().float()), expected) < 1e-4
    assert relative_error(network.double()(pictures()), expected) < 1e-9
    corrected = theirs(name, "corrected").double()(pictures())
    assert (relative_error(corrected, expected) < 1e-9) == (name == "Z2")  # planted: the other group term
    network.lifting.query_scale = 1.0  # planted: 1/√d
    assert relative_error(network(pictures()), expected) > 1e-3


@torch.no_grad()
def test_corrected_it_is_equivariant_and_published_it_warns_and_is_not():
    x = pictures()
    assert max(equivariance_error(theirs("R4", "corrected").double(), x, "R4").values()) < 1e-10
    with pytest.warns(UserWarning, match="pose_index='published' this network is not equivariant to R4"):
        network = theirs("R4").double()
    assert max(equivariance_error(network, x, "R4").values()) > 1e-5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group": "R8"}, "is of a group of 4 elements without mirrors, but the network is equivariant to R8"),
        ({"group": "R4M"}, "multiplies the rotations and mirrors of R4M otherwise"),
        ({"model": "rotmnist_r4_cnn"}, "has networks of self-attention"),
        ({"num_heads": 9}, "is of another network than rotmnist_r4_sa: lifting_self_attention.query.weight has"),
        ({"blocks": (2, 2), "crops": (2, 0, 2, 1)}, "it has no 'transformer.5.weight'"),
        ({"blocks": (2, 4), "crops": (2, 0, 1, 1, 1, 0)}, "it has no 'transformer.6.attention.0"),
    ],
)
def test_files_that_do_not_fit_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        published.load(FROZEN / "r4.pt", **{"channels": 8, "num_heads": 2, "head_dim": None, **change})


def test_files_that_are_no_weights_are_refused(tmp_path):
    (tmp_path / "a.pt").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ValueError, match="a.pt is no file of weights alone"):
        published.load(tmp_path / "a.pt")
    torch.save([1], tmp_path / "b.pt")
    with pytest.raises(ValueError, match="must hold a state_dict, names and tensors, but holds a list"):
        published.load(tmp_path / "b.pt")
    torch.save(torch.load(FROZEN / "r4.pt", weights_only=True) | {"more": torch.ones(1)}, tmp_path / "c.pt")
    with pytest.raises(ValueError, match="c.pt holds more than a published rotmnist_r4_sa: more"):
        published.load(tmp_path / "c.pt", **SMALL, head_dim=None)


def test_every_network_of_the_paper_has_their_number_of_parameters():
    """44 508 − 80 for R8: what the public code has, without the one bias a class that it lacks."""
    for name, count in {"rotmnist_z2_sa": 44_368, "rotmnist_r4_sa": 44_428, "rotmnist_r8_sa": 44_508}.items():
        assert sum(p.numel() for p in gsa.create_model(name, published=True).parameters()) == count


@torch.no_grad()
def test_their_last_pool_of_pcam_is_not_exact_and_warns():
    keywords = {"channels": 4, "num_heads": 2, "published": True}
    x = torch.rand(1, 3, 96, 96)
    with pytest.warns(UserWarning, match="max pooling 2×2 at stride 2 is equivariant only on sides"):
        error = max(equivariance_error(gsa.create_model("pcam_r4_sa", **keywords), x, "R4").values())
    assert error > 1e-3
    with pytest.raises(ValueError, match="pose index needs form='summed'"):
        gsa.create_model("pcam_r4_sa", pose_index="published")


@torch.no_grad()
def test_recorded_attention_is_that_of_the_published_index():
    layer, corrected = (kind("R4", 4, 4, 1, 4, 3, form="summed") for kind in (PublishedGroupTerm, GroupSelfAttention))
    corrected.load_state_dict(layer.state_dict())
    x = torch.rand(1, 4, 4, 6, 6)
    maps = layer.attention(x)
    assert not torch.allclose(corrected.attention(x), maps)
    torch.testing.assert_close(maps.sum((-2, -1)), torch.ones(1, 1, 4, 6, 6))


def test_the_first_biases_of_their_encodings_start_at_zero():
    def first_biases(published):
        network = gsa.create_model("rotmnist_r4_sa", published=published)
        encodings = [
            m.encoding for m in network.modules() if isinstance(getattr(m, "encoding", None), FunctionalEncoding)
        ]
        assert len(encodings) == 6
        return torch.cat([way[0].bias.detach() for e in encodings for way in (e.row, e.column)])

    assert not first_biases(True).any() and first_biases(False).all()
