"""Whether wandb can be reached from here."""

import netrc
import os
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

__all__ = ["wandb_is_out_of_reach"]


def wandb_is_out_of_reach() -> bool:
    """Whether nobody is logged in, or the server does not answer."""
    if (mode := os.environ.get("WANDB_MODE", "online")) != "online":
        return mode != "disabled"  # in which wandb reaches for nothing, and writes nothing
    import wandb

    settings = wandb.setup().settings
    server = urlsplit(settings.base_url).hostname
    if not (os.environ.get("WANDB_API_KEY") or settings.api_key or _has_password(server)):
        return True
    try:
        urlopen(settings.base_url, timeout=5).close()
    except HTTPError:  # an answer, too
        return False
    except (OSError, HTTPException):
        return True
    return False


def _has_password(host: str) -> bool:
    """Whether ~/.netrc, where `wandb login` writes, knows the host."""
    try:
        return netrc.netrc(os.environ.get("NETRC")).authenticators(host) is not None
    except (OSError, netrc.NetrcParseError):
        return False
