"""What lifting and group self-attention share: projections, heads, encoding, the op."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from gsa import encodings, groups, ops
from gsa._checks import check_floating, check_pixels, check_positive
from gsa.encodings import Encoded, Neighbourhood
from gsa.groups import Group
from gsa.nn._border import check_crop, crop_border, zeros_beyond
from gsa.nn._options import AttentionOptions
from gsa.nn._pointwise import PointwiseLinear, pointwise

__all__ = ["SelfAttention"]

_WIDEST = 7  # rows and columns of pixels that have kernels of their own


class SelfAttention(nn.Module):
    """Multi-head self-attention over relative positions and poses; its subclasses say what goes in.

    Queries, keys and values are pointwise linear maps, split in heads of d channels; scores are scaled by 1/√d;
    keys outside the picture take no part, unless there are zeros (`border`); W_o joins the heads. Hooks on the
    submodules that hold these maps may not be called, because only their weights are used; to change the weights, use a
    parametrization (`torch.nn.utils.parametrize`).

    The first heads may attend by position alone: their scores are what the encoding says of each head, and ignore
    content, so their weights are the same for every picture. They are a group convolution whose kernels are tied by a
    softmax, computed as a convolution or as matrices (`gsa.ops.attend_by_position`), or by the op where the window is
    wide and most pixels would need kernels of their own. Beside them, heads with content start silent.

    Args:
        group: the point group H, or its name.
        in_channels, out_channels: C and C′.
        form: "lifting" (of images, whose keys have no poses), "regular" or "summed".
        options: heads, window, encoding, dropout and biases.
        crop: pixels at every border that are left out of the result.

    Attributes:
        padding: zeros put around the features at every border, as many as the windows of the result reach beyond.
        query_scale: factor on the queries with content; √(d/C) makes the scores those of the public code.

    Shapes:
        [B, C, H, W] when lifting, else [B, C, |H|, H, W] → [B, C′, |H|, H − 2·crop, W − 2·crop]

    Raises:
        ValueError: an argument or a shape out of its range; an encoding that cannot serve the group, form or heads.
    """

    query_scale: float = 1.0
    __call__: Callable[..., Tensor]

    def __init__(
        self,
        group: Group | str,
        in_channels: int,
        out_channels: int,
        form: str,
        options: AttentionOptions,
        crop: int = 0,
    ) -> None:
        super().__init__()
        check_positive(in_channels=in_channels, out_channels=out_channels)
        check_pixels(crop=crop)
        self.group = groups.group(group)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.form, self.crop, self.border = form, crop, options.border
        self.num_heads, self.head_dim = options.num_heads, options.head_dim or max(out_channels // 2, 1)
        self.positional_heads, self.content_heads = options.positional_heads, options.content_heads
        self.attention_dropout, self.value_dropout = options.attention_dropout, options.value_dropout
        self.neighbourhood = Neighbourhood(options.neighbourhood, options.window)
        self.padding = zeros_beyond(options.border, options.neighbourhood or 1, crop)
        self.encoding = encodings.encoding(
            options.encoding, self.group, self.head_dim, self.neighbourhood, form, self.num_heads
        )
        self._check_heads(options.head_starts)
        if options.head_starts == "centre":
            if isinstance(options.encoding, nn.Module):
                raise ValueError(
                    "head_starts says where heads of an encoding start that the layer makes: of a module of your own, "
                    "call its start_at_centre()"
                )
            self.encoding.start_at_centre()
        parts = sum(self._parts)
        self.query_key_value = PointwiseLinear(in_channels, parts, options.bias) if self.content_heads else None
        channels = self.positional_heads * self.head_dim
        # without a bias, which would come through as one of `out`: the weights of a head sum to 1
        self.positional_value = PointwiseLinear(in_channels, channels, bias=False) if channels else None
        joined = self.num_heads * self.head_dim
        self.out = PointwiseLinear(joined, out_channels, options.bias, silent=joined - channels if channels else 0)

    def forward(self, features: Tensor) -> Tensor:
        features = self._prepared(features)
        if not self.positional_heads:
            return self.out(self._with_content(features))
        joined = self._as_silent_heads(features) if self._is_wide else self._by_position(features)
        if not self.content_heads:
            return joined
        return joined + pointwise(self._with_content(features), self._joining_content)

    def attention(self, features: Tensor) -> Tensor:
        """Where each output pose looks: [B, heads, |H|, H, W, U, V]; see `gsa.ops.attention_weights`."""
        encoded, window = self._encode(*self._with_silent_heads(self._padded(self._prepared(features))))
        weights = self.weigh(encoded, window)
        weights = rearrange(weights, "b (a e) p y x u v -> b e (a p) u v y x", e=self.num_heads)
        return rearrange(crop_border(weights, self._cut), "... u v y x -> ... y x u v")

    def attend(self, encoded: Encoded, window: Tensor, dropout: float = 0.0, crop: int = 0) -> Tensor:
        """What the op makes of what the encoding gives, [B, heads′, P, H − 2·crop, W − 2·crop, d].

        Subclasses may ask it otherwise.
        """
        return ops.attend(*encoded, window, form=self._op_form, dropout=dropout, crop=crop)

    def weigh(self, encoded: Encoded, window: Tensor) -> Tensor:
        """The weights of `attend`, [B, heads′, P, H, W, U, V], as `gsa.ops.attention_weights` sums them up."""
        query, key, _, spatial, pose = encoded
        return ops.attention_weights(query, key, spatial, pose, window, form=self._op_form)

    def acted_encoding(self, height: int, width: int) -> Tensor:
        """ρ_x(h⁻¹u) as every pose h adds it to the keys of an H×W map: [|H|, U, V, d]; zeros for rotary encodings."""
        poses = 1 if self.form == "lifting" else self.group.order
        empty = self.out.weight.new_zeros(1, self.num_heads, poses, height, width, self.encoding.key_dim)
        return self.encoding(empty, empty, empty, self.neighbourhood).spatial.expand(self.group.order, -1, -1, -1)

    def _with_content(self, features: Tensor) -> Tensor:
        """The heads with content side by side: [B, heads·d, |H|, H, W], cropped."""
        query, key, value = self._project(self._padded(features))
        value = F.dropout(value, self.value_dropout, self.training)
        dropout, count = self.attention_dropout if self.training else 0.0, query.shape[1]
        if self._attends_everywhere and not dropout and ops.prefers_fused(query.device):
            products = self.encoding.products(query, key, value, self.neighbourhood)
            heads = ops.attend_everywhere(*products, scale=self.head_dim**-0.5)
            heads = crop_border(heads.movedim(-1, 0), self._cut).movedim(0, -1)
        else:
            encoded, window = self._encode(query, key, value)
            heads = self.attend(encoded, window, dropout, self._cut)
        # Where the encoding has put output poses in front of the heads, they return to axis 2.
        return rearrange(heads, "b (a e) p y x d -> b (e d) (a p) y x", e=count)

    def _with_silent_heads(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of all heads; those of positional heads have no content, and fill the op's channels."""
        silent, key_dim = self.positional_heads, self.encoding.key_dim
        if self.content_heads:
            query, key, value = self._project(features)
        else:
            query = key = features.new_zeros(len(features), 0, *features.shape[2:], key_dim)
            value = features.new_zeros(len(features), 0, *features.shape[2:], self.head_dim)
        if self.positional_value is not None:
            positional = rearrange(self.positional_value(features), "b (e d) p y x -> b e p y x d", e=silent)
            value = torch.cat((positional, value), dim=1)
            query, key = (F.pad(t, (0, 0) * 4 + (silent, 0)) for t in (query, key))
        width = key_dim + self.encoding.position_dim
        return query, key, F.pad(value, (0, max(width - self.head_dim, 0)))

    def _by_position(self, features: Tensor) -> Tensor:
        """The positional heads, joined: [B, C′, |H|, H, W], cropped."""
        heads = self.positional_heads
        height, width = (side + 2 * self.padding for side in features.shape[-2:])
        assert self.positional_value is not None
        return ops.attend_by_position(
            features,
            self.encoding.position_scores(self.neighbourhood, height, width)[:heads],
            self.neighbourhood.mask(height, width, features.device),
            self.positional_value.plain_weight.unflatten(0, (heads, -1)),
            self.out.plain_weight[:, : heads * self.head_dim].unflatten(1, (heads, -1)),
            self.out.plain_bias,
            padding=self.padding,
            crop=self.crop,
        )

    def _as_silent_heads(self, features: Tensor) -> Tensor:
        """The same by the op, as heads whose content is zero: for wide windows, most of whose pixels are border."""
        precise = torch.promote_types(features.dtype, torch.float32)  # as places are, which halves do not tell apart
        encoded, window = self._encode(*(part.to(precise) for part in self._with_silent_heads(self._padded(features))))
        heads = self.attend(encoded, window, crop=self._cut)
        heads = heads[:, : self.positional_heads, ..., : self.head_dim].to(features.dtype)
        joined = rearrange(heads, "b e p y x d -> b (e d) p y x")
        return pointwise(joined, self.out.plain_weight[:, : joined.shape[1]], self.out.plain_bias)

    @property
    def _is_wide(self) -> bool:
        """Whether positional heads have too many kernels at the border to be worth a convolution: n − 2·cut > 7."""
        size = self.neighbourhood.size
        return size is None or size - 2 * min(self._cut, size // 2) > _WIDEST

    @property
    def _cut(self) -> int:
        """Pixels at every border of the padded features that are left out."""
        return self.crop + self.padding

    @property
    def _parts(self) -> tuple[int, int, int]:
        """Channels of queries, keys and values with content."""
        key = self.content_heads * self.encoding.key_dim
        return key, key, self.content_heads * self.head_dim

    @property
    def _joining_content(self) -> Tensor:
        """The columns of W_o for the heads with content."""
        return self.out.plain_weight[:, self.positional_heads * self.head_dim :]

    @property
    def _op_form(self) -> str:
        """Lifting is the summed form with one query pose, unless the encoding has made each pose a head."""
        return "regular" if self.form == "regular" or self.encoding.makes_poses_heads else "summed"

    @property
    def _attends_everywhere(self) -> bool:
        """Global attention that an ordinary fused kernel can compute."""
        return self.neighbourhood.size is None and self.form != "summed" and self.encoding.has_products

    def _prepared(self, features: Tensor) -> Tensor:
        """Features with a pose axis, and with position where the encoding adds it there."""
        self._check(features)
        self._refuse_wrapped()
        check_floating(features, "attention")
        if 0 in features.shape[-2:]:
            raise ValueError(f"attention needs maps of at least one pixel, but got the shape {list(features.shape)}")
        check_crop(features, self.crop)  # in pixels of the map itself, without zeros around
        features = self.encoding.embed(features)
        return features.unsqueeze(2) if self.form == "lifting" else features

    def _refuse_wrapped(self) -> None:
        """Maps that attention does not call, but multiplies with itself."""
        for name in ("query_key_value", *(("out", "positional_value") if self.positional_heads else ())):
            part = getattr(self, name)
            if not isinstance(part, PointwiseLinear | None):
                raise ValueError(
                    f"{name} must be a PointwiseLinear, whose weight attention takes, but got {type(part).__name__}: "
                    "change the weight itself, by torch.nn.utils.parametrize"
                )

    def _padded(self, features: Tensor) -> Tensor:
        """What lies around the features as well."""
        return F.pad(features, (self.padding,) * 4) if self.padding else features

    def _project(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of the heads with content: [B, heads, poses, H, W, d]."""
        assert self.query_key_value is not None
        parts = self.query_key_value.in_parts(features, self._parts)
        query, key, value = (rearrange(part, "b (e d) p y x -> b e p y x d", e=self.content_heads) for part in parts)
        return (query if self.query_scale == 1 else query * self.query_scale), key, value

    def _encode(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Encoded, Tensor]:
        """What the encoding gives `gsa.ops.attend`, and the window."""
        height, width = query.shape[-3:-1]
        window = self.neighbourhood.mask(height, width, query.device)
        encoded = self.encoding(query, key, value, self.neighbourhood)
        if self._op_form == "summed" and (poses := encoded.spatial.shape[0]) != self.group.order:
            raise ValueError(
                f"`spatial` of an encoding must be a table for each of the {self.group.order} poses, "
                f"[{self.group.order}, U, V, d], but {type(self.encoding).__name__} returns one for {poses}"
            )
        return encoded, window

    def _check_heads(self, starts: str) -> None:
        if (self.positional_heads or starts == "centre") and not self.encoding.places_heads:
            raise ValueError(
                "positional heads and head_starts='centre' need an encoding with a place for every head, such as "
                f"'quadratic', but got {self.encoding.name!r}"
            )
        if self.positional_heads and self.form == "summed":
            raise ValueError(
                "positional heads need form='regular': the summed form adds their scores up over all query poses, "
                "which leaves no preference among poses"
            )
        if self.content_heads and self.encoding.key_dim < 1:
            raise ValueError(
                f"a {self.encoding.name} encoding takes {self.encoding.position_dim} channels of every head for "
                f"position: heads with content need a head_dim of at least {self.encoding.position_dim + 1}, "
                f"but got {self.head_dim}"
            )

    def _check(self, features: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        place = self.neighbourhood
        where = "global" if place.size is None else f"{place.size}×{place.size} {place.window}"
        form = "" if self.form == "lifting" else f", {self.form}"
        heads = f"{self.num_heads} heads of {self.head_dim}"
        if self.positional_heads:
            heads += f" ({self.positional_heads} by position alone)"
        border = (f", crop={self.crop}" if self.crop else "") + (
            f", border={self.border}" if self.border != "hidden" else ""
        )
        return f"{self.group.name}, {self.in_channels} → {self.out_channels}, {heads}, {where}{form}{border}"
