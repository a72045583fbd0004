"""A small transformer with its features in other orders: weights beside PᵀWP, and losses that lie on each other."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from gsa.explore._packed import packed
from gsa.symmetry import relative_error
from gsa.symmetry.statements import Shuffle, encryption_errors, feature_orders, head_order, twin

__all__ = ["OPTIMIZERS", "reordered", "trained"]

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda weights: torch.optim.SGD(weights, 0.05, momentum=0.9),
    "Adam": lambda weights: torch.optim.Adam(weights, 0.01),
}
_HEADS, _CHANNELS, _HIDDEN, _TOKENS = 2, 8, 12, 6


def reordered(steps: int = 40, orders: int = 3) -> dict[str, Any]:
    """One transformer layer in several orders P of its features, trained on data in that order, in float64.

        W_P = PᵀWP,   f_P(Z P) = f(Z) P,   l_P = l after every step

    Every token has to become the one that is most like it. The last order mixes the channels of different heads, which
    attention does not forgive; the contrast of every order is a layer that is permuted by Pᵀ in place of P.

    Args:
        steps: of training, of a layer that has been trained before.
        orders: that respect the heads, beside the last one.

    Returns:
        Plain values for JSON. "orders": of each its "name", "order", relative "errors" of `encryption_errors`, by
        matrix its "values", packed, and "places", where each entry stood; by optimizer in "training" the losses
        "permuted" and "wrong", packed [steps + 1], with their largest relative differences "difference" and "contrast"
        from those of the plain layer, and "weights", how far trained weights are from PᵀWP. The plain layer's "losses"
        by optimizer and "values" by matrix.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        start = nn.TransformerEncoderLayer(
            _CHANNELS, _HEADS, _HIDDEN, dropout=0.0, batch_first=True, norm_first=True, dtype=torch.float64
        ).eval()
        tokens = torch.randn(16, _TOKENS, _CHANNELS, dtype=torch.float64)
        found = [head_order(_HEADS, _CHANNELS // _HEADS) for _ in range(orders)]
        across = torch.arange(_CHANNELS).view(_HEADS, -1).T.flatten()
        shuffles = [Shuffle(order, hidden=torch.randperm(_HIDDEN)) for order in (*found, across)]
    target = _most_alike(tokens)
    layer = trained(start, tokens, target, OPTIMIZERS["Adam"], 80)[0]
    own = {name: trained(layer, tokens, target, make, steps) for name, make in OPTIMIZERS.items()}
    names = [*(f"P{i}" for i in range(1, orders + 1)), "across heads"]
    return {
        "heads": _HEADS,
        "values": {name: packed(matrix) for name, matrix in _matrices(layer).items()},
        "losses": {name: packed(losses) for name, (_, losses, _) in own.items()},
        "orders": [
            {"name": name, "order": shuffle.order.tolist()}
            | _weights(layer, tokens, shuffle)
            | {"training": {o: _compared(layer, tokens, target, shuffle, o, *own[o][:2]) for o in OPTIMIZERS}}
            for name, shuffle in zip(names, shuffles, strict=True)
        ],
    }


def trained(
    network: nn.Module,
    x: Tensor,
    target: Tensor,
    optimizer: Callable[..., torch.optim.Optimizer],
    steps: int,
    keep: Callable[[nn.Module], Tensor] | None = None,
) -> tuple[nn.Module, Tensor, list[Tensor]]:
    """A copy of a network trained by the mean square, in the mode that it is in, its loss in eval mode before, between
    and after the steps, [steps + 1], and what `keep` makes of it at the same times.
    """
    network = twin(network, {})
    updates, mode = optimizer(network.parameters()), network.training
    losses, kept = [], []
    for step in range(steps + 1):
        with torch.no_grad():
            losses.append((network.eval()(x) - target).square().mean())
            kept += [keep(network)] if keep else []
        if step < steps:
            updates.zero_grad()
            (network.train(mode)(x) - target).square().mean().backward()
            updates.step()
    return network, torch.stack(losses), kept


def _most_alike(tokens: Tensor) -> Tensor:
    """Of every token, the one among the others with the largest dot product."""
    scores = tokens @ tokens.mT - 1e9 * torch.eye(tokens.shape[1], dtype=tokens.dtype)
    return tokens.gather(1, scores.argmax(-1)[..., None].expand_as(tokens))


def _matrices(layer: nn.Module) -> dict[str, Tensor]:
    """The matrices of a transformer layer, [out, in]."""
    query, key, value = layer.get_parameter("self_attn.in_proj_weight").detach().chunk(3)
    names = {"output": "self_attn.out_proj", "first of the MLP": "linear1", "last of the MLP": "linear2"}
    others = {name: layer.get_parameter(f"{module}.weight").detach() for name, module in names.items()}
    return {"query": query, "key": key, "value": value} | others


def _weights(layer: nn.Module, tokens: Tensor, shuffle: Shuffle) -> dict[str, Any]:
    """The matrices of a layer in another order, and where their entries stood, by the same order of running numbers."""
    orders = feature_orders(layer, shuffle.order, shuffle.inner, shuffle.hidden)
    counted = twin(layer, {})
    with torch.no_grad():
        for matrix in _matrices(counted).values():
            matrix.copy_(torch.arange(matrix.numel()).view_as(matrix))
    places = _matrices(twin(counted, orders))
    return {
        "errors": encryption_errors(layer, tokens, shuffle),
        "values": {name: packed(matrix) for name, matrix in _matrices(twin(layer, orders)).items()},
        "places": {name: matrix.long().flatten().tolist() for name, matrix in places.items()},
    }


def _compared(
    layer: nn.Module,
    tokens: Tensor,
    target: Tensor,
    shuffle: Shuffle,
    optimizer: str,
    own: nn.Module,
    losses: Tensor,
) -> dict[str, Any]:
    """A layer in another order, and one in the inverse order, both trained on data in the order."""
    steps = len(losses) - 1
    orders = feature_orders(layer, shuffle.order, shuffle.inner, shuffle.hidden)
    wrong = feature_orders(layer, shuffle.order.argsort(), shuffle.inner, shuffle.hidden)
    data = shuffle(tokens), shuffle(target), OPTIMIZERS[optimizer], steps
    other, permuted, _ = trained(twin(layer, orders), *data)
    _, contrast, _ = trained(twin(layer, wrong), *data)
    first, second = (torch.cat([m.flatten() for m in _matrices(net).values()]) for net in (twin(own, orders), other))
    return {
        "permuted": packed(permuted),
        "wrong": packed(contrast),
        "difference": ((permuted - losses) / losses).abs().max().item(),
        "contrast": ((contrast - losses) / losses).abs().max().item(),
        "weights": relative_error(second, first),
    }
