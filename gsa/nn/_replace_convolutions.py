"""Convolutions of a network of anybody's, replaced by attention in every pose."""

import warnings
from collections.abc import Collection
from typing import TypeVar, overload

from torch import nn
from torch.nn.modules.conv import _ConvNd

from gsa import groups
from gsa.groups import Group
from gsa.nn._border import check_border
from gsa.nn._posed_attention import PosedAttention

__all__ = ["replace_convolutions"]

_Model = TypeVar("_Model", bound=nn.Module)


@overload
def replace_convolutions(
    model: nn.Conv2d, group: Group | str, border: str = ..., skip: Collection[str] = ...
) -> nn.Module: ...
@overload
def replace_convolutions(
    model: _Model, group: Group | str, border: str = ..., skip: Collection[str] = ...
) -> _Model: ...
def replace_convolutions(
    model: nn.Module, group: Group | str, border: str = "zeros", skip: Collection[str] = ()
) -> nn.Module:
    """Replace every convolution that looks at more than one pixel by attention in every pose.

    The rest of an image network (pointwise maps, norms, activations, and pools over sides that they cover evenly)
    commutes with turns already, except a norm that has a weight for every pixel. So the whole network does, and one
    that ends with a mean over pixels becomes invariant. Heads start at the filters' pixels, with the filters'
    weights (`PosedAttention.of_convolution`).

    Args:
        model: changed in place.
        group: the point group H, or its name.
        border: what lies beyond maps: "zeros", as for the convolutions, or "hidden" keys, which are slower.
        skip: names of convolutions to leave as they are, such as those along the channels of one pixel.

    Returns:
        The model, or a `PosedAttention` if the model itself is a convolution. A model without any gives a warning.

    Raises:
        ValueError: convolutions that cannot be replaced, listed by name, or a name in `skip` that none has; the model
            is unchanged then.
    """
    check_border(border)
    if isinstance(model, nn.Conv2d) and not _is_pointwise(model) and not skip:
        return PosedAttention.of_convolution(model, group, border)
    group, refused = groups.group(group), []
    of_convolution: dict[nn.Module, PosedAttention] = {}
    places = [(name, module) for name, module in model.named_modules(remove_duplicate=False) if _looks_around(module)]
    if not places and not any(isinstance(module, PosedAttention) for module in model.modules()):
        warnings.warn(
            f"{type(model).__name__} has no convolution of more than one pixel: it stays as it is", stacklevel=2
        )
    if isinstance(skip, str) or set(skip) - {name for name, _ in places}:
        raise ValueError(
            f"skip is a list of names of convolutions of more than one pixel, such as "
            f"{[name for name, _ in places[:3]]}, but got {skip!r}"
        )
    kept = {module for name, module in places if name in skip}
    places = [(name, module) for name, module in places if module not in kept]
    owners: dict[int, set[nn.Module]] = {}
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            owners.setdefault(id(parameter), set()).add(module)
    for name, module in places:
        if any(len(owners[id(parameter)]) > 1 for parameter in module.parameters()):
            refused.append(f"{name}: its weights are those of another module as well")
            continue
        try:
            of_convolution.setdefault(module, PosedAttention.of_convolution(module, group, border))  # a shared one once
        except ValueError as error:
            refused.append(f"{name}: {error}")
    if refused:
        raise ValueError(
            "these convolutions cannot be replaced; skip=… leaves some as they are, and the symmetry is lost where "
            "they look at several pixels of a picture:\n" + "\n".join(refused)
        )
    for name, module in places:
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, of_convolution[module])
    return model


def _looks_around(module: nn.Module) -> bool:
    """Whether it has filters of more than one pixel, of whatever class it is."""
    if isinstance(module, _ConvNd):
        return not _is_pointwise(module)
    weight = dict(module.named_parameters(recurse=False)).get("weight")
    return weight is not None and weight.ndim == 4 and max(weight.shape[2:]) > 1


def _is_pointwise(convolution: _ConvNd) -> bool:
    """Whether it looks at one pixel, and does alike in both directions."""
    sizes = (convolution.stride, convolution.padding)
    alike = all(isinstance(size, str) or len(set(size)) == 1 for size in sizes)
    return max(convolution.kernel_size) == 1 and alike and not any(convolution.output_padding)
