"""Networks, and the presets of the papers' tables."""

from gsa.models._all_convolutional import AllConvolutional
from gsa.models._dense_net import DenseNet
from gsa.models._features import Features
from gsa.models._group_cnn import GroupCNN
from gsa.models._gsanet import Dropouts, GSANet
from gsa.models._network import Network
from gsa.models._orbit_cnn import OrbitCNN
from gsa.models._orbit_network import OrbitNetwork
from gsa.models._picture_format import PictureFormat
from gsa.models._preset import Preset
from gsa.models._presets import PRESETS
from gsa.models._pretrained import list_pretrained, pretrained_folder
from gsa.models._registry import create_model, list_models, preset
from gsa.models._stages import StagePlan
from gsa.models._stem import StemOptions
from gsa.models._torchvision import TorchvisionNet
from gsa.models._vision_transformer import VisionTransformer
from gsa.models._weight_files import is_export, read_export, read_weights, write_export

__all__ = [
    "PRESETS",
    "AllConvolutional",
    "DenseNet",
    "Dropouts",
    "Features",
    "GSANet",
    "GroupCNN",
    "Network",
    "OrbitCNN",
    "OrbitNetwork",
    "PictureFormat",
    "Preset",
    "StagePlan",
    "StemOptions",
    "TorchvisionNet",
    "VisionTransformer",
    "create_model",
    "is_export",
    "list_models",
    "list_pretrained",
    "preset",
    "pretrained_folder",
    "read_export",
    "read_weights",
    "write_export",
]
