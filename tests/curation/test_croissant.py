"""Croissant metadata of a curated set: what it says, and what MLCommons' own reader says of it."""

import json
import subprocess

import pytest

from data_schemas.arrow import write_columns, write_table
from data_schemas.rows import CROISSANT, HELD_OUT, PROBLEMS, ROWS, Problem
from data_schemas.sources import RowPlace
from tasks.curation.croissant import croissant
from tasks.store.files import sha256_file
from tests.test_layout import ROOT

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
    found = croissant(tmp_path, {"gsm8k": "MIT", "csv_of_a_shop": ""})
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


def test_of_what_the_specification_requires_only_the_publication_is_left_to_who_publishes(curated):
    """Croissant 1.0: "Dataset-level Information", "Required"; "Modified and Added Properties"."""
    _, found = curated
    required = {"@context", "@type", "conformsTo", "description", "license", "name", "distribution"}

    assert required == required & found.keys()
    assert not {"url", "creator", "datePublished"} & found.keys()
    assert "http://mlcommons.org/croissant/1.0" == found["conformsTo"]


def test_licences_are_those_that_publishers_declare_and_a_missing_one_is_said(curated):
    _, found = curated

    assert ["MIT"] == found["license"]
    assert found["description"].endswith("No licence is recorded of: csv_of_a_shop.")


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
    done = subprocess.run(
        [PYTHON, "-c", READ, folder / CROISSANT],
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )

    # Recommended only; they depend on who publishes the set, and when.
    left_out = ["http://mlcommons.org/croissant/citeAs", "https://schema.org/datePublished"]
    assert [f"[] {[*left_out, 'https://schema.org/version']}", "['test/a', 'test/b']"] == (
        done.stdout.splitlines()
    )
