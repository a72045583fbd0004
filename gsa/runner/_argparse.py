"""What Hydra asks of Python's argparse."""

import argparse
from typing import Any

__all__ = ["let_hydra_parse"]


def let_hydra_parse() -> None:
    """Have the argparse of Python 3.14 take an option whose help is no text yet, such as one of Hydra 1.3.

    Earlier ones did; since then the help of every option is looked at when it is added, and no command could begin.
    """
    kind: Any = argparse._ActionsContainer
    look = getattr(kind, "_check_help", None)
    if look is not None and not hasattr(look, "passes_over"):

        def look_at_texts(self: Any, action: argparse.Action) -> None:
            if isinstance(action.help, str | None):
                look(self, action)

        look_at_texts.passes_over = True  # type: ignore[attr-defined]
        kind._check_help = look_at_texts
