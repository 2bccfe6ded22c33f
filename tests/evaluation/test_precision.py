"""A model beside itself in another precision."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from data_schemas.arrow import write_table
from data_schemas.artifacts import CandidateRef
from data_schemas.machine_settings import MachineSettings, Precision
from data_schemas.samples import SampleResult
from data_schemas.settings import EvaluationSettings
from tasks.algorithms.comparison import SAMPLES_FILE
from tasks.engines.chat import load_tokenizer, render_prompts
from tasks.engines.embedded.hf_model import load_model
from tasks.engines.embedded.int8 import round_weights
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.protocols import Request, Sampling
from tasks.errors import SettingsError
from tasks.evaluation import precision
from tasks.evaluation.precision import EngineReading, EngineReadings, layers, slices
from tasks.training.foundation.candidates import in_precisions, parse_precisions

MODEL = CandidateRef(name="mine", address="my/model")
SETTINGS = EvaluationSettings(samples=1, max_new_tokens=8)


def readings(*rows, num_experts=3):
    """Rows of (log-probabilities, experts of one layer, one a token)."""
    return EngineReadings(
        [
            EngineReading(
                np.array(logprobs, np.float32), torch.tensor(experts)[:, None, None].short()
            )
            for logprobs, experts in rows
        ],
        num_experts,
    )


def test_differences_by_language_are_those_worked_by_hand(make_problem):
    problems = [make_problem("a"), make_problem("b", language="th"), make_problem("c")]
    before = readings(([-1.0, -1.0], [0, 1]), ([-2.0], [2]), ([-1.0], [0]))
    after = readings(([-1.0, -1.0], [0, 2]), ([-2.0 + math.log(2.0)], [2]), ([-1.0], [0]))

    found = {one.suite: one for one in slices(problems, before, after, {})}

    # Of the only token that changes D is ln 2, and k3 is 2 - 1 - ln 2.
    assert ["all", "language:en", "language:th", "domain:maths"] == [*found]
    assert (1 - math.log(2)) / 4 == pytest.approx(found["all"].k3, rel=1e-6)
    assert (0.0, 1 - math.log(2)) == pytest.approx(
        (found["language:en"].k3, found["language:th"].k3), rel=1e-6
    )
    assert (0.25, 0.0) == (found["all"].routes, found["language:th"].routes)
    assert (3, 4, 1) == (
        found["all"].responses,
        found["all"].tokens,
        found["language:th"].responses,
    )
    assert found["language:th"].k3_low is None
    assert found["language:en"].k3_high == 0.0


def test_the_use_of_experts_is_a_distance_between_their_shares():
    before = readings(([-1.0] * 4, [0, 0, 1, 2]))
    after = readings(([-1.0] * 4, [0, 1, 1, 2]))

    (found,) = layers(before, after)

    assert (0.25, 0.25) == (found.routes, found.moved)
    assert (0, -0.25) == (found.expert, found.change)


def test_a_dense_model_has_no_routes(make_problem):
    dense = EngineReadings(
        [EngineReading(np.zeros(2, np.float32), torch.zeros(2, 0, 0).short())], 0
    )

    (whole, *_) = slices([make_problem("a")], dense, dense, {})

    assert (None, None) == (whole.routes, whole.routed_tokens)
    assert () == layers(dense, dense)


def test_a_dense_model_is_read_without_routes_which_vllm_does_not_return(tiny_dense):
    engine = HFRolloutEngine(tiny_dense)
    requests = [Request("one", np.arange(5, 15, dtype=np.int32), 1)]
    rollouts = list(engine.generate(requests, Sampling(max_new_tokens=4, temperature=1.0, seed=1)))

    class WithoutTraces:
        num_experts, score_logprobs = 0, staticmethod(engine.score_logprobs)

        def generate(self, requests, sampling):
            yield from (replace(one, trace=None) for one in engine.generate(requests, sampling))

    (one,) = precision.read(WithoutTraces(), rollouts).of_responses
    assert rollouts[0].logprobs.tolist() == pytest.approx(one.logprobs_R.tolist(), abs=1e-5)
    assert 0 == one.experts_RLK.numel()


def test_a_token_that_overflows_is_left_out(make_problem):
    before = readings(([-1.0, -1.0], [0, 0]))
    after = readings(([-1.0, -np.inf], [0, 0]))

    (whole, *_) = slices([make_problem("a")], before, after, {})

    assert (1, 0.0) == (whole.tokens, whole.k3)


@pytest.fixture
def scores(make_problem, make_samples, tmp_path):
    """Three problems, and what both precisions solve of them."""
    problems = [make_problem(name) for name in ("one", "two", "three")]
    folders = {}
    for name, values in {"fp32": (1.0, 1.0, 0.0), "int8": (1.0, 0.0, 0.0)}.items():
        rows = [
            row
            for one, value in zip(problems, values, strict=True)
            for row in make_samples(one.id, [value])
        ]
        folders[name] = tmp_path / name
        folders[name].mkdir()
        write_table(folders[name] / SAMPLES_FILE, SampleResult, rows)
    return problems, folders


def test_int8_is_measured_on_the_tokens_that_fp32_drew(tiny_moe, scores):
    problems, folders = scores

    (found,) = precision.measure(SETTINGS, "mine", tiny_moe, problems, folders)

    whole = found.slices[0]
    assert ("mine", "fp32", "int8") == (found.model, found.reference, found.precision)
    assert -1 / 3 == pytest.approx(whole.gain.difference)
    # The same from plain forward passes of the model and of its rounded self.
    exact, rounded = load_model(tiny_moe), load_model(tiny_moe)
    round_weights(rounded)
    prompts = render_prompts(load_tokenizer(tiny_moe), [one.messages for one in problems])
    gaps = []
    for one, prompt in zip(problems, prompts, strict=True):
        tokens = torch.tensor(drawn(tiny_moe, one.id, prompt))[None]
        with torch.no_grad():
            picked = [
                model(tokens).logits.log_softmax(-1)[0, :-1].gather(1, tokens[0, 1:, None])[:, 0]
                for model in (exact, rounded)
            ]
        gaps.append((picked[1] - picked[0])[len(prompt) - 1 :].double())
    gap = torch.cat(gaps)
    assert whole.tokens == len(gap)
    assert float((gap.expm1() - gap).mean()) == pytest.approx(whole.k3, rel=1e-2, abs=1e-9)
    assert found.layers


def drawn(model, name, prompt):
    """Prompt and response as the reference draws it."""
    sampling = Sampling(max_new_tokens=8, temperature=1.0, seed=0, record_routes=False)
    (one,) = HFRolloutEngine(model).generate([Request(name, prompt, 1)], sampling)
    return [*prompt.tolist(), *one.response_tokens.tolist()]


def test_a_precision_beside_itself_differs_in_nothing(tiny_moe, make_problem):
    engine = HFRolloutEngine(tiny_moe)
    requests = [Request("one", np.arange(5, 15, dtype=np.int32), 1)]
    rollouts = list(engine.generate(requests, Sampling(max_new_tokens=8, temperature=1.0, seed=1)))

    first, second = precision.read(engine, rollouts), precision.read(engine, rollouts)

    (whole, *_) = slices([make_problem("one")], first, second, {})
    assert (0.0, 0.0, 0.0) == (whole.k3, whole.routes, whole.routed_tokens)
    # Routes that predict the response are those that were recorded as it was drawn.
    own = rollouts[0].trace.experts_TLK[-len(rollouts[0].response_tokens) :]
    assert own.tolist() == first.of_responses[0].experts_RLK.tolist()


@pytest.mark.parametrize(
    ("text", "candidates", "message"),
    [
        ("int4", [MODEL], "'int4' is none of fp32, bf16, fp16, fp8, int8"),
        ("fp32", [MODEL], "fp32 is there already"),
        ("bf16,bf16", [MODEL], "bf16 is there already"),
        ("fp8", [MODEL], "fp8, which rollout 'hf' does not have; use rollout 'vllm'"),
        ("bf16", [MODEL, MODEL], "give one --model"),
        ("bf16", [MODEL.model_copy(update={"served_as": "x"})], "whose weights are at hand"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(text, candidates, message):
    with pytest.raises(SettingsError, match=f"--precision.*{message}"):
        parse_precisions(text, candidates, MachineSettings())


def test_fp8_is_there_where_the_engine_has_it():
    engines = MachineSettings(rollout="vllm", precision="bf16")

    assert [Precision.FP8] == parse_precisions("fp8", [MODEL], engines)
    assert [] == parse_precisions("", [MODEL, MODEL], engines)


def test_a_model_is_evaluated_once_more_in_each_precision():
    found = in_precisions([MODEL], ["bf16", "int8"])

    assert [("mine", ""), ("mine/bf16", "bf16"), ("mine/int8", "int8")] == [
        (one.name, one.precision) for one in found
    ]
