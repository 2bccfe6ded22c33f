"""An exclusion list names rows by digest, and one line that does not stops everything."""

import pytest

from tasks.errors import DataError
from tasks.formats.exclusions import read_list, write_list

ROWS = ["b" * 64, "a" * 64]


def test_equal_rows_give_equal_bytes_and_are_read_back(tmp_path):
    write_list(tmp_path / "one", ROWS)
    write_list(tmp_path / "two", [*reversed(ROWS), *ROWS])

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert frozenset(ROWS) == read_list(tmp_path / "one")


@pytest.mark.parametrize(
    "line",
    ["a" * 64, "{", "[]", "{}", '{"source_row": 1}', '{"source_row": "abc"}', "\udcff"],
)
def test_a_line_that_names_no_row_is_refused_with_its_number(tmp_path, line):
    write_list(tmp_path / "list", ROWS)
    with (tmp_path / "list").open("ab") as stream:
        stream.write(b"\n" + line.encode(errors="surrogateescape") + b"\n")

    with pytest.raises(DataError, match="line 4: "):
        read_list(tmp_path / "list")
