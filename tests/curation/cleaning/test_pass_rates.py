"""Pass rates of models become facets, and select problems within the bands of their source."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_schemas.arrow import read_table
from data_schemas.pass_rates import PassRateBand, SolveRate
from data_schemas.rows import (
    DEMONSTRATIONS,
    FACETS,
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    Demonstration,
    Facet,
    Problem,
    QuarantinedItem,
)
from data_schemas.settings import CurationSettings, Source
from tasks.curation.cleaning.pass_rates import NO_RATE, OUTSIDE, fault, is_rate, with_rates
from tasks.curation.curate import REPORT, curate
from tasks.curation.ingest import ingest, raw_files
from tasks.errors import DataError
from tasks.formats.decisions import write_annotations
from tasks.formats.solve_rates import ProblemPassRates, write_rates
from tests.curation.cleaning.test_annotation import decision, line

SETTINGS = CurationSettings(max_prompt_tokens=300, max_response_tokens=300, held_out_per_suite=3)
ROWS = range(10, 30)
RATES = {12: (4, 4, 4), 13: (4, 4, 2), 14: (4, 4, 0), 15: (4, 0, 0), 16: (4, 3, 1)}
"""Samples, scored and solved of the student, by the number in the row."""


def rate(number: int, counts: tuple[int, int, int], **changes: object) -> SolveRate:
    shown = decision(number)
    same = {name: getattr(shown, name) for name in ("problem", "source", "source_row", "gold")}
    told = dict(zip(("samples", "scored", "solved"), counts, strict=True))
    return SolveRate.model_validate({**same, "model": "student", **told, **changes})


def band(**limits: float) -> dict[str, object]:
    return {"source": "gsm8k", "model": "student", **limits}


def curated(base_model: Path, folder: Path, rates: list[SolveRate], *bands: object) -> Path:
    """Curate twenty rows, of which three are held out whatever the bands are."""
    for name in ("raw", "out"):
        (folder / name).mkdir(parents=True)
    (folder / "set.jsonl").write_bytes(b"\n".join(map(line, ROWS)))
    sources = [Source(adapter="gsm8k", path=str(folder / "set.jsonl"))]
    if rates:
        write_rates(folder / "rates.jsonl", rates)
        sources.append(Source(adapter="solve_rates", path=str(folder / "rates.jsonl"), limit=1))
    if bands:
        (folder / "bands.jsonl").write_text("\n".join(map(json.dumps, bands)))
        sources.append(Source(adapter="bands", path=str(folder / "bands.jsonl")))
    if (folder / "annotate.jsonl").exists():
        sources.append(Source(adapter="decisions", path=str(folder / "annotate.jsonl")))
    ingest(sources, 0, folder / "raw")
    for file in folder.glob("*s.jsonl"):
        file.unlink()  # the set does not depend on where the files were
    curate(SETTINGS, folder / "raw", base_model, folder / "out")
    return folder / "out"


def ids(out: Path, table: str) -> set[str]:
    return {one.id for one in read_table(out / table, Problem)}


def key(number: int) -> str:
    return decision(number).problem


@pytest.fixture(scope="module")
def plain(base_model, tmp_path_factory) -> Path:
    return curated(base_model, tmp_path_factory.mktemp("plain"), [])


@pytest.fixture(scope="module")
def trained(plain) -> list[int]:
    """Numbers of five rows that are not held out."""
    left = ids(plain, PROBLEMS)
    return [number for number in ROWS if key(number) in left][:5]


@pytest.fixture(scope="module")
def rates(trained) -> list[SolveRate]:
    return [rate(number, counts) for number, counts in zip(trained, RATES.values(), strict=True)]


@pytest.mark.slow
def test_rates_are_facets_and_change_nothing_else(base_model, plain, trained, rates, tmp_path):
    out = curated(base_model, tmp_path, rates)

    tables = (PROBLEMS, DEMONSTRATIONS, HELD_OUT, QUARANTINE)
    assert all((plain / name).read_bytes() == (out / name).read_bytes() for name in tables)
    assert not (plain / FACETS).exists()
    assert {
        key(trained[0]): "1.0",
        key(trained[1]): "0.5",
        key(trained[2]): "0.0",
        key(trained[4]): str(1 / 3),
    } == {
        one.problem: one.value
        for one in read_table(out / FACETS, Facet)
        if one.name == "pass_rate:student"
    }
    account = json.loads((out / REPORT).read_bytes())["sources"]
    assert {"matched": 5, "unmatched": 0} == account["gsm8k"]["solve_rates"]
    assert {"gsm8k"} == account.keys()
    listed = {file.adapter: file.uri for file in raw_files(tmp_path / "raw")}
    assert "solve_rates/1.jsonl" == listed["solve_rates"]


def test_a_band_keeps_the_rates_within_its_limits_and_counts_all_others(
    base_model, plain, trained, rates, tmp_path
):
    out = curated(base_model, tmp_path, rates, band(lowest=1 / 3, highest=0.5))

    assert {key(trained[1]), key(trained[4])} == ids(out, PROBLEMS)
    assert ids(plain, HELD_OUT) == ids(out, HELD_OUT)  # what is held out is not selected
    taught = {one.id for one in read_table(out / DEMONSTRATIONS, Demonstration)}
    assert taught >= {key(trained[0]), key(trained[2])}
    account = json.loads((out / REPORT).read_bytes())["sources"]["gsm8k"]
    problems = len(ids(plain, PROBLEMS))
    # A problem without a verdict is not one of pass rate 0: it has the other reason.
    assert {OUTSIDE: 2, NO_RATE: problems - 4} == {
        reason: count
        for reason, count in account["dropped"].items()
        if reason in (OUTSIDE, NO_RATE)
    }
    left_out = sum(account["dropped"].values()) + sum(account["quarantined"].values())
    assert account["items"] == sum(account["kept"].values()) + left_out
    said = {one.key: one for one in read_table(out / QUARANTINE, QuarantinedItem)}
    assert ("selection", "pass rate 1 of student, band 0.333333 to 0.5") == (
        said[key(trained[0])].stage,
        said[key(trained[0])].detail,
    )
    assert "no response of student" in said[key(trained[3])].detail


def test_rates_of_another_gold_answer_are_not_those_of_the_problem(base_model, trained, tmp_path):
    number = trained[0]
    write_annotations(
        tmp_path / "annotate.jsonl",
        [decision(number, decision="correct", correction='{"value":"77"}')],
    )
    stale, right = rate(number, (4, 4, 2)), rate(number, (4, 4, 3), gold='{"value":"77"}')
    before = rate(trained[1], (4, 4, 2), gold='{"value":"1"}')

    out = curated(base_model, tmp_path, [stale, right, before], band(lowest=0.7))

    assert {key(number)} == ids(out, PROBLEMS)
    account = json.loads((out / REPORT).read_bytes())["sources"]["gsm8k"]
    assert {"matched": 1, "unmatched": 1} == account["solve_rates"]


def test_rates_of_other_sources_alone_stop_curation(base_model, tmp_path):
    with pytest.raises(DataError, match=r"none of 1 problems with solve rates .* such as gsm8k/x"):
        curated(base_model, tmp_path, [rate(12, (4, 4, 2), problem="gsm8k/x")])


def test_a_band_that_keeps_nothing_says_so(base_model, rates, tmp_path):
    with pytest.raises(DataError, match=r"kept none .*no_pass_rate \d+.*Does solve_rates have"):
        curated(base_model, tmp_path, rates, band(lowest=0.9, highest=0.95))


@given(
    st.integers(1, 16).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
)
def test_a_problem_passes_a_band_exactly_if_its_rate_is_inside(counts, limits):
    solved, scored = counts
    lowest, highest = limits
    one = PassRateBand(source="s", model="m", lowest=lowest, highest=highest)
    rates = {("s/1", "row", "gold"): ProblemPassRates("s", {"m": solved / scored, "silent": None})}

    facets = with_rates({"brand": "Lego"}, ("s/1", "row", "gold"), rates)

    assert {"brand", "pass_rate:m"} == facets.keys()
    assert (lowest <= solved / scored <= highest) == (("", "") == fault(facets, [one]))
    assert fault({}, [one])[0] == NO_RATE
    assert ("", "") == fault(facets, [])


def test_every_band_of_a_source_has_to_be_met():
    teacher, student = (
        PassRateBand(source="s", model=model, lowest=low, highest=high)
        for model, low, high in (("teacher", 0.5, 1.0), ("student", 0.0, 0.9))
    )
    seen = Counter(
        fault({"pass_rate:teacher": left, "pass_rate:student": right}, [teacher, student])[0]
        for left, right in (("1.0", "0.5"), ("0.25", "0.5"), ("1.0", "1.0"), ("1.0", ""))
    )

    assert {"": 1, OUTSIDE: 2, NO_RATE: 1} == seen


@pytest.mark.parametrize(
    ("text", "good"),
    [("0", True), ("1", True), ("0.375", True), ("1.01", False), ("-0.1", False), ("nan", False),
     ("inf", False), ("37%", False), ("", False)],
)  # fmt: skip
def test_a_pass_rate_is_a_number_from_0_to_1(text, good):
    assert good == is_rate(text)
