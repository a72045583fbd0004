"""Pictures a second that the workers of a data module give, of generated files as PatchCamelyon's are laid out.

    python benchmarks/reading.py                       # a process of its own, and two workers
    python benchmarks/reading.py --augmentation turns flips

Nothing is trained; batches of 64 are taken as they come. The files are read once before, and lie in the memory of the
system then.
"""

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy
from _machine import add_record, save

from gsa.data import PCamDataModule

COUNTS = {"train": 8192, "valid": 64, "test": 64}


def write_files(root: Path) -> None:
    """Six files: x [N, 96, 96, 3] and y [N, 1, 1, 1], bytes."""
    (root / "pcam").mkdir()
    random = numpy.random.default_rng(0)
    for part, count in COUNTS.items():
        stem = f"camelyonpatch_level_2_split_{part}"
        for key, shape, most in (("x", (96, 96, 3), 256), ("y", (1, 1, 1), 2)):
            with h5py.File(root / "pcam" / f"{stem}_{key}.h5", "w") as file:
                file[key] = random.integers(0, most, (count, *shape), dtype=numpy.uint8)


def pictures_a_second(root: Path, workers: int, augmentation: list[str]) -> float:
    """Over an epoch, but for its first batch, which starts the workers."""
    data = PCamDataModule(root, batch_size=64, num_workers=workers, augmentation=augmentation)
    data.setup()
    batches = iter(data.train_dataloader())
    next(batches)
    start, count = time.perf_counter(), 0
    for pictures, _ in batches:
        count += len(pictures)
    return count / (time.perf_counter() - start)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--augmentation", nargs="*", default=[])
    options = parser.parse_args()
    lines = ["| workers | pictures a second |", "|---|---|"]
    with TemporaryDirectory() as folder:
        write_files(Path(folder))
        for workers in (0, 2):
            lines.append(f"| {workers} | {pictures_a_second(Path(folder), workers, options.augmentation):,.0f} |")
            print(lines[-1], flush=True)
    save("reading", " ".join(["python benchmarks/reading.py", *sys.argv[1:]]), "\n".join(lines))
