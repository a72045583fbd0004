"""Any network made equivariant: its answers to a picture in every pose, pooled."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gsa import groups
from gsa._checks import check_choice, check_floating, check_kind
from gsa.groups import Field, Group, kinds_of
from gsa.nn._fields import FieldsToPoses, PosesToFields
from gsa.nn._strongest import strongest

__all__ = ["OrbitPooling"]


class OrbitPooling(nn.Module):
    """A network that is shown every picture in all poses of a group, and the largest or the mean of its answers.

        y(x) = max_h f(h⁻¹ x)        or, of maps, which are moved back,        y(x) = max_h h f(h⁻¹ x)

    Vectors, and other fields, are turned back, too: y(x) = 1/|H| Σ_h ρ(h) h f(h⁻¹ x); those of x are turned with it.

    It commutes with the group whatever f is, and takes |H| times as long. Poses are compared at the end only: pool the
    features of a network, and put its classifier after the pool. Exact for the elements that map the pixel grid to
    itself; for others pictures are sampled (bilinear, zeros outside). f is given all poses as one batch, so that batch
    norms see them together; of oblong pictures, those that lie and those that stand as a batch each.

    Source: Laptev et al., TI-POOLING, CVPR 2016, where the max is over features; of maps, the mean is the
    symmetrisation of Puny et al., Frame Averaging, ICLR 2022.

    Args:
        network: f, pictures [B, C, H, W] → a tensor, or a dictionary, list or tuple of tensors, which are pooled one by
            one: answers [B, D], or maps [B, C′, H′, W′] of the picture. Rows depend on their own picture (but for batch
            norms).
        group: the point group H, or its name.
        kind: "max" or "mean", over the poses.
        outputs: what the channels of every answer of f are, as in `gsa.groups.Group.representation`: "scalar", without
            a direction; "vector", two channels each, or any other field, such as ["scalar", "vector"], which turns
            with the picture; of those there is the mean only.
        inputs: what the channels of pictures are, likewise.

    Shapes:
        [B, C, H, W] → [B, D] or [B, C′, H′, W′]; H = W in poses between the quarter turns.

    Raises:
        ValueError: an unknown kind, or the largest of vectors; what are no pictures, or oblong ones of which poses are
            sampled; answers of other shapes; a field of no such kind.
    """

    __call__: Callable[..., Any]

    def __init__(
        self,
        network: nn.Module,
        group: Group | str,
        kind: str = "max",
        outputs: Field = "scalar",
        inputs: Field = "scalar",
    ) -> None:
        super().__init__()
        check_kind(nn.Module, network=network)
        check_choice(("max", "mean"), kind=kind)
        self.network, self.group, self.kind = network, groups.group(group), kind
        self.inputs, self.outputs = inputs, outputs
        self.seen = None if kinds_of(inputs) == ("scalar",) else FieldsToPoses(self.group, inputs)
        self.fields = None if kinds_of(outputs) == ("scalar",) else PosesToFields(self.group, outputs)
        if self.fields is not None and kind == "max":
            raise ValueError(f"no pose of a field has the largest of all its numbers: {outputs=} needs kind='mean'")
        self._inverses: list[int] = self.group.inverse.tolist()
        swaps = self.group.matrices[:, 0, 0].abs() < 1e-9  # odd quarter turns, after which oblong pictures stand
        self._standing: list[int] = swaps.nonzero().flatten().tolist()

    @property
    def output_field(self) -> Field:
        """What its answers are, which reports of symmetry ask for (`gsa.symmetry.GroupAction`)."""
        return self.outputs

    def forward(self, images: Tensor) -> Any:
        return _each(self._pooled, self.forward_poses(images))

    def forward_poses(self, images: Tensor) -> Any:
        """What is pooled: f(h⁻¹ x), or h f(h⁻¹ x), in every pose h: [|H|, B, D] or [|H|, B, C′, H′, W′].

        Of vectors, these are seen from pose h; `fields` turns them back and takes the mean.
        """
        check_floating(images, "orbit pooling")
        if images.ndim != 4 or (not self.group.is_on_grid and images.shape[-2] != images.shape[-1]):
            square = "" if self.group.is_on_grid else f", square ones in the poses of {self.group.name}"
            raise ValueError(f"orbit pooling takes images [B, C, H, W]{square}, but got the shape {list(images.shape)}")
        batches: list[Sequence[int]] = [range(self.group.order)]
        if self._standing and images.shape[-2] != images.shape[-1]:
            batches = [[h for h in batches[0] if h not in self._standing], self._standing]
        seen = [images] * self.group.order if self.seen is None else self.seen(images).unbind(2)
        shown = [torch.cat([self.group.act(seen[h], self._inverses[h]) for h in batch]) for batch in batches]
        answers = [self.network(batch) for batch in shown]
        return _each(lambda *parts: self._moved_back(parts, batches, images.shape[0]), *answers)

    def _pooled(self, poses: Tensor) -> Tensor:
        if self.fields is not None:
            return self.fields(poses.movedim(0, 2))
        return strongest(poses, 0) if self.kind == "max" else poses.mean(0)

    def _moved_back(self, answers: tuple[Any, ...], batches: Sequence[Sequence[int]], count: int) -> Tensor:
        """Answers to pictures in some poses each, in the order of all poses."""
        found: dict[int, Tensor] = {}
        for answer, some in zip(answers, batches, strict=True):
            if not isinstance(answer, Tensor) or answer.ndim not in (2, 4) or answer.shape[0] != len(some) * count:
                got = list(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
                raise ValueError(
                    f"answers [B, D] or maps [B, C, H, W] of {len(some)} × {count} pictures are pooled, "
                    f"but {type(self.network).__name__} returned {got}"
                )
            for pose, one in zip(some, answer.unflatten(0, (len(some), count)), strict=True):
                found[pose] = self.group.act(one, pose) if answer.ndim == 4 else one
        if others := [list(one.shape) for one in found.values() if one.shape != found[0].shape]:
            raise ValueError(
                "answers are alike in all poses, and the sides of maps turn with those of the picture; but of pictures "
                f"that lie and that stand, {type(self.network).__name__} returned, moved back, {list(found[0].shape)} "
                f"and {others[0]}"
            )
        return torch.stack([found[pose] for pose in sorted(found)])

    def extra_repr(self) -> str:
        return f"{self.group.name}, {self.kind}, outputs={self.outputs!r}, inputs={self.inputs!r}"


def _each(function: Callable[..., Tensor], *answers: Any) -> Any:
    """Applied to every answer of dictionaries, lists or tuples that are alike, or to the only ones."""
    if isinstance(answers[0], Mapping):
        return {name: _each(function, *(one[name] for one in answers)) for name in answers[0]}
    if isinstance(answers[0], list | tuple):
        return [_each(function, *parts) for parts in zip(*answers, strict=True)]
    return function(*answers)
