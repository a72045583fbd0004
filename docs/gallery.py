"""Redraw the pictures at the top of the README:  python docs/gallery.py [name …];  two minutes for all on one core.

One size and one style; colours that colour-blind readers can tell apart (Okabe & Ito).
"""

import copy
import math
import sys
from pathlib import Path

import matplotlib
import torch
import torch.nn.functional as F
import torchvision
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_digits
from torch import Tensor, nn

import gsa
from gsa import viz
from gsa.symmetry import LayerReport

FOLDER = Path(__file__).parent / "gallery"
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A8A8A"
STYLE = {"font.size": 11, "axes.titlesize": 12, "legend.fontsize": 10, "legend.frameon": False, "axes.edgecolor": GREY}


def turn() -> Figure:
    """A digit in four turns, and what four poses of a trained layer make of it: a map keeps its colour as it turns."""
    network, group = gsa.load("rotmnist_gsa"), gsa.group("R4")
    seven = torch.tensor(load_digits().images[7], dtype=torch.float32)[None, None] / 16
    picture = F.pad(F.interpolate(seven, size=20, mode="bilinear"), (4,) * 4)
    with torch.no_grad():
        pictures = [group.act(picture, g) for g in range(4)]
        features = [network.lifting(network.pictures.normalise(x))[0, :, ::2] for x in pictures]  # quarter turns of R8
    spread = (features[0] - features[0].mean(1, keepdim=True)).flatten(1).norm(dim=1)
    channel = int(spread.argmax())  # the one in which the poses differ most
    level = features[0][channel].median()  # of the empty background
    limit = (features[0][channel] - level).abs().max().item()

    figure = _square("A layer turns with its picture")
    axes = figure.subplots(5, 4)
    for g in range(4):
        axes[0, g].imshow(pictures[g][0, 0].numpy(), cmap="gray")
        axes[0, g].set_title(f"{90 * g}°", fontsize=11)
        for pose in range(4):
            axis, colour = axes[1 + pose, g], (BLUE, ORANGE, GREEN, PURPLE)[(pose - g) % 4]
            axis.imshow((features[g][channel, pose] - level).numpy(), cmap="RdBu_r", vmin=-limit, vmax=limit)
            axis.spines[:].set(color=colour, linewidth=2.5)
    for row, name in enumerate(["input", *(f"pose {90 * pose}°" for pose in range(4))]):
        axes[row, 0].set_ylabel(name, fontsize=10, rotation=0, ha="right", va="center")
        for axis in axes[row]:
            axis.set_xticks([])
            axis.set_yticks([])
    return figure


def angles() -> Figure:
    """Accuracy on turned digits, for networks trained on upright ones only."""
    pictures = F.pad(torch.tensor(load_digits().images, dtype=torch.float32)[:, None] / 16, (2,) * 4)
    labels, turns = torch.tensor(load_digits().target), gsa.group("R24")
    mean, scale, around = pictures.mean(), pictures.std(), torch.linspace(0, 2 * torch.pi, turns.order + 1).tolist()
    figure = _square("Trained upright, tested turned")
    axis = figure.subplots(subplot_kw={"projection": "polar"})
    for name, colour, style in (("Z2", "black", ":"), ("R4", ORANGE, "--"), ("R8", BLUE, "-")):
        network = _trained(name, (pictures[:1500] - mean) / scale, labels[:1500])
        with torch.no_grad():
            answers = [network((turns.act(pictures[1500:], g) - mean) / scale).argmax(1) for g in range(turns.order)]
        shares = [100 * (answer == labels[1500:]).double().mean().item() for answer in answers]
        axis.plot(around, [*shares, shares[0]], style, color=colour, linewidth=2.2, label=name)
        axis.fill(around, [*shares, shares[0]], color=colour, alpha=0.1)
    axis.set_theta_zero_location("N")
    axis.set_ylim(0, 100)
    axis.set_yticks([50, 100], ["", ""])
    axis.text(math.radians(157), 117, "100 %", fontsize=9, color=GREY, ha="center", va="center")
    axis.set_xticks(around[:-1:3], [f"{45 * k}°" for k in range(8)])
    axis.tick_params(axis="x", pad=5)
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def heads() -> Figure:
    """Where the heads of a trained layer look: at the start, and after training."""
    encoding = gsa.load("rotmnist_gsa").stages[0][2].attention.encoding
    start = copy.deepcopy(encoding)
    start.reset_parameters()
    figure = _square("Heads learn where to look")
    axis = figure.subplots()
    for name, colour, drawn in (("start", GREY, start), ("trained", BLUE, encoding)):
        axis.plot([], [], "o", color=colour, alpha=0.6, markersize=9, label=name)
        discs = torch.cat((drawn.offset, drawn.sharpness[:, None] ** -0.5), dim=1).detach().unique(dim=0)
        for *place, radius in discs.tolist():  # several heads start at one place
            axis.add_patch(matplotlib.patches.Circle(place, radius, facecolor=f"{colour}20", edgecolor=colour, lw=1.5))
    for before, after in zip(start.offset.tolist(), encoding.offset.tolist(), strict=True):
        axis.annotate("", after, before, arrowprops={"arrowstyle": "-|>", "color": ORANGE, "shrinkA": 0, "shrinkB": 0})
    axis.set_aspect("equal")
    axis.set_xlim(-4.1, 4.1)
    axis.set_ylim(-4.1, 4.1)
    axis.set_xticks(range(-4, 5))
    axis.set_yticks(range(-4, 5))
    axis.grid(alpha=0.3)
    axis.set_xlabel("pixels from the one that asks")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def layers() -> Figure:
    """A quarter turn through torchvision's resnet18, layer by layer, as it is and with attention in every pose."""
    torch.manual_seed(0)
    network = torchvision.models.resnet18(num_classes=10).double()
    pictures = torch.rand(2, 3, 33, 33).double()
    reports = {"convolutions": LayerReport.of(network, pictures, "R4", 1e-10)}
    gsa.nn.replace_convolutions(network, "R4")
    reports["attention"] = LayerReport.of(network, pictures, "R4", 1e-10)
    figure = _square("resnet18 under quarter turns")
    axis = figure.subplots()
    viz.draw_compared_layers(reports, depth=1, axis=axis)
    axis.get_legend().remove()
    axis.set_xlabel("relative error")
    axis.set_xticks([1e-15, 1e-10, 1e-5, 1])
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _square(title: str) -> Figure:
    figure = Figure(figsize=(3.6, 3.6), layout="constrained")
    figure.suptitle(title, fontsize=13, fontweight="bold")
    return figure


def _trained(name: str, pictures: Tensor, labels: Tensor, steps: int = 150) -> nn.Module:
    """`digits_gsa` with another group, trained for 150 steps."""
    torch.manual_seed(0)
    network = gsa.create_model("digits_gsa", group=name)
    optimizer = torch.optim.AdamW(network.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=steps)
    for _ in range(steps):
        batch = torch.randint(len(pictures), (64,))
        optimizer.zero_grad()
        F.cross_entropy(network(pictures[batch]), labels[batch]).backward()
        optimizer.step()
        schedule.step()
    return network.eval()


GALLERY = {"turn": turn, "angles": angles, "heads": heads, "layers": layers}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    matplotlib.rcParams.update(STYLE)
    for name in sys.argv[1:] or GALLERY:
        file = FOLDER / f"{name}.png"
        GALLERY[name]().savefig(file, dpi=150)
        with Image.open(file) as picture:  # 256 colours are enough for all of them, and a third of the bytes
            picture.convert("RGB").quantize().save(file, optimize=True)
        print(file)
