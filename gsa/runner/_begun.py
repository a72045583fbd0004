"""When a command began, by which folders are named: one moment for all processes of a run."""

import os
from datetime import datetime
from typing import Any

__all__ = ["begun"]


def begun(form: str, together: Any, ckpt_path: str | None = None) -> str:
    """The present moment, the same in every process that torchrun or srun has started for one run.

    torchrun's agent keeps what the first process says, also for those that it starts again after a failure; of srun,
    the numbers of the job and its step say when. They do so of every run in a job of SLURM that goes on by itself,
    which a job that is queued again has to find.

    Args:
        form: of the moment, as in `datetime.strftime`.
        together: whether they train one run, and not each its own, as agents of a sweep that srun has started do.
        ckpt_path: of the run; "auto" goes on.
    """
    now = datetime.now().strftime(form)
    tasks = int(os.environ.get("SLURM_STEP_NUM_TASKS", 1))
    of_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if "SLURM_JOB_ID" in os.environ and ckpt_path == "auto" and (of_agent or not (together and tasks > 1)):
        is_one_of_several = tasks > 1 and int(os.environ.get("GROUP_WORLD_SIZE", 1)) == 1  # not one agent a node
        return f"job_{os.environ['SLURM_JOB_ID']}" + is_one_of_several * f"_{os.environ.get('SLURM_PROCID')}"
    if not together:
        return now
    if of_agent:
        from torch.distributed import TCPStore  # slow, and not for what one process shows or refuses

        agent = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
        return agent.compare_set("gsa/begun", "", now).decode()
    if tasks > 1:
        return f"job_{os.environ['SLURM_JOB_ID']}_{os.environ['SLURM_STEP_ID']}"
    return now
