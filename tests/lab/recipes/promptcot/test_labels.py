import json

import pytest

from data_schemas.arrow import read_table, write_table
from data_schemas.rows import HELD_OUT, PROBLEMS, Problem
from data_schemas.settings import CurationSettings
from tasks.curation.curate import curate
from tasks.engines.chat import load_tokenizer
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.errors import DataError
from tasks.lab.recipes.promptcot.labels import RAW_FILE, audit, label, write_raw
from tasks.lab.recipes.promptcot.records import WrittenProblem
from tasks.lab.recipes.promptcot.settings import SynthesisSettings

SETTINGS = SynthesisSettings(votes=4)
ANSWERS = {
    "3 pans at 4. Total?": ("12", "12", "13", "none"),
    "pan 30, kite 40. Total?": ("80", "80", "70", ""),
    "A pan costs 37. Pay 100. Change?": ("63", "63", "64", "64"),
    "2 boots at 9. Cost?": ("", "", "", ""),
}


@pytest.fixture(scope="module")
def labelled(tiny_moe):
    tokenizer = load_tokenizer(tiny_moe)

    def script(prompt, sample):
        (said,) = [said for problem, said in ANSWERS.items() if problem in prompt]
        return f"<think>steps</think>{said[sample]}"

    written = [
        WrittenProblem(id=f"w{place}", concepts="", response="", problem=problem, reason="")
        for place, problem in enumerate(ANSWERS)
    ]
    return label(SETTINGS, written, ScriptedRolloutEngine(tokenizer, script), tokenizer)


def test_a_label_is_the_majority_of_answers_and_a_tie_or_no_answer_gives_none(labelled):
    assert ["12", "80", None, None] == [one.label for one in labelled]
    assert [2, 2, 2, 0] == [one.votes for one in labelled]


def test_the_parser_contradicts_a_wrong_majority(labelled):
    assert ["12", "70", "63", "18"] == [one.truth for one in labelled]
    assert (2, 1) == audit(labelled)


def test_labelled_problems_are_raw_rows_of_which_curation_drops_a_held_out_one(
    labelled, tiny_moe, tmp_path
):
    raw, known, out = (tmp_path / name for name in ("raw", "known", "out"))
    for folder in (raw, known, out):
        folder.mkdir()
    write_raw(labelled, raw)
    held_out = Problem.model_validate(
        {
            "id": "h",
            "domain": "maths",
            "language": "en",
            "messages": [{"role": "user", "content": "3 pans at 4. Total?"}],
            "verifier": "final_answer",
            "answer": '{"value":"12"}',
            "source": "s",
            "source_row": "r",
        }
    )
    write_table(known / HELD_OUT, Problem, [held_out])

    curate(CurationSettings(), raw, tiny_moe, out, known)

    (kept,) = read_table(out / PROBLEMS, Problem)
    assert "pan 30, kite 40. Total?" == kept.prompt_text
    assert {"value": "80"} == json.loads(kept.answer)
    assert 2 == len((raw / RAW_FILE).read_text().splitlines())


def test_without_any_label_the_run_stops(labelled, tmp_path):
    with pytest.raises(DataError, match="no written problem has a label"):
        write_raw(labelled[2:], tmp_path)
