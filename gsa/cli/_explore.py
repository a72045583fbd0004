"""gsa explore"""

import errno
import ipaddress
import secrets
import socket
import sys
import webbrowser
from argparse import Namespace

import torch
from torch import Tensor, nn

from gsa.cli._subject import subject
from gsa.explore import page
from gsa.files import refuse_unwritable, write_whole
from gsa.groups import Group, group
from gsa.saved import read
from gsa.symmetry import LayerReport, measured_group

__all__ = ["run"]

_Subject = tuple[nn.Module, Tensor, Group]
_SHIPPED = ("digits_gsa", "digits_gsa_z2", "rotmnist_gsa")


def run(options: Namespace) -> int:
    """Write the page, and say where it is and how large; or answer it on this machine until Ctrl-C."""
    if options.save is None:
        return _serve(options)
    if options.checkpoint:
        raise ValueError("--checkpoint is of the page that is served, but --save writes one; leave one of them out")
    refuse_unwritable("--save", options.save)
    known = _subjects(options)
    print("computing all that the page shows, which takes a while", file=sys.stderr, flush=True)
    reports = _reports(known)
    document = page(read("digits_gsa"), read("digits_gsa_z2"), reports=reports).encode()
    write_whole(options.save, document)
    print(f"{options.save} ({len(document) / 1e6:.1f} MB): open it in a browser; it needs no server and no network")
    return 0


def _serve(options: Namespace) -> int:
    from gsa.explore.server import application, serve  # the extra `explore`

    if not 0 <= options.port < 2**16:
        raise ValueError(f"--port must be from 0 to 65535, but got {options.port}")
    torch.set_num_threads(1)  # fastest for two small pictures, and the browser has the other cores
    networks = {str(name): read(name) for name in (*options.checkpoint, *_SHIPPED)}
    known = _subjects(options)
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with _bound(options.host, options.port, family) as bound:
        host, port = bound.getsockname()[:2]
        key = secrets.token_urlsafe(16)
        answers = application(networks, host, lambda: _reports(known), options.host, key)
        if not ipaddress.ip_address(host).is_loopback:
            print("gsa: what is sent is not encrypted: who can read it on its way sees the key, too", file=sys.stderr)
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/?key={key}"
        print(f"open {address} in a browser; Ctrl-C ends it", flush=True)
        if options.open:
            webbrowser.open(address)
        serve(answers, bound)
    return 0


def _bound(host: str, port: int, family: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        free = "; leave --port out, and a free one is taken" if error.errno == errno.EADDRINUSE else ""
        raise ValueError(f"the page cannot be answered at {host}, port {port}: {error.strerror}{free}") from error


def _subjects(options: Namespace) -> dict[str, _Subject]:
    """The networks of --model, each with pictures and the group that was named, or its own; refused before any work."""
    given = [f"--{name} {value}" for name in ("group", "input") if (value := getattr(options, name))]
    if given and not options.model:
        raise ValueError(f"--group and --input are for --model, but got {' and '.join(given)} without it")
    named = group(options.group) if options.group else None
    found = {}
    for what in options.model:
        network, images, own = subject(what, options.input)
        found[what] = network, images, named or measured_group(own)
    return found


def _reports(known: dict[str, _Subject]) -> dict[str, LayerReport]:
    """Layer by layer, in float64."""
    return {what: LayerReport.of(net.double(), images.double(), of) for what, (net, images, of) in known.items()}
