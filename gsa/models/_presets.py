"""The networks of the paper's tables and the small ones for the embedded digits: one dict."""

__all__ = ["PRESETS"]

_ROTMNIST = {
    "in_channels": 1,
    "num_classes": 10,
    "channels": 20,
    "blocks": (2, 3),
    "crops": (2, 0, 2, 1, 1),
    "pools": (2, 0),
    "attention_dropout": 0.1,
    "value_dropout": 0.1,
}

_CIFAR10 = {
    "in_channels": 3,
    "num_classes": 10,
    "channels": 96,
    "blocks": (2, 2, 2),
    "expansion": (1, 2, 1),
    "pools": (2, 2, 0),
    "lifted_norm": True,
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
    "pixels": "mean",
}

PRESETS: dict[str, dict] = {
    f"{data}_{group.lower()}_sa": {"group": group, **network}
    for data, network, groups in (
        ("rotmnist", _ROTMNIST, ("Z2", "R4", "R8", "R12", "R16")),
        ("cifar10", _CIFAR10, ("Z2", "Z2M")),
        ("pcam", _PCAM, ("Z2", "R4", "R8", "R4M")),
        ("digits", _DIGITS, ("Z2", "R4", "R8")),
    )
    for group in groups
}
