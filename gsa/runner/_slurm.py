"""Jobs of SLURM: which of their processes make one run, and what a job is called that is queued again."""

import os
import re
import subprocess

from lightning.pytorch.plugins.environments import (
    ClusterEnvironment,
    LightningEnvironment,
    SLURMEnvironment,
    TorchElasticEnvironment,
)

__all__ = ["SlurmStep", "environments", "queue_again"]


class SlurmStep(ClusterEnvironment):
    """The processes of one srun, for a run of all of them: Lightning's own environment without its requeueing.

    That one takes its size from the job and not from the step, refuses --ntasks, and answers SIGUSR1 with a checkpoint
    of its own, which it then prefers to that of a run.
    """

    @property
    def creates_processes_externally(self) -> bool:
        return True

    @property
    def main_address(self) -> str:
        nodes = os.environ["SLURM_STEP_NODELIST"] if int(os.environ["SLURM_STEP_NUM_NODES"]) > 1 else "127.0.0.1"
        return os.environ.setdefault("MASTER_ADDR", SLURMEnvironment.resolve_root_node_address(nodes))

    @property
    def main_port(self) -> int:
        """Another one for every step of every job."""
        own = 31 * int(os.environ["SLURM_JOB_ID"]) + int(os.environ["SLURM_STEP_ID"])
        return int(os.environ.setdefault("MASTER_PORT", str(15000 + own % 10000)))

    @staticmethod
    def detect() -> bool:
        """Whether srun has started several processes, this one among them."""
        return int(os.environ.get("SLURM_STEP_NUM_TASKS", 1)) > 1

    def world_size(self) -> int:
        return int(os.environ["SLURM_STEP_NUM_TASKS"])

    def set_world_size(self, size: int) -> None:
        pass

    def global_rank(self) -> int:
        return int(os.environ["SLURM_PROCID"])

    def set_global_rank(self, rank: int) -> None:
        pass

    def local_rank(self) -> int:
        return int(os.environ["SLURM_LOCALID"])

    def node_rank(self) -> int:
        return int(os.environ["SLURM_NODEID"])

    def validate_settings(self, num_devices: int, num_nodes: int) -> None:
        """Refuse a trainer of another number of processes.

        Raises:
            ValueError: with what the trainer would have to be.
        """
        nodes, tasks = int(os.environ["SLURM_STEP_NUM_NODES"]), os.environ["SLURM_STEP_TASKS_PER_NODE"]
        each = re.fullmatch(r"(\d+)(\(x\d+\))?", tasks)
        if each is None:
            raise ValueError(
                f"srun must start as many processes on every node, but has started {tasks}: --ntasks-per-node says so"
            )
        if (num_nodes, num_devices) != (nodes, int(each[1])):
            raise ValueError(
                f"srun has started {each[1]} processes on each of {nodes} nodes: expected trainer.num_nodes={nodes} "
                f"trainer.devices={each[1]}, but got {num_nodes} and {num_devices}"
            )


def environments(together: bool) -> list[ClusterEnvironment]:
    """The environment of a trainer under SLURM; none elsewhere, where Lightning finds one.

    Args:
        together: whether a run may have several processes. Those of srun make one run then; without, and in a script
            that srun has not started, a process is alone, and starts others itself if the trainer has several devices.
    """
    if "SLURM_JOB_ID" not in os.environ or TorchElasticEnvironment.detect():
        return []
    return [SlurmStep() if together and SlurmStep.detect() else LightningEnvironment()]


def queue_again() -> str:
    """Have this job queued again; what became of that, in words."""
    array, job = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ["SLURM_JOB_ID"]
    name = job if array is None else f"{array}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    try:
        done = subprocess.run(["scontrol", "requeue", name], capture_output=True, text=True)
    except OSError as error:
        return f"job {name} cannot be queued again: {error}"
    return f"job {name} is queued again" if done.returncode == 0 else f"job {name} is not queued again: {done.stderr}"
