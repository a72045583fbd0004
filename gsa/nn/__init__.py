"""Equivariant layers, one a file."""

from gsa.nn._attention import SelfAttention
from gsa.nn._attentive_convolution import AttentiveConvolution
from gsa.nn._block import AttentionBlock
from gsa.nn._border import crop_border
from gsa.nn._feature_attention import FeatureAttention
from gsa.nn._fields import FieldsToPoses, PosesToFields
from gsa.nn._group_attention import GroupSelfAttention
from gsa.nn._group_convolution import GroupConvolution, LiftingConvolution
from gsa.nn._lifting import LiftingSelfAttention
from gsa.nn._no_weight_decay import no_weight_decay
from gsa.nn._norm import ChannelNorm, norm
from gsa.nn._options import AttentionOptions
from gsa.nn._orbit_pooling import OrbitPooling
from gsa.nn._plain_block import PlainBlock
from gsa.nn._pointwise import PointwiseLinear
from gsa.nn._pool import SpatialPool, nearest_sizes
from gsa.nn._posed_attention import PosedAttention
from gsa.nn._posed_pool import PosedPool
from gsa.nn._recording import record_attention
from gsa.nn._replace_convolutions import replace_convolutions

__all__ = [
    "AttentionBlock",
    "AttentionOptions",
    "AttentiveConvolution",
    "ChannelNorm",
    "FeatureAttention",
    "FieldsToPoses",
    "GroupConvolution",
    "GroupSelfAttention",
    "LiftingConvolution",
    "LiftingSelfAttention",
    "OrbitPooling",
    "PlainBlock",
    "PointwiseLinear",
    "PosedAttention",
    "PosedPool",
    "PosesToFields",
    "SelfAttention",
    "SpatialPool",
    "crop_border",
    "nearest_sizes",
    "no_weight_decay",
    "norm",
    "record_attention",
    "replace_convolutions",
]
