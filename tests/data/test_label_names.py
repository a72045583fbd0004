"""Names in a table of labels, however they are written."""

import unicodedata

from gsa.data import ImageFolderDataModule
from tests.data.test_label_table import read, write_flat, write_table


def test_files_named_by_whole_paths_are_divided_as_others(tmp_path):
    labels, found = write_flat(tmp_path, count=20), []
    for whole in (0, 3):
        lines = [f"{tmp_path}/{name},{label}" if whole and row % whole == 0 else f"{name},{label}"
                 for row, (name, label) in enumerate(labels.items())]  # fmt: skip
        table = write_table(tmp_path, ["file,label", *lines])
        found.append(read(ImageFolderDataModule(tmp_path, 8, batch_size=1, labels=table)))
    assert found[0] == found[1]


def test_accents_of_labels_and_groups_are_one_sign_or_two(tmp_path):
    """As macOS writes them; planted: they would be three classes, and a patient in two parts."""
    labels = write_flat(tmp_path, count=20)
    forms = [unicodedata.normalize(form, "é") for form in ("NFC", "NFD")]
    lines = [f"{name},{label}{forms[row % 2]},{name[3]}{forms[row // 2 % 2]}" for row, (name, label) in
             enumerate(labels.items())]  # fmt: skip
    table = write_table(tmp_path, ["file,label,patient", *lines])
    module = ImageFolderDataModule(tmp_path, 8, batch_size=1, labels=table, columns={"group": "patient"})
    groups = [{name[3] for name in part} for part in read(module).values()]
    assert len(module.classes) == 2 and sum(map(len, groups)) == len(set.union(*groups))
