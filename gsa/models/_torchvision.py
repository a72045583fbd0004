"""A network of torchvision, as it is or in every pose of its input: the rival that everybody knows."""

from typing import Any

from torch import nn

from gsa._checks import check_positive
from gsa._extras import brought_by
from gsa._nearest import nearest
from gsa.groups import Group
from gsa.models._orbit_network import OrbitNetwork

__all__ = ["TorchvisionNet"]

# Those that take pictures of any size and end in one linear map.
_FAMILIES = (
    *("alexnet", "convnext", "densenet", "efficientnet", "mnasnet", "mobilenet"),
    *("resnet", "resnext", "shufflenet", "swin", "vgg", "wide_resnet"),
)


class TorchvisionNet(OrbitNetwork):
    """The `OrbitNetwork` of a classifier of torchvision without its last linear map; of the group Z2, that network.

    Source: torchvision's documentation of each; the poses, Laptev et al., TI-POOLING, CVPR 2016.

    Args:
        group: the point group H, or its name.
        in_channels, num_classes: of the data.
        architecture: torchvision's name of a network, such as "resnet18" or "efficientnet_b0".

    Shapes:
        [B, C, H, W] → [B, num_classes], of sides that the network takes; H = W if the group turns.

    Raises:
        ValueError: an unknown architecture, or one that takes pictures of one size only.
        ModuleNotFoundError: torchvision is not installed.
    """

    def __init__(
        self, group: Group | str, in_channels: int = 3, num_classes: int = 10, *, architecture: str = "resnet18"
    ) -> None:
        check_positive(in_channels=in_channels)
        plain = _made(architecture)
        name, first = next((name, each) for name, each in plain.named_modules() if isinstance(each, nn.Conv2d))
        if in_channels != first.in_channels:
            plain.set_submodule(name, _of_channels(first, in_channels))
        *_, (name, last) = ((name, each) for name, each in plain.named_modules() if isinstance(each, nn.Linear))
        plain.set_submodule(name, nn.Identity())
        super().__init__(group, in_channels, num_classes, plain, last.in_features)
        self.architecture = architecture


def _made(architecture: str) -> nn.Module:
    """As torchvision makes it, with new weights."""
    with brought_by("train"):
        from torchvision import models  # takes a second to import
    known = [name for name in models.list_models(module=models) if name.startswith(_FAMILIES)]
    if architecture not in known:
        raise ValueError(
            f"architecture must be one of torchvision's {', '.join(known)}, but got {architecture!r}"
            f"{nearest(str(architecture), known)}"
        )
    return models.get_model(architecture)


def _of_channels(first: nn.Conv2d, in_channels: int) -> nn.Conv2d:
    """The same convolution for pictures of other channels."""
    of_first: dict[str, Any] = {name: getattr(first, name) for name in ("kernel_size", "stride", "padding")}
    return nn.Conv2d(in_channels, first.out_channels, **of_first, bias=first.bias is not None)
