"""Anybody's pictures in a folder: what is read, what they are called, what belongs together, how they are divided.

`ClassFolders` or `LabelTable` say which files there are and of which class, `look_at` reads each once, and the `Dealer`
deals them out to parts.
"""

from gsa.data.folder._module import ImageFolderDataModule

__all__ = ["ImageFolderDataModule"]
