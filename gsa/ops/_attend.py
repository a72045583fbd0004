"""The attention op: one node for autograd, torch.compile and torch.export, every backend behind it."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, library
from torch._C._functorch import TransformType
from torch.autograd import forward_ad

from gsa.ops import _registry
from gsa.ops._call import Call, of_backward, packed, unpacked
from gsa.ops._memory import noting_memory
from gsa.ops._plain import attend_plainly
from gsa.ops._validation import check, check_centre, is_regular
from gsa.ops.impl import reference
from gsa.ops.impl._layout import channels_first, empty_channels_first

__all__ = ["attend", "attention_weights"]


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    spatial: Tensor,
    pose: Tensor,
    window: Tensor,
    *,
    form: str = "regular",
    dropout: float = 0.0,
    seed: Tensor | None = None,
    crop: int = 0,
    backend: str | None = None,
) -> Tensor:
    """Attention over relative positions and poses.

        regular: out(i,h) =     Σ_{j,m} softmax_{j,m}( q(i,h)·(k(j,m) + spatial(h, j−i) + pose(h, m)) / √d ) v(j,m)
        summed:  out(i,h) = Σ_a Σ_{j,m} softmax_{j,m}( q(i,a)·(k(j,m) + spatial(h, j−i) + pose(a, m)) / √d ) v(j,m)

    Lifting is the summed form with one query pose. Keys outside the picture take no part. The op knows no groups:
    the tables come already acted upon by every output pose.

    Args:
        query: [B, heads, Q, H, W, d]; Q query poses.
        key, value: [B, heads, M, H, W, d]; M key poses.
        spatial: [P, U, V, d], the encoding of each relative position for each output pose; U and V odd, rows first.
        pose: [Q, M, d], the encoding of each pair of poses.
        window: bool [U, V], the relative positions that take part, the centre among them (on a GPU that is not
            checked: without it a pixel may see nothing, and its output is NaN).
        form: "regular" (P = Q, output pose h is asked by query pose h) or "summed" (all query poses contribute).
        dropout: probability, on the weights of (h, m, pixel, offset) in the regular form and on
            the weights of the offsets, softmax_j, for each (h, a, pixel) in the summed form.
        seed: int64 scalar whose low 32 bits determine the dropout mask; drawn from torch's generator when None.
        crop: pixels at every border that are keys, but ask nothing.
        backend: one of `gsa.ops.backends()`; None or "auto" chooses.

    Returns:
        [B, heads, P, H − 2·crop, W − 2·crop, d], in the dtype of `query`. Half precisions accumulate in float32.

    Raises:
        ValueError: shapes, dtypes, devices, window, form, dropout, crop or backend that do not fit; dropout where
            torch.func takes derivatives.
    """
    if seed is None:
        seed = _draw_seed(query.device, dropout)
    call = _ready(Call(query, key, value, spatial, pose, window, seed, is_regular(form), dropout, crop))
    if torch.onnx.is_in_onnx_export():
        return attend_plainly(call)
    if _is_transformed():
        if dropout:
            raise ValueError(
                f"torch.func and forward mode take derivatives of attention without dropout only, but got {dropout}: "
                "call eval(), or take those of torch.autograd.grad(create_graph=True)"
            )
        with torch.autocast(query.device.type, enabled=False):
            return attend_plainly(call)
    choice = _registry.choose(query.device, query.dtype, backend)
    if torch.compiler.is_exporting():
        return torch.ops.gsa.attend(*packed(call, backend or "auto"))  # chosen where the program runs
    if not torch.compiler.is_compiling():
        _registry.announce(choice)
    return torch.ops.gsa.attend(*packed(call, choice.name))


def attention_weights(
    query: Tensor, key: Tensor, spatial: Tensor, pose: Tensor, window: Tensor, *, form: str = "regular"
) -> Tensor:
    """Where each output pose looks: the weights of `attend`, summed over key poses and averaged over query poses.

    Written out, so meant for pictures, not for training. Arguments as in `attend`; halves are summed in float32.

    Returns:
        [B, heads, P, H, W, U, V]; every map [U, V] sums to 1 and is 0 outside the window and the picture, of which
        zeros put around it are part. U and V are at most 2H − 1 and 2W − 1.

    Raises:
        ValueError: as of `attend`.
    """
    seed = _draw_seed(query.device, 0.0)
    call = _ready(Call(query, key, key, spatial, pose, window, seed, is_regular(form), 0.0))
    check_centre(call.window)
    weights = reference.weights(call.to(call.sum_dtype)).sum(-3)
    return (weights if call.regular else weights.mean(3)).to(query.dtype)


def _ready(call: Call) -> Call:
    """The call as backends take it: checked, in the dtype of the query, with no relative positions in vain."""
    check(call)
    spatial, window = _crop(call.spatial, call.window, *call.query.shape[-3:-1])
    call = call._replace(spatial=spatial, window=window, dropout=float(call.dropout))
    return call.to(call.query.dtype)


def _crop(spatial: Tensor, window: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Leave out relative positions that no two pixels of the map have: at most [2H − 1, 2W − 1] remain."""
    rows, columns = window.shape
    top, left = max(rows // 2 - (height - 1), 0), max(columns // 2 - (width - 1), 0)
    window = window[top : rows - top, left : columns - left]
    return spatial[:, top : rows - top, left : columns - left], window


def _is_transformed() -> bool:
    """Whether torch.func or forward mode takes derivatives: an op of ours has none for them, and jvp would say 0."""
    if forward_ad._current_level >= 0:
        return True
    stack = torch._C._functorch.get_interpreter_stack() or ()
    return any(level.key() in (TransformType.Grad, TransformType.Jvp) for level in stack)


# What torch.compiler.assume_constant_result does, without the compiler, whose import takes seconds.
_is_transformed._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _draw_seed(device: torch.device, dropout: float) -> Tensor:
    if dropout:
        return torch.randint(2**31, (), device=device, dtype=torch.int64)
    return torch.zeros((), device=device, dtype=torch.int64)


# As exported programs have it, those from before without crop: a `Call`, whose `regular` is `paired` here.
_ARGUMENTS = (
    "Tensor query, Tensor key, Tensor value, Tensor spatial, Tensor pose, Tensor window, Tensor seed, "
    "bool paired, float dropout, str backend"
)


def _served(*arguments: Any) -> tuple[Call, str]:
    """The call, and the backend that serves it; where none was named, in exported programs, it is chosen here."""
    call, backend = unpacked(*arguments)
    if forward_ad._current_level >= 0:  # an exported or traced program, which calls this op and not `attend`
        raise ValueError(
            "programs that were exported or traced with attention have no derivatives in forward mode (torch.func.jvp, "
            "jacfwd, forward_ad): take those of the network itself, or of gsa export --plain"
        )
    if backend == "auto":
        choice = _registry.choose(call.query.device, call.query.dtype)
        _registry.announce(choice)
        return call, choice.name
    return call, backend


@library.custom_op("gsa::attend", mutates_args=(), schema=f"({_ARGUMENTS}, int crop=0) -> Tensor")
def _attend(*arguments: Any) -> Tensor:
    call, backend = _served(*arguments)
    check_centre(call.window)
    with torch.autocast(call.query.device.type, enabled=False), noting_memory("forward", backend, call):
        return channels_first(_registry.get(backend).run(call))


@_attend.register_fake
def _(*arguments: Any) -> Tensor:
    call, _ = unpacked(*arguments)
    return empty_channels_first(call.query, call.spatial.shape[0], call.crop)


# What it returns are tensors, as of every op: one without elements for a gradient that is not needed.
@library.custom_op(
    "gsa::attend_backward",
    mutates_args=(),
    schema=f"(Tensor grad, {_ARGUMENTS}, bool[5] needed, int crop=0) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def _attend_backward(grad: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    of_call, needed = of_backward(*arguments)
    call, backend = _served(*of_call)
    with torch.autocast(grad.device.type, enabled=False), noting_memory("backward", backend, call):
        gradients = _registry.get(backend).differentiate(grad, call, needed)
        features = [grad.new_empty(0) if x is None else channels_first(x) for x in gradients[:3]]
        tables = [grad.new_empty(0) if x is None else x.contiguous() for x in gradients[3:]]
        return *features, *tables


@_attend_backward.register_fake
def _(grad: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
    of_call, needed = of_backward(*arguments)
    call, _ = unpacked(*of_call)
    features = (empty_channels_first(x, x.shape[2]) for x in (call.query, call.key, call.value))
    tables = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (call.spatial, call.pose))
    pairs = zip((*features, *tables), needed, strict=True)
    return tuple(gradient if wanted else grad.new_empty(0) for gradient, wanted in pairs)


def _save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    *tensors, ctx.regular, ctx.dropout, ctx.backend, ctx.crop = inputs
    ctx.save_for_backward(*tensors)


def _differentiate(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    needed = ctx.needs_input_grad[:5]
    settings = ctx.regular, ctx.dropout, ctx.backend, needed, ctx.crop
    gradients = torch.ops.gsa.attend_backward(grad, *ctx.saved_tensors, *settings)
    asked = (gradient if wanted else None for gradient, wanted in zip(gradients, needed, strict=True))
    return (*asked, *[None] * 6)


def _save_backward_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    of_call, ctx.needed = of_backward(*inputs[1:])
    _save_inputs(ctx, (inputs[0], *of_call), output)


def _differentiate_twice(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
    """Second derivatives, of whatever backend, come from the reference, and with them all higher ones."""
    *tensors, window, seed = ctx.saved_tensors
    higher = torch.is_grad_enabled()  # create_graph=True
    with torch.enable_grad(), torch.autocast(ctx.saved_tensors[0].device.type, enabled=False):
        tensors = [t.view_as(t) if higher and t.requires_grad else t.detach().requires_grad_() for t in tensors]
        grad, query, key, value, spatial, pose = tensors
        call = Call(query, key, value, spatial, pose, window, seed, ctx.regular, ctx.dropout, ctx.crop)
        asked = [x for x, wanted in zip(call.tensors, ctx.needed, strict=True) if wanted]
        first = torch.autograd.grad(reference.forward(call), asked, grad, create_graph=True)
        of_asked = [g for g, wanted in zip(grads, ctx.needed, strict=True) if wanted]
        second = torch.autograd.grad(first, tensors, of_asked, allow_unused=True, create_graph=higher)
    return (*second, *[None] * 7)


@_attend.register_vmap
def _(info: Any, dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
    """Samples of `torch.vmap` as more of the batch; one by one where each has its own tables, or dropout its counts."""
    if any(dim is not None for dim in dims[3:]) or unpacked(*arguments)[0].dropout:
        return torch.stack([_attend(*given) for given in _one_by_one(info, dims, arguments)]), 0
    pairs = zip(arguments[:3], dims[:3], strict=True)
    features = [x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0) for x, dim in pairs]
    output = _attend(*(x.flatten(0, 1) for x in features), *arguments[3:])
    return output.unflatten(0, features[0].shape[:2]), 0


@_attend_backward.register_vmap
def _(info: Any, dims: tuple[Any, ...], *arguments: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    gradients = [_attend_backward(*given) for given in _one_by_one(info, dims, arguments)]
    return tuple(map(torch.stack, zip(*gradients, strict=True))), (0,) * 5


def _one_by_one(info: Any, dims: tuple[Any, ...], arguments: tuple[Any, ...]) -> Iterator[list[Any]]:
    """The arguments of every sample; of a list, no entry has samples."""
    for sample in range(info.batch_size):
        pairs = zip(arguments, dims, strict=True)
        yield [x.select(dim, sample) if isinstance(dim, int) else x for x, dim in pairs]


_attend.register_autograd(_differentiate, setup_context=_save_inputs)
_attend_backward.register_autograd(_differentiate_twice, setup_context=_save_backward_inputs)
