"""gsa explore"""

from argparse import Namespace

from gsa.explore import page
from gsa.files import write_whole
from gsa.saved import read

__all__ = ["run"]


def run(options: Namespace) -> int:
    """Write the page, and say where it is and how large."""
    document = page(read("digits_gsa")).encode()
    write_whole(options.save, document)
    print(f"{options.save} ({len(document) / 1e6:.1f} MB): open it in a browser; it needs no server and no network")
    return 0
