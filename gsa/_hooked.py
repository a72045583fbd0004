"""Weights that are read without calling their module."""

from torch import nn

__all__ = ["refuse_made"]


def refuse_made(module: nn.Module, *names: str) -> None:
    """Refuse weights that a hook makes anew whenever their module is called, where it is not called.

    Raises:
        ValueError: naming what to do.
    """
    made = module._forward_pre_hooks and any(name in module.__dict__ for name in names)  # views of FSDP have no hooks
    if made and not getattr(module, "_is_replica", False):
        raise ValueError(
            f"weights and biases of attention must not be made by hooks, which are passed over here, but those of "
            f"{type(module).__name__} are (torch.nn.utils.prune, spectral_norm and weight_norm make such): use "
            "torch.nn.utils.parametrizations, or prune.remove"
        )
