"""Freeze what runs of today leave behind:  python -m tests.golden.freeze

Writes tests/golden/frozen: weights.json (of the short runs, on this machine), a run stopped in mid-epoch, how it ends
when it goes on, and an export of it. Run it again only to add a machine that rounds otherwise (weights.json keeps
the others), never to make a test pass: old runs have to go on working. Where training itself was changed on purpose
(turned pictures are bicubic since 25 November 2026), remove the runs that it touches from weights.json first.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch

import gsa
from gsa.runner import train
from gsa.saved import export, read, read_checkpoint
from gsa.training import Classifier
from tests.golden.runs import COMMON, FROZEN, RUNS, digest, rounding, sizes, weights
from tests.runs import composed

# A run of every kind of thing that a checkpoint holds: averages, dropout, augmentation, a scheduler, two callbacks.
STOPPED = (
    "model=digits_r4_sa", "model.channels=4", "model.num_heads=2", "model.head_dim=4", "model.attention_dropout=0.1",
    "data.augmentation=[turns]", "trainer.limit_train_batches=6", "trainer.max_epochs=3", *COMMON,
    "test=true",
)  # fmt: skip
PLACE = "/tmp/run"


def short_run(name: str, folder: str) -> dict[str, torch.Tensor]:
    """The weights at the end of one of the short runs."""
    torch.set_num_threads(1)
    train(composed(f"model={name}", *COMMON, *RUNS[name], folder=folder))
    return weights(read_checkpoint(Path(folder) / "checkpoints" / "last.ckpt"))


def freeze_weights() -> None:
    file = FROZEN / "weights.json"
    known = json.loads(file.read_text()) if file.exists() else {"digests": {}, "sizes": {}}
    for name in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            found = short_run(name, folder)
        known["digests"].setdefault(rounding(), {})[name] = digest(found)
        known["sizes"].setdefault(name, sizes(found))
    file.write_text(json.dumps(known, indent=1) + "\n")


def without_places(file: Path) -> None:
    """Leave out of a program where on this machine its source was."""
    program = torch.export.load(file)
    for node in program.graph.nodes:
        for key in ("stack_trace", "nn_module_stack", "source_fn_stack", "custom", "torch_fn"):
            node.meta.pop(key, None)
    torch.export.save(program, file)


def freeze_run() -> None:
    class Stop(Exception):
        pass

    ours = Classifier.training_step

    def stop(module, batch, index):
        if (module.trainer.current_epoch, index) == (1, 3):
            module.trainer.save_checkpoint(f"{PLACE}/checkpoints/last.ckpt", weights_only=False)
            raise Stop
        return ours(module, batch, index)

    torch.set_num_threads(1)
    shutil.rmtree(PLACE, ignore_errors=True)
    Classifier.training_step = stop
    try:
        train(composed(*STOPPED, folder=PLACE))
    except Stop:
        Classifier.training_step = ours
    stopped = FROZEN / "run"
    shutil.copytree(PLACE, stopped)
    _, objects = train(composed(*STOPPED, f"ckpt_path={PLACE}/checkpoints/last.ckpt", folder=PLACE))
    found = weights(read_checkpoint(f"{PLACE}/checkpoints/last.ckpt"))
    end = {"rounding": rounding(), "digest": digest(found), "sizes": sizes(found)}
    report = {key: objects["report"][key] for key in ("val_accuracy", "test_accuracy", "parameters", "split", "used")}
    (FROZEN / "run_ends.json").write_text(json.dumps(end | {"report": report}, indent=1) + "\n")
    program = export(read(PLACE), FROZEN / "export", program=True)[-1]
    without_places(program)
    pictures = torch.rand(3, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    places = {"run": stopped, "export": FROZEN / "export"}
    logits = {name: gsa.load(path)(pictures).tolist() for name, path in places.items()}
    (FROZEN / "logits.json").write_text(json.dumps(logits, indent=1) + "\n")


if __name__ == "__main__":
    freeze_weights()
    if "--run" in sys.argv:
        freeze_run()
