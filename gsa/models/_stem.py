"""How the lifting layer differs from the attention layers after it."""

from dataclasses import dataclass, replace

from gsa._checks import is_count
from gsa.nn import AttentionOptions

__all__ = ["StemOptions"]


@dataclass(frozen=True)
class StemOptions:
    """Heads, window and crop of the lifting layer; 0 means as in the other layers.

    Args:
        stem_heads: number of heads.
        stem_head_dim: channels of a head; of pictures with one channel, values of one channel say all there is.
        stem_neighbourhood: odd side of the window in pixels.
        stem_crop: pixels cut from every border; 0 is none.
        stem_pool: side and stride of a max-pool right after it, before the norm, for large pictures; 0 is none.
        stem_positional: whether all of its heads attend by position alone.

    Raises:
        ValueError: a number out of its range.
    """

    stem_heads: int = 0
    stem_head_dim: int = 0
    stem_neighbourhood: int = 0
    stem_crop: int = 0
    stem_positional: bool = False
    stem_pool: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name != "stem_positional" and not is_count(value):
                raise ValueError(f"{name} must be an integer of at least 0, but got {value!r}")

    def of(self, attention: AttentionOptions) -> AttentionOptions:
        """The options of the lifting layer in a network of these."""
        heads = self.stem_heads or attention.num_heads
        positional = max(heads - attention.content_heads, 0) if attention.positional_heads else 0
        return replace(
            attention,
            num_heads=heads,
            head_dim=self.stem_head_dim or attention.head_dim,
            neighbourhood=self.stem_neighbourhood or attention.neighbourhood,
            positional_heads=heads if self.stem_positional else positional,
        )
