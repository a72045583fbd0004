"""A plain vision transformer, the yardstick without symmetry or locality."""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from gsa._checks import check_positive, check_probability
from gsa._extras import brought_by
from gsa.models._network import Network

__all__ = ["VisionTransformer"]


class VisionTransformer(Network):
    """torchvision's ViT, small: patches, learned absolute positions, global attention, a class token.

    Source: Dosovitskiy et al. 2021.

    Args:
        in_channels, num_classes: of the data.
        image_size: side of the pictures, divisible by patch_size.
        patch_size, layers, num_heads, channels, mlp_channels: of the transformer.
        dropout: of the transformer.

    Shapes:
        [B, C, image_size, image_size] → [B, num_classes]

    Raises:
        ValueError: a number that is not positive; pictures that do not divide into patches; channels that do not divide
            into heads.
        ModuleNotFoundError: torchvision is not installed.
    """

    training_only = ("dropout",)

    def __init__(
        self,
        in_channels: int = 1,
        num_classes: int = 10,
        *,
        image_size: int = 28,
        patch_size: int = 4,
        layers: int = 5,
        num_heads: int = 4,
        channels: int = 32,
        mlp_channels: int = 64,
        dropout: float = 0.0,
    ) -> None:
        super().__init__("Z2", in_channels, num_classes)
        with brought_by("train"):
            from torchvision.models import VisionTransformer as Transformer  # takes a second to import
        check_positive(
            image_size=image_size, patch_size=patch_size, layers=layers, num_heads=num_heads, channels=channels,
            mlp_channels=mlp_channels,
        )  # fmt: skip
        check_probability(dropout=dropout)
        if image_size % patch_size:
            raise ValueError(f"image_size must be divisible by patch_size, but got {image_size} and {patch_size}")
        if channels % num_heads:
            raise ValueError(f"channels must be divisible by num_heads, but got {channels} and {num_heads}")
        self.image_size, self.patch_size = image_size, patch_size
        self.num_features, self.stage_channels = channels, (channels,)
        self.transformer = Transformer(
            image_size, patch_size, layers, num_heads, channels, mlp_channels, dropout, num_classes=num_classes or 1
        )
        self.transformer.conv_proj = nn.Conv2d(in_channels, channels, patch_size, stride=patch_size)
        if not num_classes:
            self.transformer.heads = nn.Identity()

    def make_head(self, num_classes: int) -> nn.Module:
        return nn.Sequential(OrderedDict(head=nn.Linear(self.num_features, num_classes)))  # named as torchvision does

    def reset_classifier(self, num_classes: int) -> None:
        super().reset_classifier(num_classes)
        self.transformer.heads = self.head
        del self.head

    def get_classifier(self) -> nn.Module:
        return self.transformer.heads

    def forward_stages(self, images: Tensor) -> list[Tensor]:
        """What becomes of every patch: [B, channels, 1, rows, columns]."""
        sides = (images.shape[-2] // self.patch_size, images.shape[-1] // self.patch_size)
        return [self.forward_features(images)[:, 1:].transpose(1, 2).unflatten(2, (1, *sides))]

    def forward_features(self, images: Tensor) -> Tensor:
        """What becomes of the class token and of every patch: [B, 1 + patches, channels]."""
        self.check_images(images)
        if images.shape[-2:] != (self.image_size, self.image_size):
            raise ValueError(
                f"this transformer was built for pictures of {self.image_size}×{self.image_size} pixels, but got "
                f"{images.shape[-2]}×{images.shape[-1]}: set image_size"
            )
        patches = self.transformer.conv_proj(images).flatten(2).transpose(1, 2)
        token = self.transformer.class_token.expand(images.shape[0], -1, -1)
        return self.transformer.encoder(torch.cat([token, patches], dim=1))

    def forward_head(self, features: Tensor, pre_logits: bool = False) -> Tensor:
        """The class token to logits: [B, 1 + patches, channels] → [B, num_classes], or as it is with pre_logits."""
        return features[:, 0] if pre_logits else self.transformer.heads(features[:, 0])
