"""The largest answer of all poses has the gradient of `amax`, and keeps less for it."""

import pytest
import torch

from gsa.nn._strongest import strongest

pytestmark = pytest.mark.usefixtures("float64")


def kept(function, x):
    """Bytes that a graph holds."""
    storages = {}

    def hold(tensor):
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(hold, lambda tensor: tensor):
        result = function(x)
    return sum(storages.values()), result


@pytest.mark.parametrize("poses", [1, 2, 4, 300])
def test_its_gradient_is_that_of_amax_and_ties_share_it(poses):
    x = torch.randint(0, 3, (2, 3, poses, 4, 5)).to(torch.get_default_dtype()).requires_grad_()
    weights = torch.randn(2, 3, 4, 5)
    assert torch.equal(strongest(x), x.amax(2))
    ours, theirs = (torch.autograd.grad((weights * y).sum(), x)[0] for y in (strongest(x), x.amax(2)))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-15)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # of what torch itself does
def test_its_derivatives_are_those_of_finite_differences():
    x = torch.randn(1, 2, 3, 2, 2, requires_grad=True)
    assert torch.autograd.gradcheck(strongest, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda x: strongest(x).square(), x)
    each = torch.func.vmap(torch.func.grad(lambda x: strongest(x[None]).square().sum()))(x.detach())
    torch.testing.assert_close(each, torch.autograd.grad(x.amax(2).square().sum(), x)[0])


def test_a_byte_of_every_answer_is_kept_and_nothing_without_a_gradient():
    x = torch.randn(2, 3, 4, 8, 8, requires_grad=True)
    ours, theirs = (kept(function, x)[0] for function in (strongest, lambda x: x.amax(2)))
    assert ours == x.numel() and theirs >= 8 * x.numel()
    assert not strongest(x.detach()).requires_grad


@pytest.mark.filterwarnings("ignore:.*torch.jit", "ignore::torch.jit.TracerWarning")
def test_it_is_compiled_and_traced():
    x = torch.randn(1, 2, 4, 3, 3, requires_grad=True)
    compiled = torch.compile(strongest, backend="eager", fullgraph=True)(x)
    traced = torch.jit.trace(strongest, x)(x)
    assert torch.equal(compiled, strongest(x)) and torch.equal(traced, strongest(x))
