"""Put the weights of a finished run into the package, with a card that says what they are.

    python benchmarks/ship.py multirun/digits_gsa/1

They are those that were best on validation; `gsa.create_model(name, pretrained=True)` finds them.
"""

import argparse
import json
from pathlib import Path

from omegaconf import OmegaConf

import gsa
from gsa.saved import export, read

WEIGHTS = Path(gsa.__file__).parent / "models" / "weights"
LARGEST = 300 * 1024  # bytes
_OF_THE_PLACE = ("hydra", "data.root", "ckpt_path", "callbacks", "logger")


def command(model: str, overrides: list[str]) -> str:
    """What trains it again, with a folder of one's own for the data."""
    overrides = [override.lstrip("+") for override in overrides]
    kept = [override for override in overrides if not override.startswith((*_OF_THE_PLACE, "model=", "experiment="))]
    kept = [f"model={model}", *kept]
    needs_files = any(override.startswith("data.root") for override in overrides)
    return " ".join(["python train.py", *kept, *(["data.root=path/to/folder/with/MNIST"] if needs_files else [])])


def card(report: dict, overrides: list[str]) -> str:
    """A model card, from the report of its run."""
    split = report["split"]
    errors = ", ".join(
        f"{angle} {value['error']:.1e}{'' if value['exact'] else ' (sampled)'}"
        for angle, value in report["equivariance_error"].items()
    )
    versions = f"gsa {gsa.__version__}, torch {report['versions']['torch']}"
    place = f"{report['train_seconds']:,.0f} s, {report['machine']}, {versions}"
    lines = [
        f"# {report['model']}",
        "",
        f"A network of the group {report['group']} with {report['parameters']:,} parameters: `model.safetensors`, "
        "and `config.json` with its keywords, the normalisation of pictures, and a digest of both.",
        "",
        f"- **data**: {report['data']['name']} ({report['data']['source']}), {split['train']:,} pictures for training, "
        f"{split['val']:,} for validation, {split['test']:,} for the test; weights chosen on validation",
        f"- **trained by**: `{command(report['model'], overrides)}`",
        f"- **seed** {report['seed']}, {report['epochs']} epochs ({place})",
        f"- **accuracy**: {100 * report['val_accuracy']:.2f} % validation, {100 * report['test_accuracy']:.2f} % test, "
        "evaluated once",
        f"- **relative change of the logits** when pictures are turned, float32: {errors}",
        "- **licence**: MIT, as the package",
    ]
    return "\n".join(lines) + "\n"


def main(run: Path) -> None:
    report = json.loads((run / "report.json").read_text())
    folder = WEIGHTS / report["model"]
    for file in export(read(run), folder):
        print(file, file.stat().st_size)
        if file.stat().st_size > LARGEST:
            raise SystemExit(f"{file} has {file.stat().st_size} bytes; at most {LARGEST} come with the package")
    overrides = list(OmegaConf.load(run / ".hydra" / "overrides.yaml"))
    (folder / "README.md").write_text(card(report, overrides))
    print(folder / "README.md")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN")
    main(parser.parse_args().run)
