"""Configurations of earlier versions, with the keys that there are since, as they were then."""

from typing import Any

from gsa.models import list_models, preset

__all__ = ["as_meant", "network_as_meant"]

_LATER_KEYS = {
    "label_smoothing": 0.0,
    "mixup": 0.0,
    "class_weights": None,
    "start_from": None,
}  # which runs were without
_EARLIER_BEST = "lightning.pytorch.callbacks.ModelCheckpoint"  # of callbacks.best, which goes on as ours
_OF_ALL_DATA = {"train_pictures": None}
_LATER_DATA: dict[str, dict[str, Any]] = {  # keys that these data have got since, as it was without them
    "gsa.data.CIFAR10DataModule": _OF_ALL_DATA,
    "gsa.data.DigitsDataModule": _OF_ALL_DATA | {"turned": "all"},
    "gsa.data.PCamDataModule": _OF_ALL_DATA | {"split_seed": 0},
    "gsa.data.RotMNISTDataModule": _OF_ALL_DATA | {"clutter": 0, "occlusion": 0},
    "gsa.data.ImageFolderDataModule": _OF_ALL_DATA
    | {
        "test_share": 0.2,
        "unreadable": "refuse",
        "least_batches": 0,
        "groups": None,
        "white": None,
        "copies": "refuse",
        "channels": "colour",
        "fold": None,
        "kept_gb": 2,
        "framing": "centre",
        "labels": None,
        "columns": {"file": "file", "label": "label", "group": None, "part": None},
    },
}


def as_meant(run: dict[str, Any]) -> dict[str, Any]:
    """The configuration of a run with all its keys."""
    data, model = run.get("data", {}), run.get("model", {})
    later = _LATER_DATA.get(data.get("_target_"), {})
    return _LATER_KEYS | run | {"data": later | data, "model": network_as_meant(model)} | _callbacks_as_meant(run)


def _callbacks_as_meant(run: dict[str, Any]) -> dict[str, Any]:
    callbacks = run.get("callbacks") or {}
    best = callbacks.get("best") or {}
    if best.get("_target_") != _EARLIER_BEST:
        return {}
    return {"callbacks": callbacks | {"best": best | {"_target_": "gsa.training.BestCheckpoint"}}}


def network_as_meant(model: dict[str, Any]) -> dict[str, Any]:
    """The part of it that makes the network; those of other packages as they stand."""
    if model.get("_target_") != "gsa.create_model" or model.get("name") not in list_models():
        return model
    return preset(model["name"]).as_written(model)
