"""Build the API reference from the docstrings:  python docs/reference.py [folder];  a warning is an error.

Every module of gsa whose path has no leading underscore gets a page, with what its `__all__` names.
"""

import importlib
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import pdoc

import gsa

PACKAGE = Path(gsa.__file__).parent
HERE = Path(__file__).parent


def public_modules() -> list[str]:
    """Dotted names of the modules that say what is public, but for the implementations of the op."""
    names = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if not any(part.startswith("_") or part == "impl" for part in parts) and "__all__" in path.read_text():
            names.append(".".join(parts))
    return names


def build(folder: Path, *modules: str) -> None:
    """Write one HTML page a module.

    Raises:
        UserWarning: whatever pdoc warns of, such as an annotation that names nothing.
    """
    pdoc.render.configure(
        docformat="google", template_directory=HERE / "template", footer_text=f"gsa {gsa.__version__}", search=True
    )
    for name in modules:
        module = importlib.import_module(name)  # here, because pdoc imports with fewer things allowed
        for public in getattr(module, "__all__", ()):
            setattr(module, public, getattr(module, public))  # some are imported when they are asked for
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        pdoc.pdoc(*(module for module in modules if not _is_listed(module, modules)), output_directory=folder)


def _is_listed(module: str, modules: Sequence[str]) -> bool:
    """Whether pdoc comes upon a module by itself, in the `__all__` of the package around it."""
    parent, _, name = module.rpartition(".")
    return parent in modules and name in sys.modules[parent].__all__


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parent / "build" / "reference")
    build(target, *public_modules())
    print(target / "index.html")
