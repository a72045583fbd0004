"""Any network made equivariant: its answers to a picture in every pose, pooled."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from gsa import groups
from gsa._checks import check_choice, check_floating, check_kind
from gsa.groups import Group
from gsa.nn._vectors import PosesToVectors

__all__ = ["OrbitPooling"]


class OrbitPooling(nn.Module):
    """A network that is shown every picture in all poses of a group, and the largest or the mean of its answers.

        y(x) = max_h f(h⁻¹ x)        or, of maps, which are moved back,        y(x) = max_h h f(h⁻¹ x)

    Vectors are turned back, too: y(x) = 1/|H| Σ_h ρ(h) h f(h⁻¹ x).

    It commutes with the group whatever f is, and takes |H| times as long. Poses are compared at the end only: pool the
    features of a network, and put its classifier after the pool. Exact for the elements that map the pixel grid to
    itself; for others pictures are sampled (bilinear, zeros outside). f is given all poses as one batch, so that batch
    norms see them together.

    Source: Laptev et al., TI-POOLING, CVPR 2016, where the max is over features; of maps, the mean is the
    symmetrisation of Puny et al., Frame Averaging, ICLR 2022.

    Args:
        network: f, pictures [B, C, H, W] → a tensor, or a dictionary, list or tuple of tensors, which are pooled one by
            one: answers [B, D], or maps [B, C′, H′, W′] of the picture. Rows depend on their own picture (but for batch
            norms).
        group: the point group H, or its name.
        kind: "max" or "mean", over the poses.
        outputs: what the numbers of f are: "scalars", which have no direction, or "vectors", two channels each, (x, y)
            with x to the right and y up, which turn with the picture; of those there is the mean only.
        fold: of the directions of vectors: 1 of arrows, 2 of axes; see `gsa.groups.Group.representation`.

    Shapes:
        [B, C, H, W] → [B, D] or [B, C′, H′, W′]; H = W unless the group turns by nothing but 180°.

    Raises:
        ValueError: an unknown kind, or the largest of vectors; pictures that are not square under turns; answers of
            other shapes.
    """

    __call__: Callable[..., Any]

    def __init__(
        self, network: nn.Module, group: Group | str, kind: str = "max", outputs: str = "scalars", fold: int = 1
    ) -> None:
        super().__init__()
        check_kind(nn.Module, network=network)
        check_choice(("max", "mean"), kind=kind)
        check_choice(("scalars", "vectors"), outputs=outputs)
        self.network, self.group, self.kind, self.outputs = network, groups.group(group), kind, outputs
        self.vectors = PosesToVectors(self.group, fold) if outputs == "vectors" else None
        if self.vectors is not None and kind == "max":
            raise ValueError("none of several vectors is the largest in all poses: outputs='vectors' needs kind='mean'")
        self._inverses: list[int] = self.group.inverse.tolist()
        self._turns = bool((self.group.matrices[:, 0, 1].abs() > 1e-9).any())

    def forward(self, images: Tensor) -> Any:
        return _each(self._pooled, self.forward_poses(images))

    def forward_poses(self, images: Tensor) -> Any:
        """What is pooled: f(h⁻¹ x), or h f(h⁻¹ x), in every pose h: [|H|, B, D] or [|H|, B, C′, H′, W′].

        Of vectors, these are seen from pose h; `vectors` turns them back and takes the mean.
        """
        if images.ndim != 4 or (self._turns and images.shape[-2] != images.shape[-1]):
            square = ", square ones where they are turned" if self._turns else ""
            raise ValueError(f"orbit pooling takes images [B, C, H, W]{square}, but got the shape {list(images.shape)}")
        check_floating(images, "orbit pooling")
        answers = self.network(torch.cat([self.group.act(images, back) for back in self._inverses]))
        return _each(lambda answer: self._moved_back(answer, images.shape[0]), answers)

    def _pooled(self, poses: Tensor) -> Tensor:
        if self.vectors is not None:
            return self.vectors(poses.movedim(0, 2))
        return poses.amax(0) if self.kind == "max" else poses.mean(0)

    def _moved_back(self, answer: Any, count: int) -> Tensor:
        order = self.group.order
        if not isinstance(answer, Tensor) or answer.ndim not in (2, 4) or answer.shape[0] != order * count:
            found = list(answer.shape) if isinstance(answer, Tensor) else type(answer).__name__
            raise ValueError(
                f"answers [B, D] or maps [B, C, H, W] of {order} × {count} pictures are pooled, "
                f"but {type(self.network).__name__} returned {found}"
            )
        poses = answer.unflatten(0, (order, count))
        if answer.ndim == 4:
            poses = torch.stack([self.group.act(pose, h) for h, pose in enumerate(poses)])
        return poses

    def extra_repr(self) -> str:
        return f"{self.group.name}, {self.kind}, outputs={self.outputs}"


def _each(function: Callable[[Any], Tensor], answers: Any) -> Any:
    """Applied to every answer of a dictionary, list or tuple, or to the only one."""
    if isinstance(answers, Mapping):
        return {name: _each(function, answer) for name, answer in answers.items()}
    if isinstance(answers, list | tuple):
        return [_each(function, answer) for answer in answers]
    return function(answers)
