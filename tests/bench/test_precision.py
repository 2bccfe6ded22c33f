"""What an evaluation in several precisions measured, kept as evidence."""

import json

import pytest

from data_schemas.reports import PrecisionReport, PrecisionSlice
from tasks.errors import DataError
from tasks.formats.progression import write_precisions
from tests.bench.precision import main


def test_the_numbers_of_a_store_are_kept_with_command_commit_and_code(tmp_path):
    part = PrecisionSlice(
        suite="all",
        responses=2,
        tokens=9,
        k3=0.01,
        k3_low=0.0,
        k3_high=0.02,
        abs_logprob=0.1,
        routes=None,
        routed_tokens=None,
        gain=None,
    )
    report = PrecisionReport(
        model="mine", reference="fp32", precision="bf16", slices=(part,), layers=()
    )
    (tmp_path / "objects" / "a").mkdir(parents=True)
    write_precisions(tmp_path / "objects" / "a", [report])

    main([str(tmp_path), "--out", str(tmp_path / "found.json")])

    found = json.loads((tmp_path / "found.json").read_bytes())
    assert "eachprompt evaluate --model FOLDER --precision bf16" == found["command"]
    assert {"command", "commit", "code", "precisions"} == {*found}
    assert report.model_dump(mode="json") == found["precisions"]["bf16"]


def test_a_store_without_a_comparison_says_what_makes_one(tmp_path):
    with pytest.raises(DataError, match="run eachprompt evaluate --precision first"):
        main([str(tmp_path), "--out", str(tmp_path / "found.json")])
