"""Tables that spreadsheets and programs read alike."""

import csv
import io

from gsa.files import prediction_table, table


def read(content):
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def test_spreadsheets_know_that_it_is_utf_8():
    content = table(("name", "größe"), [("Zellen, alt", 1), ('"neu"\n', 2.5), ("caf\udce9", None)])
    assert content.startswith(b"\xef\xbb\xbf")
    assert read(content) == [["name", "größe"], ["Zellen, alt", "1"], ['"neu"\n', "2.5"], [r"caf\udce9", ""]]


def test_words_are_no_formulas():
    """But numbers stay, as the names of classes may be some."""
    words = ["=cmd|' /C calc'!A0", "@SUM(A1)", "+A1", "-A1", "\t=1", "-1", "+1.5e-3", "a=b", ""]
    (found,) = read(table(words, []))
    assert found == [*(f"'{word}" for word in words[:5]), *words[5:]]
    assert read(table(["a"], [["=1"], [-1], [None]])) == [["a"], ["'=1"], ["-1"], [""]]


def test_predictions_have_the_likeliest_class():
    content = prediction_table(
        {"path": ["a", "b"], "class": ["ei", "ei"]}, [[0.25, 0.75], [2 / 3, 1 / 3]], ["ei", "öl"]
    )
    assert read(content) == [
        ["path", "class", "prediction", "ei", "öl"],
        ["a", "ei", "öl", "0.25", "0.75"],
        ["b", "ei", "ei", "0.666667", "0.333333"],
    ]
