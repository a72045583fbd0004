"""gsa dashboard"""

from argparse import Namespace

import wandb

from gsa.report import dashboard

__all__ = ["run"]


def run(options: Namespace) -> int:
    """A workspace for our runs on wandb, for people with an account."""
    entity, slash, project = options.project.partition("/")
    if not (entity and slash and project) or "/" in project:
        raise ValueError(f"the project must be given as ENTITY/PROJECT, but got {options.project!r}")
    try:
        print(dashboard(entity, project).save().url)
    except wandb.errors.Error as error:
        raise ValueError(f"wandb did not take it: {error}") from error
    return 0
