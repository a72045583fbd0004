"""The object that a node of the configuration describes."""

from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from gsa.runner._dotted import values_of
from gsa.runner._schema import ConfigError

__all__ = ["make", "refuse_bad_network"]


def make(node: DictConfig | dict[str, Any], **more: Any) -> Any:
    """`hydra.utils.instantiate`, with the error of the target itself.

    What is given as well is handed over as it is: Hydra makes dictionaries of objects whose class is a dataclass.
    """
    try:
        if not more:
            return instantiate(node, _convert_="all")
        return instantiate(node, _convert_="all", _partial_=True)(**more)
    except ModuleNotFoundError as error:  # of what is called with more
        raise ConfigError(str(error)) from error
    except InstantiationException as error:
        if error.__cause__ is None or isinstance(error.__cause__, InstantiationException):
            raise ConfigError(str(error).splitlines()[0]) from error
        if isinstance(error.__cause__, ModuleNotFoundError):  # a logger's package, an extra
            raise ConfigError(str(error.__cause__)) from error
        raise error.__cause__ from None


def refuse_bad_network(config: DictConfig) -> None:
    """Plan a network of ours and allocate nothing: what it refuses is said before the seconds of importing Lightning.

    Raises:
        ConfigError: a keyword or value that the network does not take.
    """
    if OmegaConf.select(config, "model._target_") != "gsa.create_model":
        return
    import torch

    from gsa.runner._older import network_as_meant

    try:
        with torch.device("meta"):
            make(network_as_meant(values_of(config.model)))
    except (ValueError, TypeError) as error:
        raise ConfigError(str(error)) from error
