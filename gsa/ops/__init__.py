"""The attention op and the choice of its backend."""

from gsa.ops._attend import attend, attention_weights
from gsa.ops._registry import backends, explain, use
from gsa.ops._validation import FORMS

__all__ = ["FORMS", "attend", "attention_weights", "backends", "explain", "use"]
