"""What content is worth to trained networks: validation accuracy with the queries of its heads set to zero.

    python benchmarks/content.py multirun/mine/*

Every folder is that of a run with the quadratic encoding: with queries of zero its heads attend by position alone.
"""

import argparse
import sys
from pathlib import Path

import torch
from _machine import add_record, save
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import nn

import gsa
from gsa.nn import SelfAttention


@torch.no_grad()
def without_content(network: nn.Module) -> int:
    """Set the queries of all heads with content to zero, in place; how many heads there were."""
    heads = 0
    for layer in network.modules():
        if isinstance(layer, SelfAttention) and layer.query_key_value is not None:
            queries = slice(0, layer.content_heads * layer.encoding.key_dim)
            layer.query_key_value.weight[queries] = 0
            layer.query_key_value.bias[queries] = 0
            heads += layer.content_heads
    return heads


@torch.no_grad()
def accuracy(network: nn.Module, data) -> float:
    """Of the validation part."""
    right = total = 0
    for pictures, labels in data.val_dataloader():
        right += (network(pictures).argmax(1) == labels).sum().item()
        total += len(labels)
    return right / total


def main(folders: list[Path]) -> None:
    lines = ["| run | heads with content | validation, % | with their queries at zero, % |", "|---|---|---|---|"]
    for folder in folders:
        data = instantiate(OmegaConf.load(folder / "config.yaml").data, _convert_="all")
        data.prepare_data()
        data.setup()
        network = gsa.load(folder)
        before = accuracy(network, data)
        heads = without_content(network)
        lines.append(f"| {folder.name} | {heads} | {100 * before:.2f} | {100 * accuracy(network, data):.2f} |")
        print(lines[-1], flush=True)
    save("content", " ".join(["python benchmarks/content.py", *sys.argv[1:]]), "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.add_argument("folders", type=Path, nargs="+", metavar="RUN")
    main(parser.parse_args().folders)
