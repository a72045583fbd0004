"""Tensors that do not fit together are refused by every backend alike."""

import pytest
import torch

from gsa import ops
from gsa.ops._call import Call
from gsa.ops.impl import reference
from tests.ops.cases import tensors


@pytest.mark.parametrize(
    "index, change, message",
    [
        (0, lambda t: t[0], r"query must be \[B, heads, query poses, H, W, d\]"),
        (0, lambda t: t.long(), "query must be of a floating dtype"),
        (1, lambda t: t.long(), "key must be of a floating dtype"),
        (4, lambda t: t.bool(), "pose must be of a floating dtype"),
        (1, lambda t: t[..., :-1], "key must have the shape"),
        (2, lambda t: t[:, :, :2], "value must have the shape"),
        (3, lambda t: t[:2], "spatial must have the shape"),
        (4, lambda t: t[:, :2], "pose must have the shape"),
        (0, lambda t: t[..., :0, :], "query must be of maps of at least one pixel"),
        (5, lambda t: t[:2], r"window must be \[U, V\] with odd sides"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(index, change, message):
    five, window, form = tensors("regular", "square")
    arguments = [t.detach() for t in (*five, window)]
    arguments[index] = change(arguments[index])
    with pytest.raises(ValueError, match=message):
        ops.attend(*arguments, form=form)


@pytest.mark.parametrize("index, name", list(enumerate(["query", "key", "value", "spatial", "pose", "window"])))
def test_tensors_on_different_devices_are_refused(index, name):
    five, window, form = tensors("regular", "square")
    arguments = [t.detach() for t in (*five, window)]
    arguments[index] = arguments[index].to("meta")
    message = f"{name} must be on the device of query, cpu, but is on meta"
    if name == "query":
        message = "key must be on the device of query, meta, but is on cpu"
    with pytest.raises(ValueError, match=message):
        ops.attend(*arguments, form=form)


def test_a_seed_on_another_device_is_refused():
    five, window, form = tensors("regular", "square")
    with pytest.raises(ValueError, match="seed must be on the device of query, cpu, but is on meta"):
        ops.attend(*five, window, form=form, dropout=0.1, seed=torch.tensor(0, device="meta"))


@pytest.mark.parametrize("seed", [3, torch.tensor(3.7), torch.tensor([3])])
def test_a_seed_that_is_no_whole_scalar_is_refused(seed):
    five, window, form = tensors("regular", "square")
    with pytest.raises(ValueError, match="an int64 scalar if it is the seed, but got"):
        ops.attend(*five, window, form=form, dropout=0.1, seed=seed)


def test_everything_on_another_device_is_served():
    five, window, form = tensors("regular", "square")
    output = ops.attend(*(t.detach().to("meta") for t in (*five, window)), form=form)
    assert output.is_meta and output.shape == five[0].shape


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while compiling
@pytest.mark.parametrize("way", ["eager", "compiled", "exported", "weights"])
def test_a_window_without_its_centre_is_refused(way):
    five, window, form = tensors("regular", "square")
    five = [t.detach() for t in five]
    query, key, _, spatial, pose = five
    window[1, 1] = False

    class Network(torch.nn.Module):
        def forward(self, *arguments):
            return ops.attend(*arguments, form=form)

    run = Network()
    if way == "compiled":
        run = torch.compile(run, backend="eager", fullgraph=True)
    elif way == "exported":
        run = torch.export.export(run, (*five, window)).module()
    elif way == "weights":
        run = lambda *arguments: ops.attention_weights(query, key, spatial, pose, window, form=form)  # noqa: E731
    with pytest.raises(ValueError, match=r"window must hold its middle entry.*expected True there, but got False"):
        run(*five, window)


def test_options_out_of_range_are_refused():
    five, window, _ = tensors("regular", "square")
    with pytest.raises(ValueError, match="form must be one of"):
        ops.attend(*five, window, form="both")
    for probability in (1.0, -0.1):
        with pytest.raises(ValueError, match=r"probability in \[0, 1\)"):
            ops.attend(*five, window, dropout=probability)


@pytest.mark.parametrize("crop", [-1, 3, 1.0, True])
def test_crops_that_leave_nothing_are_refused(crop):
    five, window, _ = tensors("regular", "square")
    with pytest.raises(ValueError, match="crop must be a number of pixels that leaves some of a 6×6 map, but got"):
        ops.attend(*five, window, crop=crop)


def test_attention_weights_of_halves_are_those_of_their_sums():
    """Scores far from zero, which halves do not tell apart."""
    torch.manual_seed(0)
    query, key = 20 * torch.rand(1, 1, 1, 5, 5, 8), 20 + torch.rand(1, 1, 1, 5, 5, 8)
    halves = [t.bfloat16() for t in (query, key, torch.rand(1, 3, 3, 8), torch.zeros(1, 1, 8))]
    window = torch.ones(3, 3, dtype=torch.bool)
    found, expected = (ops.attention_weights(*tensors, window) for tensors in (halves, [t.float() for t in halves]))
    assert found.dtype == torch.bfloat16 and (found.float() - expected).abs().max() < 1e-2
    call = Call(halves[0], halves[1], halves[1], *halves[2:], window, torch.zeros(()), True, 0.0)
    assert (reference.weights(call).sum(-3).float() - expected).abs().max() > 1e-2  # planted: every score rounded


@pytest.mark.parametrize("poses", ["lifting", "regular", "summed"])
def test_attention_weights_are_distributions(poses):
    five, window, form = tensors(poses, "square")
    query, key, _, spatial, pose = five
    weights = ops.attention_weights(query, key, spatial, pose, window, form=form)
    assert weights.shape == (2, 2, 4, 6, 6, 3, 3)
    torch.testing.assert_close(weights.sum((-2, -1)), torch.ones_like(weights[..., 0, 0]))
    assert (weights[..., ~window] == 0).all() and (weights[..., 0, :, 0, :] == 0).all()


def test_the_ops_are_registered_as_exported_programs_have_them():
    call = (
        "Tensor query, Tensor key, Tensor value, Tensor spatial, Tensor pose, Tensor window, Tensor seed, "
        "bool paired, float dropout, str backend"
    )
    gradients = "(Tensor, Tensor, Tensor, Tensor, Tensor)"
    assert str(torch.ops.gsa.attend.default._schema) == f"gsa::attend({call}, int crop=0) -> Tensor"
    needed = "bool[5] needed, int crop=0"
    backward = torch.ops.gsa.attend_backward.default._schema
    assert str(backward) == f"gsa::attend_backward(Tensor grad, {call}, {needed}) -> {gradients}"
