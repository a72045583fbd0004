"""gsa explore"""

from argparse import Namespace

from gsa.cli._subject import subject
from gsa.explore import page
from gsa.files import write_whole
from gsa.groups import group
from gsa.saved import read
from gsa.symmetry import LayerReport

__all__ = ["run"]


def run(options: Namespace) -> int:
    """Write the page, and say where it is and how large."""
    reports = {what: _report(what, options) for what in options.model}
    document = page(read("digits_gsa"), read("digits_gsa_z2"), reports=reports).encode()
    write_whole(options.save, document)
    print(f"{options.save} ({len(document) / 1e6:.1f} MB): open it in a browser; it needs no server and no network")
    return 0


def _report(what: str, options: Namespace) -> LayerReport:
    """Layer by layer, in float64, under the group that was named, or the network's own."""
    network, images, own = subject(what, options.input)
    if own is None or own.order == 1:
        own = group("R4")
    return LayerReport.of(network.double(), images.double(), group(options.group) if options.group else own)
