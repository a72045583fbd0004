"""Anybody's pictures, in one folder a class, or with their labels in a table."""

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from torch.utils.data import Subset

from gsa._limits import FOLDERS, check_groups, check_limits
from gsa.data._kept import KeptPictures
from gsa.data._picture_files import PictureFiles, digest_of
from gsa.data._pictures import LabelledPictures, PictureDataModule
from gsa.data.folder._brightness import warn_of_brightness
from gsa.data.folder._class_folders import ClassFolders, refuse_links
from gsa.data.folder._dealing import Dealer
from gsa.data.folder._folds import read_fold
from gsa.data.folder._groups import refuse_groups_in_two_parts, warn_of_folders
from gsa.data.folder._label_table import LabelTable
from gsa.data.folder._looked_at import listed_reasons, look_at, warn_of_files
from gsa.data.folder._table_lines import COLUMNS, checked_columns
from gsa.files import printable
from gsa.files.pictures import BENEATH, count_pages
from gsa.files.reading import PictureReader

__all__ = ["ImageFolderDataModule"]

_CLASSES = 8  # of a line
_OPENED = 50  # files of a class, to count their pages


class ImageFolderDataModule(PictureDataModule):
    """Pictures at root/<class>/*, or at root/{train,val,test}/<class>/* where they are in parts already; or in a table.

    Of plain class folders, shares of every class are drawn for test and validation; of parts without a folder val, a
    share of every class of train is set apart. Pictures are PNG, JPEG, TIFF, BMP, WebP or GIF (its first frame) of at
    most 100 million pixels, of any size; the shorter side is scaled to `size`, and the centre cut out. Files whose
    names do not end as pictures' do are passed over and warned of, but for hidden ones. `setup` reads every file once.

    Args:
        root: holds the folders of the classes; or the folders train, test and perhaps val, each with the same classes.
        size: side of the pictures in pixels.
        val_share: of the pictures that are not for the test, where there is no folder val.
        test_share: of the pictures of every class, where there are no parts; 1 tests a trained network on all of them,
            as a folder test does that has neither train nor val beside it. Then a class may be an empty folder.
        least_batches: an epoch goes through few pictures several times, until it has so many batches.
        unreadable: "refuse" data with files that cannot be read, or "skip" those files with a warning.
        groups: of pictures that come into one part, whatever their class: None; "folder" of a class that they are in,
            such as <class>/<patient>/*; or a regular expression with one group, which is looked for in the paths below
            the folders of the classes, such as '^(p\\d+)_'.
        white: the value that is white in files of more than 8 bits, such as 4095; the largest that they hold when None.
            Of pages, also a list with a value for each.
        copies: "refuse" files with the same content in two classes, parts or groups, or "keep" them with a warning.
        split_seed: of the shares; part of the data's identity, apart from `seed`.
        channels: "colour", three; "grey", one; or "pages": those of a TIFF are its channels, the same number in every
            file, each of them grey.
        fold: of cross-validation, such as "2/5": the second of five shares is the test part, in place of a test_share,
            and every picture is in one of them.
        labels: a table with a line for every picture, in place of the folders of classes: text in UTF-8, with values
            between commas, semicolons or tabs, and the names of its columns in the first line.
        columns: the names of those of "file" (path below the root, or its last part, with its ending or without) and
            "label", and if there are such, of "group" (of pictures that come into one part, in place of `groups`) and
            "part" (train, val, test).
        framing: "centre", the central square of a picture; or "whole", all of it, on grey where it is no square.
        kept_gb: gigabytes of pictures that stay in memory once they are read, scaled and cut, of all parts; what is
            more is read anew in every epoch.
        batch_size, seed, augmentation, num_workers, eval_batch_size, train_pictures: as in `PictureDataModule`.

    Raises:
        ValueError: an argument out of its range; folders whose classes differ; a class with too few pictures; files
            that cannot be read.
        FileNotFoundError: no such folders, or table.
    """

    name = "imagefolder"

    def __init__(
        self,
        root: str | os.PathLike[str] = "data",
        size: int = 32,
        val_share: float = 0.1,
        batch_size: int = 32,
        split_seed: int = 0,
        seed: int = 0,
        augmentation: Sequence[str] = (),
        num_workers: int = 0,
        eval_batch_size: int | None = None,
        test_share: float = 0.2,
        unreadable: str = "refuse",
        least_batches: int = 0,
        groups: str | None = None,
        white: int | Sequence[int] | None = None,
        copies: str = "refuse",
        train_pictures: int | None = None,
        channels: str = "colour",
        fold: str | None = None,
        kept_gb: float = 2,
        labels: str | os.PathLike[str] | None = None,
        columns: Mapping[str, str | None] = COLUMNS,
        framing: str = "centre",
    ) -> None:
        super().__init__(batch_size, seed, augmentation, num_workers, eval_batch_size, train_pictures)
        check_limits(FOLDERS, locals())
        check_groups(groups)
        self.labels, self.columns = None if labels is None else Path(labels), checked_columns(columns)
        if labels is None and self.columns != COLUMNS:
            raise ValueError(f"columns are those of a table, but there is none (data.labels): got {dict(columns)}")
        if groups is not None and self.columns["group"] is not None:
            raise ValueError(f"groups must be None where columns have a group, but got {groups!r}")
        self.root, self.image_size, self.val_share, self.split_seed = Path(root), size, val_share, split_seed
        self.test_share, self.unreadable, self.least_batches = test_share, unreadable, least_batches
        if channels == "pages" and "randaugment" in self.augmentation:
            raise ValueError("augmentation must be without randaugment, which changes colours, where channels='pages'")
        self.groups, self.white, self.copies = groups, _checked_white(white, channels), copies
        self.kept_gb, self.framing = kept_gb, framing
        self._contents: Mapping[str, str] = {}
        self._said: Mapping[str, str] = {}  # of a file by a table, which its path does not tell
        self.channels, self.fold = channels, read_fold(fold)
        told = (self.root.absolute().name, self.labels and self.labels.name, fold and f"fold {fold}")
        self.source = ", ".join(word for word in told if word)

    @property
    def num_classes(self) -> int:  # type: ignore[override]
        """Number of the classes."""
        return len(self.classes)

    @property
    def classes(self) -> list[str]:
        """Names of the classes, as folders or the table have them."""
        return self._labelled.classes

    @cached_property
    def in_channels(self) -> int:  # type: ignore[override]
        """Three of colours, one of grey; of pages as many as most of the first fifty files of each class have."""
        if self.channels != "pages":
            return 3 if self.channels == "colour" else 1
        counts: Counter[int] = Counter()
        for path in self._labelled.some(_OPENED):
            with suppress(ValueError):  # of what cannot be opened
                counts[count_pages(path)] += 1
        return max(counts, key=lambda pages: (counts[pages], pages), default=1)

    @property
    def mean(self) -> Sequence[float]:  # type: ignore[override]
        """The middle of every channel."""
        return (0.5,) * self.in_channels

    @property
    def std(self) -> Sequence[float]:  # type: ignore[override]
        """A quarter of the range of every channel."""
        return (0.25,) * self.in_channels

    @property
    def for_test_only(self) -> bool:  # type: ignore[override]
        """Whether test_share takes all, or there is no other part than root/test."""
        parts = self._labelled.parts
        return self.fold is None and (parts == ["test"] or (parts == ["all"] and self.test_share == 1))

    @cached_property
    def digests(self) -> dict[str, str]:  # type: ignore[override]
        """Of the paths below the root and the labels of every part, in their order; and of what the files hold."""
        files = {part: pictures.files or () for part, pictures in self.parts.items()}
        paths = {part: digest_of(of_part, partial(os.path.relpath, start=self.root)) for part, of_part in files.items()}
        held = {f"{part} contents": digest_of(of_part, self._contents.__getitem__) for part, of_part in files.items()}
        return paths | held

    def describe(self) -> dict[str, str | int]:
        """With the classes and how many pictures each has, abbreviated, and channels that are not colours."""
        if not self.parts:
            return super().describe()
        counts = Counter(label for pictures in self.parts.values() for _, label in pictures.files or ())
        words = [f"{printable(name)} {counts[label]}" for label, name in enumerate(self.classes)]
        more = f", … and {len(words) - _CLASSES} more" if len(words) > _CLASSES else ""
        channels = {"grey": "1, grey", "pages": f"{self.in_channels}, the pages of every file"}
        told = {"files": self._digest_of_all()}
        if self.channels in channels:
            told["channels"] = channels[self.channels]
        if self._in_groups:
            told["groups"] = self.groups or f"by {self.columns['group']}"
        return super().describe() | {"classes": f"{len(words)}: {', '.join(words[:_CLASSES])}{more}"} | told

    def _digest_of_all(self) -> str:
        """Of all files that can be read, however they are divided; and of what a table says of them."""
        read = self._contents.keys() - {path for path, _ in self.left_out}
        names = {path: self._said.get(path, "") + os.path.relpath(path, self.root) for path in read}
        held = sorted(f"{name}\0{self._contents[path]}\n" for path, name in names.items())
        return hashlib.sha256(os.fsencode("".join(held))).hexdigest()

    @cached_property
    def _labelled(self) -> ClassFolders | LabelTable:
        """What says which pictures there are, and of which class and part."""
        if self.labels is None:
            return ClassFolders(self.root, self.groups)
        return LabelTable(self.labels, self.root, self.columns, self.groups)

    @property
    def _in_groups(self) -> bool:
        return self.groups is not None or self.columns["group"] is not None

    def load(self) -> dict[str, LabelledPictures]:
        are_pages, whole = self.channels == "pages", self.framing == "whole"
        reader = PictureReader(self.image_size, self.in_channels, self.white, are_pages, whole)
        pictures = KeptPictures(reader, self.kept_gb * 1e9)
        read, dealer = self._readable(self._labelled.pictures(pictures, may_lack=self.for_test_only), pictures)
        self._judge_groups(read)
        return self._divided(read, dealer)

    def _judge_groups(self, read: Mapping[str, PictureFiles]) -> None:
        """What belongs together must be in one part; where nobody has said what does, folders may."""
        if self.labels is not None:
            self._said = {
                path: f"{part}\0{self.classes[label]}\0{group}\0"
                for part, files in read.items()
                for (path, label), group in zip(files.files, files.groups, strict=True)
            }
        if self._in_groups:
            known = {part: files.group_of for part, files in read.items()}
            refuse_groups_in_two_parts({part: [*of_part.values()] for part, of_part in known.items()})
            self.group_of = {path: group for of_part in known.values() for path, group in of_part.items()}
        elif "val" not in read and not self.for_test_only:
            dealt_out = read["all" if "all" in read else "train"]
            warn_of_folders(self.classes, dealt_out.labels, dealt_out.groups, self.labels is None)

    def _divided(self, read: dict[str, PictureFiles], dealer: Dealer) -> dict[str, LabelledPictures]:
        """Into three parts, as far as they are not."""
        if self.fold is not None:
            if "all" not in read:
                held = f"{self.labels or self.root} holds {', '.join(read)}"
                raise ValueError(f"fold divides pictures that are in no parts yet, but {held}")
            return {**dealer.fold(read["all"], self.fold, self.val_share)}
        if self.for_test_only:
            (files,) = read.values()
            none = Subset(files, [])
            return {"train": none, "val": none, "test": dealer.mixed(files, range(len(files)))}
        if "all" in read:
            shares = {"test": self.test_share, "val": (1 - self.test_share) * self.val_share}
            different = {self._contents[path] for path, _ in read["all"].files}
            if not self._in_groups and len(different) < len(read["all"]):  # copies together
                self.redrawn = ("train", *shares)
            return {**dealer.deal(read["all"], shares)}
        parts: dict[str, LabelledPictures] = {
            part: files if part == "train" else dealer.mixed(files, range(len(files))) for part, files in read.items()
        }
        if "val" not in parts:
            if not self._in_groups:  # class by class
                self.redrawn = ("train", "val")
            parts |= dealer.deal(read["train"], {"val": self.val_share})
        return parts

    def _readable(
        self, parts: dict[str, PictureFiles], pictures: KeptPictures
    ) -> tuple[dict[str, PictureFiles], Dealer]:
        """The parts without files that cannot be read, of which one message tells, and what deals the others out."""
        paths = [path for files in parts.values() for path, _ in files.files]
        refuse_links(paths, "every picture must be a file of its own")
        seen = look_at(paths, pictures)
        stacks = [path for path, found in seen.items() if found.more_pages]
        warn_of_files("several pages, of which only the first is read without data.channels=pages", stacks, self.root)
        if self.framing == "centre":
            long = [path for path, found in seen.items() if found.is_long]
            warn_of_files("half or more outside the central square, which data.framing=whole shows", long, self.root)
        transparent = [path for path, found in seen.items() if found.has_transparency]
        warn_of_files(f"transparent pixels, {BENEATH}", transparent, self.root)
        dark = [path for path, found in seen.items() if found.has_dark_numbers]
        warn_of_files("16-bit colours or floating numbers that come out dark: stretch all alike", dark, self.root)
        warn_of_brightness({path: found.brightest for path, found in seen.items()}, self.white, self.root)
        self._contents = {path: found.content for path, found in seen.items()}
        dealer = Dealer(self.classes, self._contents, self._in_groups, self.copies, self.split_seed)
        dealer.judge_copies({path: str(n) for files in parts.values() for path, n in files.files}, "class")
        dealer.judge_copies({path: part for part, files in parts.items() for path, _ in files.files}, "part")
        reasons = {path: found.unread for path, found in seen.items() if found.unread is not None}
        if not reasons:
            return parts, dealer
        listed = listed_reasons(reasons, self.root)
        found = f"{len(reasons)} of {len(paths)} files"
        if self.unreadable == "refuse":
            raise ValueError(
                f"{found} cannot be read; unreadable='skip' (data.unreadable=skip) trains without them:{listed}"
            )
        left = {part: files.without(reasons) for part, files in parts.items()}
        self.left_out = [file for files in parts.values() for file in files.files if file[0] in reasons]
        warnings.warn(f"{found} are left out:{listed}", stacklevel=2)
        return left, dealer


def _checked_white(white: int | Sequence[int] | None, channels: str) -> int | tuple[int, ...] | None:
    if white is None:
        return None
    values: tuple[Any, ...] = tuple(white) if isinstance(white, Sequence) and channels == "pages" else (white,)
    if not values or not all(type(value) is int and value >= 1 for value in values):
        several = ", or a list of them for pages" if channels == "pages" else ""
        raise ValueError(f"white must be an integer of at least 1{several}, or None, but got {white!r}")
    return values[0] if len(values) == 1 else values
