"""The residual block of GSA-Nets."""

from collections.abc import Callable

from torch import Tensor, nn

from gsa._checks import check_kind, check_pixels, check_probability
from gsa.groups import Group
from gsa.nn._border import crop_border
from gsa.nn._group_attention import GroupSelfAttention
from gsa.nn._norm import norm as make_norm
from gsa.nn._options import AttentionOptions
from gsa.nn._pointwise import PointwiseLinear

__all__ = ["AttentionBlock"]

_OPTIONS = AttentionOptions()


class AttentionBlock(nn.Module):
    """Pre-activation residual block: group self-attention, then a two-layer map at every pixel and pose.

        x ← crop(dropout(swish(norm(attention(swish(norm(x))))))) + crop(shortcut(x))
        x ← mlp(x) + x,   mlp = linear(C/2 → C) ∘ swish ∘ norm ∘ linear(C → C/2) ∘ swish ∘ norm

    Source: Romero & Cordonnier 2021. Their public code has a norm behind the mlp's last linear map in place of the norm
    and swish before its first (`block="published"` of `gsa.models.GSANet`); the number of parameters is the same.

    Args:
        group, in_channels, out_channels, form: as in `GroupSelfAttention`.
        options: of its attention.
        crop: pixels cut from every border after the attention, the same on all sides.
        dropout: probability of dropping an entry after the attention.
        norm: "channel", "sample" or "batch".
        attention_layer: makes its attention, as `GroupSelfAttention` does or in its place.

    Shapes:
        [B, C, |H|, H, W] → [B, C′, |H|, H − 2·crop, W − 2·crop]

    Raises:
        ValueError: an argument or a shape out of its range.
    """

    __call__: Callable[..., Tensor]

    def __init__(
        self,
        group: Group | str,
        in_channels: int,
        out_channels: int,
        options: AttentionOptions = _OPTIONS,
        form: str = "regular",
        crop: int = 0,
        dropout: float = 0.0,
        norm: str = "sample",
        attention_layer: Callable[..., nn.Module] = GroupSelfAttention,
    ) -> None:
        super().__init__()
        check_kind(AttentionOptions, options=options)
        check_pixels(crop=crop)
        check_probability(dropout=dropout)
        self.crop = crop
        self.attention = nn.Sequential(
            make_norm(norm, in_channels),
            nn.SiLU(),
            attention_layer(group, in_channels, out_channels, form=form, **vars(options)),
            make_norm(norm, out_channels),
            nn.SiLU(),
            nn.Dropout(dropout),
        )
        same = in_channels == out_channels
        self.shortcut = nn.Identity() if same else PointwiseLinear(in_channels, out_channels)
        self.mlp = self.make_mlp(norm, out_channels)

    def make_mlp(self, norm: str, channels: int) -> nn.Sequential:
        """The map at every pixel and pose."""
        hidden = max(channels // 2, 1)
        return nn.Sequential(
            make_norm(norm, channels),
            nn.SiLU(),
            PointwiseLinear(channels, hidden),
            make_norm(norm, hidden),
            nn.SiLU(),
            PointwiseLinear(hidden, channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = crop_border(self.attention(x), self.crop) + self.shortcut(crop_border(x, self.crop))
        return self.mlp(x) + x
