"""What lifting and group self-attention share: projections, heads, encoding, the op."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from gsa import encodings, groups, ops
from gsa._checks import check_positive
from gsa.encodings import Encoded, Neighbourhood
from gsa.groups import Group
from gsa.nn._options import AttentionOptions
from gsa.nn._pointwise import PointwiseLinear

__all__ = ["SelfAttention", "record_attention"]


class SelfAttention(nn.Module):
    """Multi-head self-attention over relative positions and poses; its subclasses say what goes in.

    Queries, keys and values are pointwise linear maps, split in heads of d channels; scores are scaled by 1/√d;
    keys outside the picture take no part; W_o joins the heads.

    Args:
        group: the point group H, or its name.
        in_channels, out_channels: C and C′.
        form: "lifting" (of images, whose keys have no poses), "regular" or "summed".
        options: heads, window, encoding and dropout.
    """

    __call__: Callable[..., Tensor]

    def __init__(
        self, group: Group | str, in_channels: int, out_channels: int, form: str, options: AttentionOptions
    ) -> None:
        super().__init__()
        check_positive(in_channels=in_channels, out_channels=out_channels)
        self.group = groups.group(group)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.form = form
        self.num_heads, self.head_dim = options.num_heads, options.head_dim or max(out_channels // 2, 1)
        self.attention_dropout, self.value_dropout = options.attention_dropout, options.value_dropout
        self.neighbourhood = Neighbourhood(options.neighbourhood, options.window)
        self.encoding = encodings.encoding(options.encoding, self.group, self.head_dim, self.neighbourhood, form)
        self.query_key_value = PointwiseLinear(in_channels, 3 * self.num_heads * self.head_dim)
        self.out = PointwiseLinear(self.num_heads * self.head_dim, out_channels)

    def forward(self, features: Tensor) -> Tensor:
        query, key, value = self._project(features)
        value = F.dropout(value, self.value_dropout, self.training)
        dropout = self.attention_dropout if self.training else 0.0
        if self._attends_everywhere and not dropout and ops.prefers_fused(query.device):
            products = self.encoding.products(query, key, value, self.neighbourhood)
            heads = ops.attend_everywhere(*products, scale=self.head_dim**-0.5)
        else:
            encoded, window = self._encode(query, key, value)
            heads = ops.attend(*encoded, window, form=self._op_form, dropout=dropout)
        # Where the encoding has put output poses in front of the heads, they return to axis 2.
        return self.out(rearrange(heads, "b (a e) p y x d -> b (e d) (a p) y x", e=self.num_heads))

    def attention(self, features: Tensor) -> Tensor:
        """Where each output pose looks: [B, heads, |H|, H, W, U, V]; see `gsa.ops.attention_weights`."""
        (query, key, _, spatial, pose), window = self._encode(*self._project(features))
        weights = ops.attention_weights(query, key, spatial, pose, window, form=self._op_form)
        return rearrange(weights, "b (a e) p ... -> b e (a p) ...", e=self.num_heads)

    def acted_encoding(self, height: int, width: int) -> Tensor:
        """ρ_x(h⁻¹u) as every pose h adds it to the keys of an H×W map: [|H|, U, V, d]; zeros for rotary encodings."""
        poses = 1 if self.form == "lifting" else self.group.order
        empty = self.out.weight.new_zeros(1, self.num_heads, poses, height, width, self.head_dim)
        return self.encoding(empty, empty, empty, self.neighbourhood).spatial

    @property
    def _op_form(self) -> str:
        """Lifting is the summed form with one query pose, unless the encoding has made each pose a head."""
        return "regular" if self.form == "regular" or self.encoding.makes_poses_heads else "summed"

    @property
    def _attends_everywhere(self) -> bool:
        """Global attention that an ordinary fused kernel can compute."""
        return self.neighbourhood.size is None and self.form != "summed" and self.encoding.has_products

    def _project(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value: [B, heads, poses, H, W, d]."""
        self._check(features)
        features = self.encoding.embed(features)
        if self.form == "lifting":
            features = features.unsqueeze(2)
        parts = self.query_key_value.in_parts(features, 3)
        query, key, value = (rearrange(part, "b (e d) p y x -> b e p y x d", e=self.num_heads) for part in parts)
        return query, key, value

    def _encode(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Encoded, Tensor]:
        """What the encoding gives `gsa.ops.attend`, and the window."""
        height, width = query.shape[-3:-1]
        window = self.neighbourhood.mask(height, width, query.device)
        return self.encoding(query, key, value, self.neighbourhood), window

    def _check(self, features: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        place = self.neighbourhood
        where = "global" if place.size is None else f"{place.size}×{place.size} {place.window}"
        form = "" if self.form == "lifting" else f", {self.form}"
        heads = f"{self.num_heads} heads of {self.head_dim}"
        return f"{self.group.name}, {self.in_channels} → {self.out_channels}, {heads}, {where}{form}"


@contextmanager
def record_attention(network: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the attention maps of every layer while the network runs.

        with record_attention(network) as maps:
            network(images)

    Yields:
        A dictionary, filled by each forward pass: layer name → [B, heads, |H|, H, W, U, V] (detached). The maps are
        written out in full; meant for a few pictures.
    """
    maps: dict[str, Tensor] = {}

    def hook(name: str) -> Callable[[SelfAttention, tuple[Tensor, ...]], None]:
        def record(layer: SelfAttention, inputs: tuple[Tensor, ...]) -> None:
            with torch.no_grad():
                maps[name] = layer.attention(inputs[0])

        return record

    layers = [(name, m) for name, m in network.named_modules() if isinstance(m, SelfAttention)]
    handles = [layer.register_forward_pre_hook(hook(name)) for name, layer in layers]
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()
