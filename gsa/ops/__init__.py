"""The attention op and the choice of its backend."""

from gsa.ops._attend import attend, attention_weights
from gsa.ops._registry import backends, explain, use

__all__ = ["attend", "attention_weights", "backends", "explain", "use"]
