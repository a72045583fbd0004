"""Networks, and the presets of the paper's tables."""

from gsa.models._gsanet import GSANet
from gsa.models._registry import create_model, list_models, preset

__all__ = ["GSANet", "create_model", "list_models", "preset"]
