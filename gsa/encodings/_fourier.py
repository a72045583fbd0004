"""Random Fourier features of the acted offset."""

import torch
from torch import Tensor, nn

from gsa.encodings._encoding import AdditiveEncoding
from gsa.groups import Group

__all__ = ["FourierEncoding"]


class FourierEncoding(AdditiveEncoding):
    """ρ_x(u) = W [cos Ωu; sin Ωu] at u = h⁻¹(j − i), with learned frequencies Ω and mixing W.

    Args:
        group: acts on the offsets.
        head_dim: d.
        poses: False in a lifting layer.
        frequencies: number F of rows of Ω, drawn from a normal distribution of standard deviation `bandwidth`
            (radians over one neighbourhood radius).
    """

    def __init__(
        self, group: Group, head_dim: int, poses: bool = True, frequencies: int = 16, bandwidth: float = 3.0
    ) -> None:
        super().__init__(group, head_dim, pose_dim=head_dim if poses else 0)
        self.frequencies = nn.Parameter(bandwidth * torch.randn(frequencies, 2))
        self.mix = nn.Parameter(torch.randn(head_dim, 2 * frequencies) * frequencies**-0.5)

    def spatial(self, offsets: Tensor) -> Tensor:
        phase = self._acted(offsets) @ self.frequencies.T
        return torch.cat((phase.cos(), phase.sin()), dim=-1) @ self.mix.T
