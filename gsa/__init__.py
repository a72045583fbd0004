"""Group-equivariant self-attention for vision: exact, fast, and easy to import.

import gsa

group = gsa.group("R4")
lifting = gsa.nn.LiftingSelfAttention(group, in_channels=3, out_channels=16)
layer = gsa.nn.GroupSelfAttention(group, in_channels=16, out_channels=16)
features = layer(lifting(images))                      # [B, 16, 4, H, W]
print(gsa.symmetry.assert_equivariant(lifting, images, group))

The names in `__all__` are imported when first used, so that commands answer without PyTorch; and so are data,
runner, saved, training and viz, some of which need Lightning or Matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gsa._version import VERSION
from gsa._with_torch import register_op_with_torch

if TYPE_CHECKING:
    from gsa import data as data
    from gsa import encodings, groups, models, nn, ops, published, symmetry
    from gsa import runner as runner
    from gsa import saved as saved
    from gsa import training as training
    from gsa import viz as viz
    from gsa.groups import Group, group
    from gsa.models import create_model, list_models
    from gsa.saved import load

__version__ = VERSION
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
    "published",
    "symmetry",
]

_ROOMS = ("data", "runner", "saved", "training", "viz")
_HOMES = {"Group": "groups", "create_model": "models", "group": "groups", "list_models": "models", "load": "saved"}


def __getattr__(name: str) -> Any:
    if name == "hub":
        raise AttributeError('gsa.hub is there after `import gsa.hub`, which needs pip install "gsa-nets[hub]"')
    if name not in (*__all__, *_ROOMS):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = import_module(f"gsa.{_HOMES.get(name, name)}")
    if name in _HOMES:
        found = getattr(found, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})


register_op_with_torch()
