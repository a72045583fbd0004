"""What a GPU is told once, and does again and again."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["CudaGraph"]


class CudaGraph:
    """What is launched within `recording()`, on a stream of its own, to be launched again by `replay()`."""

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()
        self._graph: torch.cuda.CUDAGraph | None = None

    @contextmanager
    def aside(self) -> Iterator[None]:
        """On that stream, as what is done before a recording has to be."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            yield
        torch.cuda.current_stream().wait_stream(self._stream)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Nothing is computed in it. Other threads, which pin the memory of batches, go on meanwhile."""
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=self._stream, capture_error_mode="thread_local"):
            yield

    def replay(self) -> None:
        assert self._graph is not None
        self._graph.replay()
