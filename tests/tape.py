"""What a CUDA graph does, on the CPU: operations are noted in the recording, and done again in every replay."""

from contextlib import contextmanager, nullcontext

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

__all__ = ["Tape", "same"]


def _storage(x):
    return x.untyped_storage().data_ptr()


class Tape(TorchDispatchMode):
    """In the place of `gsa.training.CudaGraph`.

    As on a GPU, nothing has been computed after a recording: what it has written is put back. Results of a replay lie
    where those of the recording lay, and a number that the host would wait for is an error.
    """

    def __init__(self):
        super().__init__()
        self.calls = []
        self.replays = 0

    def aside(self):
        return nullcontext()

    @contextmanager
    def recording(self):
        self.calls, self._own, self._before = [], set(), {}
        random = torch.get_rng_state()
        with self:
            yield
        torch.set_rng_state(random)
        with torch.no_grad():
            for x, before in self._before.values():
                x.copy_(before)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function._schema.name in ("aten::_local_scalar_dense", "aten::nonzero", "aten::equal", "aten::lift_fresh"):
            raise RuntimeError("operation not permitted when stream is capturing")
        given = dict(zip((argument.name for argument in function._schema.arguments), args, strict=False)) | kwargs
        for argument in function._schema.arguments:
            written = argument.alias_info is not None and argument.alias_info.is_write
            if written or argument.name in ("running_mean", "running_var"):  # which batch norm writes without saying so
                self._keep(given.get(argument.name))
        result = function(*args, **kwargs)
        known = {_storage(x) for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)}
        made = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor) and _storage(x) not in known]
        self._own |= {_storage(x) for x in made}
        self.calls.append((function, args, kwargs, made, known))
        return result

    def _keep(self, value):
        """Numbers that were there before the recording, as they were."""
        for x in tree_leaves(value):
            if isinstance(x, torch.Tensor) and _storage(x) not in self._own:
                self._before.setdefault((_storage(x), x.storage_offset(), x.shape), (x, x.clone()))

    def replay(self):
        self.replays += 1
        with torch.no_grad():
            for function, args, kwargs, made, known in self.calls:
                result = function(*args, **kwargs)
                again = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor) and _storage(x) not in known]
                for place, x in zip(made, again, strict=True):
                    place.copy_(x)


def same(one, other, tolerance=1e-7):
    """Weights by name."""
    for name, weight in one.items():
        torch.testing.assert_close(weight, other[name], rtol=0, atol=tolerance)
