"""Convolutions of a network of anybody's, replaced by attention in every pose."""

import warnings
from collections.abc import Collection
from typing import TypeVar, overload

from torch import nn
from torch.nn.modules.conv import _ConvNd

from gsa import groups
from gsa.groups import Group
from gsa.nn._border import check_border
from gsa.nn._filters import has_hooks
from gsa.nn._posed_attention import PosedAttention
from gsa.nn._posed_pool import PosedPool

__all__ = ["replace_convolutions"]

_Model = TypeVar("_Model", bound=nn.Module)
_CONVOLUTIONS = (nn.Conv2d, nn.ConvTranspose2d)
_FILTERS = {"weight", "filt"}  # also of those that blur, which learn none
_PADS = (nn.ConstantPad2d, nn.ReflectionPad2d, nn.ReplicationPad2d, nn.CircularPad2d)


@overload
def replace_convolutions(
    model: nn.Conv2d | nn.ConvTranspose2d, group: Group | str, border: str = ..., skip: Collection[str] = ...
) -> nn.Module: ...
@overload
def replace_convolutions(
    model: _Model, group: Group | str, border: str = ..., skip: Collection[str] = ...
) -> _Model: ...
def replace_convolutions(
    model: nn.Module, group: Group | str, border: str = "zeros", skip: Collection[str] = ()
) -> nn.Module:
    """Replace every convolution that looks at more than one pixel, or leaves pixels out, by attention in every pose.

    Pools with strides are replaced by such as count them from both ends (`PosedPool`). The rest of an image network
    (pointwise maps, norms, activations, other pools) commutes with turns already, except a norm that has a weight for
    every pixel. So the whole network does, on maps of any sides, and one that ends with a mean over pixels becomes
    invariant. Heads start at the filters' pixels, with the filters' weights (`PosedAttention.of_convolution`). What the
    layers answer are scalars: numbers with a direction, such as the sides of a box, offsets or flow, are left to layers
    that stay as they are (`skip`), or made of poses (`PosesToFields`).

    Args:
        model: changed in place.
        group: the point group H, or its name.
        border: what lies beyond maps: "zeros", as for the convolutions, or "hidden" keys, which are slower.
        skip: names of modules to leave as they are, with all that is in them, such as a detector's heads.

    Returns:
        The model, or a `PosedAttention` if the model itself is a convolution. A model without anything to replace gives
        a warning, and so does one whose batch norms are frozen: the largest answers of all poses have other means than
        theirs.

    Raises:
        ValueError: modules that cannot be replaced, listed by name, attention in the poses of another group or with
            another border among them, or a name in `skip` that none has; the model is unchanged then.
    """
    check_border(border)
    if not isinstance(model, nn.Module):
        raise ValueError(f"model must be a torch.nn.Module, whose convolutions are replaced, but got {model!r:.200}")
    if type(model) in _CONVOLUTIONS and _looks_around(model) and not skip:
        return PosedAttention.of_convolution(model, group, border)
    group, refused = groups.group(group), []
    replacements: dict[nn.Module, nn.Module] = {}
    places = _places(model, group, border)
    if not places and not any(isinstance(module, PosedAttention) for module in model.modules()):
        warnings.warn(
            f"{type(model).__name__} has no convolution of more than one pixel: it stays as it is", stacklevel=2
        )
        return model
    if isinstance(skip, str) or set(skip) - {name for name, _ in model.named_modules(remove_duplicate=False) if name}:
        raise ValueError(
            "skip is a list of names of modules, such as convolutions of more than one pixel and pools with strides, "
            f"{[name for name, _ in places[:3]]}, or what holds some, but got {skip!r}"
        )
    kept = {module for name, module in places if any(f"{name}.".startswith(f"{one}.") for one in skip)}
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
            if module not in replacements:  # a shared one once
                replacements[module] = _posed(module, group, border)
        except ValueError as error:
            refused.append(f"{name}: {error}")
    if refused:
        raise ValueError(
            "these modules cannot be replaced; skip=… leaves some as they are, and the symmetry is lost where "
            "they look at several pixels of a picture:\n" + "\n".join(refused)
        )
    for name, module in places:
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, replacements[module])
    _warn_of_frozen_norms(model, [name for name, module in places if _looks_around(module)])
    return model


def _warn_of_frozen_norms(model: nn.Module, replaced: Collection[str]) -> None:
    """Those of detectors, which keep the means of the convolutions beside them, or within what is beside them."""
    frozen = []
    for name, module in model.named_modules():
        parent, kind = name.rpartition(".")[0], type(module).__name__
        within = f"{parent}." if parent else ""
        if "Frozen" in kind and "BatchNorm" in kind and any(one.startswith(within) for one in replaced):
            frozen.append(name)
    if frozen:
        warnings.warn(
            f"the batch norms of {type(model).__name__} are frozen ({frozen[0]} and {len(frozen) - 1} more), and the "
            "largest answers of all poses have other means than the convolutions': features grow from layer to layer. "
            "Make the model with norms that learn, such as norm_layer=torch.nn.BatchNorm2d",
            stacklevel=3,
        )


def _places(model: nn.Module, group: Group, border: str) -> list[tuple[str, nn.Module]]:
    """Names and modules of what is to be replaced, or refused: convolutions first."""
    named = list(model.named_modules(remove_duplicate=False))
    convolutions = [(n, module) for n, module in named if _looks_around(module) or _is_other(module, group, border)]
    if group.order == 1:  # in one pose, ends may differ
        return convolutions
    others = [(n, module) for n, module in named if PosedPool.is_needed(module) or _pads_unevenly(module)]
    return convolutions + [place for place in others if place[1] is not model]


def _posed(module: nn.Module, group: Group, border: str) -> nn.Module:
    """What takes its place."""
    if isinstance(module, PosedAttention):
        raise ValueError(
            f"it is attention in the poses of {module.group.name} with border={module.border!r} already; replace "
            "convolutions of the original network"
        )
    if _pads_unevenly(module):
        raise ValueError(f"a picture that is padded more at one end does not turn: got {module}")
    if _looks_around(module):
        return PosedAttention.of_convolution(module, group, border)
    if has_hooks(module):
        raise ValueError(f"a pool that is replaced must have no hooks: got {module}")
    return PosedPool(module).train(module.training)


def _is_other(module: nn.Module, group: Group, border: str) -> bool:
    """Whether it was replaced already, and in another way."""
    return isinstance(module, PosedAttention) and (module.group.name, module.border) != (group.name, border)


def _pads_unevenly(module: nn.Module) -> bool:
    return isinstance(module, _PADS) and len(set(module.padding)) > 1


def _looks_around(module: nn.Module) -> bool:
    """Whether it has filters of more than one pixel, or leaves pixels out, of whatever class it is."""
    if isinstance(module, _ConvNd):
        return not _is_pointwise(module)
    held = dict(module.named_parameters(recurse=False)) | dict(module.named_buffers(recurse=False))
    return any(held[name].ndim == 4 and max(held[name].shape[2:]) > 1 for name in _FILTERS & held.keys())


def _is_pointwise(convolution: _ConvNd) -> bool:
    """Whether it looks at one pixel, and at all of them alike."""
    sizes = (convolution.stride, convolution.padding)
    alike = all(isinstance(size, str) or len(set(size)) == 1 for size in sizes)
    leaves_out = isinstance(convolution, nn.Conv2d) and max(convolution.stride) > 1
    return max(convolution.kernel_size) == 1 and alike and not leaves_out and not any(convolution.output_padding)
