"""Networks of other libraries before and after their convolutions are replaced: how exactly they turn.

    python benchmarks/imported_networks.py

The relative change of what a network returns, at worst over three quarter turns, in float64: of classifiers the
logits, of networks from pictures to maps the maps, which have to turn with the picture. Weights are random, and none
that scales a branch is zero. Libraries that are not installed are left out.
"""

import argparse
import importlib.util
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import version

import torch
from _machine import add_record, save
from torch import Tensor, nn

import gsa

SIDES = (64, 75)  # of classifiers; of maps, the first: networks that join maps of several sizes need it to be halved
CLASSIFIERS = {
    "torchvision": """
        resnet18 resnext50_32x4d wide_resnet50_2 mobilenet_v2 mobilenet_v3_large efficientnet_b0 regnet_y_400mf
        densenet121 convnext_tiny vgg11_bn squeezenet1_1 shufflenet_v2_x1_0
    """,
    "timm": """
        resnet26d resnetv2_50 res2net50_14w_8s resnest14d seresnet18 rexnet_100 ghostnet_100 mobilenetv4_conv_small
        repvgg_a0 darknet53 hrnet_w18_small dla34 convnextv2_atto tf_efficientnet_b0 inception_v3
    """,
}
TO_MAPS = {
    "torchvision": "fcn_resnet50 deeplabv3_mobilenet_v3_large lraspp_mobilenet_v3_large",
    "segmentation_models_pytorch": """
        Unet UnetPlusPlus MAnet Linknet FPN PSPNet DeepLabV3 DeepLabV3Plus UPerNet Segformer
    """,
    "monai": "UNet BasicUNet AttentionUnet SegResNet DynUNet FlexibleUNet",
}
OF_MONAI = {
    "UNet": (2, 3, 2, (8, 16, 32), (2, 2)),
    "BasicUNet": (2, 3, 2),
    "AttentionUnet": (2, 3, 2, (8, 16, 32), (2, 2)),
    "SegResNet": (2, 8, 3, 2),
    "DynUNet": (2, 3, 2, [3, 3, 3], [1, 2, 2], [2, 2]),
    "FlexibleUNet": (3, 2, "efficientnet-b0", False, (64, 32, 16, 8, 4), 2),
}


def built(library: str, name: str, to_maps: bool) -> nn.Module:
    """A network with random weights, for pictures of three channels."""
    there = importlib.import_module(library)
    if library == "torchvision":
        return there.models.get_model(
            name, num_classes=5, weights=None, **({"weights_backbone": None} if to_maps else {})
        )
    if library == "timm":
        return there.create_model(name, num_classes=5)
    if library == "monai":
        return getattr(importlib.import_module("monai.networks.nets"), name)(*OF_MONAI[name])
    return getattr(there, name)("resnet18", encoder_weights=None, classes=5)


def prepared(network: nn.Module, pictures: Tensor) -> nn.Module:
    """In float64, with branches that are not zero, and norms that know the statistics of the pictures."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0
    for name, parameter in network.named_parameters():
        if (parameter.ndim == 1 and name.endswith("weight")) or "scale" in name or "gamma" in name:
            nn.init.ones_(parameter)
    network.double().train()(pictures)
    return network.eval()


@torch.no_grad()
def change(network: nn.Module, pictures: Tensor) -> float:
    """‖f(Rx) − R f(x)‖ / ‖f(x)‖, at worst; of logits, which stay, ‖f(Rx) − f(x)‖ / ‖f(x)‖."""

    def answer(x: Tensor) -> Tensor:
        y = network(x)
        return y["out"] if isinstance(y, dict) else y

    expected = answer(pictures)
    worst = 0.0
    for turns in (1, 2, 3):
        turned = expected.rot90(turns, (2, 3)) if expected.ndim == 4 else expected
        found = answer(pictures.rot90(turns, (2, 3)))
        worst = max(worst, float((found - turned).norm() / expected.norm()))
    return worst


def row(library: str, name: str, to_maps: bool) -> str:
    """A line of the table."""
    cells = [f"`{name}`", library]
    for side in SIDES[:1] if to_maps else SIDES:
        torch.manual_seed(0)
        pictures = torch.rand(2, 3, side, side, dtype=torch.float64)
        try:
            before = change(prepared(built(library, name, to_maps), pictures), pictures)
        except RuntimeError as error:
            cells.append(f"— ({str(error).splitlines()[0][:60]})")
            continue
        torch.manual_seed(0)
        try:
            network = gsa.nn.replace_convolutions(built(library, name, to_maps), "R4")
            cells.append(f"{before:.1e} → **{change(prepared(network, pictures), pictures):.0e}**")
        except ValueError as error:
            where = str(error).splitlines()[1].partition(": ")[0] if "\n" in str(error) else str(error)
            cells.append(f"{before:.1e}, refused at `{where}`")
    return "| " + " | ".join(cells) + " |"


def rows(networks: dict[str, str], to_maps: bool) -> Iterator[str]:
    for library, names in networks.items():
        if importlib.util.find_spec(library) is None:
            continue
        for name in names.split():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                line = row(library, name, to_maps)
            print(line, flush=True)
            yield line


def table(header: list[str], lines: Iterator[str]) -> str:
    return "\n".join([f"| {' | '.join(header)} |", "|" + "---|" * len(header), *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.parse_args()
    sides = [f"{side}×{side}" for side in SIDES]
    there = [
        library for library in ("timm", "segmentation_models_pytorch", "monai") if importlib.util.find_spec(library)
    ]
    text = "\n\n".join(
        [
            ", ".join(f"{library} {version(library)}" for library in ("torchvision", *there)),
            "Relative change of the logits under a quarter turn, before → after:",
            table(["classifier", "library", *sides], rows(CLASSIFIERS, to_maps=False)),
            "The same of maps:",
            table(["network", "library", sides[0]], rows(TO_MAPS, to_maps=True)),
        ]
    )
    save("imported_networks", " ".join(["python benchmarks/imported_networks.py", *sys.argv[1:]]), text)


if __name__ == "__main__":
    main()
