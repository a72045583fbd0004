"""Group-equivariant self-attention for vision: exact, fast, and easy to import.

import gsa

group = gsa.group("R4")
lifting = gsa.nn.LiftingSelfAttention(group, in_channels=3, out_channels=16)
layer = gsa.nn.GroupSelfAttention(group, in_channels=16, out_channels=16)
features = layer(lifting(images))                      # [B, 16, 4, H, W]
print(gsa.symmetry.assert_equivariant(lifting, images, group))
"""

from gsa import encodings, groups, models, nn, ops, symmetry
from gsa.groups import Group, group
from gsa.models import create_model, list_models
from gsa.saved import load

__version__ = "0.4.0"
__all__ = [
    "Group",
    "create_model",
    "encodings",
    "group",
    "groups",
    "list_models",
    "load",
    "models",
    "nn",
    "ops",
    "symmetry",
]
