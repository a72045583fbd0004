"""From the group to the group."""

from torch import Tensor

from gsa import ops
from gsa._checks import check_choice
from gsa.encodings import Encoding
from gsa.groups import Group
from gsa.nn._attention import SelfAttention
from gsa.nn._options import AttentionOptions

__all__ = ["GroupSelfAttention"]


class GroupSelfAttention(SelfAttention):
    """Self-attention between features on the group, over positions and poses; two exactly equivariant forms.

        regular: out(i,h) = W_o ∪ Σ_{j,h̃} softmax_{j,h̃}( q(i,h)·(k(j,h̃) + ρ_x(h⁻¹(j−i)) + ρ_H(h⁻¹h̃)) / √d ) v(j,h̃)
        summed:  out(i,h) = W_o ∪ Σ_ĥ Σ_{j,h̃} softmax_{j,h̃}( q(i,ĥ)·(k(j,h̃) + ρ_x(h⁻¹(j−i)) + ρ_H(ĥ⁻¹h̃)) / √d ) v(j,h̃)

    "regular" is self-attention on G itself: with enough sharp heads it computes any group convolution over the groups
    of the grid (`gsa.symmetry.statements.as_self_attention`), and it has |H| times fewer scores than "summed". The
    summed form sees the output pose h only through ρ_x: of features that are constant over the pixels, or in a 1×1
    window, it makes the same for every h (`gsa.symmetry.statements.pose_dependence`), unless the picture ends in zeros,
    which are other pixels. So no number of its heads expresses a general group convolution.

    Source: Romero & Cordonnier 2021 (group self-attention, "summed"). The paper's group term h⁻¹ĥ⁻¹h̃ is not
    equivariant: under L_g it must become (g⁻¹h)⁻¹ĥ′⁻¹h̃′, and does not. Nor is ĥ⁻¹h̃h, that of the public code; ρ_H(ĥ⁻¹h̃)
    is.

    Args:
        group: the point group H, or its name.
        in_channels, out_channels: C and C′.
        num_heads, head_dim, neighbourhood, encoding, attention_dropout, window, value_dropout, positional_heads,
            head_starts, bias, border: see `AttentionOptions`.
        form: "regular" or "summed" (the paper's).
        crop: pixels at every border that are left out of the result.

    Shapes:
        [B, C, |H|, H, W] → [B, C′, |H|, H − 2·crop, W − 2·crop]

    Raises:
        ValueError: an argument or a shape out of its range; an encoding that cannot serve the group or the form.
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
        form: str = "regular",
        attention_dropout: float = 0.0,
        window: str = "square",
        value_dropout: float = 0.0,
        positional_heads: int = 0,
        head_starts: str = "apart",
        crop: int = 0,
        bias: bool = True,
        border: str = "hidden",
    ) -> None:
        check_choice(ops.FORMS, form=form)
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
        super().__init__(group, in_channels, out_channels, form, options, crop)

    def _check(self, features: Tensor) -> None:
        order = self.group.order
        if features.ndim != 5 or features.shape[1] != self.in_channels or features.shape[2] != order:
            raise ValueError(
                f"group self-attention over {self.group.name} takes features "
                f"[B, {self.in_channels}, {order}, H, W] (poses on axis 2), but got the shape {list(features.shape)}"
            )
