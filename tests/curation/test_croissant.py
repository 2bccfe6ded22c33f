"""Croissant metadata of a curated set: what it says, and what MLCommons' own reader says of it."""

import json
import re
from urllib.parse import urlsplit

import pytest
from pydantic import ValidationError

from data_schemas.arrow import write_columns, write_table
from data_schemas.rows import CROISSANT, HELD_OUT, PROBLEMS, ROWS, Problem
from data_schemas.settings import Publication
from data_schemas.sources import RowPlace
from tasks.curation.croissant import croissant
from tasks.store.files import sha256_file
from tests.processes import run_process
from tests.test_layout import ROOT

PUBLICATION = Publication(
    url="https://shop.example/data",
    organizations=("Shop",),
    persons=("Nguyễn Thị Minh Khai",),
    date="2026-11-29",
)
PYTHON = ROOT / ".venv-tools" / "bin" / "python"


@pytest.fixture
def curated(tmp_path, make_problem):
    """A curated folder of three tables, one of them empty."""
    records = [make_problem(key, f"what is {key}?").record for key in ("a", "b")]
    write_table(tmp_path / PROBLEMS, Problem, records)
    write_table(tmp_path / HELD_OUT, Problem, [])
    write_columns(
        tmp_path / ROWS, RowPlace, {"source_row": ["0" * 64], "file": ["1" * 64], "number": [7]}
    )
    found = croissant(tmp_path, {"gsm8k": "MIT", "csv_of_a_shop": ""}, Publication())
    (tmp_path / CROISSANT).write_text(json.dumps(found))
    return tmp_path, found


def test_every_table_has_its_digest_and_every_column_its_type(curated):
    folder, found = curated

    assert {path.name: sha256_file(path) for path in folder.glob("*.parquet")} == {
        file["contentUrl"]: file["sha256"] for file in found["distribution"]
    }
    (places,) = (one for one in found["recordSet"] if one["@id"] == "rows")
    types = {field["source"]["extract"]["column"]: field["dataType"] for field in places["field"]}
    assert {"source_row": "sc:Text", "file": "sc:Text", "number": "sc:Integer"} == types


DATA_SET = {
    "@context": None,
    "@type": "sc:Dataset",
    "conformsTo": "http://mlcommons.org/croissant/1.0",
    "description": str,
    "license": ("URL", "sc:CreativeWork"),
    "name": str,
    "url": "URL",
    "creator": ("sc:Organization", "sc:Person"),
    "datePublished": "Date",
    "distribution": ("cr:FileObject", "cr:FileSet"),
}
"""Croissant 1.0, tables "schema.org/Dataset: Required" and "Modified and Added Properties".

Property -> value, or types of one or many values, as the columns ExpectedType and Cardinality say.
"""
MANY = ("license", "creator", "distribution")
LATER = {"url", "creator", "datePublished"}


def is_of(kind: str, value) -> bool:
    """Whether a value is of a type of the table."""
    if kind == "URL":
        return isinstance(value, str) and urlsplit(value).scheme in ("http", "https")
    if kind == "Date":
        return isinstance(value, str) and bool(re.fullmatch(r"\d{4}-\d\d-\d\d", value))
    return isinstance(value, dict) and kind == value["@type"] and bool(value["name"])


def violations(found) -> list[str]:
    """Properties of a data set that are not as the specification requires."""
    wrong = []
    for name, wanted in DATA_SET.items():
        value = found.get(name)
        if wanted is None or wanted is str:
            fits = bool(value)
        elif isinstance(wanted, tuple):
            values = value if name in MANY and value else []
            fits = bool(values) and all(any(is_of(one, each) for one in wanted) for each in values)
        else:
            fits = wanted == value or is_of(wanted, value)
        wrong += [] if fits else [name]
    return wrong


def test_a_published_set_has_everything_that_the_specification_requires(curated):
    folder, _ = curated
    licences = {"gsm8k": "MIT", "csv_of_a_shop": "terms of the shop"}
    published = croissant(folder, licences, PUBLICATION)

    assert [] == violations(published)
    mit, terms = published["license"]
    assert "https://spdx.org/licenses/MIT.html" == mit
    assert {"@type": "sc:CreativeWork", "name": "terms of the shop"} == terms
    assert ["sc:Organization", "sc:Person"] == [one["@type"] for one in published["creator"]]
    assert "requires" not in published["description"]


def test_what_lacks_of_a_set_that_nobody_published_is_said_in_its_description(curated):
    folder, found = curated

    assert sorted(LATER) == sorted(violations(found))
    assert found["description"].endswith("also requires: url, creator, datePublished.")
    bare = croissant(folder, {"csv_of_a_shop": ""}, Publication())
    assert {"license", *LATER} == {*violations(bare)}
    assert bare["description"].endswith("also requires: license, url, creator, datePublished.")


def test_files_record_sets_and_fields_are_of_the_types_of_the_specification(curated):
    """Croissant 1.0, tables "FileObject", "RecordSet", "Field", "DataSource" and "DataType"."""
    _, found = curated
    files = {one["@id"] for one in found["distribution"]}

    for one in found["distribution"]:
        assert {"@type", "@id", "name", "contentUrl", "contentSize", "encodingFormat"} < one.keys()
        assert re.fullmatch(r"\d+ B", one["contentSize"])
        assert re.fullmatch(r"[0-9a-f]{64}", one["sha256"])
    for table in found["recordSet"]:
        assert "cr:RecordSet" == table["@type"]
        names = [field["name"] for field in table["field"]]
        assert len(names) == len({*names}), "a name is unique within its RecordSet"
        for field in table["field"]:
            assert "cr:Field" == field["@type"]
            assert field["dataType"] in {"sc:Boolean", "sc:Float", "sc:Integer", "sc:Text"}
            assert field["source"]["fileObject"]["@id"] in files
            assert ["column"] == [*field["source"]["extract"]]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"url": ""}, "give all of them, or none"),
        ({"organizations": []}, "give all of them, or none"),
        ({"organizations": [" "]}, "give all of them, or none"),
        ({"date": "29.11.2026"}, "publication.date is '29.11.2026'; write it as 2026-11-29"),
        ({"date": "2026-W48-7"}, "write it as 2026-11-29"),
        ({"url": "shop.example"}, "'shop.example' is no base URL"),
        ({"url": "https://me:pw@shop.example"}, "has credentials in it"),
    ],
)
def test_a_publication_that_says_half_is_refused(changes, problem):
    whole = {"url": "https://shop.example/data", "organizations": ["Shop"], "date": "2026-11-29"}

    assert Publication.model_validate(whole)
    with pytest.raises(ValidationError, match=problem):
        Publication.model_validate(whole | changes)


def test_a_source_without_a_licence_is_named(curated):
    _, found = curated

    assert ["https://spdx.org/licenses/MIT.html"] == found["license"]
    assert "No licence is recorded of: csv_of_a_shop." in found["description"]


READ = """
import sys, mlcroissant
dataset = mlcroissant.Dataset(jsonld=sys.argv[1])
missing = sorted(line.split('"')[1] for line in dataset.metadata.issues.warnings)
print(sorted(dataset.metadata.issues.errors), missing)
print([row["problems/id"].decode() for row in dataset.records("problems")])
"""


@pytest.mark.tools
def test_mlcroissant_finds_no_error_and_reads_the_rows(curated):
    folder, _ = curated
    published = croissant(folder, {"gsm8k": "MIT", "shop": "terms of the shop"}, PUBLICATION)
    (folder / CROISSANT).write_text(json.dumps(published))
    done = run_process(
        [PYTHON, "-c", READ, folder / CROISSANT], env={"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    )

    # Recommended only.
    left_out = ["http://mlcommons.org/croissant/citeAs", "https://schema.org/version"]
    assert [f"[] {left_out}", "['test/a', 'test/b']"] == done.stdout.splitlines()
