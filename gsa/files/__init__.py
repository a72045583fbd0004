"""Files and texts that may be cut, changed or hostile: written whole, read with a digest, shown harmlessly; tables.

Pictures are found by `gsa.files.folders`, and read by `gsa.files.pictures` and `gsa.files.reading`, which need Pillow.
"""

from gsa.files._signed_json import read_signed, signed
from gsa.files._tables import prediction_table, table
from gsa.files._text import one_line, printable, printable_lines
from gsa.files._whole import refuse_unwritable, remove_leftovers, write_whole

__all__ = [
    "one_line",
    "prediction_table",
    "printable",
    "printable_lines",
    "read_signed",
    "refuse_unwritable",
    "remove_leftovers",
    "signed",
    "table",
    "write_whole",
]
