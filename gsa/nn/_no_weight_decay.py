"""Which parameters an optimizer should not pull to zero."""

from torch import nn

__all__ = ["no_weight_decay"]


def no_weight_decay(network: nn.Module) -> set[str]:
    """Names of the parameters that say where heads look: weight decay would pull the heads to the centre.

    Our own networks have it as a method, which timm's optimizers call; for layers in a network of your own:

        still = gsa.nn.no_weight_decay(network)
        groups = [{"params": [p for name, p in network.named_parameters() if name not in still]},
                  {"params": [network.get_parameter(name) for name in still], "weight_decay": 0.0}]

    Args:
        network: any module; the parameters of its submodules with `parameter_kind = "positions"`, such as
            encodings, are meant.
    """
    return {
        f"{place}.{name}".lstrip(".")
        for place, module in network.named_modules()
        if getattr(module, "parameter_kind", None) == "positions"
        for name, _ in module.named_parameters()
    }
