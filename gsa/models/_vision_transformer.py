"""A plain vision transformer, the yardstick without symmetry or locality."""

from torch import Tensor, nn

from gsa import groups

__all__ = ["VisionTransformer"]


class VisionTransformer(nn.Module):
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
        ValueError: pictures that do not divide into patches; channels that do not divide into heads.
    """

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
        super().__init__()
        from torchvision.models import VisionTransformer as Transformer  # takes a second to import

        if image_size % patch_size:
            raise ValueError(f"image_size must be divisible by patch_size, but got {image_size} and {patch_size}")
        if channels % num_heads:
            raise ValueError(f"channels must be divisible by num_heads, but got {channels} and {num_heads}")
        self.group = groups.group("Z2")
        self.num_classes, self.image_size = num_classes, image_size
        self.transformer = Transformer(
            image_size, patch_size, layers, num_heads, channels, mlp_channels, dropout, num_classes=num_classes
        )
        self.transformer.conv_proj = nn.Conv2d(in_channels, channels, patch_size, stride=patch_size)

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[-2:] != (self.image_size, self.image_size):
            raise ValueError(
                f"this transformer was built for pictures of {self.image_size}×{self.image_size} pixels, but got "
                f"{images.shape[-2]}×{images.shape[-1]}: set image_size"
            )
        return self.transformer(images)
