"""A network of torchvision, as it is or in every pose of its input: the rival that everybody knows."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from gsa._checks import check_positive
from gsa._extras import brought_by
from gsa._nearest import nearest
from gsa.groups import Group
from gsa.models._orbit_network import OrbitNetwork

__all__ = ["TorchvisionNet"]

_LONGEST_MESSAGE = 300
# Those that take pictures of any size and end in one linear map.
_FAMILIES = (
    *("alexnet", "convnext", "densenet", "efficientnet", "mobilenet"),
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
        stem, first = next((name, each) for name, each in plain.named_modules() if isinstance(each, nn.Conv2d))
        if in_channels != first.in_channels:
            plain.set_submodule(stem, _of_channels(first, in_channels))
        *_, (classifier, last) = ((name, each) for name, each in plain.named_modules() if isinstance(each, nn.Linear))
        plain.set_submodule(classifier, nn.Identity())
        super().__init__(group, in_channels, num_classes, plain, last.in_features)
        self.architecture, self._stem, self._classifier = architecture, f"{stem}.weight", f"{classifier}."

    def load_torchvision(self, weights: Mapping[str, Tensor]) -> None:
        """Take all but the last linear map of a network of torchvision's, such as those trained on ImageNet.

        Channels of pictures that it was not trained on share what it makes of grey: w(c) = Σ w(colours) / channels.

        Args:
            weights: its `state_dict()`.

        Raises:
            ValueError: those of another network.
        """
        taken = {name: value for name, value in weights.items() if not name.startswith(self._classifier)}
        stem = taken.get(self._stem)
        if stem is not None and stem.ndim == 4 and stem.shape[1] != self.in_channels:
            taken[self._stem] = (stem.sum(1, keepdim=True) / self.in_channels).expand(-1, self.in_channels, -1, -1)
        try:
            self.orbit.network.load_state_dict(taken)
        except RuntimeError as error:
            told = " ".join(str(error).split())[:_LONGEST_MESSAGE]
            raise ValueError(f"these are not the weights of torchvision's {self.architecture}: {told}") from error


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
