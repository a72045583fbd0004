"""The block of convolutional networks, with attention in the place of the convolution."""

from collections.abc import Callable

from torch import Tensor, nn

from gsa._checks import check_kind, check_probability
from gsa.groups import Group
from gsa.nn._group_attention import GroupSelfAttention
from gsa.nn._norm import norm as make_norm
from gsa.nn._options import AttentionOptions

__all__ = ["PlainBlock"]

_OPTIONS = AttentionOptions()


class PlainBlock(nn.Module):
    """Group self-attention, then a norm and swish: nothing passes by.

        x ← dropout(swish(norm(attention(x))))

    With heads that start at offsets and poses it starts as a layer of a group convolutional network.

    Args:
        group, in_channels, out_channels, form: as in `GroupSelfAttention`.
        options: of its attention.
        crop: pixels cut from every border by the attention.
        dropout: probability of dropping an entry.
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
        norm: str = "batch",
        attention_layer: Callable[..., nn.Module] = GroupSelfAttention,
    ) -> None:
        super().__init__()
        check_kind(AttentionOptions, options=options)
        check_probability(dropout=dropout)
        self.attention = attention_layer(group, in_channels, out_channels, form=form, crop=crop, **vars(options))
        self.norm = make_norm(norm, out_channels)
        self.activation = nn.SiLU()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.activation(self.norm(self.attention(x))))
