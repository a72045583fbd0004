"""Time and memory of the attention op, for every backend, against the direct evaluation of the same formula.

    python benchmarks/ops.py                     # four sweeps: poses, neighbourhood, image, batch; minutes
    python benchmarks/ops.py --sweep poses --form regular

One layer's worth of the RotMNIST networks: 9 heads of 10 channels, float32. All evaluations run in this process, in
turn. Where the direct one would need more memory than --limit it is left out, and said so. The share of the roofline is
the least time that the machine's measured peaks allow for the counted FLOP and bytes, over the time it took.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass, replace

import direct
import torch
from _flop import flop
from _machine import add_record, describe, results, save
from _measure import copy_peak, memory_growth, sgemm_peak, side_by_side, slope

import gsa

HEADS, CHANNELS = 9, 10


@dataclass(frozen=True)
class Case:
    """One size of the op."""

    group: str = "R4"
    window: int | None = 5
    side: int = 28
    batch: int = 1
    form: str = "summed"

    @property
    def poses(self) -> int:
        return gsa.group(self.group).order

    @property
    def extent(self) -> int:
        return self.window or 2 * self.side - 1

    @property
    def seen(self) -> float:
        """Pixels that a pixel sees, in the mean."""
        reach = self.extent // 2
        along = sum(min(i + reach, self.side - 1) - max(i - reach, 0) + 1 for i in range(self.side))
        return (along / self.side) ** 2

    def bytes(self, backward: bool) -> float:
        """Every feature read or written once: q, k, v, the output; in backward these again and three gradients."""
        return 4.0 * self.batch * HEADS * CHANNELS * self.poses * self.side**2 * (4 + (7 if backward else 0))

    def direct_bytes(self) -> float:
        """Score maps and their gradients, as autograd keeps them in the direct evaluation."""
        maps = self.poses ** (2 if self.form == "regular" else 3)
        return 4 * 4.0 * self.batch * HEADS * maps * self.extent**2 * self.side**2

    def tensors(self, device: torch.device) -> tuple[torch.Tensor, ...]:
        n = self.poses
        features = [
            torch.randn(self.batch, HEADS, CHANNELS, n, self.side, self.side, device=device).permute(0, 1, 3, 4, 5, 2)
            for _ in range(3)
        ]
        tables = [torch.randn(*shape, CHANNELS, device=device) for shape in ((n, self.extent, self.extent), (n, n))]
        return *(t.requires_grad_() for t in (*features, *tables)), torch.ones(
            self.extent, self.extent, dtype=torch.bool, device=device
        )


SWEEPS = {
    "poses": [Case(group=g) for g in ("Z2", "R4", "R8", "R4M", "R12", "R16")],
    "neighbourhood": [Case(window=n) for n in (3, 5, 7, 9, 11, None)],
    "image": [Case(side=side) for side in (14, 28, 56, 112)],
    "batch": [Case(batch=batch) for batch in (1, 2, 4, 8)],
}
LABELS = {
    "poses": lambda case: case.group,
    "neighbourhood": lambda case: f"{case.window}×{case.window}" if case.window else "global",
    "image": lambda case: f"{case.side}×{case.side}",
    "batch": lambda case: str(case.batch),
}


def works(case: Case, device: torch.device, limit: float) -> dict[str, dict[str, object]]:
    """For every evaluation that can run: what to call for a forward pass, and for forward and backward."""
    *inputs, window = case.tensors(device)
    names = [name for name in gsa.ops.backends(device) if name != "reference"]

    def forward(name: str) -> torch.Tensor:
        if name == "direct":
            return direct.attend(*inputs, window, form=case.form)
        return gsa.ops.attend(*inputs, window, form=case.form, backend=name)

    def without_gradients(name: str) -> None:
        with torch.no_grad():
            forward(name)

    def both(name: str) -> None:
        output = forward(name)
        torch.autograd.grad(output, inputs, torch.ones_like(output))

    if case.direct_bytes() <= limit:
        names = ["direct", *names]
    return {
        "forward": {name: lambda name=name: without_gradients(name) for name in names},
        "forward and backward": {name: lambda name=name: both(name) for name in names},
    }


def measure(sweep: str, cases: list[Case], options: argparse.Namespace, peaks: tuple[float, float]) -> list[dict]:
    """One row for each case, pass and evaluation."""
    rows = []
    for case in cases:
        for part, calls in works(case, torch.device(options.device), options.limit * 1e9).items():
            count = flop(next(call for name, call in calls.items() if name != "direct"))
            growth = {name: memory_growth(call) for name, call in calls.items()}
            times = side_by_side(calls, options.repeats)
            backward = part != "forward"
            least = max(count / peaks[0], case.bytes(backward) / peaks[1])
            for name in calls:
                row = {"sweep": sweep, "size": LABELS[sweep](case), "pass": part, "evaluation": name}
                row |= {"seconds": asdict(times[name]), "memory_mb": growth[name], "case": asdict(case)}
                row |= {
                    "flop": count,
                    "bytes": case.bytes(backward),
                    "roofline": least / times[name].median,
                }
                rows.append(row)
                print(f"{sweep} {row['size']}, {part}, {name}: {times[name].median * 1e3:.1f} ms", flush=True)
    return rows


def markdown(rows: list[dict]) -> str:
    lines = []
    for sweep in dict.fromkeys(row["sweep"] for row in rows):
        lines += [
            f"### {sweep}",
            "",
            "| size | pass | evaluation | ms, median | min – max | times faster | memory, MB | share of the roofline |",
            "|---|---|---|---|---|---|---|---|",
        ]
        chosen = [row for row in rows if row["sweep"] == sweep]
        for row in chosen:
            s, yardstick = row["seconds"], [
                r for r in chosen
                if (r["size"], r["pass"], r["evaluation"]) == (row["size"], row["pass"], "direct")
            ]  # fmt: skip
            faster = f"{yardstick[0]['seconds']['median'] / s['median']:.1f}" if yardstick else "too large"
            memory = "" if row["memory_mb"] is None else f"{row['memory_mb']:.0f}"
            lines.append(
                f"| {row['size']} | {row['pass']} | {row['evaluation']} | {s['median'] * 1e3:.1f} | "
                f"{s['least'] * 1e3:.1f} – {s['most'] * 1e3:.1f} | {faster} | {memory} | {row['roofline']:.0%} |"
            )
        lines += ["", *growth(sweep, chosen), ""]
    return "\n".join(lines)


def growth(sweep: str, rows: list[dict]) -> list[str]:
    """How time and memory of training grow with the size, as exponents fitted to the sweep."""
    measures = {
        "poses": ("poses", lambda case: case.poses),
        "neighbourhood": ("pixels that a pixel sees", lambda case: case.seen),
        "image": ("pixels", lambda case: case.side**2),
        "batch": ("batch", lambda case: case.batch),
    }
    name, size = measures[sweep]
    lines = []
    for evaluation in dict.fromkeys(row["evaluation"] for row in rows):
        chosen = [r for r in rows if r["evaluation"] == evaluation and r["pass"] != "forward"]
        if len(chosen) > 2:
            x = [float(size(Case(**row["case"]))) for row in chosen]
            text = f"{evaluation}: time ∝ ({name})^{slope(x, [row['seconds']['median'] for row in chosen]):.2f}"
            if all(row["memory_mb"] for row in chosen):
                text += f", memory ∝ ({name})^{slope(x, [row['memory_mb'] for row in chosen]):.2f}"
            lines.append(f"- {text}")
    return lines


def draw(rows: list[dict], name: str) -> None:
    """Time and memory of forward and backward against the number of poses, log-log."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    chosen = [row for row in rows if row["sweep"] == "poses" and row["pass"] != "forward"]
    for evaluation in dict.fromkeys(row["evaluation"] for row in chosen):
        points = sorted(
            (Case(**row["case"]).poses, row["seconds"]["median"], row["memory_mb"])
            for row in chosen
            if row["evaluation"] == evaluation and row["case"]["group"] != "R4M"
        )
        for axis, column in zip(axes, (1, 2), strict=True):
            axis.plot([p[0] for p in points], [p[column] for p in points], "o-", label=evaluation)
    for axis, label in zip(axes, ("seconds, forward and backward", "growth of memory, MB"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="poses |H|", ylabel=label, xticks=(1, 4, 8, 12, 16))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(results() / f"{name}.png", dpi=110)


def main(options: argparse.Namespace) -> None:
    device = torch.device(options.device)
    peaks = sgemm_peak(device), copy_peak(device)
    chosen = {options.sweep: SWEEPS[options.sweep]} if options.sweep else SWEEPS
    rows = []
    for sweep, cases in chosen.items():
        rows += measure(sweep, [replace(case, form=options.form) for case in cases], options, peaks)
    kind = "gpu" if options.device == "cuda" else "cpu"
    name = f"ops_{options.form}_{kind}" + (f"_{options.sweep}" if options.sweep else "")
    head = (
        f"The op in the {options.form} form, {HEADS} heads of {CHANNELS} channels, float32; unless swept: R4, 5×5, "
        f"28×28, batch 1. Median of {options.repeats}; peaks measured in this run: {peaks[0] / 1e9:.0f} GFLOP/s, "
        f"{peaks[1] / 1e9:.0f} GB/s.\n\n"
    )
    command = " ".join(["python benchmarks/ops.py", *sys.argv[1:]])
    print(markdown(rows))
    save(name, command, head + markdown(rows))
    (results() / f"{name}.json").write_text(
        json.dumps({"command": command, "machine": describe(), "rows": rows}, indent=1)
    )
    if "poses" in chosen:
        draw(rows, name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("--sweep", choices=tuple(SWEEPS))
    parser.add_argument("--form", default="summed", choices=gsa.ops.FORMS)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=4.0, help="GB that the direct evaluation may need")
    main(parser.parse_args())
