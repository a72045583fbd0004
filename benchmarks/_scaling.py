"""Training on several devices: a process for each, gradients averaged by DistributedDataParallel."""

import json
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from _training_step import make_step, seconds_of
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

__all__ = ["device_counts", "pictures_a_second"]


def device_counts(device: str) -> Iterator[int]:
    """1, 2, 4, … as far as there are devices, and all of them; of the CPU, one process and two."""
    most = 2 if device == "cpu" else torch.cuda.device_count()
    counts = {2**k for k in range(most.bit_length()) if 2**k <= most} | {most}
    return iter(sorted(counts))


def pictures_a_second(name: str, batch: int, count: int, device: str, seconds: float) -> float:
    """Of `count` devices together, a batch of its own each.

    Raises:
        TimeoutError: it takes longer than these seconds.
    """
    with TemporaryDirectory() as folder:
        workers = torch.multiprocessing.spawn(_train, (count, name, batch, device, folder), count, join=False)
        try:
            end = time.monotonic() + seconds
            while not workers.join(timeout=max(min(end - time.monotonic(), 1), 0.01)):
                if time.monotonic() > end:
                    raise TimeoutError(f"longer than {seconds:.0f} s")
        finally:
            for process in workers.processes:
                process.kill()
        steps = [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(count)]
    return count * batch / max(steps)


def _train(rank: int, count: int, name: str, batch: int, device: str, folder: str) -> None:
    """One of the processes, which writes down how long its steps take."""
    if device == "cpu":
        torch.set_num_threads(max((os.cpu_count() or 1) // count, 1))
    else:
        torch.cuda.set_device(rank)
        device = f"cuda:{rank}"
    kind = "gloo" if device == "cpu" else "nccl"
    distributed.init_process_group(kind, f"file://{folder}/meeting", rank=rank, world_size=count)
    try:
        ids = None if device == "cpu" else [rank]
        shared = partial(DistributedDataParallel, device_ids=ids, gradient_as_bucket_view=True)
        step = make_step(name, batch, "eager", device, shared)
        step()
        distributed.barrier()
        (Path(folder) / f"{rank}.json").write_text(json.dumps(seconds_of(step, device)))
        distributed.barrier()
    finally:
        distributed.destroy_process_group()
