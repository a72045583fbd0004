"""One of the processes of a run: python -c "from gsa.runner import rank; rank.run()" FOLDER config.yaml PARENT"""

import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path

from torch.distributed.elastic.multiprocessing.errors import record

from gsa._streams import open_streams, outlive_readers
from gsa.runner._config_file import read_config
from gsa.runner._folder import TakenAway
from gsa.runner._run import take_part
from gsa.training import Stopped

__all__ = ["main", "run"]


@record
def main(folder: str, config: str, parent: int) -> None:
    """Take part in the run of a configuration, in its folder; end when the process that started this one does."""
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # which the process that started this one answers
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    if (rank := os.environ["RANK"]) != "0":
        with open(Path(folder) / f"rank_{rank}.log", "w", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
    with suppress(Stopped):  # code 0: for any other, the processes that are still saving would be ended
        take_part(read_config(Path(config)))


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def run() -> None:
    """`main`, with the arguments of the command."""
    open_streams()
    outlive_readers()
    try:
        main(*sys.argv[1:3], int(sys.argv[3]))
    except Exception as error:  # which the process that started this one tells in a line
        if os.environ["RANK"] != "0":
            raise
        if not isinstance(error, TakenAway):
            with open(Path(sys.argv[1]) / "train.log", "a", encoding="utf-8") as log:
                traceback.print_exc(file=log)
        sys.exit(1)
