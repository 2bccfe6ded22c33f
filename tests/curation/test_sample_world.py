"""The sample world: seeded, with the defects it documents, and rows that parse or say why not."""

import json
from collections import Counter

import pytest

from data_schemas.rows import MERGED, Domain, Parent
from tasks.curation import sample_world
from tasks.curation.marketplace.drawing import DRAWERS
from tasks.curation.marketplace.items import is_problem_prompt
from tasks.curation.sample_world import demonstration_from_row, problem_from_row
from tasks.gym.table import VERIFIERS

ROW_HASH = "0" * 64


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    sample_world.generate(0, folder)
    return folder


def _rows(file):
    """Parsed rows, and how many lines were not JSON."""
    parsed, malformed = [], 0
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            parsed.append(json.loads(line))
        except json.JSONDecodeError:
            malformed += 1
    return parsed, malformed


def _parsed(rows, parse):
    """Records, and the reasons of refused rows."""
    records, reasons = [], Counter()
    for row in rows:
        try:
            records.append(parse(row, ROW_HASH))
        except ValueError as error:
            reasons[str(error)] += 1
    return records, reasons


@pytest.fixture(scope="module")
def problems(world):
    return _rows(world / sample_world.PROBLEMS)


@pytest.fixture(scope="module")
def demonstrations(world):
    return _rows(world / sample_world.DEMONSTRATIONS)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(world, tmp_path):
    sample_world.generate(0, tmp_path)

    for name in (sample_world.PROBLEMS, sample_world.DEMONSTRATIONS):
        assert (world / name).read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.slow
def test_another_seed_gives_another_world(problems, tmp_path):
    sample_world.generate(1, tmp_path)
    others, _ = _rows(tmp_path / sample_world.PROBLEMS)

    shared = {row["question"] for row in problems[0]} & {row["question"] for row in others}
    assert len(shared) < len(others) / 2


def test_problems_have_the_documented_defects(problems):
    rows, malformed = problems
    records, reasons = _parsed(rows, problem_from_row)

    assert 10 == malformed
    assert {"field 'answer' is missing or empty": 12} == reasons
    assert 7 * 600 + 24 + 24 + 10 == len(records)
    overlong = [record for record in records if len(record.prompt_text.split()) > 400]
    assert 10 == len(overlong)
    texts = Counter(record.prompt_text for record in records)
    assert 24 == sum(count - 1 for count in texts.values())
    retyped = Counter(" ".join(text.lower().split()) for text in texts)
    assert 24 == sum(count - 1 for count in retyped.values())


def test_demonstrations_have_the_documented_defects(problems, demonstrations):
    rows, malformed = demonstrations
    records, reasons = _parsed(rows, demonstration_from_row)
    asked = {row["question"] for row in problems[0]}

    assert 10 == malformed
    assert {"field 'response' is missing or empty": 12} == reasons
    assert 40 == sum(record.prompt_text in asked for record in records)
    assert 10 == sum(len(record.prompt_text.split()) > 400 for record in records)


def test_only_the_repeated_questions_are_shared_with_problems(problems, demonstrations):
    questions = {row["question"] for row in demonstrations[0] if row["teacher"]}
    asked = {row["question"] for row in problems[0]}

    assert sum(question in asked for question in questions) <= 40
    assert all(
        is_problem_prompt(row["question"])
        for row in problems[0][:500]
        if "  " not in row["question"] and len(row["question"].split()) <= 400
    )


def test_both_parents_and_all_domains_are_taught(demonstrations):
    records, _ = _parsed(demonstrations[0], demonstration_from_row)
    taught = Counter((record.parent, record.domain) for record in records)

    assert {(parent, domain) for parent in MERGED for domain in DRAWERS} == set(taught)
    assert taught[Parent.REASONING, Domain.MATHS] > 10 * taught[Parent.COMMERCE, Domain.MATHS] / 2
    assert taught[Parent.COMMERCE, Domain.CHOICE] > taught[Parent.REASONING, Domain.CHOICE]


@pytest.mark.parametrize("domain", list(DRAWERS))
def test_the_reference_response_of_a_row_gets_full_marks(problems, domain):
    rows = [row for row in problems[0] if row["task"] == domain and row["answer"]]
    for row in rows[: 8 if domain is Domain.CODE else 100]:
        problem = problem_from_row(row, ROW_HASH)
        verdict = VERIFIERS[problem.verifier](problem, row["solution"])

        assert verdict.solved, (row, verdict)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": " "}, "field 'question' is missing or empty"),
        ({"id": None}, "field 'id' is missing or empty"),
        ({"level": "two"}, "field 'level' is not an integer"),
        ({"task": "poetry"}, "field 'task' is 'poetry', expected one of"),
        ({"answer": {}}, "field 'answer' is missing or empty"),
    ],
)
def test_a_bad_problem_row_says_which_field_is_wrong(problems, change, message):
    row = next(row for row in problems[0] if row["answer"])

    with pytest.raises(ValueError, match=message):
        problem_from_row({**row, **change}, ROW_HASH)


def test_a_demonstration_for_an_unknown_parent_is_refused(demonstrations):
    row = next(row for row in demonstrations[0] if row["response"])

    with pytest.raises(ValueError, match="field 'skill' is 'poetry', expected one of"):
        demonstration_from_row({**row, "skill": "poetry"}, ROW_HASH)
