"""Train an equivariant network and its plain twin on turned digits, and compare them:  python train.py"""

import argparse
import time

import lightning
from rich.console import Console
from rich.table import Table

import gsa
from gsa.data import DigitsDataModule
from gsa.training import Classifier

QUARTER_TURNS = gsa.group("R4")


def train(name: str, seed: int, epochs: int) -> dict:
    """Train one network; its test accuracy, and how its logits change under quarter turns of 100 test digits."""
    lightning.seed_everything(seed, verbose=False)
    digits = DigitsDataModule(batch_size=16, seed=seed)
    network = gsa.create_model(name)
    classifier = Classifier(network, digits.num_classes)
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_model_summary=False
    )
    start = time.perf_counter()
    trainer.fit(classifier, digits)
    seconds = time.perf_counter() - start
    (scores,) = trainer.test(classifier, digits, verbose=False)
    images, _ = digits.parts["test"][:100]
    return {
        "network": name,
        "parameters": sum(p.numel() for p in network.parameters()),
        "seconds": seconds,
        "test_accuracy": scores["test/accuracy"],
        "equivariance_error": gsa.symmetry.equivariance_error(network, images, QUARTER_TURNS),
    }


def report(results: list[dict], seed: int, epochs: int) -> Table:
    title = f"scikit-learn digits, turned at random; 1 200 for training, 397 for the test; {epochs} epochs, seed {seed}"
    table = Table("network", "parameters", "training", "test accuracy", title=title)
    for g in range(1, QUARTER_TURNS.order):
        table.add_column(f"error at {QUARTER_TURNS.describe(g)}", justify="right")
    for result in results:
        errors = [f"{result['equivariance_error'][g]:.1e}" for g in range(1, QUARTER_TURNS.order)]
        table.add_row(
            result["network"],
            f"{result['parameters']:,}",
            f"{result['seconds']:.0f} s",
            f"{100 * result['test_accuracy']:.1f} %",
            *errors,
        )
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=["digits_r4_sa", "digits_z2_sa"], metavar="network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=24)
    options = parser.parse_args()
    results = [train(name, options.seed, options.epochs) for name in options.networks]
    Console(width=120).print(report(results, options.seed, options.epochs))
