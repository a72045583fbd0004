"""The plan of a network in stages: how many blocks, how wide, how much they crop, and the pools between."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gsa._checks import check_positive, is_count

__all__ = ["StagePlan"]


@dataclass(frozen=True)
class StagePlan:
    """Stages of blocks with a pool after each.

    Args:
        channels: channels that enter the first stage.
        blocks: number of residual blocks in each stage.
        expansion: factor on the channels at each stage's first block; 1 everywhere when None.
        crops: pixels cut from every border, for each block; 0 everywhere when None.
        pools: window of the stride-2 max-pool after each stage (2 for even maps, 3 for odd ones), 0 for none.
        content_heads: number of heads with content in each stage, beside the positional ones; as the attention's
            options have it everywhere when None.

    Raises:
        ValueError: numbers out of their range, lists of other lengths, a stage that expands without a block.
    """

    channels: int = 20
    blocks: Sequence[int] = (2, 3)
    expansion: Sequence[int] | None = None
    crops: Sequence[int] | None = None
    pools: Sequence[int] = (2, 0)
    content_heads: Sequence[int] | None = None

    def __post_init__(self) -> None:
        check_positive(channels=self.channels)
        for name in ("blocks", "expansion", "crops", "pools", "content_heads"):
            _check_counts(name, getattr(self, name), least=1 if name == "expansion" else 0)
        blocks, expansion, crops, pools = self.blocks, self._expansion, self._crops, self.pools
        if not len(blocks) == len(expansion) == len(pools):
            raise ValueError(
                "blocks, expansion and pools need one entry a stage, "
                f"but got {len(blocks)}, {len(expansion)} and {len(pools)}"
            )
        if self.content_heads is not None and len(self.content_heads) != len(blocks):
            raise ValueError(f"content_heads needs one entry a stage ({len(blocks)}), but got {self.content_heads}")
        if len(crops) != sum(blocks):
            raise ValueError(f"crops needs one entry a block ({sum(blocks)}), but got {len(crops)}")
        if any(factor != 1 and not count for count, factor in zip(blocks, expansion, strict=True)):
            raise ValueError(f"a stage without blocks cannot expand its channels: {blocks=}, {expansion=}")

    def stages(self) -> Iterator[tuple[list[tuple[int, int, int]], int]]:
        """Channels in, channels out and crop of every block, and the pool, of each stage."""
        inputs, crops = self.channels, iter(self._crops)
        for count, factor, pool in zip(self.blocks, self._expansion, self.pools, strict=True):
            stage = []
            for index in range(count):
                outputs = inputs * factor if index == 0 else inputs
                stage.append((inputs, outputs, next(crops)))
                inputs = outputs
            yield stage, pool

    @property
    def _expansion(self) -> tuple[int, ...]:
        return tuple(self.expansion or (1,) * len(self.blocks))

    @property
    def _crops(self) -> tuple[int, ...]:
        return tuple(self.crops or (0,) * sum(self.blocks))


def _check_counts(name: str, values: Sequence[int] | None, least: int) -> None:
    if values is None and name in ("expansion", "crops", "content_heads"):
        return
    if not isinstance(values, Sequence) or not all(is_count(value, least) for value in values):
        raise ValueError(f"{name} must be a list of integers of at least {least}, but got {values!r}")
