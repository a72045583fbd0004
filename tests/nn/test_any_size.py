"""Layers that were traced, exported or compiled with one size of map serve every size."""

import pytest
import torch
from torch.export import Dim

import gsa
from gsa.ops._by_convolution import _alike


def layers():
    options = {"neighbourhood": 5, "num_heads": 3, "head_dim": 4, "encoding": "quadratic", "positional_heads": 3}
    return [
        (gsa.nn.PosedAttention("R4", 1, 4, 5), [1, 1]),
        (gsa.nn.GroupSelfAttention("R4", 2, 2, **options), [1, 2, 4]),
        (gsa.nn.GroupSelfAttention("R4", 2, 2, **options, crop=1), [1, 2, 4]),
        (gsa.nn.PosedAttention("R4", 1, 4, 3, stride=2, border="zeros"), [1, 1]),
    ]


def _of_one_parity(side, which):
    """A side of any number of pixels; of even ones where there are strides, which are counted from both ends."""
    return side if which < 3 else 2 * side


@pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("which, way", [
    (0, "trace"), (1, "trace"), (2, "trace"), (3, "trace"), (2, "export"), (3, "export"),
    *(pytest.param(which, "export", marks=pytest.mark.slow) for which in range(2)),
    *(pytest.param(which, "compile", marks=pytest.mark.slow) for which in range(3)),
])  # fmt: skip
def test_heads_by_position_take_maps_of_any_size(way, which):
    layer, shape = layers()[which]
    layer.eval().requires_grad_(False)
    example = torch.rand(*shape, 16, 16)
    if way == "trace":
        program = torch.jit.trace(layer, example)
    elif way == "export":
        sides = {len(shape) + axis: _of_one_parity(Dim(name, min=8), which) for axis, name in enumerate("hw")}
        program = torch.export.export(layer, (example,), dynamic_shapes=(sides,)).module()
    else:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        program = torch.compile(layer, dynamic=True, fullgraph=True, backend="aot_eager")
    for height, width in ((11, 14), (24, 20), (31, 9), (16, 16)) if which < 3 else ((24, 20), (16, 16), (18, 32)):
        x = torch.rand(*shape, height, width)
        torch.testing.assert_close(program(x), layer(x))
    if way == "compile":
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


def test_pixels_that_see_the_same_part_of_a_window():
    """One by one: what a pixel sees of the line lies at the same place in the window."""
    for length, side, stride in [(n, s, t) for n in range(1, 14) for s in (1, 2, 3, 4, 5, 9) for t in (1, 2, 3)]:
        for crop in range((length - side % 2) // 2 + 1):
            seen = []
            for line, window, step in _alike(length, side, crop, stride):
                pixels, places = list(range(length))[line], list(range(side))[window]
                for start in range(0, len(pixels) - len(places) + 1, step):
                    pixel = pixels[start] - places[0] + side // 2
                    assert pixels[start : start + len(places)] == [pixel + place - side // 2 for place in places]
                    missed = [pixel - side // 2 + u for u in range(side) if u not in places]
                    assert not any(0 <= other < length for other in missed)
                    seen.append(pixel)
            assert seen == list(range(crop, length - crop + 1 - side % 2, stride))


def test_a_pool_that_warns_is_compiled_whole():
    torch._dynamo.reset()
    pool = gsa.nn.SpatialPool(2, on_inexact="warn")
    x = torch.rand(1, 1, 7, 7)
    found = torch.compile(pool, backend="eager", fullgraph=True)(x)
    with pytest.warns(UserWarning, match="equivariant only on sides"):
        assert torch.equal(found, pool(x))


@pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")  # of what torch itself does
def test_forward_mode_of_a_program_is_refused_and_not_zero():
    layer, x = gsa.nn.LiftingSelfAttention("R4", 1, 2).eval(), torch.rand(1, 1, 6, 6)
    program = torch.export.export(layer, (x,)).module()
    assert torch.func.jvp(layer, (x,), (x,))[1].abs().max() > 0
    with pytest.raises(ValueError, match="no derivatives in forward mode"):
        torch.func.jvp(program, (x,), (x,))
    assert torch.equal(program(x), layer(x))


@pytest.mark.slow
def test_onnx_of_any_size(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    layer = gsa.nn.LiftingSelfAttention("R4", 1, 4, num_heads=2, head_dim=4, neighbourhood=3).eval()
    sides = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC}
    file = str(tmp_path / "layer.onnx")
    torch.onnx.export(layer, (torch.rand(3, 1, 8, 8),), file, dynamo=True, dynamic_shapes=(sides,), verbose=False)
    session = onnxruntime.InferenceSession(file)
    for shape in ((3, 1, 8, 8), (1, 1, 4, 6), (2, 1, 17, 9)):
        x = torch.rand(shape)
        (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), layer(x), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_compiled_layers_with_zeros_beyond_are_trained_on_maps_of_several_sizes():
    """The compiler of torch 2.14 fails at the second size where more than four axes are padded."""
    layer, shape = layers()[3]
    torch._dynamo.reset()
    program = torch.compile(layer)
    for height, width in ((17, 17), (33, 33), (40, 65)):
        x = torch.rand(*shape, height, width)
        found, expected = (torch.autograd.grad(f(x).square().sum(), list(layer.parameters())) for f in (program, layer))
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
