"""What each pose attends to is recorded, by the thread that asks, of compiled networks too."""

import threading

import pytest
import torch
import torch.nn.functional as F

import gsa
from gsa.nn import (
    GroupSelfAttention,
    LiftingSelfAttention,
    record_attention,
)


@pytest.mark.parametrize("encoding, form", [("functional", "summed"), ("functional", "regular"), ("rotary", "regular")])
def test_recorded_maps_are_where_each_pose_looks(encoding, form):
    """Maps are distributions; where values are the image itself, the lifting layer returns what its maps point to."""
    options = {"num_heads": 2, "head_dim": 6, "neighbourhood": 3, "encoding": encoding}
    network = torch.nn.Sequential(
        LiftingSelfAttention("R4", 1, 4, **options), GroupSelfAttention("R4", 4, 4, form=form, **options)
    )
    x = torch.rand(2, 1, 5, 6)
    with record_attention(network) as maps:
        network(x)
    assert list(maps) == ["0", "1"]
    for weights in maps.values():
        assert weights.shape == (2, 2, 4, 5, 6, 3, 3)
        torch.testing.assert_close(weights.sum((-2, -1)), torch.ones(2, 2, 4, 5, 6))

    lifting = network[0]
    with torch.no_grad():  # every value is the image, and the output reads the first head
        lifting.query_key_value.weight[24:].fill_(1)
        lifting.out.weight.zero_()
        lifting.out.weight[0, 0] = 1
    patches = F.unfold(x, 3, padding=1).view(2, 1, 3, 3, 5, 6)
    expected = torch.einsum("bpyxuv,bcuvyx->bpyx", maps["0"][:, 0], patches)
    torch.testing.assert_close(lifting(x)[:, 0], expected)

    with record_attention(network) as after:
        pass
    network(x)
    assert not after  # hooks are gone


def test_maps_are_those_of_the_thread_that_records():
    network = torch.nn.Sequential(LiftingSelfAttention("R4", 1, 2, num_heads=1, head_dim=2, neighbourhood=3))
    mine, other = torch.rand(1, 1, 5, 5), torch.rand(2, 1, 5, 5)
    with record_attention(network) as maps:
        network(mine)
        expected = dict(maps)
        worker = threading.Thread(target=network, args=(other,))
        worker.start()
        worker.join()
    assert list(maps) == ["0"] and torch.equal(maps["0"], expected["0"])


def test_who_uses_a_network_while_a_recording_of_another_thread_ends_is_not_disturbed():
    network = torch.nn.Sequential(LiftingSelfAttention("R4", 1, 2, num_heads=1, head_dim=2, neighbourhood=3))
    inside, ended, answers = threading.Event(), threading.Event(), []

    def wait(*_):
        inside.set()
        ended.wait(60)

    network[0].register_forward_pre_hook(wait)
    worker = threading.Thread(target=lambda: answers.append(network(torch.rand(1, 1, 5, 5)).shape))
    with record_attention(network):
        worker.start()
        assert inside.wait(60)
    ended.set()
    worker.join()
    assert answers == [(1, 2, 4, 5, 5)]


def test_recorded_maps_turn_with_the_image():
    group, layer = gsa.group("R4"), LiftingSelfAttention("R4", 1, 2, 1, 6, 3).double()
    x = torch.rand(1, 1, 5, 5, dtype=torch.float64)
    turned = layer.attention(group.act(x, 1))[0, 0]  # [|H|, H, W, U, V]
    expected = torch.rot90(torch.rot90(layer.attention(x)[0, 0], 1, (1, 2)), 1, (3, 4)).roll(1, 0)
    torch.testing.assert_close(turned, expected)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
@pytest.mark.parametrize("wrap", [lambda network: network.compile(backend="eager") or network,
                                  lambda network: torch.compile(network, backend="eager")])  # fmt: skip
def test_maps_of_a_compiled_network_are_recorded(wrap):
    network, x = gsa.create_model("digits_r4_sa", channels=4).eval(), torch.rand(1, 1, 12, 12)
    compiled = wrap(network)
    with torch.no_grad():
        compiled(x)
        with record_attention(compiled) as maps:
            compiled(x)
    assert len(maps) == 3


def test_a_network_whose_attention_cannot_be_recorded_is_refused():
    replaced = gsa.nn.replace_convolutions(torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3)), "R4")
    with pytest.raises(ValueError, match="but Sequential has none; where heads of PosedAttention look"):
        record_attention(replaced).__enter__()


def test_recorded_maps_have_no_gradients():
    layer = LiftingSelfAttention("R4", 1, 2, 1, 6, 3)
    with record_attention(layer) as maps:
        assert layer(torch.rand(1, 1, 5, 5)).requires_grad
    assert not maps[""].requires_grad


def test_a_layer_that_is_called_again_has_a_map_of_each_call():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = GroupSelfAttention("R4", 2, 2, head_dim=6)

        def forward(self, x):
            return self.layer(self.layer(x))

    network, x = Twice(), torch.rand(1, 2, 4, 5, 5)
    with record_attention(network) as maps:
        for _ in range(2):
            network(x)
    assert list(maps) == ["layer", "layer (2)"]
    torch.testing.assert_close(maps["layer (2)"], network.layer.attention(network.layer(x)))
