"""Networks, and the presets of the papers' tables."""

from gsa.models._all_convolutional import AllConvolutional
from gsa.models._dense_net import DenseNet
from gsa.models._group_cnn import GroupCNN
from gsa.models._gsanet import Dropouts, GSANet
from gsa.models._network import Network
from gsa.models._preset import Preset
from gsa.models._presets import PRESETS
from gsa.models._registry import create_model, list_models, preset
from gsa.models._stages import StagePlan
from gsa.models._vision_transformer import VisionTransformer

__all__ = [
    "PRESETS",
    "AllConvolutional",
    "DenseNet",
    "Dropouts",
    "GSANet",
    "GroupCNN",
    "Network",
    "Preset",
    "StagePlan",
    "VisionTransformer",
    "create_model",
    "list_models",
    "preset",
]
