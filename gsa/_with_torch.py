"""Wherever gsa and torch are both imported, in either order, torch knows our operator: exported programs call it."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["register_op_with_torch"]


def register_op_with_torch() -> None:
    """Import `gsa.ops`, which registers the operator: at once where torch is there already, or else after it."""
    if "torch" in sys.modules:
        import_module("gsa.ops")
    else:
        sys.meta_path.insert(0, _AfterTorch())


class _AfterTorch(MetaPathFinder):
    """Finds torch where it is, and has `gsa.ops` imported after it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "torch" else None
        if spec is not None and spec.loader is not None:
            sys.meta_path.remove(self)
            run = spec.loader.exec_module

            def run_and_register(module: ModuleType) -> None:
                run(module)
                import_module("gsa.ops")

            spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
