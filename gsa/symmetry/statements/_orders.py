"""A network's weights in another order: which axis of which parameter is permuted how."""

import copy
from collections.abc import Iterable, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

from gsa.nn import SelfAttention
from gsa.symmetry._orders import check_order

__all__ = ["Orders", "feature_orders", "head_order", "reordered", "twin"]

Orders = Mapping[str, tuple[Tensor | None, ...]]  # parameter → an order for each axis, None where it stays
_Network = TypeVar("_Network", bound=nn.Module)


def reordered(tensors: Mapping[str, Tensor], orders: Orders) -> dict[str, Tensor]:
    """Tensors by name, permuted along their axes; those without an order stay.

    Raises:
        ValueError: an order that is no permutation of an axis.
    """
    result = {}
    for name, tensor in tensors.items():
        for axis, order in enumerate(orders.get(name, ())):
            if order is not None:
                check_order(order, tensor.shape[axis])
                tensor = tensor.index_select(axis, order)
        result[name] = tensor
    return result


def twin(network: _Network, orders: Orders) -> _Network:
    """A copy of a network with its parameters in another order: W_P = Pᵀ W P and the like.

    Args:
        network: any module.
        orders: {name of a parameter: an order for each of its axes, or None}, such as `feature_orders` gives.

    Raises:
        ValueError: a name that is no parameter of the network; an order that is no permutation of its axis.
    """
    parameters = dict(network.named_parameters())
    if unknown := sorted(set(orders) - set(parameters)):
        raise ValueError(f"orders must be of parameters ({', '.join(parameters)}), but got {', '.join(unknown)}")
    copied = copy.deepcopy(network)
    with torch.no_grad():
        for name, tensor in reordered(parameters, orders).items():
            copied.get_parameter(name).copy_(tensor)
    return copied


def head_order(num_heads: int, head_dim: int) -> Tensor:
    """A random order of the channels of all heads that respects them: heads change places, channels within a head."""
    return torch.cat([head * head_dim + torch.randperm(head_dim) for head in torch.randperm(num_heads)])


def feature_orders(
    network: nn.Module, order: Tensor, inner: Tensor | None = None, hidden: Tensor | None = None
) -> dict[str, tuple[Tensor | None, ...]]:
    """How to permute the weights of a transformer for features in another order: f_P(Z[…, order]) = f(Z)[…, order].

        queries, keys, values:  W_P = W[inner][:, order]         attention's output:  W_P = W[order][:, inner]
        first of the MLP:       W_P = W[hidden][:, order]        last of the MLP:     W_P = W[order][:, hidden]

    With inner = order this is W_P = PᵀWP to the letter; inner then has to respect the heads (see `head_order`), and
    whether it does is measured, not checked. The hidden units of the MLP are not square with its ends: they have an
    order of their own, or stay. Source: "Permutation Equivariance" ("PZ … ZP?").

    Args:
        network: a module of `nn.TransformerEncoderLayer`, `nn.MultiheadAttention`, `nn.LayerNorm` and our layers with
            encoding="constant", whose features all have one width C.
        order: int64 [C], of the features.
        inner: int64 [heads·d], of the channels of all heads; the same as order when None.
        hidden: int64, of the MLP's hidden units; they stay when None.

    Raises:
        ValueError: a parameter of a module of another kind, such as a positional encoding.
    """
    inner = order if inner is None else inner
    three = torch.cat([part * len(inner) + inner for part in range(3)])
    orders: dict[str, tuple[Tensor | None, ...]] = {}
    for name, module in network.named_modules():
        if isinstance(module, nn.MultiheadAttention):
            own = _attention("in_proj_", "out_proj.", order, inner, three)
        elif isinstance(module, SelfAttention):
            own = _attention("query_key_value.", "out.", order, inner, three)
        elif isinstance(module, nn.TransformerEncoderLayer):
            first = {"linear1.weight": (hidden, order), "linear1.bias": (hidden,)}
            own = first | {"linear2.weight": (order, hidden), "linear2.bias": (order,)}
        elif isinstance(module, nn.LayerNorm):
            own = {"weight": (order,), "bias": (order,)}
        else:
            own = {}
        orders |= {f"{name}.{key}".removeprefix("."): axes for key, axes in own.items()}
    names = [name for name, _ in network.named_parameters()]
    _check_all_known(names, orders)
    return {name: orders[name] for name in names}


def _attention(
    three_from: str, out: str, order: Tensor, inner: Tensor, three: Tensor
) -> dict[str, tuple[Tensor | None, ...]]:
    return {
        f"{three_from}weight": (three, order),
        f"{three_from}bias": (three,),
        f"{out}weight": (order, inner),
        f"{out}bias": (order,),
    }


def _check_all_known(names: Iterable[str], orders: Orders) -> None:
    if unknown := [name for name in names if name not in orders]:
        raise ValueError(
            "a network in another order of features is made of transformer encoder layers, attention without "
            f"encodings of position, and LayerNorm; what to do with {', '.join(unknown)} is not known"
        )
