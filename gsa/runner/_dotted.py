"""The plain values of a configuration, nested or under dotted keys such as trainer.max_epochs."""

from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

__all__ = ["every_key", "flat", "is_below", "values_of"]


def values_of(config: DictConfig, resolve: bool = True) -> dict[str, Any]:
    """A configuration, or a part of one, as dictionaries and lists."""
    values: Any = OmegaConf.to_container(config, resolve=resolve)
    return values


def flat(node: Any, prefix: str = "") -> dict[str, Any]:
    """Nested values under dotted keys."""
    if not isinstance(node, dict) or not node:
        return {prefix: node}
    parts = (flat(value, f"{prefix}.{key}" if prefix else str(key)) for key, value in node.items())
    return {name: value for part in parts for name, value in part.items()}


def every_key(node: dict[str, Any], prefix: str = "") -> list[str]:
    """Dotted keys of nested values, of groups and of what is in them."""
    keys = []
    for key, value in node.items():
        keys.append(prefix + key)
        if isinstance(value, dict):
            keys += every_key(value, f"{prefix}{key}.")
    return keys


def is_below(key: str, parts: Sequence[str]) -> bool:
    """Whether a dotted key is one of these, or stands below one."""
    return any(key == part or key.startswith(f"{part}.") for part in parts)
