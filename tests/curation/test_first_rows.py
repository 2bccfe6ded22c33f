"""A mapping that does not fit its table, and a reward that nobody can win, are refused first."""

import json
from pathlib import Path

import pytest
import yaml

from data_schemas.rows import Problem
from data_schemas.settings import Source
from tasks.curation.adapters.table import read_file
from tasks.curation.ingest import check_sources, ingest, raw_files
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


def test_the_first_rows_are_those_that_a_suite_selects(tmp_path: Path):
    suite = {"name": "shop_category", "select": {"kind": {"equals": ["asked"]}}}
    (tmp_path / "suite.yaml").write_text(
        json.dumps(suite | {"mapping": yaml.safe_load(MAPPING)}), encoding="utf-8"
    )
    others = "".join(f"Book {n},none,other\n" for n in range(40))
    (tmp_path / "rows.csv").write_text(f"title,cat,kind\n{others}Red boot,shoes,asked\n")
    source = Source(
        adapter=str(tmp_path / "suite.yaml"), path=str(tmp_path / "rows.csv"), evaluation=True
    )

    check_sources([source])

    (tmp_path / "rows.csv").write_text(f"title,cat,kind\n{others}Red boot,none,asked\n")
    with pytest.raises(SettingsError, match="reads none of the first 1 rows"):
        check_sources([source])


def test_one_row_that_fits_is_enough_and_so_is_an_empty_table(tmp_path: Path):
    for name, rows in (("one", ROWS.replace("shoes", "boots")), ("none", "title,cat\n")):
        (tmp_path / name).mkdir()
        take_in(tmp_path / name, MAPPING, rows)


VALUE = """
name: sizes
domain: maths
language: en
prompt: "Size of {title}?"
verifier: final_answer
"""
SIZES = "title,size\nRed boot,7\nBlue boot,8\nGreen boot,10\n"
OWN = """
name: shop_own
domain: choice
language: en
prompt: "Category of: {title}?"
verifier: FILE:exact
answer: {value: "{cat}"}
"""
REWARD = """
import json
from data_schemas.verdicts import scored

def exact(problem, response):
    right = json.loads(problem.answer)["value"]
    return scored(float(response.strip() == right), "compared", f"with {right}")
"""
CANARY = """
from tasks.gym.scoring.canaries import Canary
CANARIES = (Canary("FILE:exact", {"value": "shoes"}, "shoes", "toys"),)
"""


def own(folder: Path, name: str, code: str) -> str:
    """Write a verifier into a file of its own; return a mapping that names it."""
    file = folder / f"{name}.py"
    file.write_text(code.replace("FILE", str(file)))
    return OWN.replace("FILE", str(file))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("float(", "0.8 * float("), "gives 0.8 (compared: with shoes) to the reference answer"),
        (("float(", "0.8 * float("), "Likely cause: full marks are 1.0"),
        (('["value"]', '["value"].upper()'), "compares with something else than answer"),
        (("response.strip()", "response[::-1]"), "2 of the first 2 rows cannot be won"),
        (("response.strip()", "response + 1"), "shop_own, the first of which"),
    ],
    ids=["no full marks", "the cause", "another form", "how many", "an error"],
)
def test_an_own_reward_that_its_reference_does_not_earn_is_refused_with_row_verdict_and_cause(
    tmp_path: Path, change: tuple[str, str], told: str
):
    mapping = own(tmp_path, "my_reward", REWARD.replace(*change))

    with pytest.raises(SettingsError) as refusal:
        take_in(tmp_path, mapping, ROWS)

    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_canaries_say_which_answer_is_right_where_the_values_of_a_gold_are_parameters(
    tmp_path: Path,
):
    long_enough = REWARD.replace("response.strip() == right", "len(response) > 9 * len(right)")
    with pytest.raises(SettingsError, match=r"cannot be won.* CANARIES with a right answer"):
        take_in(tmp_path, own(tmp_path, "long", long_enough), ROWS)

    (tmp_path / "right").mkdir()
    canary = CANARY.replace('"shoes", "toys"', f'"{"shoes " * 9}", "shoes"')
    take_in(tmp_path / "right", own(tmp_path, "right", long_enough + canary), ROWS)

    (tmp_path / "wrong").mkdir()
    upside_down = REWARD.replace("==", "!=") + CANARY
    with pytest.raises(SettingsError, match="must be solved"):
        take_in(tmp_path / "wrong", own(tmp_path, "wrong", upside_down), ROWS)


def test_the_response_of_a_row_earns_full_marks_or_the_reward_is_refused(tmp_path: Path):
    words = REWARD.replace("response.strip() == right", "'word ' + right in response")
    mapping = own(tmp_path, "words", words)
    for name, response, told in (
        ("right", "response: 'The word {cat}.'", None),
        (
            "wrong",
            "response: 'The name {cat}.'",
            "to the response .*The name shoes",
        ),
    ):
        (tmp_path / name).mkdir()
        if told is None:
            take_in(tmp_path / name, f"{mapping}{response}\n", ROWS)
        else:
            with pytest.raises(SettingsError, match=told):
                take_in(tmp_path / name, f"{mapping}{response}\n", ROWS)


def test_a_built_in_reward_that_no_answer_wins_is_refused(tmp_path: Path):
    mapping = f"{VALUE}answer: {{value: 'the answer is {{size}}, not 6'}}\n"

    with pytest.raises(SettingsError) as refusal:
        take_in(tmp_path, mapping, SIZES)

    told = "gives 0 (several_answers: "
    assert told in str(refusal.value)
    assert "of row sizes/rows-1; 3 of the first 3 rows cannot be won" in str(refusal.value)
    assert "no gold of final_answer. Correct the column of the answer" in str(refusal.value)


def test_a_column_of_whole_solutions_is_refused_before_the_table_is_read(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"the answer is a text and no value"):
        take_in(tmp_path, f'{VALUE}answer: {{value: "A\\n\\n#### {{size}}"}}\n', SIZES)


def test_one_row_that_cannot_be_won_is_a_warning_and_open_text_is_said_to_be_unchecked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO")
    (tmp_path / "one").mkdir()
    one = SIZES.replace("10\n", '"the answer is 5, not 6"\n')
    take_in(tmp_path / "one", f"{VALUE}answer: {{value: '{{size}}'}}\n", one)
    (tmp_path / "open").mkdir()
    judged = MAPPING.replace("verifier: choice", "verifier: rubric").replace("options:", "#")
    take_in(
        tmp_path / "open",
        judged.replace(
            '{correct: ["{cat}"]}',
            "{criteria: [{criterion: '{cat}', points: 1.0}], aggregation: ruscarl}",
        ),
        ROWS,
    )

    assert (
        "1 of the first 3 rows cannot be won. Likely cause: answer is no gold of final_answer"
        in (caplog.text)
    )
    assert "the reward of rubric is unchecked in 2 of the first 2 rows" in caplog.text


def test_an_adapter_keeps_its_rows_and_answers_under_another_verifier(tmp_path: Path):
    row = {"question": "Mia has 3 apples and buys 4. How many?", "answer": "3 + 4 = 7\n#### 7"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    (tmp_path / "my.py").write_text(REWARD)
    (tmp_path / "raw").mkdir()
    verifier = f"{tmp_path / 'my.py'}:exact"

    ingest(
        [Source(adapter="gsm8k", path=str(tmp_path / "rows.jsonl"), verifier=verifier)],
        *(0, tmp_path / "raw"),
    )

    (file,) = raw_files(tmp_path / "raw")
    assert file.adapter == "gsm8k"
    assert (file.verifier or "").startswith(f"{verifier}@")
    ((problem, demonstration),) = read_file(
        file.adapter, 0, tmp_path / "rows.jsonl", verifier=file.verifier or ""
    )
    assert isinstance(problem.record, Problem)
    assert demonstration.answers == problem.record
    assert problem.record.verifier == file.verifier
    assert json.loads(problem.record.answer)["value"] == "7"
    with pytest.raises(SettingsError, match=r"sources\[0\].verifier"):
        ingest([Source(adapter="gsm8k", path=str(tmp_path), verifier="exakt")], 0, tmp_path / "b")


def test_the_reward_of_an_own_adapter_is_tried_like_that_of_a_mapping(tmp_path: Path):
    row = {"question": "Mia has 3 apples and buys 4. How many?", "answer": "3 + 4 = 7\n#### 7"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    (tmp_path / "never.py").write_text(REWARD.replace("float(", "0 * float("))
    source = Source(
        adapter="gsm8k",
        path=str(tmp_path / "rows.jsonl"),
        verifier=f"{tmp_path / 'never.py'}:exact",
    )

    with pytest.raises(SettingsError, match=r"the reward of source gsm8k cannot be won"):
        check_sources([source])
