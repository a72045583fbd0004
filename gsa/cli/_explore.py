"""gsa explore"""

import ipaddress
import socket
import sys
import webbrowser
from argparse import Namespace

import torch

from gsa.cli._subject import subject
from gsa.explore import page
from gsa.files import write_whole
from gsa.groups import group
from gsa.saved import read
from gsa.symmetry import LayerReport

__all__ = ["run"]

_SHIPPED = ("digits_gsa", "digits_gsa_z2", "rotmnist_gsa")


def run(options: Namespace) -> int:
    """Write the page, and say where it is and how large; or answer it on this machine until Ctrl-C."""
    if options.save is None:
        return _serve(options)
    if options.checkpoint:
        raise ValueError("--checkpoint is of the page that is served, but --save writes one; leave one of them out")
    document = page(read("digits_gsa"), read("digits_gsa_z2"), reports=_reports(options)).encode()
    write_whole(options.save, document)
    print(f"{options.save} ({len(document) / 1e6:.1f} MB): open it in a browser; it needs no server and no network")
    return 0


def _serve(options: Namespace) -> int:
    from gsa.explore.server import application, serve  # the extra `explore`

    if not 0 <= options.port < 2**16:
        raise ValueError(f"--port must be from 0 to 65535, but got {options.port}")
    torch.set_num_threads(1)  # fastest for two small pictures, and the browser has the other cores
    networks = {str(name): read(name) for name in (*options.checkpoint, *_SHIPPED)}
    answers = application(networks, options.host, lambda: _reports(options))
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.create_server((options.host, options.port), family=family) as bound:
        host, port = bound.getsockname()[:2]
        if not ipaddress.ip_address(host).is_loopback:
            print(
                f"gsa: everybody who reaches {host} can see the page and ask this machine to compute", file=sys.stderr
            )
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        print(f"{address}: open it in a browser; Ctrl-C ends it", flush=True)
        if options.open:
            webbrowser.open(address)
        serve(answers, bound)
    return 0


def _reports(options: Namespace) -> dict[str, LayerReport]:
    return {what: _report(what, options) for what in options.model}


def _report(what: str, options: Namespace) -> LayerReport:
    """Layer by layer, in float64, under the group that was named, or the network's own."""
    network, images, own = subject(what, options.input)
    if own is None or own.order == 1:
        own = group("R4")
    return LayerReport.of(network.double(), images.double(), group(options.group) if options.group else own)
