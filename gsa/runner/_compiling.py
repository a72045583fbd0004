"""Networks that are compiled, while they are trained and tested."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gsa.runner._build import Run
from gsa.runner._keys import GRAPH
from gsa.training.adapter import is_alone

__all__ = ["compiled"]


@contextmanager
def compiled(run: Run) -> Iterator[None]:
    """The network compiled in place, where that is wished, while the trainer has it on its device.

    What is measured before and after is not: the network is on the CPU then, and would be compiled for that.
    """
    mode = run.config.compile if run.config.compile != GRAPH else False
    if mode:
        # Norms that processes share break the graph, and inductor fails at parts of it whose sizes are symbols.
        sizes = None if is_alone(run.trainer) else False
        run.network.compile(mode=None if mode is True else mode, dynamic=sizes)
    try:
        yield
    finally:
        run.network._compiled_call_impl = None  # what `compile` has set
        if mode:  # Dynamo compiles the code that networks share so often only, and jobs of a sweep share a process
            torch.compiler.reset()
