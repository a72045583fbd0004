"""When a command began, by which folders are named: one moment for all processes of a run."""

import os
from datetime import datetime
from typing import Any

__all__ = ["begun"]


def begun(form: str, together: Any) -> str:
    """The present moment, the same in every process that torchrun or srun has started for one run.

    torchrun's agent keeps what the first process says, also for those that it starts again after a failure; of srun,
    the numbers of the job and its step say when.

    Args:
        form: of the moment, as in `datetime.strftime`.
        together: whether they train one run, and not each its own, as agents of a sweep that srun has started do.
    """
    now = datetime.now().strftime(form)
    if not together:
        return now
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        from torch.distributed import TCPStore  # slow, and not for what one process shows or refuses

        agent = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
        return agent.compare_set("gsa/begun", "", now).decode()
    if int(os.environ.get("SLURM_STEP_NUM_TASKS", 1)) > 1:
        return f"job_{os.environ['SLURM_JOB_ID']}_{os.environ['SLURM_STEP_ID']}"
    return now
