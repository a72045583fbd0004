"""The attention maps of a network while it runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from gsa._compiled import as_written
from gsa.nn._attention import SelfAttention

__all__ = ["record_attention"]


@contextmanager
def record_attention(network: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the attention maps of every layer while the network runs, in this thread.

        with record_attention(network) as maps:
            network(images)

    Yields:
        A dictionary, filled by each forward pass: layer name → [B, heads, |H|, H, W, U, V] (detached); "name (2)" for
        a layer that the pass calls again. The maps are written out in full; meant for a few pictures.

    Raises:
        ValueError: a network without such layers.
    """
    maps: dict[str, Tensor] = {}
    calls: dict[str, int] = {}
    recording = threading.get_ident()

    def begin(*_: object) -> None:
        if threading.get_ident() == recording:
            calls.clear()

    def record(
        name: str, layer: SelfAttention, inputs: tuple[Tensor, ...], named: dict[str, Tensor] | None = None
    ) -> None:
        if threading.get_ident() != recording or named is None:  # torch leaves `named` out once the hook is removed
            return  # of somebody else's pictures
        calls[name] = calls.get(name, 0) + 1
        with torch.no_grad():
            maps[name if calls[name] == 1 else f"{name} ({calls[name]})"] = layer.attention(*inputs, **named)

    layers = [(name, m) for name, m in network.named_modules() if isinstance(m, SelfAttention)]
    if not layers:
        raise ValueError(
            f"attention is recorded of layers of the class SelfAttention, but {type(network).__name__} has none; where "
            "heads of PosedAttention look, which is the same in all pictures, gsa.viz.draw_heads shows"
        )
    handles = [network.register_forward_pre_hook(begin)]
    handles += [layer.register_forward_pre_hook(partial(record, name), with_kwargs=True) for name, layer in layers]
    try:
        with as_written(network):
            yield maps
    finally:
        for handle in handles:
            handle.remove()
