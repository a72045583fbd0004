"""Lightning data modules, one data set a file."""

from gsa.data._digits import DigitsDataModule, turned_digits

__all__ = ["DigitsDataModule", "turned_digits"]
