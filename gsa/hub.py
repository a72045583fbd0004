"""Networks on the Hugging Face Hub; needs `pip install huggingface_hub`."""

import os
from dataclasses import asdict
from typing import Any, Self

from huggingface_hub import PyTorchModelHubMixin
from torch import Tensor, nn

from gsa.models import create_model
from gsa.saved import read

__all__ = ["HubNetwork"]


class HubNetwork(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="gsa",
    tags=["group-equivariance", "self-attention"],
    paper_url="https://arxiv.org/abs/2010.00977",
):
    """A network by its name, with `save_pretrained`, `from_pretrained` and `push_to_hub`.

    Weights are safetensors; the arguments stand in config.json beside them.

    Args:
        name, keywords: of `gsa.create_model`.
        pictures: what it was trained on (`gsa.saved.PictureFormat` as a dictionary), None if it was not.

    Shapes:
        normalised pictures [B, C, H, W] → logits [B, num_classes]
    """

    def __init__(
        self, name: str, keywords: dict[str, Any] | None = None, pictures: dict[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.network, self.pictures = create_model(name, **(keywords or {})), pictures

    @classmethod
    def of_run(cls, path: str | os.PathLike) -> Self:
        """The trained network of a run, a checkpoint or an export, as `gsa.load` finds it."""
        saved = read(path)
        sizes = {"in_channels": saved.pictures.in_channels, "num_classes": saved.pictures.num_classes}
        keywords = {key: value for key, value in saved.model.items() if key != "name"} | sizes
        found = cls(saved.model["name"], keywords, asdict(saved.pictures))
        found.network.load_state_dict(saved.network.state_dict())
        return found.eval()

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images)
