"""One of the processes of a run, other than the first: python -m gsa.runner.rank config.yaml PARENT"""

import os
import sys
import threading
import time

from omegaconf import OmegaConf

from gsa.runner import train

__all__ = ["main"]


def main(config: str, parent: int) -> None:
    """Take part in the run of a configuration; end when the first process does."""
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    train(OmegaConf.load(config))


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
