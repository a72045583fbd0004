"""A torchvision network as it is, with its convolutions replaced by attention, and pooled over all poses of its input.

    python benchmarks/imported_layer.py
    python benchmarks/imported_layer.py --network mobilenet_v2      # most of whose filters have one channel each
    python benchmarks/imported_layer.py --ways pooled --save imported_layer_pooled
    python benchmarks/imported_layer.py --size 16 --save imported_layer_even    # strides leave pixels over at one end

ResNet-18, or another, on scikit-learn's digits, each turned at random, in frames of 17×17: accuracy and equivariance.
All get the same training; the weights that are best on validation are tested once.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory

import lightning
import torch
from _machine import add_record, save
from lightning.pytorch.callbacks import ModelCheckpoint
from table import spread
from torch import nn
from torch.optim import AdamW
from torchvision.models import mobilenet_v2, resnet18

import gsa
from gsa.data import DigitsDataModule
from gsa.symmetry import equivariance_error
from gsa.training import Classifier, warmup_cosine

WAYS = ("plain", "replaced", "pooled")


def before(name: str) -> nn.Module:
    """A network as torchvision has it, but for a first convolution for small grey pictures."""
    if name == "resnet18":
        network = resnet18(num_classes=10)
        network.conv1 = nn.Conv2d(1, 64, kernel_size=3, padding=1, bias=False)
        return network
    network = mobilenet_v2(num_classes=10)
    network.features[0][0] = nn.Conv2d(1, 32, kernel_size=3, padding=1, bias=False)
    return network


def after(name: str, border: str) -> nn.Module:
    """The same with attention that turns with its input."""
    return gsa.nn.replace_convolutions(before(name), "R4", border)


def pooled(name: str) -> nn.Module:
    """The network as it is, with the largest of its features over four turns of the picture in front of its head."""
    network, last = before(name), "fc" if name == "resnet18" else "classifier"
    head = getattr(network, last)
    setattr(network, last, nn.Identity())
    return nn.Sequential(gsa.nn.OrbitPooling(network, "R4"), head)


def trained(network: nn.Module, data: DigitsDataModule, epochs: int, rate: float) -> tuple[float, float]:
    """Leave the weights of the epoch that is best on validation in a network: that accuracy, and seconds of training.

    With a rate of zero, its norms are all that changes.
    """
    network.train()  # as which Lightning takes it, if it was tested before
    classifier = Classifier(network, 10, partial(AdamW, lr=rate, weight_decay=0.01), warmup_cosine)
    with TemporaryDirectory() as folder:
        best = ModelCheckpoint(folder, monitor="val/accuracy", mode="max", save_weights_only=True)
        trainer = lightning.Trainer(max_epochs=epochs, callbacks=[best], logger=False, gradient_clip_val=1.0)
        start = time.perf_counter()
        trainer.fit(classifier, data)
        seconds = time.perf_counter() - start
        classifier.load_state_dict(torch.load(best.best_model_path, weights_only=True)["state_dict"])
    network.eval()
    assert best.best_model_score is not None
    return float(best.best_model_score), seconds


def tested(network: nn.Module, data: DigitsDataModule) -> dict[str, float]:
    """Accuracy on the test part, and the change of the logits under quarter turns."""
    trainer = lightning.Trainer(logger=False, enable_checkpointing=False)
    (scores,) = trainer.test(Classifier(network, 10, AdamW), data, verbose=False)
    pictures, _ = next(iter(data.test_dataloader()))
    error = max(equivariance_error(network.eval(), pictures, "R4").values())
    return {"test": scores["test/accuracy"], "error": error}


def measure(make: Callable[[], nn.Module], seed: int, size: int, epochs: int, rate: float) -> dict[str, float]:
    """Train, choose on validation, test once."""
    lightning.seed_everything(seed, verbose=False)
    data = DigitsDataModule(batch_size=32, seed=seed, size=size)
    network = make()
    val, seconds = trained(network, data, epochs, rate)
    parameters = sum(p.numel() for p in network.parameters())
    return {"parameters": parameters, "val": val, "seconds": seconds} | tested(network, data)


def main(options: argparse.Namespace) -> None:
    lines = [
        "| network | parameters | validation, % | test, % | logits change under a quarter turn | seconds |",
        "|---|---|---|---|---|---|",
    ]
    ways = {
        "plain": (f"torchvision's {options.network}", partial(before, options.network)),
        "replaced": ("its 3×3 convolutions replaced", partial(after, options.network, options.border)),
        "pooled": (f"torchvision's {options.network}, pooled over four turns", partial(pooled, options.network)),
    }
    for name, make in (ways[way] for way in options.ways):
        runs = [measure(make, seed, options.size, options.epochs, options.rate) for seed in range(options.seeds)]
        cells = [name, f"{runs[0]['parameters']:,}", *(spread([run[part] for run in runs]) for part in ("val", "test"))]
        cells += [f"{max(run['error'] for run in runs):.1e}", f"{sum(run['seconds'] for run in runs) / len(runs):.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    lines += [
        "",
        f"Mean ± standard deviation over {options.seeds} seeds; {options.epochs} epochs, rate {options.rate}.",
    ]
    file = ["imported_layer"]
    file += [kind for kind in (options.network, options.border) if kind not in ("resnet18", "zeros")]
    save(
        options.save or "_".join(file),
        " ".join(["python benchmarks/imported_layer.py", *sys.argv[1:]]),
        "\n".join(lines),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--rate", type=float, default=0.004)
    parser.add_argument("--network", choices=("resnet18", "mobilenet_v2"), default="resnet18")
    parser.add_argument("--border", choices=("zeros", "hidden"), default="zeros", help="of attention")
    parser.add_argument("--size", type=int, default=17, help="side of the frames in pixels")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--save", metavar="NAME", help="of the results")
    main(parser.parse_args())
