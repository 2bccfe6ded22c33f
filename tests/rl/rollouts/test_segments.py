from dataclasses import replace
from functools import reduce

import numpy as np

from data_schemas.rollouts import RouterTrace, StopReason
from tasks.rl.groups import (
    OpenGroup,
    join_segments,
    mean_length,
    requests_of,
    update_group,
)

PROMPT = np.array([1, 2], dtype=np.int32)


def trace(first, rows):
    return RouterTrace(np.full((rows, 1, 2), first, dtype=np.uint8))


def test_a_fresh_group_asks_for_all_its_samples(problems):
    (request,) = requests_of(OpenGroup("1.0.0", problems[0], 0, size=4), [(0, 4, PROMPT)])

    assert (4, 0, 0) == (request.num_samples, request.first_sample, len(request.response_tokens))


def test_a_group_that_grows_asks_for_the_samples_it_lacks(problems, make_rollout):
    begun = tuple(make_rollout(sample, sample + 2) for sample in range(3))
    group = OpenGroup("1.0.0", problems[0], 0, size=8, rollouts=begun)

    (request,) = requests_of(group, [(0, group.size, PROMPT)])

    assert (5, 3, 0) == (request.num_samples, request.first_sample, len(request.response_tokens))
    assert 3.0 == mean_length(group)
    assert mean_length(replace(group, rollouts=())) is None


def test_only_samples_that_have_not_ended_go_on(problems, make_rollout):
    group = OpenGroup(
        "1.0.0",
        problems[0],
        0,
        size=2,
        rollouts=(make_rollout(0), make_rollout(1, stop_reason=StopReason.SEGMENT)),
    )

    (request,) = requests_of(group, [(0, group.size, PROMPT)])

    assert not group.complete
    assert (1, 1) == (request.num_samples, request.first_sample)
    assert [0, 1, 2, 3] == request.response_tokens.tolist()


def test_samples_that_have_not_begun_are_asked_for_after_the_unfinished_ones(
    problems, make_rollout
):
    begun = (make_rollout(0), make_rollout(1, stop_reason=StopReason.SEGMENT))
    group = OpenGroup("7.0.2", problems[0], 0, size=4, rollouts=begun)

    asked = requests_of(group, [(0, group.size, PROMPT)])

    assert [(1, 1, 4), (2, 2, 0)] == [
        (one.first_sample, one.num_samples, len(one.response_tokens)) for one in asked
    ]
    assert (7, False) == (group.step, group.complete)


def test_both_parts_keep_their_own_routes_logprobs_and_versions(make_rollout):
    before = make_rollout(1, 3, trace=trace(5, 4), policy_version=6, stop_reason=StopReason.SEGMENT)
    after = make_rollout(1, 2, trace=trace(9, 6), policy_version=7)

    whole = join_segments(before, after)

    assert [0, 1, 2, 0, 1] == whole.response_tokens.tolist()
    assert 5 == len(whole.logprobs)
    assert [5, 5, 5, 5, 9, 9] == whole.trace.experts_TLK[:, 0, 0].tolist()
    assert (6, 7, StopReason.END) == (whole.first_version, whole.policy_version, whole.stop_reason)
    assert [6, 6, 6, 7, 7] == whole.versions_R.tolist()


def test_every_token_keeps_the_version_that_sampled_it(make_rollout):
    def segment(tokens, version):
        return make_rollout(0, tokens, policy_version=version, stop_reason=StopReason.SEGMENT)

    parts = segment(1, 2), segment(2, 2), segment(1, 3), make_rollout(0, 3, policy_version=5)
    whole = reduce(join_segments, parts)

    assert [2, 2, 2, 3, 5, 5, 5] == whole.versions_R.tolist()
    assert (2, 5) == (whole.first_version, whole.policy_version)


def test_a_group_is_complete_when_its_last_sample_has_ended(problems, make_rollout):
    group = OpenGroup("k", problems[0], 0, size=2)
    group = update_group(group, [make_rollout(1)])
    assert not group.complete

    group = update_group(group, [make_rollout(0, stop_reason=StopReason.SEGMENT)])
    assert not group.complete

    group = update_group(group, [make_rollout(0)])
    assert group.complete
    assert [0, 1] == [rollout.sample for rollout in group.rollouts]
