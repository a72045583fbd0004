"""Draw the house in docs/design.md from what the rooms import:  python docs/house.py

An arrow leads from a room to one that it imports; where a way of several arrows leads there as well, it is left out.
"""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "gsa"
PAGE = HERE / "design.md"


def rooms() -> dict[str, set[str]]:
    """The public folders and files of the package, and which of them each imports, at the top or inside functions."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if not room.startswith("_"):
            found[room] = found.get(room, set()) | _imported(path)
    return {room: {other for other in others if other in found and other != room} for room, others in found.items()}


def drawing(arrows: dict[str, set[str]]) -> str:
    """A Mermaid diagram."""
    lines = ["```mermaid", "flowchart TD"]
    for room, others in arrows.items():
        further = set().union(*(_reached(other, arrows) for other in others))
        lines += [f"    {room} --> {other}" for other in sorted(others - further)]
    return "\n".join([*lines, "```"])


def with_drawing(page: str) -> str:
    """The page, with its diagram drawn anew."""
    return re.sub(r"```mermaid\n.*?```", drawing(rooms()), page, flags=re.S)


def _imported(path: Path) -> set[str]:
    """Second parts of the names gsa.… that a file imports."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("gsa.")}


def _reached(room: str, arrows: dict[str, set[str]]) -> set[str]:
    """Every room that ways of one arrow or more lead to."""
    return set().union(*({other} | _reached(other, arrows) for other in arrows[room]))


if __name__ == "__main__":
    PAGE.write_text(with_drawing(PAGE.read_text()))
