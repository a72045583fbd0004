"""Networks, and the presets of the papers' tables."""

from gsa.models._all_convolutional import AllConvolutional
from gsa.models._dense_net import DenseNet
from gsa.models._group_cnn import GroupCNN
from gsa.models._gsanet import GSANet
from gsa.models._registry import create_model, list_models, preset
from gsa.models._vision_transformer import VisionTransformer

__all__ = [
    "AllConvolutional",
    "DenseNet",
    "GSANet",
    "GroupCNN",
    "VisionTransformer",
    "create_model",
    "list_models",
    "preset",
]
