"""What a convolution of torch does, as attention by position would have to."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from gsa.encodings import Rectangle

__all__ = ["Filters", "filters_of", "has_hooks", "of_transposed"]


@dataclass(frozen=True)
class Filters:
    """The filters of a convolution, or of a transposed one: a convolution of pixels that zeros were put between.

    Attributes:
        weight: [C′, C/groups, k, k].
        cells: where their entries look from the centre of a window, in pixels, x right and y up: [k², 2].
        window: side of the window.
        crop: pixels between the border and the first that is asked; of those beyond it, if negative.
        stride: every so many-th pixel is asked.
        spread: so many pixels apart are those of the picture.
    """

    weight: nn.Parameter | Tensor
    cells: Tensor
    window: int
    crop: int
    stride: int
    spread: int


def filters_of(convolution: nn.Module, border: str) -> Filters:
    """What `gsa.nn.PosedAttention.of_convolution` starts with, and refuses."""
    if type(convolution) not in (nn.Conv2d, nn.ConvTranspose2d) or not _is_plain(convolution):
        raise ValueError(
            "attention replaces plain nn.Conv2d and nn.ConvTranspose2d padded with zeros, whose weights are parameters "
            f"of their own and which have no hooks, but got {convolution}"
        )
    assert isinstance(convolution, nn.Conv2d | nn.ConvTranspose2d)
    side, dilation, padding, stride, more = (
        _single(convolution, name) for name in ("kernel_size", "dilation", "padding", "stride", "output_padding")
    )
    extent, weight, spread = dilation * (side - 1) + 1, convolution.weight, 1
    if isinstance(convolution, nn.ConvTranspose2d):
        padding, stride, spread = extent - 1 - padding + more, 1, stride
        weight = of_transposed(weight, convolution.groups)
    window = extent + more  # larger than the filter, which stands at its end
    if convolution.padding == "same" and extent % 2 == 0:
        raise ValueError(f"attention replaces convolutions with as much padding on all sides, but got {convolution}")
    if padding > window // 2 and border == "hidden":
        raise ValueError(
            f"attention with hidden keys replaces convolutions with at most {window // 2} pixels of padding, "
            f"but got {convolution}"
        )
    cells = Rectangle(side, side).pixels(side, side, like=torch.empty(0, device="cpu")).flatten(0, 1)
    cells = dilation * cells + torch.tensor([more / 2, -more / 2], device="cpu")
    return Filters(weight, cells, window, window // 2 - padding, stride, spread)


def of_transposed(weight: Tensor, channel_groups: int) -> Tensor:
    """The filters of a transposed convolution, by half a turn, [C, C′/groups, k, k] → [C′, C/groups, k, k]."""
    by_group = weight.unflatten(0, (channel_groups, -1)).transpose(1, 2)
    return by_group.flatten(0, 1).flip(-2, -1)


def _is_plain(convolution: nn.Module) -> bool:
    """Whether it is padded with zeros, has no weights that are made of others, and nothing else hangs on it."""
    made = is_parametrized(convolution) or not isinstance(convolution._parameters.get("weight"), nn.Parameter)
    return convolution.padding_mode == "zeros" and not (made or has_hooks(convolution))


def has_hooks(module: nn.Module) -> bool:
    """Whether anything hangs on it."""
    return any(getattr(module, f"_{name}_hooks") for name in ("forward_pre", "forward", "backward_pre", "backward"))


def _single(convolution: nn.Conv2d | nn.ConvTranspose2d, name: str) -> int:
    """A size that is the same in both directions."""
    value = getattr(convolution, name)
    if value == "same":
        value = tuple(d * (k - 1) // 2 for d, k in zip(convolution.dilation, convolution.kernel_size, strict=True))
    if value == "valid":
        return 0
    if value[0] != value[1]:
        raise ValueError(f"attention replaces convolutions with the same {name} in both directions, but got {value}")
    return int(value[0])
