"""What is particular to the C++ kernels; that they equal the reference is tested with all backends."""

import logging
import tomllib
from pathlib import Path

import pytest
import torch

from gsa import ops
from gsa.ops import _registry
from gsa.ops.impl import native
from gsa.ops.impl.native import _library
from gsa.ops.impl.native._kernels import _SIZE
from gsa.ops.impl.native._library import _size
from tests.ops.cases import CASES, tensors
from tests.ops.test_backends import largest_error, run

built = pytest.mark.skipif(not native.is_built(), reason="this installation found no C++ compiler")


@built
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_it_is_chosen_on_the_cpu(dtype):
    assert ops.explain(dtype=dtype).startswith("native: chosen")


@built
@pytest.mark.parametrize("width", ["AVX512", "AVX2", "DEFAULT"])
def test_every_vector_width_equals_the_reference(monkeypatch, width):
    here = torch.backends.cpu.get_cpu_capability()
    order = ["DEFAULT", "AVX2", "AVX512"]
    if here not in order or order.index(width) > order.index(here):
        pytest.skip(f"this CPU has {here} only")
    library = _library._load(width)
    assert _library._BUILDS.get(width, ("portable",))[0] in library._name
    monkeypatch.setattr(_library, "_build", library)
    for poses, map_ in CASES[::5]:
        for dropout in (0.0, 0.3):
            five, window, form = tensors(poses, map_)
            options = {"dropout": dropout, "seed": torch.tensor(7)}
            expected, gradients, cotangent = run(five, window, form, "reference", **options)
            actual, actual_gradients, _ = run(five, window, form, "native", cotangent, **options)
            for a, b in zip((actual, *actual_gradients), (expected, *gradients), strict=True):
                assert largest_error(a, b) < 1e-10


@built
@pytest.mark.parametrize("width, window", [(3, 3), (16, 5), (20, 5), (4, 9)])  # a vector has 16 pixels at most
@pytest.mark.parametrize("form, poses", [("regular", 4), ("summed", 4), ("summed", 1)])
def test_the_end_of_a_row_is_not_seen_from_the_next_one(form, poses, width, window):
    """Although they are neighbours in memory; nor is the other way round, in the gradient."""
    height, corner = 3, (0, width - 1)
    five = [torch.randn(1, 1, poses, height, width, 3) for _ in range(3)]
    five += [torch.randn(poses, window, window, 3), torch.randn(poses, poses, 3)]
    five[2].zero_()[..., *corner, :] = 1
    five[2].requires_grad_()
    out = ops.attend(*five, torch.ones(window, window, dtype=torch.bool), form=form, backend="native")
    rows, columns = torch.arange(height)[:, None], torch.arange(width)
    near = (rows <= window // 2) & (columns >= width - 1 - window // 2)
    assert torch.equal(out[0, 0].ne(0).any(-1).any(0), near)
    (gradient,) = torch.autograd.grad(out[..., *corner, :].sum(), five[2])
    assert torch.equal(gradient[0, 0].ne(0).any(-1).any(0), near)


@built
@pytest.mark.parametrize("poses", [4, 6, 8, 12, 16])
@pytest.mark.parametrize("form", ["regular", "summed"])
def test_numbers_of_poses_that_are_compiled_equal_the_reference(form, poses):
    """In float32, whose kernels are compiled for some; 6 is none of them."""
    five = [torch.randn(1, 2, poses, 5, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    five += [
        torch.randn(*shape, 3, dtype=torch.float64, requires_grad=True) for shape in ((poses, 3, 3), (poses, poses))
    ]
    window, options = torch.ones(3, 3, dtype=torch.bool), {"dropout": 0.3, "seed": torch.tensor(7)}
    expected, gradients, cotangent = run(five, window, form, "reference", **options)
    single = [x.detach().float().requires_grad_() for x in five]
    actual, actual_gradients, _ = run(single, window, form, "native", cotangent.float(), **options)
    for a, b in zip((actual, *actual_gradients), (expected, *gradients), strict=True):
        assert largest_error(a, b) < 1e-5


@built
@pytest.mark.parametrize("poses", ["lifting", "regular", "summed"])
def test_any_number_of_threads_gives_the_same_bits(poses):
    five, window, form = tensors(poses, "prime sides", torch.float32, batch=3, heads=3)
    options = {"dropout": 0.1, "seed": torch.tensor(1)}
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            cotangent = results[0][2] if results else None
            results.append(run(five, window, form, "native", cotangent, **options))
    finally:
        torch.set_num_threads(before)
    first, gradients, _ = results[0]
    for output, others, _ in results[1:]:
        assert torch.equal(output, first)
        assert all(torch.equal(a, b) for a, b in zip(others, gradients, strict=True))


@built
@pytest.mark.parametrize("poses", ["lifting", "regular", "summed"])
def test_a_slice_alone_has_the_mask_that_it_has_among_others(poses):
    """Alone, the places of its weights are hashed as they are needed; among others, once for all."""
    five, window, form = tensors(poses, "prime sides")
    options = {"form": form, "dropout": 0.3, "seed": torch.tensor(7), "backend": "native"}
    alone = (*(feature[:1, :1] for feature in five[:3]), *five[3:])
    assert torch.equal(ops.attend(*five, window, **options)[:1, :1], ops.attend(*alone, window, **options))


@built
@pytest.mark.parametrize("scale", [1e-3, 30.0, 3e3])
def test_large_and_small_scores(scale):
    """Weights near uniform, and weights of which one is all."""
    for poses in ("lifting", "regular", "summed"):
        five, window, form = tensors(poses, "square")
        five = tuple((t.detach() * scale**0.5).requires_grad_() for t in five)
        expected, gradients, cotangent = run(five, window, form, "reference")
        actual, actual_gradients, _ = run(five, window, form, "native", cotangent)
        for a, b in zip((actual, *actual_gradients), (expected, *gradients), strict=True):
            assert largest_error(a, b) < max(1e-10, 1e-12 * scale)  # a weight is as precise as its score


@built
@pytest.mark.parametrize("bits", [torch.tensor([0x7FC00001], dtype=torch.int32), torch.tensor([0x7FF8000000000001])])
def test_what_is_not_a_number_stays_so(bits):
    """Whatever else its bits hold."""
    nan = bits.view(torch.float32 if bits.dtype == torch.int32 else torch.float64)
    for poses in ("lifting", "regular", "summed"):
        five, window, form = tensors(poses, "square", nan.dtype)
        query = five[0].detach().clone()
        query[0, 0, 0, 2, 3] = nan
        out = ops.attend(query, *(t.detach() for t in five[1:]), window, form=form, backend="native")
        assert out[0, 0, 0, 2, 3].isnan().all() and not out[0, 1].isnan().any()


def test_without_a_build_tiled_serves_and_says_so_once(monkeypatch, caplog):
    monkeypatch.setattr(_registry, "_announced", set())
    monkeypatch.setattr(Path, "exists", lambda path: False)
    monkeypatch.setattr(_library, "_build", _library._load("AVX512"))
    assert "native" not in ops.backends()
    five, window, form = tensors("regular", "square")
    with caplog.at_level(logging.INFO, logger="gsa.ops"):
        ops.attend(*five, window, form=form)
        ops.attend(*five, window, form=form)
    messages = [record.message for record in caplog.records]
    assert len(messages) == 1
    assert "'tiled'" in messages[0]
    assert "native would be faster, but it was not built: install a C++ compiler" in messages[0]
    assert caplog.records[0].levelname == "WARNING"
    with pytest.raises(ValueError, match="install a C\\+\\+ compiler"):
        ops.attend(*five, window, form=form, backend="native")


@built
@pytest.mark.parametrize("size", [_SIZE - 8, _size(object())])
def test_a_build_of_other_sources_does_not_serve(monkeypatch, size):
    """Planted: one whose arguments lack a field, and one from before builds said how many they take."""
    assert _library.call_size == _SIZE
    monkeypatch.setattr(_library, "call_size", size)
    assert "native would be faster, but it was built from other sources" in ops.explain()
    five, window, form = tensors("regular", "square")
    with pytest.raises(ValueError, match="install gsa again"):
        ops.attend(*five, window, form=form, backend="native")


def test_every_build_depends_on_every_header():
    """Or a change of one would leave old kernels in place."""
    root = Path(native.__file__).parents[4]
    modules = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["ext-modules"]
    headers = {str(path.relative_to(root)) for path in Path(native.__file__).parent.glob("*.hpp")}
    assert len(modules) == 3 and all(set(module["depends"]) == headers for module in modules)


def test_cpp_files_stay_small():
    for path in Path(native.__file__).parent.glob("*.?pp"):
        assert len(path.read_text().splitlines()) <= 300, path.name


def test_another_mask_is_noticed():
    """Planted failure: a kernel that is given the wrong seed is noticed."""
    five, window, form = tensors("summed", "square")
    right = ops.attend(*five, window, form=form, dropout=0.3, seed=torch.tensor(1))
    wrong = ops.attend(*five, window, form=form, dropout=0.3, seed=torch.tensor(2), backend="reference")
    assert largest_error(right, wrong) > 1e-3
