"""Weights of the authors' public code: Romero & Cordonnier 2021, github.com/dwromero/g_selfatt."""

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gsa.groups import Group
from gsa.models import GSANet, create_model, preset
from gsa.nn import AttentionBlock

__all__ = ["load"]

_State = dict[str, Tensor]
_Filled = Iterator[tuple[str, tuple[Tensor, Tensor]]]

_TABLES = ("group.", "row_indices", "col_indices", "g_indices")  # buffers that follow from the group


def load(
    path: str | os.PathLike[str],
    model: str = "rotmnist_r4_sa",
    group: str | None = None,
    pose_index: str = "corrected",
    **keywords: Any,
) -> GSANet:
    """A state_dict of the public code in a network of ours, built as theirs (`published=True`).

    With `pose_index="published"` its logits are theirs; with "corrected" it is equivariant, and they differ.

    Args:
        path: a file that `torch.save(model.state_dict(), path)` wrote there; no code in it is run.
        model: one of our networks of the paper, such as "rotmnist_r4_sa".
        group: its point group, where it is not that of `model`.
        pose_index: the group term, "corrected" or "published".
        keywords: of the network, where it was built otherwise than `model`.

    Returns:
        The network in the precision of the file, in eval mode.

    Raises:
        ValueError: a file that is no such state_dict, a network or a group that does not fit it. Groups with rotations
            and mirrors are refused: there the public code multiplies elements otherwise than the group does.
    """
    if preset(model).network is not GSANet:
        raise ValueError(f"the public code has networks of self-attention, such as 'rotmnist_r4_sa', but got {model!r}")
    state, elements = _read(Path(path))
    changed = keywords if group is None else {**keywords, "group": group}
    network = create_model(model, published=True, pose_index=pose_index, **changed).eval()
    _check_group(path, elements, network.group)
    network.to(next(iter(state.values())).dtype)
    try:
        filled = dict(_filled(network, state))
    except KeyError as error:
        raise ValueError(f"{path} is no state_dict of a published {model}: it has no {error.args[0]!r}") from None
    if extra := sorted(state.keys() - filled.keys()):
        more = ", …" if len(extra) > 3 else ""
        raise ValueError(f"{path} holds more than a published {model}: {', '.join(extra[:3])}{more}")
    for name, (parameter, value) in filled.items():
        if parameter.numel() != value.numel():
            raise ValueError(
                f"{path} is of another network than {model}: {name} has {value.numel():,} numbers where "
                f"{parameter.numel():,} are wanted; the keywords of the network go into this call"
            )
        with torch.no_grad():
            parameter.copy_(value.view_as(parameter))
    return network


def _read(path: Path) -> tuple[_State, Tensor | None]:
    """Parameters by name, and the elements of the group, where the file has them."""
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ValueError(f"{path} is no file of weights alone: {str(error).splitlines()[0]}") from error
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()) or not state:
        raise ValueError(f"{path} must hold a state_dict, names and tensors, but holds a {type(state).__name__}")
    state = {name.removeprefix("module."): value for name, value in state.items()}  # as DataParallel calls them
    parameters = {name: value for name, value in state.items() if not any(table in name for table in _TABLES)}
    return parameters, state.get("group._elements")


def _check_group(path: str | os.PathLike[str], elements: Tensor | None, group: Group) -> None:
    if group.mirrored and group.rotations > 1:
        raise ValueError(
            f"the public code multiplies the rotations and mirrors of {group.name} otherwise than the group does, so "
            "that its weights mean nothing here; rotation groups and Z2M can be read"
        )
    if elements is not None and tuple(elements.shape) != (group.order, 1 + group.mirrored):
        raise ValueError(
            f"{path} is of a group of {len(elements)} elements {'with' if elements.shape[1] == 2 else 'without'} "
            f"mirrors, but the network is equivariant to {group.name}: name the file's with group="
        )


def _filled(network: Any, state: _State) -> _Filled:
    """Every name of theirs, with the part of our network that it fills and its values in our order."""
    yield from _attention("lifting_self_attention", network.lifting, state)
    yield from _same("lifting_normalization.layer_norm", network.lifted[0], state)
    index = 0
    for stage in network.stages:
        for module in stage:
            name = f"transformer.{index}"
            if isinstance(module, AttentionBlock):
                yield from _block(name, module, state)
            elif isinstance(module, nn.GroupNorm):
                yield from _same(f"{name}.layer_norm", module, state)
            elif isinstance(module, nn.Dropout) and not module.p:
                continue  # which theirs has only where it drops
            index += 1
    yield from _same(f"transformer.{index}", network.head, state)


def _block(name: str, block: Any, state: _State) -> _Filled:
    yield from _same(f"{name}.attention.0.layer_norm", block.attention[0], state)
    yield from _attention(f"{name}.attention.2", block.attention[2], state)
    yield from _same(f"{name}.attention.3.layer_norm", block.attention[3], state)
    for index, norm in ((0, ""), (1, ".layer_norm"), (3, ""), (4, ".layer_norm")):
        yield from _same(f"{name}.mlp.{index}{norm}", block.mlp[index], state)
    if not isinstance(block.shortcut, nn.Identity):
        yield from _same(f"{name}.shortcut.0", block.shortcut, state)


def _attention(name: str, layer: Any, state: _State) -> _Filled:
    """Theirs puts the channels of a head in front of the heads, and counts rows downwards and poses the other way."""
    heads, encoding = layer.num_heads, layer.encoding
    for kind in ("weight", "bias"):
        joined = getattr(layer.query_key_value, kind)
        for part, place in zip(("query", "key", "value"), joined.detach().chunk(3), strict=True):
            theirs = state[f"{name}.{part}.{kind}"]
            yield f"{name}.{part}.{kind}", (place, _heads_first(theirs, heads, 0))
    yield f"{name}.wout.weight", (layer.out.weight, _heads_first(state[f"{name}.wout.weight"], heads, 1))
    yield f"{name}.wout.bias", (layer.out.bias, state[f"{name}.wout.bias"])
    for axis, ours, sign in (("row", encoding.row, -1), ("col", encoding.column, 1)):
        place = f"{name}.{axis}_embedding"
        yield f"{place}.0.weight", (ours[0].weight, sign * state[f"{place}.0.weight"])
        yield f"{place}.0.bias", (ours[0].bias, state[f"{place}.0.bias"])
        yield from _same(f"{place}.1.layer_norm", ours[1], state)
        yield from _same(f"{place}.3", ours[3], state)
    if encoding.pose_vectors is not None:
        theirs = state[f"{name}.group_embedding.weight"]
        yield f"{name}.group_embedding.weight", (encoding.pose_vectors, theirs[layer.group.inverse])


def _heads_first(theirs: Tensor, heads: int, axis: int) -> Tensor:
    """(channel, head) → (head, channel) along an axis; what does not fit is left for the count to find."""
    if theirs.shape[axis] % heads:
        return theirs
    return theirs.unflatten(axis, (-1, heads)).transpose(axis, axis + 1).flatten(axis, axis + 1)


def _same(name: str, module: nn.Module, state: _State) -> _Filled:
    for kind, parameter in module.named_parameters():
        yield f"{name}.{kind}", (parameter, state[f"{name}.{kind}"])
