"""A state_dict knows the group of its weights, where shapes would not tell."""

import copy
import io
import pickle

import pytest
import torch

import gsa


def layer(kind, group):
    if kind == "convolution":
        return gsa.nn.GroupConvolution(group, 2, 3, 3)
    return gsa.nn.GroupSelfAttention(group, 2, 3, 2, 8, 3, encoding=kind)


def saved(module):
    """Its weights as a file has them, read without running code."""
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("kind", ["convolution", "quadratic", "functional", "table"])
def test_weights_of_another_group_are_refused(kind):
    mirrored, turned = layer(kind, "R2M"), layer(kind, "R4")
    before = copy.deepcopy(turned.state_dict())
    assert {name: w.shape for name, w in mirrored.state_dict().items()} == {name: w.shape for name, w in before.items()}
    with pytest.raises(RuntimeError, match=r"of R4, but these weights are of R2M: make it one of R2M"):
        turned.load_state_dict(saved(mirrored), strict=False)
    turned.load_state_dict(dict(mirrored.state_dict()))  # a plain dict says nothing
    assert all(torch.equal(w, mirrored.state_dict()[name]) for name, w in turned.state_dict().items())
    turned.load_state_dict(before)


def test_the_part_of_a_network_is_named():
    weights = gsa.create_model("digits_gsa", pretrained=True).state_dict()
    with pytest.raises(
        RuntimeError, match="lifting.encoding is a QuadraticEncoding of R8, but these weights are of R4"
    ):
        gsa.create_model("digits_gsa", group="R8").load_state_dict(weights)


def test_copies_know_it_and_look_at_themselves():
    made = layer("quadratic", "R4")
    for twin in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        del made.encoding
        twin.load_state_dict(saved(twin))
        with pytest.raises(RuntimeError, match="these weights are of R2M"):
            twin.load_state_dict(saved(layer("quadratic", "R2M")))
        made = twin


def test_features_take_weights_of_a_whole_network_of_their_group_alone():
    """Whose layers stand behind other names there; planted: of the same group, the head alone is left over."""
    weights = gsa.create_model("digits_r4_sa", group="R8").state_dict()
    with pytest.raises(RuntimeError, match="is a Features of R4M, but these weights are of R8"):
        gsa.create_model("digits_r4_sa", group="R4M", features_only=True).load_state_dict(weights, strict=False)
    taken = gsa.create_model("digits_r4_sa", group="R8", features_only=True).load_state_dict(weights, strict=False)
    assert not taken.missing_keys and all("head" in name for name in taken.unexpected_keys)
