"""The choices of model=… and experiment=…, made from the presets."""

from collections.abc import Sequence
from typing import Any

from hydra.core.config_store import ConfigStore

from gsa._kept import kept

__all__ = ["store_presets", "with_network"]


def with_network(arguments: Sequence[str]) -> list[str]:
    """Arguments of the command line, of which data=<data> alone brings the network made for it, <data>_gsa.

    As model= brings its data and its recipe. Hydra cannot say both: what one choice brings has to stand before it. So
    in a sweep over data, each network stands for its data.
    """
    chosen = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    networks = [f"{data.strip()}_gsa" for data in chosen.get("data", "").split(",")]
    named = "model" in chosen or any(key.startswith("experiment") for key in chosen)
    if named or not set(networks) <= kept("presets", _presets, "gsa.models").keys():
        return list(arguments)
    model, place = f"model={','.join(networks)}", arguments.index(f"data={chosen['data']}")
    rest = arguments[place + 1 :]  # options may stand there, which end the choices
    return [*arguments[:place], *(arguments[place : place + 1] if len(networks) == 1 else []), model, *rest]


class _Shared(dict):
    """Stays one where Hydra copies its sources, which it does for every group that it lists: 140 times for --help."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Shared":
        return self


def store_presets() -> None:
    """Make every network known to Hydra.

    model=<name> stands for the network's keywords, its data and its recipe, unless others of these are chosen;
    experiment=<data>/<rest> for the same. The keywords are a choice of their own, model/keywords, which is composed
    before the recipe, so that a recipe may set some of them. model=own has none: its target is given.
    """
    store = ConfigStore.instance().store
    store(group="model/keywords", name="own", node={"_target_": "???"}, package="model")
    store(group="model", name="own", node={"defaults": [{"override /model/keywords": "own"}]}, package="_global_")
    for name, chosen in kept("presets", _presets, "gsa.models").items():
        data = chosen["data"]
        keywords = {"_target_": "gsa.create_model", "name": name, **chosen["keywords"]}
        del keywords["in_channels"], keywords["num_classes"]  # those of the data
        store(group="model/keywords", name=name, node=keywords, package="model")
        brings = [{"override /data": data}, {"override /recipe": chosen["recipe"]}]
        of_model = {"defaults": [{"override /model/keywords": name}, *brings]}
        store(group="model", name=name, node=of_model, package="_global_")
        of_experiment = {"defaults": [{"override /model": name}, *brings]}
        row = name.removeprefix(f"{data}_")
        store(group=f"experiment/{data}", name=row, node=of_experiment, package="_global_")
    ConfigStore.instance().repo = _Shared(ConfigStore.instance().repo)


def _presets() -> dict[str, Any]:
    from gsa.models import list_models, preset

    every = {name: preset(name) for name in list_models()}
    return {
        name: {"data": found.data, "recipe": found.recipe, "keywords": found.keywords} for name, found in every.items()
    }
