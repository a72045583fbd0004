"""Training with Lightning: what is put together here for a run can be used in anybody's."""

from gsa._extras import brought_by

with brought_by("train"):
    from gsa.training._averaging import AveragedWeights
    from gsa.training._best_checkpoint import BestCheckpoint
    from gsa.training._checkpoint_plugin import SafeCheckpointIO
    from gsa.training._classifier import Classifier
    from gsa.training._cuda_graph import CudaGraph
    from gsa.training._examination import Examination, Findings, Mistake
    from gsa.training._finite_steps import FiniteSteps, NotFinite
    from gsa.training._history import History
    from gsa.training._last_checkpoint import LastCheckpoint
    from gsa.training._loss import TrainingLoss
    from gsa.training._moved_runs import MovedRuns
    from gsa.training._muon import Muon, muon
    from gsa.training._parameters import parameter_groups, sort_parameters
    from gsa.training._progress import EpochProgress
    from gsa.training._recordable import check_recordable
    from gsa.training._recorded_classifier import RecordedClassifier
    from gsa.training._schedules import constant, schedule, steps, warmup_cosine
    from gsa.training._seeded_steps import SeededSteps
    from gsa.training._signals import SaveOnSignal, Stopped
    from gsa.training._strategy import ddp, warn_of_batch_norm

__all__ = [
    "AveragedWeights",
    "BestCheckpoint",
    "Classifier",
    "CudaGraph",
    "EpochProgress",
    "Examination",
    "Findings",
    "FiniteSteps",
    "History",
    "LastCheckpoint",
    "Mistake",
    "MovedRuns",
    "Muon",
    "NotFinite",
    "RecordedClassifier",
    "SafeCheckpointIO",
    "SaveOnSignal",
    "SeededSteps",
    "Stopped",
    "TrainingLoss",
    "check_recordable",
    "constant",
    "ddp",
    "muon",
    "parameter_groups",
    "schedule",
    "sort_parameters",
    "steps",
    "warmup_cosine",
    "warn_of_batch_norm",
]
