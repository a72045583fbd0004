"""From the plane to the group."""

from torch import Tensor

from gsa.encodings import Encoding
from gsa.groups import Group
from gsa.nn._attention import SelfAttention
from gsa.nn._options import AttentionOptions

__all__ = ["LiftingSelfAttention"]


class LiftingSelfAttention(SelfAttention):
    """Self-attention from an image to a feature on the group, one output for each pose h of the encoding.

        out(i, h) = W_o ∪_heads Σ_{j ∈ N(i)} softmax_j( q(i) · (k(j) + ρ(h⁻¹(j − i))) / √d ) v(j)

    Source: Romero & Cordonnier 2021 (lifting self-attention); here scores are scaled by 1/√d.

    Args:
        group: the point group H, or its name.
        in_channels, out_channels: C and C′.
        num_heads, head_dim, neighbourhood, encoding, attention_dropout, window, value_dropout, positional_heads,
            head_starts, bias, border: see `AttentionOptions`.
        crop: pixels at every border that are left out of the result.

    Shapes:
        [B, C, H, W] → [B, C′, |H|, H − 2·crop, W − 2·crop]

    Raises:
        ValueError: an argument or a shape out of its range; an encoding that cannot serve the group.
    """

    def __init__(
        self,
        group: Group | str,
        in_channels: int,
        out_channels: int,
        num_heads: int = 9,
        head_dim: int | None = 10,
        neighbourhood: int | None = 5,
        encoding: str | type[Encoding] | Encoding = "functional",
        attention_dropout: float = 0.0,
        window: str = "square",
        value_dropout: float = 0.0,
        positional_heads: int = 0,
        head_starts: str = "apart",
        crop: int = 0,
        bias: bool = True,
        border: str = "hidden",
    ) -> None:
        options = AttentionOptions(
            num_heads=num_heads,
            head_dim=head_dim,
            neighbourhood=neighbourhood,
            window=window,
            encoding=encoding,
            attention_dropout=attention_dropout,
            value_dropout=value_dropout,
            positional_heads=positional_heads,
            head_starts=head_starts,
            bias=bias,
            border=border,
        )
        super().__init__(group, in_channels, out_channels, "lifting", options, crop)

    def _check(self, features: Tensor) -> None:
        if features.ndim != 4 or features.shape[1] != self.in_channels:
            raise ValueError(
                f"lifting self-attention takes images [B, {self.in_channels}, H, W], "
                f"but got the shape {list(features.shape)}"
            )
