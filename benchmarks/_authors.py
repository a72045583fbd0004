"""The network of the authors' public code, https://github.com/dwromero/g_selfatt, from a clone of it."""

import sys

import torch

import gsa

__all__ = ["authors_network"]


def authors_network(clone: str, group: str, window: int | None, device: str = "cpu") -> torch.nn.Module:
    """Theirs of this group of rotations, as their configuration for RotMNIST has it, with all that it keeps there."""
    if group not in ("Z2", "R4", "R8", "R12", "R16") or window is None:
        raise SystemExit("--authors: only Z2, R4, R8, R12 or R16 with a window are compared")
    sys.path.insert(0, clone)
    from g_selfatt import groups
    from models.group_transformer import GroupTransformer

    network = GroupTransformer(
        group=groups.SE2(num_elements=len(gsa.groups.group(group))),
        in_channels=1,
        num_channels=20,
        num_heads=9,
        block_sizes=[2, 3],
        expansion_per_block=1,
        crop_per_layer=[2, 0, 2, 1, 1],
        image_size=28,
        patch_size=window,
        normalize_between_layers=False,
        maxpool_after_last_block=False,
        activation_function="Swish",
        attention_dropout_rate=0.1,
        value_dropout_rate=0.1,
    )
    for module in network.to(device).modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor):  # which is neither parameter nor buffer
                setattr(module, name, value.to(device))
    return network
