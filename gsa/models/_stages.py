"""The plan of a network in stages: how many blocks, how wide, how much they crop, and the pools between."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gsa._checks import check_positive, is_count
from gsa.encodings import Neighbourhood

__all__ = ["PlannedBlock", "StagePlan"]


class PlannedBlock(NamedTuple):
    """Channels in and out, pixels cut from every border, and the side of the window; None is that of all attention."""

    inputs: int
    outputs: int
    crop: int
    neighbourhood: int | None


@dataclass(frozen=True)
class StagePlan:
    """Stages of blocks with a pool after each.

    Args:
        channels: channels that enter the first stage.
        blocks: number of residual blocks in each stage.
        expansion: factor on the channels at each stage's first block; 1 everywhere when None.
        crops: pixels cut from every border, for each block; 0 everywhere when None.
        neighbourhoods: odd side of the window, for each block; as the attention's options have it everywhere when None.
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
    neighbourhoods: Sequence[int] | None = None
    pools: Sequence[int] = (2, 0)
    content_heads: Sequence[int] | None = None

    def __post_init__(self) -> None:
        check_positive(channels=self.channels)
        for name in ("blocks", "expansion", "crops", "neighbourhoods", "pools", "content_heads"):
            _check_counts(name, getattr(self, name), least=1 if name in ("expansion", "neighbourhoods") else 0)
        blocks, expansion, crops, pools = self.blocks, self._expansion, self._crops, self.pools
        if not len(blocks) == len(expansion) == len(pools):
            raise ValueError(
                "blocks, expansion and pools need one entry a stage, "
                f"but got {len(blocks)}, {len(expansion)} and {len(pools)}"
            )
        if self.content_heads is not None and len(self.content_heads) != len(blocks):
            raise ValueError(f"content_heads needs one entry a stage ({len(blocks)}), but got {self.content_heads}")
        for name, values in {"crops": crops, "neighbourhoods": self._neighbourhoods}.items():
            if len(values) != sum(blocks):
                raise ValueError(f"{name} needs one entry a block ({sum(blocks)}), but got {len(values)}")
        for side in self.neighbourhoods or ():
            Neighbourhood(side)
        if any(factor != 1 and not count for count, factor in zip(blocks, expansion, strict=True)):
            raise ValueError(f"a stage without blocks cannot expand its channels: {blocks=}, {expansion=}")

    def stages(self) -> Iterator[tuple[list[PlannedBlock], int]]:
        """The blocks of each stage, and its pool."""
        inputs, borders = self.channels, zip(self._crops, self._neighbourhoods, strict=True)
        for count, factor, pool in zip(self.blocks, self._expansion, self.pools, strict=True):
            stage = []
            for index in range(count):
                outputs = inputs * factor if index == 0 else inputs
                stage.append(PlannedBlock(inputs, outputs, *next(borders)))
                inputs = outputs
            yield stage, pool

    @property
    def _expansion(self) -> tuple[int, ...]:
        return (1,) * len(self.blocks) if self.expansion is None else tuple(self.expansion)

    @property
    def _crops(self) -> tuple[int, ...]:
        return (0,) * sum(self.blocks) if self.crops is None else tuple(self.crops)

    @property
    def _neighbourhoods(self) -> tuple[int | None, ...]:
        return (None,) * sum(self.blocks) if self.neighbourhoods is None else tuple(self.neighbourhoods)


def _check_counts(name: str, values: Sequence[int] | None, least: int) -> None:
    if values is None and name in ("expansion", "crops", "neighbourhoods", "content_heads"):
        return
    if not isinstance(values, Sequence) or not all(is_count(value, least) for value in values):
        raise ValueError(f"{name} must be a list of integers of at least {least}, but got {values!r}")
