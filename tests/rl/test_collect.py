import dataclasses

import numpy as np
import pytest

from data_schemas.ledger import Fate
from data_schemas.rollouts import Rollout, RolloutGroup, RouterTrace, ScoredRollout, StopReason
from data_schemas.settings import RewardSettings, ZeroVarianceSettings
from data_schemas.verdicts import abstain, scored
from tasks.engines.chat import load_tokenizer
from tasks.engines.rollout_hf import HFRolloutEngine
from tasks.errors import EngineError
from tasks.rl.batch import build
from tasks.rl.collect import CollectedGroup, collect, fate_of, penalties
from tasks.rl.draw import PromptStream


def rollout(length=4, logprob=-1.0):
    return Rollout(
        problem_id="p",
        sample=0,
        prompt_tokens=np.array([1, 2], dtype=np.int32),
        response_tokens=np.arange(length, dtype=np.int32),
        logprobs=np.full(length, logprob, dtype=np.float32),
        trace=None,
        stop_reason=StopReason.END,
        policy_version=0,
    )


def group(problem, scores, penalty=0.0):
    verdicts = [abstain("timeout") if s is None else scored(s, "rule") for s in scores]
    items = tuple(ScoredRollout(rollout(), "", verdict, penalty) for verdict in verdicts)
    return RolloutGroup(problem, items)


@pytest.mark.parametrize(
    ("scores", "alpha", "fate"),
    [
        ([1.0, 0.0, 1.0], 0.1, Fate.CONTRAST),
        ([1.0, 1.0, 1.0], 0.1, Fate.ZERO_VARIANCE_TRAINED),
        ([0.0, 0.0, None], 0.1, Fate.ZERO_VARIANCE_TRAINED),
        ([0.0, 0.0, 0.0], 0.0, Fate.ZERO_VARIANCE_IDLE),
        ([0.5, 0.5, 0.5], 0.1, Fate.FLAT_PARTIAL),
        ([1.0, None, None], 0.1, Fate.UNSCORED),
    ],
)
def test_the_fate_of_a_group_follows_from_its_verdicts(settings, problems, scores, alpha, fate):
    chosen = settings.model_copy(update={"zero_variance": ZeroVarianceSettings(rl_zvp_alpha=alpha)})

    assert fate is fate_of(chosen, group(problems[0], scores))


def test_penalties_cannot_make_a_flat_group_look_alive(settings, problems):
    shaped = group(problems[0], [0.0, 0.0, 0.0])
    items = tuple(
        ScoredRollout(item.rollout, "", item.verdict, -0.1 * number)
        for number, item in enumerate(shaped.rollouts)
    )

    assert Fate.ZERO_VARIANCE_TRAINED is fate_of(settings, RolloutGroup(problems[0], items))


def test_sequences_that_cannot_have_a_gradient_never_reach_the_trainer(settings, problems):
    off = settings.model_copy(update={"router_replay": "off"})
    entries = [
        CollectedGroup(group(problems[0], [1.0, 0.0, None]), 0, Fate.CONTRAST),
        CollectedGroup(group(problems[1], [0.5, 0.5, 0.5]), 0, Fate.FLAT_PARTIAL),
        CollectedGroup(group(problems[2], [1.0, 1.0, None]), 0, Fate.ZERO_VARIANCE_TRAINED),
    ]

    batch = build(off, entries)

    assert [(0, 0), (0, 1), (2, 0), (2, 1)] == batch.owners
    assert 9 == batch.num_sequences
    assert [False, False, True, True] == batch.zero_variance_N.tolist()


def test_penalties_fall_on_long_and_on_repeating_responses(settings):
    chosen = settings.model_copy(
        update={"max_new_tokens": 20, "rewards": RewardSettings(overlong_buffer=10)}
    )
    looping = dataclasses.replace(rollout(), response_tokens=np.array([7] * 9, dtype=np.int32))

    short, long, repeated = penalties(chosen, [rollout(5), rollout(15), looping])

    assert 0.0 == short
    assert -0.25 == pytest.approx(long)  # half of the buffer, weight 0.5
    assert -0.5 == pytest.approx(repeated)  # 1 - 1/7 - 0.3 = 0.557, capped


def scored_by(rule):
    return lambda problems, responses: [rule(number) for number in range(len(responses))]


def test_flat_groups_are_refilled_and_counted_as_surplus(settings, problems, tiny_moe):
    calls = []

    def first_draw_flat(rows, responses):
        calls.append(len(rows))
        flat = len(calls) == 1
        return [scored(float(not flat and n % 2), "rule") for n in range(len(responses))]

    stream = PromptStream(problems, settings.domains, 0)
    found = collect(
        settings,
        HFRolloutEngine(tiny_moe),
        load_tokenizer(tiny_moe),
        first_draw_flat,
        stream,
        step=1,
    )

    assert [12, 12] == calls
    assert 6 == stream.position
    assert [Fate.SURPLUS] * 3 + [Fate.CONTRAST] * 3 == [item.fate for item in found.groups]


def test_too_many_abstentions_stop_the_step_with_their_reasons(settings, problems, tiny_moe):
    rule = scored_by(lambda n: abstain("timeout") if n % 2 else scored(1.0, "rule"))

    with pytest.raises(EngineError, match=r"6 of 12 rollouts have no verdict \(timeout x6\)"):
        collect(
            settings,
            HFRolloutEngine(tiny_moe),
            load_tokenizer(tiny_moe),
            rule,
            PromptStream(problems, settings.domains, 0),
            step=1,
        )


def test_routes_that_cannot_be_replayed_stop_the_step(settings, problems, tiny_moe, monkeypatch):
    generate = HFRolloutEngine.generate

    def all_zero(self, requests, sampling):
        for one in generate(self, requests, sampling):
            empty = RouterTrace(np.zeros_like(one.trace.experts_TLK))
            yield dataclasses.replace(one, trace=empty)

    monkeypatch.setattr(HFRolloutEngine, "generate", all_zero)

    with pytest.raises(EngineError, match="impossible routes: trace repeats an expert"):
        collect(
            settings,
            HFRolloutEngine(tiny_moe),
            load_tokenizer(tiny_moe),
            scored_by(lambda _: scored(1.0, "rule")),
            PromptStream(problems, settings.domains, 0),
            step=1,
        )
