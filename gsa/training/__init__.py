"""Training with Lightning."""

from gsa.training._classifier import Classifier

__all__ = ["Classifier"]
