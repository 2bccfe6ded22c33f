"""Which replica gets which request, without starting one."""

import importlib.util
import warnings

import pytest

pytestmark = pytest.mark.engines
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tasks.engines.rollout_vllm.backend import Call
    from tasks.engines.rollout_vllm.replicas import spread_calls


def test_requests_are_balanced_by_expected_tokens_and_their_calls_stay_together():
    expected = {0: 30.0, 1: 20.0, 2: 5.0, 3: 5.0}
    calls = [
        Call(2 * request + sample, request, [1], None, expected_tokens=tokens)
        for request, tokens in expected.items()
        for sample in range(2)
    ]

    assert [[0, 1], [2, 3, 4, 5, 6, 7]] == [
        [call.number for call in part] for part in spread_calls(calls, 2)
    ]
