"""The attention op and the choice of its backend."""

from gsa.ops._attend import attend, attention_weights
from gsa.ops._by_position import attend_by_position
from gsa.ops._everywhere import attend_everywhere
from gsa.ops._flop import flop_formulas
from gsa.ops._plain import without_our_op
from gsa.ops._registry import backends, choose, explain, prefers_fused, use
from gsa.ops._validation import FORMS

__all__ = [
    "FORMS",
    "attend",
    "attend_by_position",
    "attend_everywhere",
    "attention_weights",
    "backends",
    "choose",
    "explain",
    "flop_formulas",
    "prefers_fused",
    "use",
    "without_our_op",
]
