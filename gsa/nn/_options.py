"""How attention looks: what all attention layers of a network have in common."""

from dataclasses import dataclass

import torch

from gsa._checks import check_choice, check_positive, check_probability, is_count
from gsa.encodings import Encoding, Neighbourhood
from gsa.nn._border import check_border

__all__ = ["AttentionOptions"]


@dataclass(frozen=True)
class AttentionOptions:
    """Heads, window, encoding, dropout and biases of self-attention.

    Args:
        num_heads: number of heads.
        positional_heads: how many of them attend by position alone; needs an encoding that places heads ("quadratic").
        head_dim: d, channels of a head; half of the layer's output channels when None.
        neighbourhood: odd side of the window in pixels; None attends globally.
        window: "square", mapped to itself by quarter turns and mirrors, or "disk", by every rotation except at its rim.
        border: what lies beyond the picture: "hidden" keys that take no part, so that the softmax is over visible ones,
            or "zeros", features of zero that take part, as in a padded convolution. Positional heads are then one
            convolution everywhere, which is much faster where most windows reach beyond; not for global attention.
        encoding: name of a positional encoding, one of `gsa.encodings.KINDS`; or a class like them, of which every
            layer makes its own; or a module, which layers share. Each says which forms it serves.
        head_starts: "apart" starts heads that have positions at different cells and poses, "centre" starts all of them
            at the centre, from where they have to find their positions in training.
        bias: whether the maps to queries, keys and values, and from the heads, have biases. That of the keys
            has no effect, except with a rotary encoding (`gsa.symmetry.statements.attention_bias_errors`).
        attention_dropout: probability of dropping a weight, in training; those of positional heads, which are the same
            for all pictures, are kept.
        value_dropout: probability of dropping an entry of a value, in training; those of positional heads are kept.

    Raises:
        ValueError: an argument out of its range.
    """

    num_heads: int = 9
    head_dim: int | None = 10
    neighbourhood: int | None = 5
    window: str = "square"
    encoding: str | type[Encoding] | Encoding = "functional"
    attention_dropout: float = 0.0
    value_dropout: float = 0.0
    positional_heads: int = 0
    head_starts: str = "apart"
    bias: bool = True
    border: str = "hidden"

    def __post_init__(self) -> None:
        check_positive(num_heads=self.num_heads)
        check_choice(("apart", "centre"), head_starts=self.head_starts)
        check_border(self.border)
        if not isinstance(self.bias, bool):
            raise ValueError(f"bias must be True or False, but got {self.bias!r}")
        if not is_count(self.positional_heads) or self.positional_heads > self.num_heads:
            raise ValueError(
                f"positional_heads must be a number from 0 to num_heads ({self.num_heads}), "
                f"but got {self.positional_heads!r}"
            )
        if self.head_dim is not None:
            check_positive(head_dim=self.head_dim)
        check_probability(attention_dropout=self.attention_dropout, value_dropout=self.value_dropout)
        Neighbourhood(self.neighbourhood, self.window)
        if self.neighbourhood is None and self.border == "zeros":
            raise ValueError("border='zeros' needs a window, which says how many: global attention has border='hidden'")

    @property
    def content_heads(self) -> int:
        """How many heads look at content."""
        return self.num_heads - self.positional_heads


AttentionOptions.__module__ = "gsa.nn"  # by which checkpoints that hold options are read, without running code
torch.serialization.add_safe_globals([AttentionOptions, (AttentionOptions, "gsa.nn._options.AttentionOptions")])
