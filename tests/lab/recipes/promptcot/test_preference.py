from dataclasses import replace

import numpy as np
import pytest
import torch

from data_schemas.arrow import write_table
from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.rl_settings import PairLossSettings
from data_schemas.rows import GRADED
from data_schemas.samples import RESPONSES, ResponseTokens
from data_schemas.verdicts import abstain
from tasks.algorithms.choices import complete
from tasks.algorithms.losses import dpo
from tasks.engines.chat import load_tokenizer, render_response
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import TokenBatch
from tasks.errors import DataError, SettingsError
from tasks.gym.table import VERIFIERS
from tasks.lab.recipes.promptcot.preference import (
    WEIGHTS,
    WeightedLogprobs,
    pair_batch,
    read_pairs,
    token_weights,
    train_pairs,
)
from tasks.lab.recipes.promptcot.settings import PreferenceSettings, SynthesisRecipe

OTPO = {"kind": "otpo", "entropy": 0.1}
ANSWERS = {"a": "1222", "b": "1111", "c": "2121"}
"""Answers to three problems; 1 is right."""


@pytest.fixture(scope="module")
def graded(tiny_moe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graded")
    tokenizer = load_tokenizer(tiny_moe)
    problems = [
        GradedProblem.model_validate(
            {
                "id": name,
                "domain": "maths",
                "language": "en",
                "messages": [{"role": "user", "content": f"problem {name}"}],
                "verifier": "final_answer",
                "answer": '{"value":"1"}',
                "source": "s",
                "source_row": "r",
                "pass_rate": said.count("1") / 4,
                "mean_tokens": 2.0,
                "band": Band.HARD,
            }
        )
        for name, said in ANSWERS.items()
    ]
    rows = [
        ResponseTokens(
            stream=name, sample=sample, tokens=tuple(render_response(tokenizer, one).tolist())
        )
        for name, said in ANSWERS.items()
        for sample, one in reversed(list(enumerate(said)))
    ]
    write_table(folder / GRADED, GradedProblem, problems)
    write_table(folder / RESPONSES, ResponseTokens, rows)
    return folder


def test_each_answer_of_the_rarer_kind_is_in_one_pair(graded, tiny_moe):
    pairs = read_pairs(graded, tiny_moe)

    tokenizer = load_tokenizer(tiny_moe)
    right, wrong = (tuple(render_response(tokenizer, one).tolist()) for one in "12")
    assert ["a", "c", "c"] == [pair.problem for pair in pairs]
    assert {(right, wrong)} == {(pair.chosen, pair.rejected) for pair in pairs}


def test_an_answer_without_a_verdict_is_in_no_pair(graded, tiny_moe, monkeypatch):
    verify = VERIFIERS["final_answer"]

    def unsure(problem, response):
        return abstain("broken") if response == "2" else verify(problem, response)

    monkeypatch.setitem(VERIFIERS, "final_answer", unsure)

    with pytest.raises(DataError, match="no problem has a right and a wrong answer"):
        read_pairs(graded, tiny_moe)


def test_without_the_answers_of_grading_there_are_no_pairs(tmp_path, tiny_moe):
    with pytest.raises(DataError, match="only rollout engine 'hf' keeps the answers"):
        read_pairs(tmp_path, tiny_moe)


@pytest.mark.parametrize("loss", [{}, OTPO])
def test_training_raises_the_margin_from_0_and_writes_the_model(graded, tiny_moe, tmp_path, loss):
    pairs = read_pairs(graded, tiny_moe)
    settings = PreferenceSettings(batch_pairs=1, learning_rate=1e-3, loss=PairLossSettings(**loss))

    updates = list(train_pairs(settings, graded, tiny_moe, pairs, tmp_path))

    assert [1, 1, 1] == [update.pairs for update in updates]
    assert pytest.approx(0.0, abs=1e-6) == updates[0].margin
    assert 0.0 < updates[1].margin < updates[2].margin
    assert (tmp_path / "model.safetensors").is_file()


class Unseen:
    """A trainer that shows no hidden states, as Megatron's."""

    score = update = weights = save = restore = export = close = None


def test_otpo_with_a_trainer_that_shows_no_states_is_refused():
    settings = PreferenceSettings.model_validate({"loss": OTPO, "engines": {"trainer": "megatron"}})

    with pytest.raises(SettingsError, match=r"loss\.kind is 'otpo'.*trainer 'megatron' does not"):
        token_weights(settings, Unseen(), TokenBatch.of_sequences([np.arange(3)] * 2))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ({"kind": "opto"}, "--recipe: preference.loss.kind is 'opto'; did you mean `otpo`"),
        (
            {"kind": "otpo", "entropi": 1.0},
            "preference.loss.entropi is not a setting; did you mean `entropy`",
        ),
        ({"entropy": 1.0}, "preference.loss.kind is 'dpo', but of otpo"),
    ],
)
def test_a_loss_that_there_is_not_or_a_setting_of_another_is_refused_by_name(loss, message):
    recipe = SynthesisRecipe.model_validate({"preference": {"loss": loss}})

    with pytest.raises(SettingsError, match=message):
        complete(recipe, "--recipe: ")


def test_states_that_predict_a_response_are_those_of_its_sequence_alone(tiny_moe, graded):
    pairs = read_pairs(graded, tiny_moe)
    prompts = {
        name: render_response(load_tokenizer(tiny_moe), f"problem {name}") for name in ANSWERS
    }
    batch = pair_batch(pairs, prompts)
    trainer = TorchTrainer(tiny_moe)

    together = trainer.hidden_states(batch)
    alone = [trainer.hidden_states(batch.select(torch.tensor([row])))[0] for row in range(6)]

    assert batch.response_NT.sum(dim=1).tolist() == [len(one) for one in together]
    for expected, found in zip(alone, together, strict=True):
        torch.testing.assert_close(expected, found)


@pytest.mark.parametrize("loss", [{}, OTPO])
@pytest.mark.parametrize("micro_batch_tokens", [16, 8192])
def test_the_gradient_is_that_of_the_loss_however_the_batch_is_split(
    tiny_moe, graded, micro_batch_tokens, loss
):
    """An update of a trainer whose micro-batches divide the pairs."""
    pairs = read_pairs(graded, tiny_moe)
    prompts = {
        name: render_response(load_tokenizer(tiny_moe), f"problem {name}") for name in ANSWERS
    }
    batch = pair_batch(pairs, prompts)
    trainer = TorchTrainer(tiny_moe, micro_batch_tokens=micro_batch_tokens)
    reference_NT = trainer.score(batch, temperature=1.0).logprobs_NT - 0.1 * batch.response_NT
    weights_NT = token_weights(PreferenceSettings(loss=PairLossSettings(**loss)), trainer, batch)

    def loss_of_pairs(logprobs_NT, whole):
        """A trainer reorders sequences: put them back into pairs."""
        order = whole.columns["row"].argsort()
        margins_B = dpo.margins(logprobs_NT[order], reference_NT, weights_NT, 0.1)
        return dpo.loss(margins_B), {}

    numbered = replace(batch, columns={"row": torch.arange(len(batch.lengths_N))})
    expected = TorchTrainer(tiny_moe).update(
        numbered, loss_of_pairs, temperature=1.0, learning_rate=0.0
    )["grad_norm"]
    now_NT = trainer.score(batch, temperature=1.0).logprobs_NT
    margins_B = dpo.margins(now_NT, reference_NT, weights_NT, 0.1)
    found = trainer.update(
        replace(batch, columns={WEIGHTS: dpo.weights(margins_B, 0.1)[:, None] * weights_NT}),
        WeightedLogprobs(),
        temperature=1.0,
        learning_rate=0.0,
    )["grad_norm"]

    assert pytest.approx(expected, rel=1e-4) == found
