"""The networks of the papers' tables, their rivals, and the small ones for the embedded digits: one dict."""

from gsa.models._all_convolutional import AllConvolutional
from gsa.models._dense_net import DenseNet
from gsa.models._group_cnn import GroupCNN
from gsa.models._gsanet import GSANet
from gsa.models._vision_transformer import VisionTransformer

__all__ = ["PRESETS"]

_ROTMNIST = {
    "in_channels": 1,
    "num_classes": 10,
    "channels": 20,
    "blocks": (2, 3),
    "crops": (2, 0, 2, 1, 1),
    "pools": (2, 0),
    "lifted_norm": True,
    "attention_dropout": 0.1,
    "dropout": 0.1,
}

_CIFAR10 = {
    "in_channels": 3,
    "num_classes": 10,
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
    "in_channels": 3,
    "num_classes": 2,
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
    "in_channels": 1,
    "num_classes": 10,
    "channels": 32,
    "blocks": (0, 1, 1),
    "pools": (2, 2, 0),
    "num_heads": 4,
    "head_dim": 8,
    "form": "regular",
    "norm": "batch",
    "lifted_norm": True,
}

_ROTMNIST_CNN = {"in_channels": 1, "num_classes": 10}
_PCAM_CNN = {"in_channels": 3, "num_classes": 2}

PRESETS: dict[str, tuple[type, dict]] = {
    f"{data}_{group.lower()}_sa": (GSANet, {"group": group, **network})
    for data, network, groups in (
        ("rotmnist", _ROTMNIST, ("Z2", "R4", "R8", "R12", "R16")),
        ("cifar10", _CIFAR10, ("Z2", "Z2M")),
        ("pcam", _PCAM, ("Z2", "R4", "R8", "R4M")),
        ("digits", _DIGITS, ("Z2", "R4", "R8")),
    )
    for group in groups
} | {
    "rotmnist_z2_cnn": (GroupCNN, {"group": "Z2", **_ROTMNIST_CNN, "channels": 20, "bias": True}),
    "rotmnist_r4_cnn": (GroupCNN, {"group": "R4", **_ROTMNIST_CNN, "channels": 19}),
    "rotmnist_alpha_r4_cnn": (GroupCNN, {"group": "R4", **_ROTMNIST_CNN, "channels": 10, "attention": "full"}),
    "cifar10_z2_cnn": (AllConvolutional, {"group": "Z2", "in_channels": 3, "num_classes": 10}),
    "pcam_z2_cnn": (DenseNet, {"group": "Z2", **_PCAM_CNN, "growth": 26}),
    "pcam_r4_cnn": (DenseNet, {"group": "R4", **_PCAM_CNN, "growth": 13}),
    "pcam_r4m_cnn": (DenseNet, {"group": "R4M", **_PCAM_CNN, "growth": 9}),
    "pcam_alpha_f_r4_cnn": (DenseNet, {"group": "R4", **_PCAM_CNN, "growth": 13, "attention": "feature"}),
    "pcam_alpha_f_r4m_cnn": (DenseNet, {"group": "R4M", **_PCAM_CNN, "growth": 9, "attention": "feature"}),
    "rotmnist_vit": (VisionTransformer, {"in_channels": 1, "num_classes": 10, "image_size": 28}),
    "cifar10_vit": (
        VisionTransformer,
        {"in_channels": 3, "num_classes": 10, "image_size": 32}
        | {"layers": 10, "num_heads": 6, "channels": 192, "mlp_channels": 384},
    ),
    "pcam_vit": (
        VisionTransformer,
        {"in_channels": 3, "num_classes": 2, "image_size": 96, "patch_size": 8}
        | {"layers": 5, "num_heads": 4, "channels": 64, "mlp_channels": 160},
    ),
}
