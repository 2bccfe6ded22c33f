import numpy as np
import pytest

from data_schemas.rollouts import MISSING_ROUTE, RouterTrace, StopReason
from tasks.algorithms.kept_sets import end_to_end
from tasks.errors import DataError
from tasks.rl.codec import pack, rollout_arrays, rollouts_of, unpack


def encoded(rollouts) -> bytes:
    return pack(*rollout_arrays(rollouts))


def decoded(data: bytes):
    return rollouts_of(*unpack(data))


def same(left, right):
    for name in ("problem_id", "sample", "stop_reason", "policy_version", "earlier", "role"):
        assert getattr(left, name) == getattr(right, name)
    assert (left.sampled is None) == (right.sampled is None)
    if left.sampled is not None:
        assert np.array_equal(left.sampled, right.sampled)
    for name in ("prompt_tokens", "response_tokens", "logprobs"):
        assert getattr(left, name).dtype == getattr(right, name).dtype
        assert np.array_equal(getattr(left, name), getattr(right, name))
    assert (left.trace is None) == (right.trace is None)
    if left.trace is not None:
        assert left.trace.experts_TLK.dtype == right.trace.experts_TLK.dtype
        assert np.array_equal(left.trace.experts_TLK, right.trace.experts_TLK)
    assert (left.kept is None) == (right.kept is None)
    if left.kept is not None:
        for name in ("ids", "counts"):
            assert getattr(left.kept, name).dtype == getattr(right.kept, name).dtype
            assert np.array_equal(getattr(left.kept, name), getattr(right.kept, name))


def test_rollouts_come_back_exactly(make_rollout):
    missing = np.full((3, 1, 2), MISSING_ROUTE, dtype=np.int16)
    rollouts = [
        make_rollout(0, 5),
        make_rollout(1, 0, trace=None, stop_reason=StopReason.SEGMENT),
        make_rollout(2, 2, trace=RouterTrace(missing), earlier=((1, 1),), role="verifier"),
    ]

    for before, after in zip(rollouts, decoded(encoded(rollouts)), strict=True):
        same(before, after)


def test_episodes_keep_which_tokens_were_sampled(make_rollout):
    mask = np.array([True, False, False, True])
    rollouts = [make_rollout(0, 3), make_rollout(1, 4, sampled=mask), make_rollout(2, 2)]

    for before, after in zip(rollouts, decoded(encoded(rollouts)), strict=True):
        same(before, after)


def test_rollouts_keep_the_sets_that_they_were_drawn_from(make_rollout):
    sets = [np.array(one, np.int32) for one in ([0, 7], [1], [2, 3, 4])]
    rollouts = [
        make_rollout(0, 3, kept=end_to_end(sets)),
        make_rollout(1, 4),
        make_rollout(2, 2, kept=end_to_end(sets[1:])),
    ]

    for before, after in zip(rollouts, decoded(encoded(rollouts)), strict=True):
        same(before, after)


def test_rollouts_of_one_turn_have_the_bytes_they_had_before_there_were_episodes(make_rollout):
    arrays, _ = rollout_arrays([make_rollout()])

    assert {"prompt_tokens", "response_tokens", "logprobs", "traces"} == arrays.keys()


def test_nothing_is_a_valid_list():
    assert [] == decoded(encoded([]))


def test_the_same_rollouts_give_the_same_bytes(make_rollout):
    assert encoded([make_rollout()]) == encoded([make_rollout()])


def test_arrays_and_values_come_back():
    arrays, meta = unpack(pack({"a": np.arange(3)}, {"b": [1, "ü"]}))

    assert [0, 1, 2] == arrays["a"].tolist()
    assert {"b": [1, "ü"]} == meta


def test_other_bytes_are_refused():
    with pytest.raises(DataError, match="not a file of packed arrays"):
        unpack(b"something else")
    with pytest.raises(DataError, match="not a file of packed arrays"):
        unpack(pack({"a": np.arange(3)}, None)[:-30])
