"""Ours, the papers' attention and convolution on the same pictures, each in turn in one process.

    python benchmarks/rivals.py                 # training steps of 8, 16 and 64, predictions of 1 and of 64
    python benchmarks/rivals.py --threads 1

Networks for RotMNIST, 28×28 pixels, float32, on the CPU; a step is forward, backward and Adam, a prediction is forward
without gradients. What disturbs one disturbs all, so that ratios hold on a busy machine too. The last row is `conv2d`
of the shapes of R4_CNN, so that no ratio is won by a slow rival. The share of sgemm is the arithmetic that the network
needs at least, a second, over that of a large product on the same threads. Results go to outputs/benchmarks.
"""

import argparse
import shlex
import sys

import torch
from _flop import flop
from _machine import add_record, save
from _measure import sgemm_peak, side_by_side
from steps import work

RIVAL = "rotmnist_r4_cnn"
PLAIN = f"{RIVAL} group=Z2 channels=76"  # 19 channels × 4 poses
NETWORKS = ("rotmnist_gsa", "rotmnist_positional", "rotmnist_r4_sa", "rotmnist_r8_sa", RIVAL, PLAIN)
CASES = ((False, 8), (False, 16), (False, 64), (True, 1), (True, 64))  # predict, batch; 16 is that of the recipes


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.0f}" if seconds > 0.1 else f"{1e3 * seconds:.3g}"


def main(repeats: int) -> None:
    lines = [
        "| network | work | batch | median, ms | min – max | against R4_CNN | pictures a second | of sgemm |",
        "|---" * 8 + "|",
    ]
    for predict, batch in CASES:
        works = {name: work(name, 28, batch, predict) for name in NETWORKS}
        times, peak = side_by_side(works, repeats), sgemm_peak(torch.device("cpu"))
        for name, t in times.items():
            cells = [f"`{name}`", "prediction" if predict else "step", batch, milliseconds(t.median)]
            cells += [f"{milliseconds(t.least)} – {milliseconds(t.most)}", f"{t.median / times[RIVAL].median:.2f}×"]
            cells += [f"{batch / t.median:.0f}", f"{flop(works[name]) / t.median / peak:.1%}"]
            lines.append(f"| {' | '.join(map(str, cells))} |")
        print("\n".join(lines[-len(NETWORKS) :]), flush=True)
    command = shlex.join(["python", "benchmarks/rivals.py", *sys.argv[1:]])
    save("rivals_cpu", command, f"28×28 pixels, float32, medians of {repeats}.\n\n" + "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    main(options.repeats)
