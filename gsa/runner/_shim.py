"""Temporary."""

from types import SimpleNamespace
from gsa.models import preset as old


def preset(name):
    data = name.split("_")[0]
    kind = name.rsplit("_", 1)[1]
    recipe = {"sa": f"{data}_sa", "cnn": f"{data}_cnn", "vit": "vit"}[kind]
    if name == "rotmnist_z2_cnn":
        recipe = "rotmnist_z2_cnn"
    if data == "digits":
        recipe = "digits"
    return SimpleNamespace(data=data, recipe=recipe, all_keywords=old(name))
