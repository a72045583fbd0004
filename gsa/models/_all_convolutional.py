"""The all-convolutional network of CIFAR-10 (All-CNN-C), on any group of the grid."""

from torch import Tensor, nn

from gsa._checks import check_positive, check_probability
from gsa.groups import Group
from gsa.models._network import Network
from gsa.nn import GroupConvolution, LiftingConvolution, SpatialPool

__all__ = ["AllConvolutional"]


class AllConvolutional(Network):
    """All-CNN-C: seven 3×3 convolutions and two 1×1, batch norm and relu after each, pooled to half size twice.

    The original halves by strides, which pick other pixels of a turned picture; a max-pool stands in their place.

    Source: Springenberg et al. 2015; with max-pools, Romero et al. 2020.

    Args:
        group: the point group H, or its name; on the grid.
        in_channels, num_classes: of the data.
        channels: of the first three layers; the others have twice as many.
        input_dropout, dropout: on the image, and after every pool.

    Shapes:
        [B, C, H, W] → [B, num_classes], for sides divisible by 4

    Raises:
        ValueError: a group that is not on the grid; a number that is not positive; a size on which a pool loses
            exactness.
    """

    training_only = ("input_dropout", "dropout")

    def __init__(
        self,
        group: Group | str,
        in_channels: int = 3,
        num_classes: int = 10,
        *,
        channels: int = 96,
        input_dropout: float = 0.2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__(group, in_channels, num_classes)
        check_positive(channels=channels)
        check_probability(input_dropout=input_dropout, dropout=dropout)
        self.num_features = 2 * channels
        widths = self.stage_channels = (channels,) * 3 + (2 * channels,) * 5
        self.layers = nn.Sequential(nn.Dropout(input_dropout))
        for index, (inputs, outputs) in enumerate(zip((in_channels, *widths), widths, strict=False)):
            kind, side = LiftingConvolution if index == 0 else GroupConvolution, 1 if index > 6 else 3
            self.layers.append(kind(self.group, inputs, outputs, side, padding=side // 2, bias=False))
            is_pooled = index in (2, 5)
            if is_pooled:
                self.layers.append(SpatialPool(2))
            self.layers.extend([nn.BatchNorm3d(outputs), nn.ReLU()])
            if is_pooled:
                self.layers.append(nn.Dropout(dropout))
        self.reset_classifier(num_classes)

    def make_head(self, num_classes: int) -> nn.Module:
        layer = GroupConvolution(self.group, self.num_features, num_classes, 1, bias=False)
        return nn.Sequential(layer, nn.BatchNorm3d(num_classes), nn.ReLU())

    def forward_stages(self, images: Tensor) -> list[Tensor]:
        self.check_images(images)
        features, x = [], images
        for layer in self.layers:
            x = layer(x)
            if isinstance(layer, nn.ReLU):
                features.append(x)
        return features

    def keep_stages(self, count: int) -> None:
        ends = [place for place, layer in enumerate(self.layers, start=1) if isinstance(layer, nn.ReLU)]
        self.layers, self.stage_channels = self.layers[: ends[count - 1]], self.stage_channels[:count]
        self.num_features = self.stage_channels[-1]
