"""The plain values of a configuration, nested or under dotted keys such as trainer.max_epochs."""

from collections.abc import Iterator, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

__all__ = ["flat", "is_below", "nested", "values_of"]


def values_of(config: DictConfig, resolve: bool = True) -> dict[str, Any]:
    """A configuration, or a part of one, as dictionaries and lists."""
    values: Any = OmegaConf.to_container(config, resolve=resolve)
    return values


def nested(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every dotted key, and what stands there; a group comes before what is in it."""
    for key, value in node.items():
        yield f"{prefix}{key}", value
        if isinstance(value, dict):
            yield from nested(value, f"{prefix}{key}.")


def flat(node: dict[str, Any]) -> dict[str, Any]:
    """Values under dotted keys, without the groups that hold some."""
    return {key: value for key, value in nested(node) if not (isinstance(value, dict) and value)}


def is_below(key: str, parts: Sequence[str]) -> bool:
    """Whether a dotted key is one of these, or stands below one."""
    return any(key == part or key.startswith(f"{part}.") for part in parts)
