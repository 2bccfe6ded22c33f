"""Preference step: DPO on right and wrong answers to synthesised problems.

A problem gives as many pairs as its rarer kind of answer has, so that each answer is used once.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from pydantic import Field

from data_schemas.arrow import read_table
from data_schemas.frozen_model import FrozenModel
from data_schemas.pass_rates import GradedProblem
from data_schemas.rows import GRADED
from data_schemas.samples import RESPONSES, ResponseTokens
from tasks.algorithms.losses import dpo
from tasks.algorithms.losses.table import find_pair_loss
from tasks.algorithms.packing import pad_rows
from tasks.engines.chat import load_tokenizer, render_prompt, response_text
from tasks.engines.protocols import StateReader, TokenBatch, Trainer
from tasks.engines.select import open_trainer
from tasks.errors import DataError, SettingsError
from tasks.gym.table import VERIFIERS
from tasks.lab.recipes.promptcot.formulas import num_pairs
from tasks.lab.recipes.promptcot.records import PreferencePair
from tasks.lab.recipes.promptcot.settings import PreferenceSettings

WEIGHTS = "weights_NT"
"""Column of a batch: derivative of the loss by a token's log-probability."""


class PreferenceUpdate(FrozenModel):
    """Measurements before one update."""

    pairs: int
    loss: float
    margin: float = Field(description="mean, in units of reward: beta times the log-ratios")
    accuracy: float = Field(description="share of pairs with a margin above 0")


def read_pairs(graded: Path, model: Path) -> list[PreferencePair]:
    """Pair the right and the wrong answers of graded problems, in the order of the samples.

    An answer without a verdict is in no pair.

    Args:
        graded: folder of problems and of the answers that graded them.
        model: its tokenizer decodes them.

    Raises:
        DataError: the answers were not kept, or no problem has right and wrong ones.
    """
    if not (graded / RESPONSES).is_file():
        raise DataError(
            f"{graded} has no {RESPONSES}: only rollout engine 'hf' keeps the answers of grading"
        )
    answers: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    for row in sorted(read_table(graded / RESPONSES, ResponseTokens), key=lambda one: one.sample):
        answers[row.stream].append(row.tokens)
    tokenizer = load_tokenizer(model)
    pairs = []
    for problem in read_table(graded / GRADED, GradedProblem):
        verify, responses = VERIFIERS[problem.verifier], answers[problem.id]
        verdicts = [verify(problem, response_text(tokenizer, tokens)) for tokens in responses]
        outcomes = [pair for pair in zip(responses, verdicts, strict=True) if not pair[1].abstained]
        right = [tokens for tokens, verdict in outcomes if verdict.solved]
        wrong = [tokens for tokens, verdict in outcomes if not verdict.solved]
        for place in range(num_pairs(len(right), len(outcomes))):
            pair = PreferencePair(problem=problem.id, chosen=right[place], rejected=wrong[place])
            pairs.append(pair)
    if not pairs:
        raise DataError(f"{graded}: no problem has a right and a wrong answer to be paired")
    return pairs


def train_pairs(
    settings: PreferenceSettings,
    graded: Path,
    start: Path,
    pairs: Sequence[PreferencePair],
    out: Path,
) -> Iterator[PreferenceUpdate]:
    """Train once on every pair, in seeded order; write the model after the last one.

    Args:
        settings: of DPO.
        graded: folder of the problems.
        start: model that answered them, which is also the reference.
        pairs: of their answers.
        out: empty folder of the model.

    Raises:
        SettingsError: the trainer does not show the states that the loss needs.
    """
    tokenizer = load_tokenizer(start)
    prompts = {
        problem.id: render_prompt(tokenizer, problem.messages)
        for problem in read_table(graded / GRADED, GradedProblem)
    }
    order = np.random.default_rng(settings.seed).permutation(len(pairs)).tolist()
    parts = range(0, len(order), settings.batch_pairs)
    batches = [
        pair_batch([pairs[place] for place in order[part : part + settings.batch_pairs]], prompts)
        for part in parts
    ]
    with closing(open_trainer(settings.engines, start)) as trainer:
        references = [
            trainer.score(batch, temperature=1.0, record_routes=False).logprobs_NT
            for batch in batches
        ]
        for batch, reference_NT in zip(batches, references, strict=True):
            now_NT = trainer.score(batch, temperature=1.0, record_routes=False).logprobs_NT
            weights_NT = token_weights(settings, trainer, batch)
            margins_B = dpo.margins(now_NT, reference_NT, weights_NT, settings.beta)
            slopes_N1 = dpo.weights(margins_B, settings.beta)[:, None]
            trainer.update(
                replace(batch, columns={WEIGHTS: slopes_N1 * weights_NT}),
                WeightedLogprobs(),
                temperature=1.0,
                learning_rate=settings.learning_rate,
            )
            yield PreferenceUpdate(
                pairs=len(margins_B),
                loss=float(dpo.loss(margins_B)),
                margin=float(margins_B.mean()),
                accuracy=float((margins_B > 0).float().mean()),
            )
        trainer.export(out)


def token_weights(
    settings: PreferenceSettings, trainer: Trainer, batch: TokenBatch
) -> torch.Tensor:
    """Weigh the tokens of a batch of pairs under the policy [N, T].

    Raises:
        SettingsError: the trainer does not show the states that the loss needs.
    """
    loss = find_pair_loss(settings.loss)
    if not loss.needs_states:
        return loss.token_weights(batch.response_NT, ())
    if not isinstance(trainer, StateReader):
        raise SettingsError(
            f"preference.loss.kind is '{settings.loss.kind}', which reads the policy's hidden "
            f"states; trainer '{settings.engines.trainer.value}' does not show them: use "
            "preference.engines.trainer 'torch', or preference.loss.kind 'dpo'"
        )
    states = trainer.hidden_states(batch)
    return loss.token_weights(batch.response_NT, states)


@dataclass(frozen=True, slots=True)
class WeightedLogprobs:
    """A weighted sum of the tokens' log-probabilities, whose gradient is that of the loss."""

    def __call__(
        self, logprobs_NT: torch.Tensor, batch: TokenBatch
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Return the part of a micro-batch; the parts of a batch add up."""
        return (batch.columns[WEIGHTS] * logprobs_NT).sum(), {}


def pair_batch(pairs: Sequence[PreferencePair], prompts: dict[str, np.ndarray]) -> TokenBatch:
    """Put chosen and rejected responses of every pair behind one another."""
    rows, masks = [], []
    for pair in pairs:
        prompt = prompts[pair.problem].astype(np.int64)
        for response in (pair.chosen, pair.rejected):
            tokens = np.concatenate([prompt, np.array(response, dtype=np.int64)])
            rows.append(torch.from_numpy(tokens))
            masks.append(torch.arange(len(tokens)) >= len(prompt))
    return TokenBatch(
        tokens_NT=pad_rows(rows, 0),
        lengths_N=torch.tensor([len(row) for row in rows]),
        response_NT=pad_rows(masks, False),
        experts_NTLK=None,
        columns={},
    )
