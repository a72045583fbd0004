"""Lightning data modules, one data set a file."""

from gsa._extras import brought_by

with brought_by("train"):
    from gsa.data._cifar10 import CIFAR10DataModule
    from gsa.data._digits import DigitsDataModule, turned_digits
    from gsa.data._own_data import BadBatch, ImageData, OwnData, completed
    from gsa.data._pcam import PCamDataModule
    from gsa.data._pictures import LabelledPictures, PictureDataModule, pictures_in_memory
    from gsa.data._rotmnist import RotMNISTDataModule, turned_mnist
    from gsa.data.folder import ImageFolderDataModule

__all__ = [
    "BadBatch",
    "CIFAR10DataModule",
    "DigitsDataModule",
    "ImageData",
    "ImageFolderDataModule",
    "LabelledPictures",
    "OwnData",
    "PCamDataModule",
    "PictureDataModule",
    "RotMNISTDataModule",
    "completed",
    "pictures_in_memory",
    "turned_digits",
    "turned_mnist",
]
