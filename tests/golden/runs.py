"""Short runs whose weights are frozen: what they are, and how their weights and the machine's rounding are told."""

import hashlib
from pathlib import Path

import torch
from torch import Tensor, nn

from gsa import ops

FROZEN = Path(__file__).parent / "frozen"

COMMON = (
    "recipe=digits", "trainer.accelerator=cpu", "trainer.enable_progress_bar=false", "callbacks=quiet", "logger=none",
    "report=false", "trainer.limit_val_batches=1", "trainer.limit_test_batches=1", "test=false",
)  # fmt: skip

# Four networks, which between them have both forms, three groups, every norm, dropout, pools, averages, augmentation.
RUNS = {
    "digits_r4_sa": (
        "data=digits", "trainer.limit_train_batches=6", "trainer.max_epochs=2", "data.augmentation=[turns,crops]",
    ),
    "rotmnist_r4_sa": (
        "data=digits", "data.size=28", "data.batch_size=2", "trainer.limit_train_batches=2", "trainer.max_epochs=1",
        "ema=null", "optimizer=adam", "scheduler=constant", "optimizer.lr=0.001", "model.form=summed",
    ),
    "pcam_r4m_sa": (
        "data=digits", "data.size=64", "data.batch_size=1", "trainer.limit_train_batches=2", "trainer.max_epochs=1",
        "model.channels=4", "model.num_heads=2", "model.form=summed", "optimizer=sgd", "ema=null",
        "trainer.gradient_clip_val=1.0",
    ),
    "rotmnist_r4_cnn": (
        "data=digits", "data.size=28", "data.batch_size=4", "trainer.limit_train_batches=4", "trainer.max_epochs=2",
        "trainer.accumulate_grad_batches=2", "scheduler=steps",
    ),
}  # fmt: skip

_NEWER_UNITS = ("amx_tile", "amx_fp16", "avx10_1", "avx10_2")


def weights(checkpoint: dict) -> dict[str, Tensor]:
    """Weights and statistics of the network in a checkpoint."""
    return {name: value for name, value in checkpoint["state_dict"].items() if name.startswith("network.")}


def digest(tensors: dict[str, Tensor]) -> str:
    """SHA-256 over names and bytes."""
    sums = hashlib.sha256()
    for name, value in sorted(tensors.items()):
        sums.update(name.encode() + value.contiguous().numpy().tobytes())
    return sums.hexdigest()


def sizes(tensors: dict[str, Tensor]) -> dict[str, float]:
    """The norm of every tensor: what stays nearly the same where another machine rounds otherwise."""
    return {name: value.double().norm().item() for name, value in sorted(tensors.items())}


def rounding() -> str:
    """Equal on machines, versions and builds that round alike: products, convolutions, exponentials, attention.

    Libraries take other paths on processors with newer units, which these small ones do not show: their names follow.
    """
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    a, images = draw(65, 70), draw(2, 3, 12, 12)
    found = {"product": a @ a.T, "softmax": a.softmax(-1), "silu": nn.functional.silu(a), "sum": a.sum(0)}
    found["convolution"] = nn.functional.conv2d(images, draw(8, 3, 3, 3), padding=1)
    found["norm"] = nn.functional.layer_norm(a, (70,))
    query, key = draw(1, 2, 4, 9, 9, 10), draw(1, 2, 4, 9, 9, 10)
    window = torch.ones(5, 5, dtype=torch.bool)
    found["attention"] = ops.attend(query, key, key, draw(4, 5, 5, 10), draw(4, 4, 10), window, form="summed")
    has = getattr(torch.cpu, "get_capabilities", dict)()
    units = [torch.backends.cpu.get_cpu_capability(), *(unit for unit in _NEWER_UNITS if has.get(unit))]
    return f"torch {torch.__version__}, {' '.join(units)}, {digest(found)[:16]}"
