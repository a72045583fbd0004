"""Which backends exist, which can serve a call, and which one is chosen."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gsa.ops._call import Call, Gradients, Needed
from gsa.ops.impl import native, reference, tiled, triton
from gsa.ops.impl._layout import with_border, without_border

__all__ = ["advise", "announce", "backends", "choose", "explain", "get", "prefers_fused", "use"]

_log = logging.getLogger("gsa.ops")


@dataclass(frozen=True)
class Backend:
    """One way to compute the op.

    Attributes:
        forward: a call to its output.
        backward: the output's gradient and the call to the gradients of its five tensors, as far as they are needed.
        refusal: why it cannot serve a device and dtype; None where it can.
        summary: one line for `explain`.
        installed: whether this installation has it at all.
        stores_scores: whether its memory grows with all score maps.
        crops: whether it knows the `crop` of a call; from what others return the border is cut off.
    """

    forward: Callable[[Call], Tensor]
    backward: Callable[[Tensor, Call, Needed], Gradients]
    refusal: Callable[[torch.device, torch.dtype], str | None]
    summary: str
    installed: Callable[[], bool] = lambda: True
    stores_scores: bool = False
    crops: bool = False

    def run(self, call: Call) -> Tensor:
        """The output of a call, cropped."""
        if self.crops or not call.crop:
            return self.forward(call)
        return without_border(self.forward(call._replace(crop=0)), call.crop)

    def differentiate(self, grad: Tensor, call: Call, needed: Needed) -> Gradients:
        """The gradients of its tensors, from that of the cropped output."""
        if self.crops or not call.crop:
            return self.backward(grad, call, needed)
        return self.backward(with_border(grad, call.crop), call._replace(crop=0), needed)


class Choice(NamedTuple):
    """The backend that serves a call.

    Attributes:
        name: of the backend.
        reason: why it was chosen.
        misses: whether a faster one cannot serve, which the reason says.
    """

    name: str
    reason: str
    misses: bool = False


def _serves_everything(device: torch.device, dtype: torch.dtype) -> None:
    return None


# In order of preference: the automatic choice is the first that can serve.
_BACKENDS = {
    "native": Backend(
        native.forward,
        native.backward,
        native.refusal,
        "C++ kernels on blocks of pixels, recomputed in backward; CPU",
        native.is_built,
        crops=True,
    ),
    "triton": Backend(
        triton.forward,
        triton.backward,
        triton.refusal,
        "Triton kernels on blocks of pixels, recomputed in backward; CUDA",
        triton.is_installed,
    ),
    "tiled": Backend(
        tiled.forward, tiled.backward, _serves_everything, "tiles of pixels, recomputed in backward; any device"
    ),
    "reference": Backend(
        reference.forward,
        reference.backward,
        _serves_everything,
        "the sums written out: slow, large, obvious",
        stores_scores=True,
        crops=True,
    ),
}

_forced: list[list[str]] = []  # names in force, the last of which holds; several threads may have their own
_announced: set[str] = set()


def backends(device: torch.device | str | None = None, dtype: torch.dtype = torch.float32) -> tuple[str, ...]:
    """Names of the backends this installation has, the preferred first; with a device, of those that can serve it."""
    names = tuple(name for name in _BACKENDS if _BACKENDS[name].installed())
    if device is None:
        return names
    return tuple(name for name in names if not _BACKENDS[name].refusal(torch.device(device), dtype))


def get(name: str) -> Backend:
    """The backend of this name; ValueError naming those that exist."""
    if name not in _BACKENDS:
        raise ValueError(f"the attention backend must be one of {backends()} or 'auto', but got {name!r}")
    return _BACKENDS[name]


def choose(device: torch.device, dtype: torch.dtype, backend: str | None = None) -> Choice:
    """The backend for a call.

    An explicit argument comes before `use`, `use` before the variable GSA_BACKEND, and that before the automatic
    choice. Only the automatic choice looks further when a backend cannot serve.

    Raises:
        ValueError: unknown name, or a named backend that cannot serve this device and dtype.
    """
    asked = _asked(backend)
    if asked is None:
        return _automatic(device, dtype)
    if refusal := get(asked.name).refusal(device, dtype):
        raise ValueError(f"the attention backend {asked.name!r} cannot serve {device}, {dtype}: {refusal}")
    return asked


def _asked(backend: str | None) -> Choice | None:
    """The backend that has been named, and where; None where the choice is free."""
    if backend and backend != "auto":
        return Choice(backend, "it was named in the call")
    if _forced:
        (last,) = _forced[-1]
        return None if last == "auto" else Choice(last, "gsa.ops.use(...) is in force")
    named = os.environ.get("GSA_BACKEND")
    if named and named != "auto":
        return Choice(named, "the environment variable GSA_BACKEND names it")
    return None


def _automatic(device: torch.device, dtype: torch.dtype) -> Choice:
    refusals = {name: candidate.refusal(device, dtype) for name, candidate in _BACKENDS.items()}
    name = next(name for name, refusal in refusals.items() if not refusal)
    reason = f"it is the fastest backend for {device}, {dtype}"
    fastest = {"cpu": "native", "cuda": "triton"}.get(device.type, name)
    refusal = refusals.get(fastest)
    if refusal:
        reason += f"; {fastest} would be faster, but {refusal}"
    return Choice(name, reason, misses=bool(refusal))


def prefers_fused(device: torch.device) -> bool:
    """Whether global attention with plain products is PyTorch's own affair here: see `attend_everywhere`.

    Not where a backend has been named, and not on a CPU with our kernels, which are as fast or faster.
    """
    return _against_fused(device, None) is None


def _against_fused(device: torch.device, backend: str | None) -> str | None:
    if _asked(backend):
        return "a backend has been named"
    if device.type == "cpu" and native.is_built():
        return "the native kernels are as fast or faster"
    return None


def advise(name: str, device: torch.device, dtype: torch.dtype) -> str:
    """What to do when a backend has run out of memory."""
    if not get(name).stores_scores:
        return "it never stores them all, and no backend needs much less: a smaller batch does"
    others = [other for other in backends(device, dtype) if not _BACKENDS[other].stores_scores]
    return "it stores them all" + (f"; {others[0]!r} does not, and needs less" if others else "")


def announce(choice: Choice) -> None:
    """Log a choice the first time it is made; a warning where a faster backend is missing."""
    if choice.name not in _announced:
        _announced.add(choice.name)
        level = logging.WARNING if choice.misses else logging.INFO
        _log.log(level, "attention runs on the %r backend: %s", choice.name, choice.reason)


@contextmanager
def use(backend: str) -> Iterator[None]:
    """Force one backend for all attention called inside; "auto" lifts a choice made outside or by GSA_BACKEND.

    Raises:
        ValueError: unknown name; a call that the backend cannot serve raises when it is made.
    """
    if backend != "auto":
        get(backend)
    mine = [backend]
    _forced.append(mine)
    try:
        yield
    finally:
        _forced[:] = [other for other in _forced if other is not mine]


def explain(
    tensor: torch.Tensor | None = None,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    backend: str | None = None,
) -> str:
    """Which backend would be chosen, and why, what each of the others says, and who serves global attention.

    Args:
        tensor: a query or feature whose device and dtype are meant; or give them by name (CPU, default dtype).
        backend: as it would be named in the call.

    Returns:
        A few lines of text, the choice first; where a call would raise, why, and what would be chosen automatically.

    Raises:
        ValueError: unknown name.
    """
    device = torch.device(device or (tensor.device if tensor is not None else "cpu"))
    dtype = dtype or (tensor.dtype if tensor is not None else torch.get_default_dtype())
    lines, asked, automatic = [], _asked(backend), _automatic(device, dtype)
    if asked and (refusal := get(asked.name).refusal(device, dtype)):
        lines.append(f"{asked.name}: refused; {asked.reason}, but it cannot serve {device}, {dtype}: {refusal}")
        lines.append(f"{automatic.name}: would be chosen automatically because {automatic.reason}")
    else:
        chosen = asked or automatic
        lines.append(f"{chosen.name}: chosen because {chosen.reason}")
    for other, candidate in _BACKENDS.items():
        refusal = candidate.refusal(device, dtype)
        lines.append(f"  {other}: {candidate.summary}" + (f" (cannot serve: {refusal})" if refusal else ""))
    against = _against_fused(device, backend)
    served = "by PyTorch's fused kernels" if against is None else f"as above, not by PyTorch's fused kernels: {against}"
    lines.append(
        "  global attention with plain products (encodings rotary and fourier, lifting or form='regular', no attention "
        f"dropout): {served}"
    )
    lines.append(
        "  heads that attend by position alone: a convolution, or matrices where these are fewer products, on every "
        "device (gsa.ops.attend_by_position); "
        "with windows more than 7 pixels wider than what is cropped, and hidden borders: as above"
    )
    return "\n".join(lines)
