"""Out of memory: what was being done, and what would take less."""

from collections.abc import Iterator
from contextlib import contextmanager

from gsa._memory import is_out_of_memory
from gsa.runner._build import Run
from gsa.runner._keys import GRAPH_MODES

__all__ = ["explaining_memory"]

_SMALLER = (
    "it is one picture at a time already in each process; smaller ones, or a smaller model.neighbourhood, need less"
)


@contextmanager
def explaining_memory(run: Run, doing: str) -> Iterator[None]:
    """Turn the error of an allocation that failed into one that says what to set; others pass.

    Args:
        run: at work.
        doing: what, in words; "training" has its validation in it.

    Raises:
        MemoryError: with the batch, the device and a remedy, and the notes of the error.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not is_out_of_memory(error):
            raise
        validating = doing == "training" and run.classifier.part == "val"
        if doing == "training" and not validating:
            size, remedy = run.data.batch_size, _for_training(run)
            what = f"data.batch_size={size}"
        else:
            size = run.data.eval_batch_size
            what = f"data.eval_batch_size={size}"
            world = run.trainer.world_size
            remedy = f"data.eval_batch_size={size // 2} takes half of it" if size > world else _SMALLER
        reason = (str(error) or "no more is known").splitlines()[0]
        explained = MemoryError(
            f"out of memory on {run.trainer.strategy.root_device} while {'validating' if validating else doing} with "
            f"{what} ({reason}): {remedy}"
        )
        for note in getattr(error, "__notes__", ()):
            explained.add_note(note)
        raise explained from error


def _for_training(run: Run) -> str:
    size, steps, world = run.data.batch_size, run.trainer.accumulate_grad_batches, run.trainer.world_size
    half = next((part for part in range(size // 2, 0, -1) if size % part == part % world == 0), None)
    if half is None:
        return _SMALLER
    graphs = run.config.compile in GRAPH_MODES  # which gradients are not accumulated in
    return (
        f"{'compile=true ' if graphs else ''}data.batch_size={half} "
        f"trainer.accumulate_grad_batches={steps * size // half} takes the same steps with "
        f"{'half' if 2 * half == size else 'less'} of it"
    )
