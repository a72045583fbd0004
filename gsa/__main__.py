"""`python -m gsa` is the command gsa."""

import sys

from gsa.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
