"""What the CUDA kernels come to, without a GPU: compiled for an H100, and their instructions counted.

    python benchmarks/kernels.py                          # R4, regular and summed
    python benchmarks/kernels.py --networks R4 R8 R16     # minutes
    PYTHONPATH=folder python benchmarks/kernels.py --save kernels_3.6  # pip install --target folder triton==3.6.0

A step is forward and backward of all attention of a network for --batch pictures; what is counted is what all warps
issue in our kernels, each loop with its trips. An H100 issues 132 × 4 instructions a cycle at best, at about 1.7 GHz.
The exit code is 1 where registers spill at head sizes up to 16 in networks of four poses.
"""

import argparse
import sys
from collections import Counter

import torch
from _listing import KERNELS, Listing
from _machine import add_record, save
from _training_step import NETWORKS

import gsa
from gsa.ops._call import Call
from gsa.ops._validation import is_regular

PEAK = 132 * 4 * 1.7e9  # warp instructions a second


def calls_of(network: torch.nn.Module, pictures: torch.Tensor) -> Counter[tuple]:
    """Shapes of all attention in one forward pass, and how often each occurs."""
    found: Counter[tuple] = Counter()
    ours = gsa.ops.attend

    def recorded(query, key, value, spatial, pose, window, *, form="regular", dropout=0.0, **options):
        found[query.shape[1:], key.shape[2], spatial.shape[:3], is_regular(form), dropout] += 1
        return ours(query, key, value, spatial, pose, window, form=form, dropout=dropout, **options)

    gsa.ops.attend = recorded
    try:
        network.train()(pictures)
    finally:
        gsa.ops.attend = ours
    return found


def call_of(shapes: tuple, batch: int, dtype: torch.dtype = torch.float32) -> Call:
    """A call of these shapes, without numbers."""
    (heads, queries, height, width, channels), keys, (outputs, rows, columns), regular, dropout = shapes

    def empty(*shape):
        return torch.empty(*shape, dtype=dtype, device="meta")

    query = empty(batch, heads, queries, height, width, channels)
    key = empty(batch, heads, keys, height, width, channels)
    window = torch.ones(rows, columns, dtype=torch.bool, device="meta")
    tables = empty(outputs, rows, columns, channels), empty(queries, keys, channels)
    return Call(query, key, key, *tables, window, torch.tensor(0, device="meta"), regular, dropout)


def main(options: argparse.Namespace) -> int:
    import triton

    lines = [
        f"Triton {triton.__version__}, sm_{options.architecture}, float32, batch {options.batch}.",
        "",
        "| network | poses, head size, map, window | calls | kernel | registers | spilled, B | warps of an SM "
        "| shuffles | a step, G | at full issue, ms |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    spilled = False
    for name in options.networks:
        preset, changes, side, _ = NETWORKS[name]
        network = gsa.create_model(preset, **changes)
        total = 0.0
        channels = gsa.models.preset(preset).keywords["in_channels"]
        for shapes, count in calls_of(network, torch.rand(1, channels, side, side)).items():
            call = call_of(shapes, options.batch)
            for kernel in KERNELS:
                listing = Listing(kernel, call, options.architecture)
                issued = count * listing.warps * listing.issued
                total += issued
                poses = f"{call.query.shape[2]}→{call.spatial.shape[0]}"
                sizes = f"{poses}, {call.query.shape[-1]}, {shapes[0][2]}, {shapes[2][1]}"
                shuffles = sum("SHFL" in text for _, text in listing.instructions)
                cells = [name, sizes, count, kernel, listing.registers, listing.spilled, listing.warps_at_once]
                cells += [shuffles, f"{issued / 1e9:.3f}", f"{1e3 * issued / PEAK:.2f}"]
                lines.append("| " + " | ".join(map(str, cells)) + " |")
                print(lines[-1], flush=True)
                few = call.query.shape[2] <= 4 and call.query.shape[-1] <= 16
                spilled = spilled or bool(few and listing.spilled)
        lines.append(f"| **{name}** | | | all | | | | | **{total / 1e9:.2f}** | {1e3 * total / PEAK:.1f} |")
    save(options.save, " ".join(["python benchmarks/kernels.py", *sys.argv[1:]]), "\n".join(lines))
    return int(spilled)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), default=["R4", "R4 summed"])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--save", metavar="NAME", default="kernels", help="of the file of results")
    parser.add_argument("--architecture", type=int, default=90)
    sys.exit(main(parser.parse_args()))
