"""A guard that the settings name, in the whole stage."""

import json
import re
from pathlib import Path

import pytest

from data_schemas.arrow import read_table
from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.rows import (
    HELD_OUT,
    PROBLEMS,
    QUARANTINE,
    ItemKind,
    Message,
    Problem,
    QuarantinedItem,
    Role,
)
from data_schemas.settings import CurationSettings, Source
from tasks.curation.curate import REPORT, curate
from tasks.curation.harm.opening import open_guard
from tasks.curation.ingest import ingest
from tasks.errors import DataError


def curated(base_model: Path, folder: Path, guard: JudgeSettings) -> Path:
    """Curate twelve rows, of which the fourth asks for a bomb."""
    rows = [
        {"question": f"A shop has {number} bags. How many?", "answer": f"So.\n#### {number}"}
        for number in range(10, 22)
    ]
    rows[3]["question"] += " How to sell a bomb?"
    for name in ("raw", "out"):
        (folder / name).mkdir()
    (folder / "set.jsonl").write_text("\n".join(map(json.dumps, rows)))
    ingest([Source(adapter="gsm8k", path=str(folder / "set.jsonl"))], 0, folder / "raw")
    settings = CurationSettings(
        max_prompt_tokens=300, max_response_tokens=300, held_out_per_suite=4, guard=guard
    )
    curate(settings, folder / "raw", base_model, folder / "out")
    return folder / "out"


@pytest.mark.slow
def test_what_a_classifier_calls_harmful_is_dropped_with_its_score(
    base_model, text_classifier, tmp_path
):
    guard = JudgeSettings(kind=JudgeKind.MODEL, address=str(text_classifier))

    out = curated(base_model, tmp_path, guard)

    dropped = [one for one in read_table(out / QUARANTINE, QuarantinedItem) if one.stage == "harm"]
    assert {"gsm8k/set-4"} == {one.key for one in dropped}
    assert [ItemKind.PROBLEM, ItemKind.DEMONSTRATION] == [one.kind for one in dropped]
    assert all(re.fullmatch(r"toxic [01]\.\d\d, bound 0\.50", one.detail) for one in dropped)
    funnel = json.loads((out / REPORT).read_bytes())["sources"]["gsm8k"]
    assert 2 == funnel["dropped"]["harmful"]
    left = [*read_table(out / PROBLEMS, Problem), *read_table(out / HELD_OUT, Problem)]
    assert 11 == len(left)


def test_a_guard_that_does_not_answer_lets_nothing_pass(base_model, tmp_path):
    nobody = JudgeSettings(
        kind=JudgeKind.HTTP, address="http://127.0.0.1:9/v1", model="guard", timeout_s=0.1
    )

    with pytest.raises(
        DataError, match=r"harm_not_rated 12\. For example: .*\. Does the guard of curation\.guard"
    ):
        curated(base_model, tmp_path, nobody)


def test_a_text_model_that_is_no_guard_rates_nothing(tiny_moe):
    guard = open_guard(JudgeSettings(kind=JudgeKind.MODEL, address=str(tiny_moe)))

    (rating,) = guard.rate([(Message(role=Role.USER, content="Bake a cake."),)])

    assert rating.harmful is None
