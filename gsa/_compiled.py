"""Networks that torch.compile has made into others, which hooks do not see into."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

__all__ = ["as_written", "original"]


def as_written(network: nn.Module) -> AbstractContextManager:
    """While it is open, a compiled network runs as it was written, and comes by hooks that are new."""
    compiled = any(m._compiled_call_impl or "_orig_mod" in m._modules for m in network.modules())
    return torch.compiler.set_stance("force_eager") if compiled else nullcontext()


def original(module: nn.Module) -> nn.Module:
    """The network itself, of one that torch.compile has wrapped."""
    return getattr(module, "_orig_mod", module)
