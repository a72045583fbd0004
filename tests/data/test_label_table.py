"""Labels in a table, with a line for every picture."""

import unicodedata
import warnings

import pytest

from gsa.data import ImageFolderDataModule
from gsa.data._parts import rows_of
from tests.data.folders import write_pictures
from tests.data.test_groups import patients_of


def write_table(root, lines, name="labels.csv", encoding="utf-8"):
    path = root / name
    path.write_bytes("\r\n".join(lines).encode(encoding))
    return path


def write_flat(root, count=10):
    """root/{cat,dog}<number>.jpg: path of each → its label."""
    write_pictures(root, parts=("all",), count=count)
    labels = {}
    for path in sorted((root / "all").glob("*/*")):
        labels[path.rename(root / f"{path.parent.name}{path.name}").name] = path.parent.name
    return labels


def read(module):
    """Part → {name of the file: name of its label}."""
    module.setup()
    found = {part: rows_of(pictures.dataset) for part, pictures in module.parts.items()}
    return {
        part: {files.files[row][0].rpartition("/")[2]: module.classes[files.files[row][1]] for row in rows}
        for part, (files, rows) in found.items()
    }


@pytest.mark.parametrize("delimiter, encoding, ending", [
    (",", "utf-8", ".jpg"),
    (";", "utf-8-sig", ".jpg"),  # as spreadsheets write it in most of Europe
    ("\t", "utf-8", ""),  # names without endings
])  # fmt: skip
def test_every_picture_has_the_label_of_its_line(tmp_path, delimiter, encoding, ending, recwarn):
    labels = write_flat(tmp_path)
    lines = [f' {label} {delimiter}"x{delimiter}y"{delimiter}{name[:-4]}{ending}' for name, label in labels.items()]
    head = delimiter.join(('"label"', "remark", "file "))
    table = write_table(tmp_path, [head, *lines, "", delimiter * 2], encoding=encoding)
    module = ImageFolderDataModule(tmp_path, labels=table, batch_size=1)
    parts = read(module)
    assert module.classes == ["cat", "dog"] and {**parts["train"], **parts["val"], **parts["test"]} == labels
    assert [len(parts[part]) for part in ("train", "val", "test")] == [14, 2, 4] and not recwarn.list


def test_labels_of_a_table_are_those_of_folders(tmp_path):
    """The same pictures in the same parts, however labels are given."""
    write_pictures(tmp_path, parts=("all",))
    root = tmp_path / "all"
    folders = ImageFolderDataModule(root, 8, batch_size=1)
    lines = [f"{path.relative_to(root)},{path.parent.name}" for path in root.glob("*/*")]
    table = write_table(tmp_path, ["file,label", *lines])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tabled = ImageFolderDataModule(root, 8, batch_size=1, labels=table)
        assert read(tabled) == read(folders)
    assert tabled.digests == folders.digests and not told


def test_columns_have_any_names_and_pictures_are_found_by_theirs(tmp_path):
    labels = write_flat(tmp_path)
    for number, name in enumerate(labels):  # in folders of which the table does not tell, as HAM10000
        place = tmp_path / f"part_{number % 3}"
        place.mkdir(exist_ok=True)
        (tmp_path / name).rename(place / name)
    lines = [f"{name[:-4]},{label},p{number // 4}" for number, (name, label) in enumerate(labels.items())]
    table = write_table(tmp_path, ["image_id,dx,patient", *lines])
    columns = {"file": "image_id", "label": "dx"}
    module = ImageFolderDataModule(tmp_path, 8, batch_size=1, labels=table, columns=columns)
    with pytest.warns(UserWarning, match=r"the pictures are in folders \(part_0, part_1, part_2\): pictures of one"):
        parts = read(module)
    assert {**parts["train"], **parts["val"], **parts["test"]} == labels


def test_folders_that_are_the_classes_of_a_table_are_not_told_of(tmp_path, recwarn):
    """Planted above: folders of which a class has several."""
    write_pictures(tmp_path, parts=("all",), count=20)
    (tmp_path / "all" / "bird").mkdir()
    for number in range(10):
        (tmp_path / "all" / "cat" / f"{number}.jpg").rename(tmp_path / "all" / "bird" / f"{number}.jpg")
    lines = [f"{path.parent.name}/{path.name},a {path.parent.name}" for path in tmp_path.glob("all/*/*")]
    table = write_table(tmp_path, ["file,label", *lines])
    read(ImageFolderDataModule(tmp_path / "all", 8, batch_size=1, labels=table))
    assert len(lines) == 40 and not recwarn.list


def test_pictures_of_a_group_come_into_one_part(tmp_path):
    labels = write_flat(tmp_path, count=20)
    lines = [f"{name},{label},{name[3]}" for name, label in labels.items()]  # cat0, cat1, cat10, …: ten groups
    lines[0] = lines[0][:-1]  # but for one picture, that belongs to no other
    table = write_table(tmp_path, ["file,label,patient", *lines])
    for seed in range(3):
        module = ImageFolderDataModule(
            tmp_path, 8, batch_size=1, labels=table, columns={"group": "patient"}, split_seed=seed
        )
        groups = {part: {name[3] for name in found if name != "cat0.jpg"} for part, found in read(module).items()}
        assert sum(map(len, groups.values())) == 10 and set.union(*groups.values()) == set("0123456789")
        assert module.describe()["groups"] == "by patient" and len(module.group_of) == 39
    torn = read(ImageFolderDataModule(tmp_path, 8, batch_size=1, labels=table))  # planted: without
    assert {name[3] for name in torn["train"]} & {name[3] for name in torn["test"]}


def test_groups_have_any_names_but_those_of_nothing(tmp_path):
    """Planted: a group in two parts, whose name begins as a folder's never does."""
    labels = write_flat(tmp_path)
    for name, message in {
        "/data/p0": "one part only, but /data/p0 is in",
        "NA": "must be empty, but in line 2 .* is NA",
    }.items():
        lines = [f"{file},{label},{('train', 'test')[int(file[3]) % 2]},{name}" for file, label in labels.items()]
        table = write_table(tmp_path, ["file,label,part,group", *lines])
        columns = {"part": "part", "group": "group"}
        with pytest.raises(ValueError, match=message):
            ImageFolderDataModule(tmp_path, 8, batch_size=1, labels=table, columns=columns).setup()


def test_files_are_named_as_other_systems_do(tmp_path):
    """By paths without endings before names, with backslashes, and with accents of two signs."""
    write_pictures(tmp_path, parts=("all",), count=4)
    root = tmp_path / "all"
    (root / "cat" / "0.jpg").rename(root / "0.jpg")
    (root / "dog" / "1.jpg").rename(root / "dog" / unicodedata.normalize("NFD", "é.jpg"))
    lines = ["0,cat", "cat\\1.jpg,cat", "./cat/2,cat", "cat/3.jpg,cat", "dog/0,dog", "é,dog", "dog\\2,dog", "dog/3,dog"]
    module = ImageFolderDataModule(root, 8, batch_size=1, labels=write_table(tmp_path, ["file,label", *lines]))
    assert sum(map(len, read(module).values())) == 8


def test_a_table_that_says_otherwise_is_of_other_data(tmp_path):
    labels = write_flat(tmp_path)
    lines = [f"{file},{label},p{file[3]}" for file, label in labels.items()]
    found = []
    for changed in (
        lines,
        lines[::-1],
        [lines[0][:-1] + "9", *lines[1:]],
        [lines[0].replace(",cat", ",dog"), *lines[1:]],
    ):
        table = write_table(tmp_path, ["file,label,group", *changed])
        module = ImageFolderDataModule(tmp_path, 8, batch_size=1, labels=table, columns={"group": "group"})
        module.setup()
        found.append(module.describe()["files"])
    assert found[0] == found[1] and len({*found}) == 3


def test_columns_may_be_called_by_numbers_and_pages_are_counted_of_some_of_every_class(tmp_path):
    labels = write_flat(tmp_path)
    table = write_table(tmp_path, ["0,1", *(f"{file},{label}" for file, label in labels.items())])
    module = ImageFolderDataModule(tmp_path, 8, labels=table, columns={"file": 0, "label": "1 "}, channels="pages")
    assert module.in_channels == 1
    assert [path.rpartition("/")[2] for path in module._labelled.some(2)] == [
        "cat0.jpg",
        "cat1.jpg",
        "dog0.jpg",
        "dog1.jpg",
    ]


def test_groups_are_found_in_paths_below_the_root_too(tmp_path):
    labels = write_flat(tmp_path, count=8)
    for name in labels:
        (tmp_path / name).rename(tmp_path / f"p{int(name[3]) // 2}_{name}")
    lines = [f"p{int(name[3]) // 2}_{name},{label}" for name, label in labels.items()]
    table = write_table(tmp_path, ["file,label", *lines])
    module = ImageFolderDataModule(tmp_path, 8, batch_size=1, labels=table, groups=r"^(p\d)_")
    parts = patients_of(module)
    assert [len(parts[part]) for part in ("train", "val", "test")] == [2, 1, 1]


def test_parts_may_be_in_the_table(tmp_path):
    labels = write_flat(tmp_path)
    part_of = {name: ("Training", "test", "validation")[int(name[3]) % 3] for name in labels}
    table = write_table(tmp_path, ["file,label,split", *(f"{n},{labels[n]},{part_of[n]}" for n in labels)])
    module = ImageFolderDataModule(tmp_path, 8, batch_size=1, labels=table, columns={"part": "split"})
    for part, meant in {"train": "Training", "val": "validation", "test": "test"}.items():
        assert {name for name in labels if part_of[name] == meant} == {*read(module)[part]}
    with pytest.raises(ValueError, match="no parts yet, but .*labels.csv holds train, val, test"):
        ImageFolderDataModule(
            tmp_path, 8, batch_size=1, labels=table, columns={"part": "split"}, fold="1/2"
        ).setup()  # fmt: skip


def test_a_table_of_a_test_may_name_classes_without_pictures(tmp_path):
    labels = write_flat(tmp_path)
    lines = [f"{name},{label}" for name, label in labels.items() if label == "cat"]
    others = f"of the pictures in {tmp_path}, 10 are not in .*labels.csv and passed over: dog0.jpg, .*, …$"
    table = write_table(tmp_path, ["file,label", *lines, ",dog"])
    module = ImageFolderDataModule(tmp_path, 8, labels=table, test_share=1)
    with pytest.warns(UserWarning, match=others):
        module.setup()
    assert module.for_test_only and module.classes == ["cat", "dog"] and len(module.parts["test"]) == 10
    with (
        pytest.warns(UserWarning, match=others),
        pytest.raises(ValueError, match="must have pictures, but dog has none"),
    ):
        ImageFolderDataModule(tmp_path, 8, labels=table).setup()


def test_files_that_are_not_there_are_told_of_like_those_that_cannot_be_read(tmp_path):
    labels = write_flat(tmp_path)
    table = write_table(tmp_path, ["file,label", *(f"{n},{label}" for n, label in labels.items()), "gone.png,dog"])
    with pytest.raises(ValueError, match=r"(?s)^1 of 21 files cannot be read; .*skip.*gone.png"):
        ImageFolderDataModule(tmp_path, 8, labels=table, batch_size=1).setup()
    module = ImageFolderDataModule(tmp_path, 8, labels=table, batch_size=1, unreadable="skip")
    with pytest.warns(UserWarning, match=r"1 of 21 files are left out"):
        assert sum(map(len, read(module).values())) == 20


@pytest.mark.parametrize("lines, message", [
    (["name,label", "cat0.jpg,cat"], r"have the column file \(data.columns.file names yours\), but has name, label"),
    ([""], "must have the column file .*, label .*, but has none"),
    (["file,label,\"open", "cat0.jpg,cat,"], "quotation mark must .* one after line 0"),
    (["file,\"label" + 140000 * "l"], "must have the column file .* but has none"),
    (["file,label,label ", "cat0.jpg,cat,dog"], "must have different names, but several are called label"),
    (["file,label,remark", "cat0.jpg,cat,fine", "dog0.jpg,dog,\"large"], "quotation mark must .* one after line 2"),
    (["file,label", "cat0.jpg,cat", "dog0.jpg,dog", ",dog"], "must name a file, but line 4 names none"),
    (["file,label", "C:\\a\\cat10.jpg,cat", "dog10.jpg,dog"], r"but none is: line 2 names C:.*there is cat0.jpg"),
    (["file,label", "cat0.jpg,cat", "dog0.jpg"], "must have 2 values, but line 3 has 1"),
    (["file,label", "cat0.jpg,cat", "", "dog0.jpg,"], "must have a label, but line 4 has none"),
    (["file,label", "cat0.jpg,cat", "cat1.jpg,cat"], "two labels at least in label, but has cat "),
    (["file,label", "cat0.jpg,cat", "./cat0,dog"], r"must be in one line of .*labels.csv, but ./cat0 is in 2 and 3"),
    (["file,label", "same,cat", "dog0.jpg,dog"], "line 2 of .* must name one file, but same is the name of 2: a/s.*"),
])  # fmt: skip
def test_other_tables_are_refused(tmp_path, lines, message):
    write_flat(tmp_path)
    for place in "ab":
        (tmp_path / place).mkdir()
        (tmp_path / f"{place}9.jpg").write_bytes(b"")
        (tmp_path / f"{place}9.jpg").rename(tmp_path / place / "same.jpg")
    with pytest.raises(ValueError, match=message):
        ImageFolderDataModule(tmp_path, 8, labels=write_table(tmp_path, lines), batch_size=1).setup()


@pytest.mark.parametrize("parts, message", [
    (("train", "later"), "must be train, val or test, but line 3 has later"),
    (("train", ""), "must be train, val or test, but line 3 has nothing"),
    (("train", "val"), r"must be train, test and perhaps val, but are \['train', 'val'\]"),
    (("train", "test"), "must have pictures in train, but dog has none"),
])  # fmt: skip
def test_other_parts_are_refused(tmp_path, parts, message):
    write_flat(tmp_path, count=1)
    lines = [f"{name},{label},{part}" for (name, label), part in zip(write_labels(), parts, strict=True)]
    table = write_table(tmp_path, ["file,label,part", *lines])
    with pytest.raises(ValueError, match=message):
        ImageFolderDataModule(tmp_path, 8, labels=table, columns={"part": "part"}, batch_size=1).setup()


def write_labels():
    return ("cat0.jpg", "cat"), ("dog0.jpg", "dog")


@pytest.mark.parametrize("content", ["file,label\r\nÄ.png,Kätzchen".encode("latin-1"), b"PK\x03\x04\x14\xff"])
def test_what_is_no_text_in_utf_8_is_refused(tmp_path, content):
    """Such as a file of Excel's."""
    (tmp_path / "labels.csv").write_bytes(content)
    with pytest.raises(ValueError, match="must be a table in UTF-8, as spreadsheets save it as 'CSV UTF-8', but is"):
        _ = ImageFolderDataModule(tmp_path, labels=tmp_path / "labels.csv").classes


def test_labels_that_may_stand_for_none_are_told_of(tmp_path):
    labels = write_flat(tmp_path)
    lines = [f"{file},{'NA' if label == 'cat' else 'none'}" for file, label in labels.items()]
    module = ImageFolderDataModule(tmp_path, 8, batch_size=1, labels=write_table(tmp_path, ["file,label", *lines]))
    with pytest.warns(UserWarning, match="10 lines of .* have the label NA, which is a class now"):
        assert module.classes == ["NA", "none"]


def test_columns_of_no_table_are_refused(tmp_path):
    with pytest.raises(ValueError, match="columns are those of a table, but there is none .*: got {'group': 'pat"):
        ImageFolderDataModule(tmp_path, columns={"group": "patient"})


@pytest.mark.parametrize("columns, groups, message", [
    ({"patient": "id"}, None, r"perhaps of group and part, but got \{'patient': 'id'\}"),
    ({"label": None}, None, "must name those of file and label"),
    ({"group": "patient"}, "folder", "groups must be None where columns have a group, but got 'folder'"),
])  # fmt: skip
def test_other_columns_are_refused(tmp_path, columns, groups, message):
    with pytest.raises(ValueError, match=message):
        ImageFolderDataModule(tmp_path, labels=tmp_path / "labels.csv", columns=columns, groups=groups)
