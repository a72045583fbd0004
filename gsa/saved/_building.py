"""A network from the keywords and weights of a file that nobody vouches for."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from gsa._version import VERSION
from gsa.files import one_line
from gsa.models import Network, list_models, preset
from gsa.saved._finite import first_not_finite

__all__ = ["build", "filled"]

_MOST_ROTATIONS = 360
_WIDEST_WINDOW = 511  # pixels; tables of a window are made with the network
_WINDOWS = "neighbourhood", "neighbourhoods", "stem_neighbourhood"
_MOST_PLACES = 1 << 20  # of a window, in all poses
_LONGEST_LIST = 256
_LONGEST_MESSAGE = 600
_SMALL = 4096  # numbers up to here ask for nothing much, whatever they are of


def build(source: Any, model: Mapping[str, Any], weights: Mapping[str, Any], made_by: Any = None) -> Network:
    """A network in eval mode with the weights of a file; nothing is allocated before both are known to fit together.

    Args:
        source: where they come from, for messages.
        model: keywords of `create_model`, with "in_channels" and "num_classes".
        weights: names and tensors.
        made_by: the version of this package that has written the file, as far as the file says so.

    Raises:
        ValueError: keywords that this version does not know or that are not plain values; numbers that no network of
            so many weights can have; weights of another network; weights that are not finite.
    """
    name = _known(source, model, made_by)
    keywords = {key: value for key, value in model.items() if key not in ("name", "pretrained")}
    sizes = _sizes(source, weights)
    held = {value.untyped_storage().data_ptr(): value.untyped_storage().nbytes() for value in weights.values()}
    if sum(value.nbytes for value in weights.values()) > sum(held.values()):
        raise ValueError(f"{source} holds weights that share their numbers, as those of no network do")
    _refuse_excess(source, keywords, sum(size.numel() for size, _ in sizes.values()), len(sizes))
    keywords = preset(name).as_written(keywords)
    with _explaining(f"{source} holds keywords that make no {name}"), _NoValues(), torch.device("meta"):
        planned = preset(name).build(keywords)
    _refuse_misfit(f"the weights in {source} are not those of its {name}", sizes, _sizes(source, planned.state_dict()))
    with _explaining(f"{source} holds keywords that make no {name}"):
        network = preset(name).build(keywords)
        network.load_state_dict(weights)
    _refuse_not_finite(source, network)
    return network.eval()


def filled(
    source: Any, network: nn.Module | Callable[..., nn.Module], model: Mapping[str, Any], weights: Mapping[str, Any]
) -> nn.Module:
    """A network of somebody's own in eval mode, with the weights of a file.

    Args:
        source, weights: as of `build`.
        network: it, or what makes it.
        model: the keywords that it is made with, but for those of Hydra.

    Raises:
        ValueError: keywords of which no module is made, or that stand for objects; weights of another network, or that
            are not finite.
    """
    if not isinstance(network, nn.Module):
        keywords = {key: value for key, value in model.items() if not re.fullmatch("_.*_", key)}
        if objects := [key for key, value in keywords.items() if isinstance(value, Mapping) and "_target_" in value]:
            raise ValueError(
                f"{source} has keywords that Hydra made objects of, {objects[0][:60]!a}: expected a network that is "
                "made already"
            )
        with _explaining(f"{network!r} makes no network of the keywords in {source}, {ascii(list(keywords))[:200]}"):
            network = network(**keywords)
        if not isinstance(network, nn.Module):
            raise ValueError(f"network must be an nn.Module, or make one, but got {type(network).__name__}")
    try:
        network.load_state_dict(weights)
    except Exception as error:  # of torch, in many lines; or of a network's own state
        told = " ".join(str(error).split())[:_LONGEST_MESSAGE]
        raise ValueError(f"the weights in {source} are not those of this {type(network).__name__}: {told}") from error
    _refuse_not_finite(source, network)
    return network.eval()


class _NoValues(TorchFunctionMode):
    """Leaves the tensors of a network that is only planned without values; on the device "meta", torch would load its
    compiler to draw them."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return kwargs["tensor"]
        if func in (Tensor.normal_, Tensor.uniform_):
            return args[0]
        return (torch.empty if func is torch.randn else func)(*args, **kwargs)


def _known(source: Any, model: Mapping[str, Any], made_by: Any) -> str:
    """The network's name, once it and all keywords are known here."""
    name, newer = model.get("name"), ""
    if isinstance(made_by, str) and made_by != VERSION and re.fullmatch(r"[\w.+]{1,40}", made_by):
        newer = f": it was made by gsa {made_by}, this is gsa {VERSION}; install that version"
    if not isinstance(name, str) or name not in list_models():
        text = f"{name[:60]!a}" if isinstance(name, str) else "no name"
        raise ValueError(f"{source} holds a network that is not known here, {text}{newer or f' (gsa {VERSION})'}")
    unknown = [key for key in model if key not in preset(name).keywords and key not in ("name", "pretrained")]
    if unknown:
        words = ", ".join(ascii(str(key)[:60]) for key in unknown[:5])
        raise ValueError(
            f"{source} knows keywords of {name} that are not known here, {words}"
            f"{newer or f': it was made by a newer version than gsa {VERSION}, or edited'}"
        )
    return name


def _sizes(source: Any, tensors: Mapping[str, Any]) -> dict[str, tuple[torch.Size, bool]]:
    """Shape of every tensor, and whether its numbers are floating; all have their own values in memory."""
    for name, value in tensors.items():
        plain = type(value) in (Tensor, nn.Parameter) and value.layout == torch.strided and not value.is_quantized
        if not (isinstance(name, str) and plain and not value.is_complex() and value.is_contiguous()):
            raise ValueError(f"{source} holds weights that are no plain tensors: {str(name)[:60]!a}")
    return {name: (value.shape, value.is_floating_point()) for name, value in tensors.items()}


def _refuse_excess(source: Any, keywords: Mapping[str, Any], numbers: int, tensors: int) -> None:
    """Keywords that are no plain values, or that ask for more than so many weights in so many tensors can be."""
    for key, value in keywords.items():
        entries = value if isinstance(value, list | tuple) else [value]
        if len(entries) > _LONGEST_LIST or not all(isinstance(v, str | int | float | None) for v in entries):
            raise ValueError(f"{source} holds a value of {key} that is none of a network: expected a plain value")
        most = {**dict.fromkeys(_WINDOWS, _WIDEST_WINDOW), "blocks": tensors, "layers": tensors}.get(
            key, max(numbers, _SMALL)
        )
        asked = sum(entry for entry in entries if isinstance(entry, int))
        if asked > most:
            raise ValueError(
                f"{source} asks for more than its {numbers:,} weights can be: {key} must be at most {most:,}, but is "
                f"{asked if asked < 10**20 else 'a number of more than 20 digits'}"
            )
    group = str(keywords.get("group"))
    turns = re.fullmatch(r"R(\d+)M?", group)
    if turns and (len(turns[1]) > 3 or int(turns[1]) > _MOST_ROTATIONS):
        raise ValueError(f"{source} asks for a group of more than {_MOST_ROTATIONS} rotations: {group[:20]}")
    poses = int(turns[1]) * (1 + group.endswith("M")) if turns else 2
    given = [keywords.get(key) for key in _WINDOWS]
    sides = [side for value in given for side in (value if isinstance(value, list | tuple) else [value])]
    widest = max((side for side in sides if isinstance(side, int)), default=1)
    if poses * widest**2 > _MOST_PLACES:
        raise ValueError(
            f"{source} asks for windows of {widest}×{widest} pixels in {poses} poses: expected at most "
            f"{_MOST_PLACES:,} places"
        )


def _refuse_not_finite(source: Any, network: nn.Module) -> None:
    if (tensor := first_not_finite(network.state_dict())) is not None:
        raise ValueError(
            f"{source} holds a network that has come apart: there are numbers in {tensor} that are not finite; "
            "use an earlier checkpoint, or train it anew with a smaller learning rate"
        )


def _refuse_misfit(complaint: str, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Names, shapes and kinds of numbers are to be those of the network."""
    differing = {
        "missing": [name for name in expected if name not in found],
        "not of this network": [ascii(name[:80]) for name in found if name not in expected],
        "other shapes": [
            f"{name} (expected {list(expected[name][0])}, but got {list(found[name][0])})"
            for name in expected
            if name in found and found[name] != expected[name]
        ],
    }
    parts = [
        f"{what}: {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
        for what, names in differing.items()
        if names
    ]
    if parts:
        raise ValueError(f"{complaint}: {'; '.join(parts)}")


@contextmanager
def _explaining(complaint: str) -> Iterator[None]:
    """Whatever a network says of values that nobody has looked at, as one kind of error."""
    try:
        yield
    except Exception as error:
        raise ValueError(f"{complaint}: {one_line(error)}") from error
