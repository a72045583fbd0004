"""Which parameters of a network are matrices, and which are positions."""

from typing import Any

from torch import nn

__all__ = ["parameter_groups", "sort_parameters"]

_KINDS = ("matrices", "positions", "rest")


def sort_parameters(network: nn.Module) -> dict[str, list[nn.Parameter]]:
    """The parameters of a network by what they are, each once; frozen ones as well, which may be thawed later.

    Args:
        network: any module. A module in it that has a `parameter_kind`, as encodings do, says what all of its
            parameters are.

    Raises:
        ValueError: parameters in place of a network; a module of another `parameter_kind` than those below.

    Returns:
        "matrices": maps from several channels to several, of linear layers and filters, but for those of the head
        (its `.head`, `.heads`, `.fc` or `.classifier`, and the `.get_classifier()` of any module in it, as networks of
        ours and of timm have it);
        "positions": where heads look; "rest": all others.
    """
    if not isinstance(network, nn.Module):
        raise ValueError(
            f"expected a network, whose modules say what parameters are, but got {type(network).__name__}; a "
            "gsa.training.Classifier gives its network to optimizers whose first argument is called network"
        )
    told: dict[nn.Parameter, str] = {}
    heads: list[Any] = [getattr(network, name, None) for name in ("head", "heads", "fc", "classifier")]
    heads += [getattr(module, "get_classifier", lambda: None)() for module in network.modules()]
    for head in heads:
        if isinstance(head, nn.Module):
            told |= dict.fromkeys(head.parameters(), "rest")
    for module in network.modules():
        kind = "rest" if isinstance(module, nn.Embedding) else getattr(module, "parameter_kind", None)
        if kind not in (None, *_KINDS):
            raise ValueError(f"parameter_kind must be one of {_KINDS}, but {type(module).__name__} has {kind!r}")
        if kind is not None:
            told |= dict.fromkeys(module.parameters(), kind)
    kinds: dict[str, list[nn.Parameter]] = {kind: [] for kind in _KINDS}
    for parameter in network.parameters():
        is_matrix = parameter.ndim >= 2 and min(parameter.shape[:2]) > 1
        kinds[told.get(parameter, "matrices" if is_matrix else "rest")].append(parameter)
    return kinds


def parameter_groups(network: nn.Module) -> list[Any]:
    """What an optimizer is given: all parameters; where there are positions, those apart and without weight decay."""
    kinds = sort_parameters(network)
    if not kinds["positions"]:
        return list(network.parameters())
    positions = set(kinds["positions"])
    others = [parameter for parameter in network.parameters() if parameter not in positions]
    return [{"params": others}, {"params": kinds["positions"], "weight_decay": 0.0}]
