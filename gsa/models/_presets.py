"""The networks of the papers' tables, their rivals, and the small ones for the embedded digits: one dict."""

from typing import Any

from gsa.models._all_convolutional import AllConvolutional
from gsa.models._dense_net import DenseNet
from gsa.models._group_cnn import GroupCNN
from gsa.models._gsanet import GSANet
from gsa.models._network import Network
from gsa.models._orbit_cnn import OrbitCNN
from gsa.models._preset import Preset
from gsa.models._torchvision import TorchvisionNet
from gsa.models._vision_transformer import VisionTransformer

__all__ = ["PRESETS"]

_ROTMNIST = {
    "channels": 20,
    "blocks": (2, 3),
    "crops": (2, 0, 2, 1, 1),
    "pools": (2, 0),
    "lifted_norm": True,
    "attention_dropout": 0.1,
    "dropout": 0.1,
}

_CIFAR10 = {
    "channels": 96,
    "blocks": (2, 2, 2),
    "expansion": (1, 2, 1),
    "pools": (2, 2, 0),
    "lifted_norm": True,
    "block_norm": True,
    "attention_dropout": 0.1,
    "input_dropout": 0.2,
    "pool_dropout": 0.3,
}

# Public code ends with a 2×2 pool of a 7×7 map, which drops a row and a column on one end and with them exactness.
# A 3×3 window at the same stride gives the same 3×3 map and keeps it: the one change.
_PCAM = {
    "channels": 12,
    "blocks": (0, 1, 2, 1),
    "expansion": (1, 2, 2, 2),
    "crops": (0, 2, 1, 1),
    "pools": (2, 2, 2, 3),
    "lifted_norm": True,
    "block_norm": True,
    "attention_dropout": 0.1,
}

_DIGITS = {
    "channels": 32,
    "blocks": (0, 1, 1),
    "pools": (2, 2, 0),
    "num_heads": 4,
    "head_dim": 8,
    "norm": "batch",
    "lifted_norm": True,
}

# Ours: heads that start at offsets and poses, in the plan of a convolutional network; content at the coarse maps.
_GSA = {
    "positional_heads": 18,
    "num_heads": 18,
    "head_dim": 8,
    "neighbourhood": 3,
    "encoding": "quadratic",
    "stem_heads": 18,
    "stem_head_dim": 1,
    "stem_neighbourhood": 5,
    "stem_crop": 2,
    "stem_positional": True,
    "block": "plain",
    "norm": "batch",
    "lifted_norm": True,
}

_ROTMNIST_GSA = {
    "group": "R8",
    "positional_heads": 27,
    "num_heads": 27,
    "channels": 16,
    "stem_pool": 2,
    "blocks": (4, 1),
    "crops": (1, 1, 1, 1, 1),
    "neighbourhoods": (3, 3, 5, 5, 5),
    "pools": (0, 0),
    "content_heads": (0, 4),
    "border": "zeros",
    "dropout": 0.1,
}

_DIGITS_GSA = {
    "group": "R4",
    "channels": 20,
    "blocks": (2, 1),
    "crops": (1, 1, 1),
    "pools": (2, 0),
    "content_heads": (0, 4),
    "dropout": 0.1,
    "stem_heads": 9,
    "stem_neighbourhood": 3,
    "stem_crop": 1,
}

_CIFAR10_GSA = {
    "group": "Z2M",
    "channels": 48,
    "blocks": (1, 2, 2),
    "expansion": (1, 2, 2),
    "neighbourhoods": (3, 3, 3, 5, 5),
    "pools": (2, 2, 0),
    "content_heads": (0, 0, 4),
    "border": "zeros",
    "head_dim": 32,
    "stem_heads": 9,
    "stem_head_dim": 3,
    "stem_neighbourhood": 3,
    "stem_crop": 0,
}

_PCAM_GSA = {
    "group": "R4M",
    "channels": 12,
    "blocks": (0, 1, 1, 2),
    "expansion": (1, 1, 1, 2),
    "crops": (1, 1, 1, 1),
    "pools": (2, 2, 2, 0),
    "content_heads": (0, 0, 0, 4),
    "stem_head_dim": 3,
}

# Sides that are multiples of 16: (16 k − 4) / 4 = 4 k − 1, which 3×3 pools halve to 2 k − 1 and k − 1.
_IMAGEFOLDER_GSA = {
    "group": "R4M",
    "channels": 8,
    "blocks": (1, 1, 1),
    "expansion": (2, 2, 1),
    "crops": (0, 0, 0),
    "pools": (3, 3, 0),
    "content_heads": (0, 0, 4),
    "stem_head_dim": 3,
    "stem_pool": 4,
}

_PICTURES = {  # side, channels, classes
    "imagefolder": (64, 3, 2),
    "rotmnist": (28, 1, 10),
    "cifar10": (32, 3, 10),
    "pcam": (96, 3, 2),
    "digits": (12, 1, 10),
}


def _preset(network: type[Network], data: str, recipe: str, **options: Any) -> Preset:
    side, in_channels, num_classes = _PICTURES[data]
    return Preset(network, data, recipe, {"in_channels": in_channels, "num_classes": num_classes} | options, side)


PRESETS: dict[str, Preset] = {
    f"{data}_{group.lower()}_sa": _preset(GSANet, data, recipe, group=group, **network)
    for data, recipe, network, groups in (
        ("rotmnist", "rotmnist_sa", _ROTMNIST, ("Z2", "R4", "R8", "R12", "R16")),
        ("cifar10", "cifar10_sa", _CIFAR10, ("Z2", "Z2M")),
        ("pcam", "pcam_sa", _PCAM, ("Z2", "R4", "R8", "R4M")),
        ("digits", "digits", _DIGITS, ("Z2", "R4", "R8")),
    )
    for group in groups
} | {
    "rotmnist_gsa": _preset(GSANet, "rotmnist", "rotmnist_gsa", **_GSA | _ROTMNIST_GSA),
    "rotmnist_positional": _preset(
        GSANet, "rotmnist", "rotmnist_gsa", **_GSA | _ROTMNIST_GSA | {"content_heads": None}
    ),
    "digits_gsa": _preset(GSANet, "digits", "digits_gsa", **_GSA | _DIGITS_GSA),
    "digits_gsa_z2": _preset(GSANet, "digits", "digits_gsa", **_GSA | _DIGITS_GSA | {"group": "Z2"}),
    "cifar10_gsa": _preset(GSANet, "cifar10", "cifar10_gsa", **_GSA | _CIFAR10_GSA),
    "pcam_gsa": _preset(GSANet, "pcam", "pcam_gsa", **_GSA | _PCAM_GSA),
    "imagefolder_gsa": _preset(GSANet, "imagefolder", "imagefolder", **_GSA | _IMAGEFOLDER_GSA),
    "rotmnist_z2_cnn": _preset(GroupCNN, "rotmnist", "rotmnist_z2_cnn", group="Z2", channels=20, bias=True),
    "rotmnist_r4_cnn": _preset(GroupCNN, "rotmnist", "rotmnist_cnn", group="R4", channels=19),
    "rotmnist_alpha_r4_cnn": _preset(GroupCNN, "rotmnist", "rotmnist_cnn", group="R4", channels=10, attention="full"),
    "rotmnist_orbit_cnn": _preset(OrbitCNN, "rotmnist", "rotmnist_gsa", group="R8", bias=True),
    "imagefolder_torchvision": _preset(TorchvisionNet, "imagefolder", "imagefolder", group="Z2"),
    "cifar10_z2_cnn": _preset(AllConvolutional, "cifar10", "cifar10_cnn", group="Z2"),
    "pcam_z2_cnn": _preset(DenseNet, "pcam", "pcam_cnn", group="Z2", growth=26),
    "pcam_r4_cnn": _preset(DenseNet, "pcam", "pcam_cnn", group="R4", growth=13),
    "pcam_r4m_cnn": _preset(DenseNet, "pcam", "pcam_cnn", group="R4M", growth=9),
    "pcam_alpha_f_r4_cnn": _preset(DenseNet, "pcam", "pcam_cnn", group="R4", growth=13, attention="feature"),
    "pcam_alpha_f_r4m_cnn": _preset(DenseNet, "pcam", "pcam_cnn", group="R4M", growth=9, attention="feature"),
    "rotmnist_vit": _preset(VisionTransformer, "rotmnist", "vit", image_size=28),
    "cifar10_vit": _preset(
        VisionTransformer, "cifar10", "vit", image_size=32, layers=10, num_heads=6, channels=192, mlp_channels=384
    ),
    "pcam_vit": _preset(
        VisionTransformer,
        "pcam",
        "vit",
        image_size=96,
        patch_size=8,
        layers=5,
        num_heads=4,
        channels=64,
        mlp_channels=160,
    ),
}
