"""Paths into cells, of columns whose names may have points."""

from tasks.curation.readers.paths import parts_of
from tests.tables import for_each


@for_each(
    ("path", "names", "parts"),
    [
        ("label", {"label"}, ["label"]),
        ("label.0", {"label"}, ["label", "0"]),
        ("label.responses.0", {"label", "label.responses"}, ["label.responses", "0"]),
        ("label.responses.0", {"label", "label.responses.0"}, ["label.responses.0"]),
        ("label.responses.0", {"label"}, ["label", "responses", "0"]),
        ("label.responses", {"text"}, ["label", "responses"]),
    ],
)
def test_a_path_begins_with_the_longest_name_of_a_column(
    path: str, names: set[str], parts: list[str]
):
    assert parts == parts_of(path, names)
