"""Networks on the Hugging Face Hub; needs `pip install "gsa-nets[hub]"`."""

import json
import os
import warnings
from pathlib import Path
from typing import Any, Self

from torch import Tensor, nn

from gsa._extras import brought_by
from gsa._version import VERSION
from gsa.files import read_signed, signed, write_whole
from gsa.groups import Group
from gsa.models import Network, create_model, preset, read_weights
from gsa.saved import PictureFormat, build, read

with brought_by("hub"):
    from huggingface_hub import PyTorchModelHubMixin, snapshot_download

__all__ = ["HubNetwork"]


class HubNetwork(
    nn.Module,
    PyTorchModelHubMixin,
    library_name="gsa",
    tags=["group-equivariance", "self-attention"],
    paper_url="https://arxiv.org/abs/2010.00977",
):
    """A network by its name, with `save_pretrained`, `from_pretrained` and `push_to_hub`.

    Weights are safetensors; the arguments stand in config.json beside them, with a digest of both.

    Args:
        name, keywords: of `gsa.create_model`.
        pictures: what it was trained on (`gsa.saved.PictureFormat` as a dictionary), None if it was not.

    Shapes:
        normalised pictures [B, C, H, W] → logits [B, num_classes]

    Raises:
        ValueError: keywords that a file cannot hold, such as modules.
    """

    def __init__(
        self, name: str, keywords: dict[str, Any] | None = None, pictures: dict[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.name, self.pictures = name, pictures
        self.keywords = _written({**preset(name).keywords, **(keywords or {})})  # all, as presets may change
        self._hold(create_model(name, **(keywords or {})))

    def _hold(self, network: Network) -> None:
        self.network = network
        if self.pictures is not None:
            network.pictures = PictureFormat.of(self.pictures)

    @classmethod
    def of_run(cls, path: str | os.PathLike[str]) -> Self:
        """The trained network of a run, a checkpoint or an export, as `gsa.load` finds it."""
        saved = read(path)
        sizes = {"in_channels": saved.pictures.in_channels, "num_classes": saved.pictures.num_classes}
        keywords = {key: value for key, value in saved.model.items() if key != "name"} | sizes
        found = cls(saved.model["name"], keywords, saved.pictures.plain())
        found.network.load_state_dict(saved.network.state_dict())
        return found.eval()

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> str | None:
        """As huggingface_hub has it, with a digest of weights and configuration in config.json."""
        pushes = options.pop("push_to_hub", False)
        super().save_pretrained(save_directory, **options)
        config, weights = Path(save_directory) / "config.json", Path(save_directory) / "model.safetensors"
        arguments = {"name": self.name, "keywords": self.keywords, "pictures": self.pictures}
        written, _ = read_signed(config)
        write_whole(config, signed(written | arguments | {"version": VERSION}, weights.read_bytes()))
        if not pushes:
            return None
        return self.push_to_hub(options.pop("repo_id", None) or Path(save_directory).name, **options)

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | Path,
        *,
        force_download: bool = False,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        revision: str | None = None,
        map_location: Any = "cpu",
        strict: bool = True,
        **changes: Any,
    ) -> Self:
        """The network of a folder or of the Hub, in eval mode, with all of its weights or not at all.

        Args:
            pretrained_model_name_or_path: a folder written by `save_pretrained`, or what it is called on the Hub.
            force_download, token, cache_dir, local_files_only, revision: of the download.
            map_location: the device.
            strict: is always so.
            changes: arguments in place of those in config.json.

        Raises:
            ValueError: files that are damaged or not those that were written, or weights of another network.
            OSError: there are no such files.
        """
        folder = Path(pretrained_model_name_or_path)
        if not folder.is_dir():
            found = snapshot_download(
                str(pretrained_model_name_or_path),
                revision=revision,
                cache_dir=cache_dir,
                force_download=force_download,
                local_files_only=local_files_only,
                token=token,
                allow_patterns=["config.json", "model.safetensors"],
            )
            folder = Path(found)
        config, weights, has_digest = read_weights(folder)
        config |= changes
        keywords = config.get("keywords") or {}
        if not isinstance(keywords, dict):
            raise ValueError(f"{folder} does not say what network it holds: keywords must stand under names")
        inner = {name.removeprefix("network."): value for name, value in weights.items()}
        network = build(folder, keywords | {"name": config.get("name")}, inner, config["version"])
        if not has_digest:
            warnings.warn(
                f"{folder} was written by an earlier version, without a digest: names and shapes of its weights are "
                "right, damage to their values cannot be seen; save it again",
                stacklevel=2,
            )
        saved = cls(config["name"], keywords, config.get("pictures"))
        saved._hold(network)
        return saved.to(map_location).eval()

    @property
    def pretrained_cfg(self) -> dict[str, Any]:
        """As `Network.pretrained_cfg`."""
        return self.network.pretrained_cfg

    def no_weight_decay(self) -> set[str]:
        """As `Network.no_weight_decay`."""
        return {f"network.{name}" for name in self.network.no_weight_decay()}

    def forward(self, images: Tensor) -> Tensor:
        return self.network(images)


def _written(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keywords as config.json holds them."""
    plain = {key: value.name if isinstance(value, Group) else value for key, value in keywords.items()}
    try:
        return json.loads(json.dumps(plain))
    except TypeError as error:
        raise ValueError(f"keywords of a network on the Hub must be names, numbers or lists of them: {error}") from None
