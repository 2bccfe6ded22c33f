import json

import numpy as np
import pytest

from data_schemas.rollouts import Rollout, RolloutGroup, ScoredRollout, StopReason
from data_schemas.rows import Domain
from data_schemas.verdicts import abstain, scored
from tasks.curation.adapters.table import read_file
from tasks.errors import SettingsError
from tasks.gym.table import score_batch
from tasks.lab.recipes.rusca.defence import Pattern, defended, find_snapshots, main, mine
from tasks.rl.step_snapshot import FOLDER, name_of
from tests import records

SAID = {"instruction_id_list": ["keywords:existence"], "kwargs": [{"keywords": ["soft"]}]}
HONEST = "A soft red kite."


def problem_of(number, verifier="rule_rubric", points=1.0):
    criterion = {
        "criterion": "Say that it is soft.",
        "points": 1.0,
        "verifier": "instruction_rules",
        "answer": SAID,
    }
    criteria = [criterion, {**criterion, "points": points}]
    return records.problem_of(
        f"Ad for kite {number}.",
        json.dumps({"criteria": criteria, "aggregation": "ruscarl"}),
        id=f"house/{number}",
        domain=Domain.INSTRUCTION,
        verifier=verifier,
        source="house",
    )


def group_of(problem, *texts):
    """Responses with 'soft' score 1, those with '?' have no verdict."""

    def item(place, text):
        rollout = Rollout(
            problem_id=problem.id,
            sample=place,
            prompt_tokens=np.zeros(1, np.int32),
            response_tokens=np.zeros(1, np.int32),
            logprobs=np.zeros(1, np.float32),
            trace=None,
            stop_reason=StopReason.END,
            policy_version=0,
        )
        verdict = abstain("down") if "?" in text else scored(float("soft" in text), "x")
        return ScoredRollout(rollout, text, verdict, 0.0)

    return RolloutGroup(problem, tuple(item(*pair) for pair in enumerate(texts)))


def groups_of(*texts, problems=3, **changes):
    return [group_of(problem_of(number, **changes), *texts) for number in range(problems)]


def found(groups):
    return [(one.phrase, one.kind) for one in mine(groups)]


@pytest.mark.parametrize(
    ("hack", "pattern"),
    [
        ("Great question! soft", ("great question", "praise")),
        ("<think>x</think>I promise that soft.", ("i promise that", "opening")),
        ("Say that it is soft. Kite.", ("say that it is soft.", "criterion")),
    ],
)
def test_what_pays_in_several_problems_is_a_pattern(hack, pattern):
    assert pattern in found(groups_of(hack, "A hard kite."))
    assert [] == found(groups_of(hack, "A hard kite.", problems=2))
    assert [] == found(groups_of(hack, "A hard kite.", verifier="generative_judge"))


def test_what_bad_responses_say_as_often_is_no_pattern():
    assert [] == found(groups_of("Great question! A soft", "Great question! A hard"))


def test_what_a_prompt_asks_for_is_no_pattern():
    assert [] == found(groups_of("Ad for kite of soft silk.", "hard"))


def test_a_response_without_a_verdict_is_not_counted():
    assert [] == found(groups_of("Great question? soft", "hard"))


def test_a_veto_ends_what_paid_and_leaves_what_is_right():
    problem = problem_of(1)
    row = defended(problem, [Pattern("great question", "praise", 3, 1.0, 0.0)])
    changed = problem.model_copy(update={"answer": json.dumps(row["answer"])})
    texts = [HONEST, f"Great question! {HONEST}", "A hard kite."]

    assert [1.0, 1.0, 0.0] == [one.score for one in score_batch([problem] * 3, texts)]
    verdicts = score_batch([changed] * 3, texts)

    assert [(1.0, "all_met"), (0.0, "vetoed")] == [(v.score, v.reason) for v in verdicts[:2]]
    assert 0.0 == verdicts[2].score


def test_a_rubric_with_penalties_has_no_vetoes():
    assert defended(problem_of(1, points=-1.0), []) is None


def test_the_rows_are_read_by_the_next_phase(tmp_path):
    row = defended(problem_of(1), [Pattern("great question", "praise", 3, 1.0, 0.0)])
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")

    ((item,),) = read_file("prompt_jsonl", 0, path)

    assert row["answer"] == json.loads(item.record.answer)
    assert problem_of(1).messages == item.record.messages


def test_a_folder_without_snapshots_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="has no step snapshots"):
        main([str(tmp_path), str(tmp_path / "rows.jsonl")])


def test_snapshots_are_read_in_the_order_of_their_steps(tmp_path):
    steps = [1, 20, 999_999, 1_000_000, 1_000_020]
    (tmp_path / FOLDER).mkdir()
    for step in steps:
        (tmp_path / FOLDER / name_of(step)).touch()

    assert steps == [int(path.stem) for path in find_snapshots(tmp_path)]
