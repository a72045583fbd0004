"""The choices of model=… and experiment=…, made from the presets."""

from hydra.core.config_store import ConfigStore

from gsa.models import list_models, preset

__all__ = ["store_presets"]


def store_presets() -> None:
    """Make every network known to Hydra.

    model=<name> stands for the network's keywords, its data and its recipe, unless others of these are chosen;
    experiment=<data>/<rest> for the same. The keywords are a choice of their own, model/keywords, which is composed
    before the recipe, so that a recipe may set some of them.
    """
    store = ConfigStore.instance().store
    for name in list_models():
        chosen = preset(name)
        keywords = {"_target_": "gsa.create_model", "name": name, **chosen.keywords}
        del keywords["in_channels"], keywords["num_classes"]  # those of the data
        store(group="model/keywords", name=name, node=keywords, package="model")
        brings = [{"override /data": chosen.data}, {"override /recipe": chosen.recipe}]
        of_model = {"defaults": [{"override /model/keywords": name}, *brings]}
        store(group="model", name=name, node=of_model, package="_global_")
        of_experiment = {"defaults": [{"override /model": name}, *brings]}
        row = name.removeprefix(f"{chosen.data}_")
        store(group=f"experiment/{chosen.data}", name=row, node=of_experiment, package="_global_")
