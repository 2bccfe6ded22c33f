"""A mapping that does not fit its table is refused before the table is read."""

from pathlib import Path

import pytest

from data_schemas.settings import Source
from tasks.curation.ingest import ingest
from tasks.errors import SettingsError

MAPPING = """
name: shop_category
domain: choice
language: en
prompt: "Category of: {title}?"
verifier: choice
answer: {correct: ["{cat}"]}
options: [shoes, toys]
"""
ROWS = "title,cat\nRed boot,shoes\nYo-yo,toys\n"


def take_in(folder: Path, mapping: str, rows: str) -> None:
    (folder / "raw").mkdir()
    (folder / "m.yaml").write_text(mapping)
    (folder / "rows.csv").write_text(rows)
    source = Source(adapter=str(folder / "m.yaml"), path=str(folder / "rows.csv"))
    ingest([source], 0, folder / "raw")


@pytest.mark.parametrize(
    ("mapping", "rows", "told"),
    [
        (
            MAPPING.replace("{cat}", "{kat}"),
            ROWS,
            "mapping shop_category reads none of the first 2 rows of rows.csv: missing_column, "
            "'kat' is not among cat, title. Correct the mapping.",
        ),
        (
            MAPPING.replace("toys]", "games]"),
            "title,cat\nYo-yo,toys\n",
            "unknown_option, 'toys' is not one of shoes, games. Correct the mapping.",
        ),
        (
            MAPPING.replace("options: [shoes, toys]", "").replace("correct", "right"),
            ROWS,
            'It takes, for example, {"correct": ["',
        ),
    ],
    ids=["a column that is not there", "labels that are no options", "an answer of another form"],
)
def test_a_mapping_that_fits_no_row_is_refused_before_the_table_is_read(
    tmp_path: Path, mapping: str, rows: str, told: str
):
    with pytest.raises(SettingsError) as refusal:
        take_in(tmp_path, mapping, rows)

    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_one_row_that_fits_is_enough_and_so_is_an_empty_table(tmp_path: Path):
    for name, rows in (("one", ROWS.replace("shoes", "boots")), ("none", "title,cat\n")):
        (tmp_path / name).mkdir()
        take_in(tmp_path / name, MAPPING, rows)
