"""The second pass over responses that saw criteria, the policy ratio, and the records."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from data_schemas.arrow import read_table
from data_schemas.ledgers import GroupOutcome
from data_schemas.rl_settings import RouterReplay
from data_schemas.rollouts import RolloutGroup, RouterTrace, ScoredRollout
from data_schemas.verdicts import scored
from tasks.engines.protocols import TokenScores
from tasks.lab.recipes.rusca.prompts import open_scaffold
from tasks.lab.recipes.rusca.settings import Form, Ratio, ScaffoldSettings
from tasks.lab.recipes.rusca.shown import SHOWN_FILE, ShownRow
from tasks.rl.batch import build, score_as_drawn
from tasks.rl.groups import CollectedGroup
from tasks.rl.ledger import mismatch_of
from tasks.rl.recipe import TrainedStep

BARE = np.array([1, 2], dtype=np.int32)
SHOWN = np.array([1, 2, 3, 3, 3], dtype=np.int32)


@dataclass
class ByPosition:
    """Scores a token by its position; the recorded log-probs are those of the drawn prompt."""

    scored: list[tuple[list[int], bool]] = field(default_factory=list)

    def score(self, batch, *, temperature, record_routes):
        lengths = batch.lengths_N.tolist()
        self.scored.append((lengths, batch.experts_NTLK is not None))
        width = batch.tokens_NT.shape[1]
        logprobs_NT = -0.1 * torch.arange(width).expand(len(lengths), width)
        logprobs_NT = torch.where(batch.response_NT, logprobs_NT, torch.zeros(()))
        return TokenScores(logprobs_NT, torch.ones_like(logprobs_NT), None)


def drawn_logprobs(prompt, length=4):
    return (-0.1 * np.arange(len(prompt), len(prompt) + length)).astype(np.float32)


@pytest.fixture
def group(rubrics, make_rollout):
    """Two responses that saw criteria, two that did not; one of each is solved."""

    def one(sample):
        prompt = SHOWN if sample < 2 else BARE
        rows = len(prompt) + 3
        rollout = make_rollout(
            sample,
            prompt_tokens=prompt,
            logprobs=drawn_logprobs(prompt),
            trace=RouterTrace(np.tile(np.array([[0, 1]], np.uint8), (rows, 1, 1))),
        )
        if sample < 2:
            rollout = replace(rollout, shown=(0, 2)[: 2 - sample], bare_prompt=BARE)
        text = "I am Lowercase. you see" if sample == 1 else "fine"
        return ScoredRollout(rollout, text, scored(float(sample % 2), "rule"), 0.0)

    return CollectedGroup(
        RolloutGroup(rubrics[0], tuple(one(n) for n in range(4))),
        0,
        GroupOutcome.NON_ZERO_VARIANCE,
        new_tokens=16,
    )


def scores_of(settings, group):
    trainer, batch = ByPosition(), build(settings, [group])
    old = trainer.score(batch.tokens, temperature=1.0, record_routes=False)
    return trainer, batch, old, score_as_drawn(trainer, settings, [group], batch, old)


def test_the_gate_compares_the_engines_under_the_prompt_that_was_drawn(settings, group):
    trainer, batch, old, drawn = scores_of(settings, group)

    assert [([6, 6, 6, 6], True), ([9, 9], True)] == trainer.scored
    assert mismatch_of(batch, old)["mismatch/k3"] > 0.01
    assert 0.0 == pytest.approx(mismatch_of(batch, drawn)["mismatch/k3"], abs=1e-12)


def test_the_update_has_the_bare_prompt_and_no_route_of_another_one(settings, group):
    batch = build(settings, [group])

    assert [[1, 2, 0, 1, 2, 3]] * 4 == batch.tokens.tokens_NT.tolist()
    missing_N = (batch.tokens.padded_routes_NTLK[:, :5] == -1).flatten(1).all(dim=1)
    assert [True, True, False, False] == missing_N.tolist()


def test_the_denominator_of_the_ratio_is_bare_unless_importance_sampling_is_asked_for(settings):
    asked = {
        ratio: open_scaffold(ScaffoldSettings(ratio=ratio), settings).shaper.ratio_as_drawn
        for ratio in Ratio
    }

    assert {Ratio.BARE: False, Ratio.IMPORTANCE: True, Ratio.SCAFFOLDED: False} == asked


def unscaffolded(item):
    trace = RouterTrace(item.rollout.trace.experts_TLK[:5])
    plain = {"prompt_tokens": BARE, "shown": (), "bare_prompt": None, "trace": trace}
    return replace(item, rollout=replace(item.rollout, **plain))


@pytest.mark.parametrize("replay", RouterReplay)
def test_without_criteria_nothing_is_scored_a_second_time(settings, group, replay):
    plain = settings.model_copy(update={"router_replay": replay})
    bare = tuple(map(unscaffolded, group.group.rollouts))
    group = replace(group, group=replace(group.group, rollouts=bare))

    trainer, _, old, drawn = scores_of(plain, group)

    assert old is drawn
    assert 1 == len(trainer.scored)


def test_the_records_say_what_was_shown_and_what_it_cost(settings, group, tmp_path):
    report = open_scaffold(ScaffoldSettings(form=Form.USER), settings).report
    _, batch, old, drawn = scores_of(settings, group)
    step = TrainedStep(1, [group], batch.tokens.response_NT, old.logprobs_NT, drawn.logprobs_NT)
    dumped, metrics = report.measure(step)
    rows = [ShownRow.model_validate(row) for row in dumped]

    assert [(0, 2), (0,), (), ()] == [row.shown for row in rows]
    assert [3, 3, 0, 0] == [row.added_tokens for row in rows]
    assert [False, True, False, False] == [row.mentions for row in rows]
    assert {3} == {row.criteria for row in rows}
    assert 1.0 == pytest.approx(metrics.pop("scaffold/share"))
    three_places = np.expm1(0.3) - 0.3
    assert three_places == pytest.approx(metrics.pop("scaffold/k3_between_prompts"), rel=1e-4)
    assert {
        "scaffold/shown_responses": 2.0,
        "scaffold/shown_criteria_mean": 0.75,
        "scaffold/reward_shown": 0.5,
        "scaffold/reward_bare": 0.5,
        "scaffold/mentioning_responses": 1.0,
        "scaffold/added_prompt_tokens": 6.0,
    } == metrics
    assert {
        "scaffold_ratio": "bare",
        "scaffold_responses": 2,
        "scaffold_criteria_shown": 3,
        "scaffold_last_step": 1,
        "scaffold_added_prompt_tokens": 6,
        "scaffold_mentions": 1,
    } == report.conclude(dumped, tmp_path)
    assert rows == read_table(tmp_path / SHOWN_FILE, ShownRow)
