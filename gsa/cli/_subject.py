"""The network that a word on the command line stands for: a name, a run, or module:attribute."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gsa.files import one_line
from gsa.groups import Group
from gsa.models import Network, create_model, list_models, list_pretrained, preset
from gsa.saved import read

__all__ = ["found", "of_tokens", "subject"]

_PICTURES = 3


def subject(what: str, size: str | None, builder: str | None = None) -> tuple[nn.Module, Tensor, Group | None]:
    """The network, random pictures for it, and its own group; of a run, what builds its network may be said."""
    generator = torch.Generator().manual_seed(0)
    if ":" in what and not Path(what).exists():
        images, network = torch.rand(_PICTURES, *_given(what, size), generator=generator), _imported(what)
        return network, images, network.group if isinstance(network, Network) else None
    if what in list_models() and what not in list_pretrained() and not Path(what).exists():
        torch.manual_seed(0)
        known = preset(what)
        default = [known.keywords["in_channels"], known.image_size, known.image_size]
        numbers = default if size is None else _numbers(size)
        network = create_model(what, in_channels=numbers[0]).eval()
        return network, torch.rand(_PICTURES, *numbers, generator=generator), network.group
    saved = read(what, found(builder) if builder else None)
    pictures = saved.pictures
    numbers = _numbers(size) if size else [pictures.in_channels, pictures.image_size, pictures.image_size]
    images = pictures.normalise(torch.rand(_PICTURES, *numbers, generator=generator))
    own: Group | None = saved.network.group if isinstance(saved.network, Network) else None
    return saved.network, images, own


def of_tokens(what: str, size: str | None, axis: int) -> tuple[nn.Module, Tensor]:
    """A module of tokens, module:attribute, and some at random, [3, L, D], or [L, 3, D] where their axis is 0."""
    if ":" not in what:
        raise ValueError(f"--permute is for modules of tokens, such as mypackage:build, but {what} takes pictures")
    expected = "tokens and features, such as 6,16"
    if size is None:
        raise ValueError(f"the numbers that {what} takes must be given: --input {expected}")
    tokens = torch.randn(_PICTURES, *_numbers(size, expected, (2,)), generator=torch.Generator().manual_seed(0))
    return _imported(what), tokens if axis else tokens.transpose(0, 1)


def _given(what: str, size: str | None) -> list[int]:
    """Channels, height and width of pictures that nothing else tells."""
    if size is None:
        raise ValueError(f"the size of the pictures of {what} must be given, such as --input 3,64,64")
    return _numbers(size, "channels, height and width, such as 3,64,64, or of features with poses 8,4,64,64", (3, 4))


def _numbers(
    size: str, expected: str = "channels, height and width, such as 3,64,64", counts: tuple[int, ...] = (3,)
) -> list[int]:
    parts = size.split(",")
    if len(parts) not in counts or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"--input must be {expected}, but got {size!r}")
    return [int(part) for part in parts]


def found(what: str) -> Any:
    """What module:attribute is, as Python imports it here.

    Raises:
        ValueError: nothing of the kind, or a module that cannot be imported.
    """
    place, _, name = what.partition(":")
    sys.path.append(os.getcwd())
    try:
        there: Any = import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise  # what the module itself imports
        hint = f"; say {place.removesuffix('.py')}:{name}, as Python imports it" if place.endswith(".py") else ""
        raise ValueError(f"there is no module {error.name!r} to import here{hint}") from error
    except Exception as error:
        raise ValueError(f"{place} cannot be imported: {type(error).__name__}: {one_line(error)}") from error
    for part in name.split("."):
        if not hasattr(there, part):
            raise ValueError(f"{place} has no {name!r}")
        there = getattr(there, part)
    return there


def _imported(what: str) -> nn.Module:
    """module:attribute, which is a network, or makes one when it is called."""
    there = found(what)
    torch.manual_seed(0)
    try:
        network = there if isinstance(there, nn.Module) else there() if callable(there) else there
    except Exception as error:
        raise ValueError(
            f"{what} must make a network when it is called without arguments, but raised {type(error).__name__}: "
            f"{one_line(error)}"
        ) from error
    if not isinstance(network, nn.Module):
        raise ValueError(f"{what} must be an nn.Module, or make one when it is called, but is {type(network).__name__}")
    return network.eval()
