"""Random Fourier features of the acted offset."""

import torch
from einops import rearrange
from torch import Tensor, nn

from gsa._checks import check_positive
from gsa.encodings._encoding import AdditiveEncoding
from gsa.encodings._neighbourhood import Neighbourhood
from gsa.groups import Group

__all__ = ["FourierEncoding"]


class FourierEncoding(AdditiveEncoding):
    """ρ_x(u) = W [cos Ωu; sin Ωu] at u = h⁻¹(j − i), with learned frequencies Ω and mixing W.

    Args:
        group: acts on the offsets; or its name.
        head_dim: d.
        lifting: whether it is made for a lifting layer.
        frequencies: number F of rows of Ω.
        bandwidth: standard deviation of the normal distribution that they are drawn from, in radians over one
            neighbourhood radius.

    Raises:
        ValueError: a number of frequencies that is not positive, or a negative bandwidth.
    """

    name = "fourier"
    has_products = True

    def __init__(
        self, group: Group | str, head_dim: int, lifting: bool = False, frequencies: int = 16, bandwidth: float = 3.0
    ) -> None:
        super().__init__(group, head_dim, lifting)
        check_positive(frequencies=frequencies)
        if not bandwidth >= 0:
            raise ValueError(f"bandwidth must not be negative, but got {bandwidth}")
        self.bandwidth = bandwidth
        self.frequencies = nn.Parameter(torch.empty(frequencies, 2))
        self.mix = nn.Parameter(torch.empty(head_dim, 2 * frequencies))
        self._draw()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self._draw()

    def _draw(self) -> None:
        nn.init.normal_(self.frequencies, std=self.bandwidth)
        nn.init.normal_(self.mix, std=len(self.frequencies) ** -0.5)

    def spatial(self, offsets: Tensor) -> Tensor:
        phase = self.acted(offsets).to(self.frequencies.dtype) @ self.frequencies.T
        return torch.cat((phase.cos(), phase.sin()), dim=-1) @ self.mix.T

    def products(
        self, query: Tensor, key: Tensor, value: Tensor, neighbourhood: Neighbourhood
    ) -> tuple[Tensor, Tensor, Tensor]:
        """q·ρ_x(h⁻¹(j − i)) = ⟨[a cos θ_i − b sin θ_i, a sin θ_i + b cos θ_i], [cos θ_j, sin θ_j]⟩.

        θ_i = Ωh⁻¹i and (a, b) = Wᵀq, so d′ = d + 2F.
        """
        height, width = query.shape[-3:-1]
        phase = self._phases(neighbourhood, height, width, self.frequencies)
        phase = rearrange(phase, "p y x f -> p 1 1 y x f")
        cosine, sine = phase.cos().to(query.dtype), phase.sin().to(query.dtype)

        # Lifting has one query for all output poses; a group layer has one for each.
        query = rearrange(query, "b e p y x d -> b p e 1 y x d").expand(-1, self.group.order, *[-1] * 5)
        a, b = (query @ self.mix.to(query.dtype)).chunk(2, dim=-1)
        query = torch.cat((query, a * cosine - b * sine, a * sine + b * cosine), dim=-1)
        pose = self.pose(self.group.order, key.shape[2], like=key).to(key.dtype)
        key = key[:, None] + rearrange(pose, "p m d -> p 1 m 1 1 d")
        waves = torch.cat((cosine, sine), dim=-1).expand(*key.shape[:-1], -1)
        key, value = torch.cat((key, waves), dim=-1), value[:, None].expand_as(key)
        query, key, value = (rearrange(t, "b p e m y x d -> b (p e) m y x d") for t in (query, key, value))
        return query, key, value
