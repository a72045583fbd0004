"""Every backend on a GPU, against the reference in float64 on the CPU:  pytest -n 0 -m gpu

What costs little is tried on the CPU as well, so that it is known to work where it is needed.
"""

import _correct
import pytest
import torch

from tests.devices import GPU, on_gpu
from tests.ops.cases import MAPS, POSES, tensors
from tests.ops.test_backends import FAST, largest_error, run

ON_GPU = ("triton", "tiled")
PLACES = [*(("cpu", name) for name in FAST), *(on_gpu("cuda", name) for name in ON_GPU)]
SECOND = [*GPU, pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")]
# Forms, maps and dropouts: every form and every map; each is a compilation of four kernels.
CASES = [
    *((poses, map_, 0.3) for poses in POSES for map_ in ("H≠W", "more pixels than a warp")),
    *((poses, map_, 0.3) for poses in ("regular, other keys", "summed, all counts different") for map_ in MAPS),
    *((poses, "H≠W", 0.0) for poses in POSES),
]
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def largest_errors(device, backend, poses, map_, dropout, crop=0):
    """Of output and gradients."""
    five, window, form = tensors(poses, map_)
    options = {"dropout": dropout, "crop": crop, "seed": torch.tensor(7)}
    expected, gradients, cotangent = run(five, window, form, "reference", **options)
    there = [t.detach().to(device).requires_grad_() for t in five]
    options["seed"] = torch.tensor(7, device=device)
    actual, actual_gradients, _ = run(there, window.to(device), form, backend, cotangent.to(device), **options)
    pairs = zip((actual, *actual_gradients), (expected, *gradients), strict=True)
    return [largest_error(a.cpu(), b) for a, b in pairs]


@pytest.mark.parametrize("poses, map_, dropout", dict.fromkeys(CASES))
@pytest.mark.parametrize("device, backend", [on_gpu("cuda", name) for name in (*ON_GPU, "reference")])
def test_output_and_gradients_on_the_gpu(device, backend, poses, map_, dropout):
    assert max(largest_errors(device, backend, poses, map_, dropout)) < 1e-10


@pytest.mark.parametrize("poses", POSES)
@pytest.mark.parametrize("device, backend", PLACES)
def test_cropped_maps_on_the_gpu(device, backend, poses):
    """By kernels that the test above has compiled."""
    assert max(largest_errors(device, backend, poses, "H≠W", 0.3, crop=1)) < 1e-10


@pytest.mark.parametrize(
    "device, backend", [("cpu", "tiled"), *(pytest.param("cuda:1", name, marks=SECOND) for name in ON_GPU)]
)
def test_tensors_need_not_be_on_the_device_that_is_current(device, backend):
    for poses in ("regular", "summed"):
        assert max(largest_errors(device, backend, poses, "H≠W", 0.3)) < 1e-10
    assert device == "cpu" or torch.cuda.current_device() == 0


def test_planted_a_gradient_that_is_scaled(spoil):
    spoil("tiled", backward=lambda gradients: (*gradients[:4], gradients[4] * (1 + 1e-6)))
    *others, pose = largest_errors("cpu", "tiled", "regular", "H≠W", 0.3)
    assert max(others) < 1e-10 < pose


def of_28_pixels(monkeypatch, device, form, dtype):
    """What the benchmark says of one case."""
    monkeypatch.setattr(_correct, "_cases", lambda quick: iter([(form, "28×28, 5×5", 0.3, dtype)]))
    return list(_correct.checks(device, quick=False))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "device, form", [("cpu", "regular"), *(on_gpu("cuda", form) for form in ("lifting", "regular", "summed"))]
)
def test_each_dtype_keeps_to_its_budget_at_28_pixels(monkeypatch, device, form, dtype):
    rows = of_28_pixels(monkeypatch, device, form, dtype)
    assert {"cpu": "tiled", "cuda": "triton"}[device] in {row["backend"] for row in rows}
    assert not [row for row in rows if not row["right"]]


def test_planted_an_output_beyond_its_budget(monkeypatch, spoil):
    spoil("tiled", forward=lambda output: output * (1 + 2 * _correct.BUDGETS[torch.float16]))
    rows = of_28_pixels(monkeypatch, "cpu", "regular", torch.float16)
    assert {row["backend"]: row["right"] for row in rows} == {name: name != "tiled" for name in FAST}


def twice(device, backend):
    """Output and gradients of two passes over the same numbers."""
    for poses in ("lifting", "regular", "summed"):
        five, window, form = tensors(poses, "prime sides", dtype=torch.float32, batch=16)
        five = [t.detach().to(device).requires_grad_() for t in five]
        options = {"dropout": 0.3, "seed": torch.tensor(7, device=device)}
        output, gradients, cotangent = run(five, window.to(device), form, backend, **options)
        again, gradients_again, _ = run(five, window.to(device), form, backend, cotangent, **options)
        yield from zip((output, *gradients), (again, *gradients_again), strict=True)


@pytest.mark.parametrize("device, backend", PLACES)
def test_two_passes_give_the_same_bits(device, backend):
    assert all(torch.equal(one, other) for one, other in twice(device, backend))


def test_planted_a_sum_in_another_order_every_time(spoil):
    calls = []

    def backward(gradients):
        calls.append(1)
        return (*gradients[:4], gradients[4] * (1 + 1e-7 * len(calls)))

    spoil("tiled", backward=backward)
    assert not all(torch.equal(one, other) for one, other in twice("cpu", "tiled"))


def of_the_last_slice(device, backend, batch, side=3, head_dim=2, dtype=torch.float32):
    """The largest error of the last of many slices, output and gradients, against the same slice alone.

    Nothing but the last slice has an effect on the loss, so that the gradients of the tables are its own, too.
    """
    x = torch.randn(batch, 2, head_dim, 4, side, side, dtype=dtype, device=device).permute(0, 1, 3, 4, 5, 2)
    tables = [torch.randn(4, *shape, head_dim, dtype=dtype, device=device) for shape in ((3, 3), (4,))]
    window = torch.ones(3, 3, dtype=torch.bool, device=device)

    def of(x, cotangent):
        five = [t.detach().requires_grad_() for t in (x, x, x, *tables)]
        output, gradients, _ = run(five, window, "regular", backend, cotangent)
        *features, spatial, pose = output.detach(), *gradients
        return [*(feature[-1, -1].clone() for feature in features), spatial, pose]

    cotangent = torch.zeros_like(x)
    last = cotangent[-1:, -1:].copy_(x[-1:, -1:])
    pairs = zip(of(x, cotangent), of(x[-1:, -1:], last), strict=True)
    return max(largest_error(a.double(), b.double()) for a, b in pairs)


@pytest.mark.parametrize("device, backend", [("cpu", FAST[0]), *(on_gpu("cuda", name) for name in ON_GPU)])
def test_there_may_be_more_than_65535_slices(device, backend):
    assert of_the_last_slice(device, backend, 33_000) < 1e-5


@pytest.mark.parametrize("device, backend, batch, side", [("cpu", "tiled", 3, 16), on_gpu("cuda", "triton", 1025, 128)])
def test_features_may_have_more_than_two_to_the_31_numbers(device, backend, batch, side):
    """On a GPU, where they take 4.3 GB each, and 30 GB with all that is kept."""
    if device != "cpu":
        torch.cuda.empty_cache()
        assert (batch * 2 - 1) * 4 * side**2 * 16 > 2**31  # where the last slice begins
        if torch.cuda.mem_get_info()[0] < 45e9:
            pytest.skip("needs 45 GB of memory")
    assert of_the_last_slice(device, backend, batch, side, 16, torch.bfloat16) < 1e-2


def test_planted_a_last_slice_that_is_another(spoil):
    spoil("tiled", forward=lambda output: torch.cat([output[:-1], output[:1]]))
    assert of_the_last_slice("cpu", "tiled", 3) > 0.1
