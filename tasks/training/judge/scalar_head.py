"""The judge's baseline: a Bradley-Terry reward model on the same base and comparisons.

A linear head reads the last hidden state of an answer; head and model are trained together with
the settings of the judge. Ties are left out of its training, because the Bradley-Terry model has
none. Like the judge, it keeps the epoch with the lowest loss on a few validation tasks.
"""

import copy
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.rows import Message, Role
from data_schemas.settings import SFTSettings
from tasks.algorithms.bradley_terry import preference_loss
from tasks.algorithms.packing import length_buckets, pad_rows
from tasks.algorithms.schedules import warmup_cosine
from tasks.engines.chat import control_tokens, load_tokenizer, render_demonstration
from tasks.engines.embedded.hf_model import load_model
from tasks.errors import DataError, EngineError
from tasks.gym.judging.comparison_prompt import Label
from tasks.training.judge.pairs import ComparisonPair, task_key

logger = logging.getLogger(__name__)

WEIGHT_DECAY = 0.1
ADAM_BETAS = (0.9, 0.95)
GRAD_CLIP = 1.0
"""All three as in the judge's fine-tuning."""
VALIDATION_EVERY = 20
"""Every 20th task is a validation task, which selects the epoch."""

Answer = tuple[str, str]
"""Task and answer."""


class ScalarModel(torch.nn.Module):
    """A language model with a linear head on the last hidden state."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.model = load_model(folder)
        self.head = torch.nn.Linear(int(self.model.config.hidden_size), 1, bias=False)
        torch.nn.init.zeros_(self.head.weight)

    def forward(self, tokens_NT: torch.Tensor, lengths_N: torch.Tensor) -> torch.Tensor:
        """Return the score [N] of every sequence, computed at its last token."""
        mask_NT = torch.arange(tokens_NT.shape[1]) < lengths_N[:, None]
        hidden_NTH = self.model.get_decoder()(
            input_ids=tokens_NT, attention_mask=mask_NT.long(), use_cache=False
        ).last_hidden_state
        return self.head(hidden_NTH[torch.arange(len(lengths_N)), lengths_N - 1])[:, 0]


class ScalarReward:
    """Trains a ScalarModel on comparisons, and scores answers with it."""

    def __init__(self, base: Path) -> None:
        self._model = ScalarModel(base)
        self._tokenizer = load_tokenizer(base)

    def train(self, settings: SFTSettings, pairs: Sequence[ComparisonPair]) -> list[float]:
        """Train on the pairs that are not ties; return the validation loss of every epoch.

        Raises:
            DataError: fewer than two tasks have a pair that is not a tie.
            EngineError: the gradient is not finite.
        """
        training, validation = _split_pairs([pair for pair in pairs if pair.label is not Label.TIE])
        optimizer = torch.optim.AdamW(
            self._model.parameters(), lr=0.0, betas=ADAM_BETAS, weight_decay=WEIGHT_DECAY
        )
        tokens = self._encode(training)
        per_epoch = len(_batches(training, tokens, settings.batch_tokens, 0))
        losses: list[float] = []
        best: Mapping[str, torch.Tensor] = {}
        updates = 0
        for epoch in range(1, settings.epochs + 1):
            seed = settings.seed * 1009 + epoch
            for batch in _batches(training, tokens, settings.batch_tokens, seed):
                rate = warmup_cosine(
                    updates,
                    peak=settings.learning_rate,
                    warmup=round(settings.warmup_share * per_epoch * settings.epochs),
                    total=per_epoch * settings.epochs,
                )
                self._update(optimizer, [training[row] for row in batch], tokens, rate)
                updates += 1
            losses.append(self._loss(validation, settings.batch_tokens))
            logger.info("scalar head, epoch %d: validation loss %.4f", epoch, losses[-1])
            if losses[-1] == min(losses):
                best = copy.deepcopy(self._model.state_dict())
        self._model.load_state_dict(best)
        return losses

    def scores(self, answers: Sequence[Answer], batch_tokens: int) -> dict[Answer, float]:
        """Score every distinct answer."""
        distinct = list(dict.fromkeys(answers))
        rows = [self._tokens(answer) for answer in distinct]
        by_answer: dict[Answer, float] = {}
        for bucket in length_buckets([len(row) for row in rows], batch_tokens):
            with torch.inference_mode():
                scores_N = self._model(*_pad([rows[place] for place in bucket]))
            by_answer |= {distinct[place]: float(scores_N[n]) for n, place in enumerate(bucket)}
        return by_answer

    def differences(
        self, pairs: Sequence[ComparisonPair], batch_tokens: int
    ) -> NDArray[np.float64]:
        """Return the score of the first answer minus that of the second, for every pair."""
        scores = self.scores([a for pair in pairs for a in answers_of(pair)], batch_tokens)
        return np.array([scores[a] - scores[b] for a, b in map(answers_of, pairs)])

    def _update(
        self,
        optimizer: torch.optim.Optimizer,
        pairs: Sequence[ComparisonPair],
        tokens: Mapping[Answer, torch.Tensor],
        rate: float,
    ) -> None:
        ranked = [_winner_and_loser(pair) for pair in pairs]
        rows = [tokens[answer] for side in zip(*ranked, strict=True) for answer in side]
        winner_N, loser_N = self._model(*_pad(rows)).chunk(2)
        optimizer.zero_grad(set_to_none=True)
        preference_loss(winner_N, loser_N).backward()
        norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), GRAD_CLIP)
        if not torch.isfinite(norm):
            raise EngineError(f"gradient norm of the scalar head is {float(norm)}")
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()

    def _loss(self, pairs: Sequence[ComparisonPair], batch_tokens: int) -> float:
        scores = self.scores([a for pair in pairs for a in _winner_and_loser(pair)], batch_tokens)
        sides = [[scores[answer] for answer in _winner_and_loser(pair)] for pair in pairs]
        winner_N, loser_N = torch.tensor(sides, dtype=torch.float64).T
        return float(preference_loss(winner_N, loser_N))

    def _encode(self, pairs: Sequence[ComparisonPair]) -> dict[Answer, torch.Tensor]:
        return {answer: self._tokens(answer) for pair in pairs for answer in answers_of(pair)}

    def _tokens(self, answer: Answer) -> torch.Tensor:
        task, text = answer
        messages = (Message(role=Role.USER, content=task),)
        # Answers of others are judged whatever they contain: to the head a control token is text.
        response = control_tokens(self._tokenizer).broken(text)
        tokens, _ = render_demonstration(self._tokenizer, messages, response)
        return torch.from_numpy(tokens.astype(np.int64))


def answers_of(pair: ComparisonPair) -> tuple[Answer, Answer]:
    """Return both answers of a pair, each with its task."""
    return (pair.task, pair.answer_a), (pair.task, pair.answer_b)


def _winner_and_loser(pair: ComparisonPair) -> tuple[Answer, Answer]:
    first, second = answers_of(pair)
    return (first, second) if pair.label is Label.A else (second, first)


def _split_pairs(
    pairs: Sequence[ComparisonPair],
) -> tuple[list[ComparisonPair], list[ComparisonPair]]:
    """Split pairs by task into (training, validation)."""
    tasks = list(dict.fromkeys(task_key(pair.task) for pair in pairs))
    if len(tasks) < 2:
        raise DataError(
            f"{len(pairs)} comparisons without ties, of {len(tasks)} tasks, cannot train a scalar "
            "reward; at least two tasks with a preferred answer are needed. Add files."
        )
    validation_tasks = set(tasks[::VALIDATION_EVERY])
    training = [pair for pair in pairs if task_key(pair.task) not in validation_tasks]
    return training, [pair for pair in pairs if task_key(pair.task) in validation_tasks]


def _batches(
    pairs: Sequence[ComparisonPair],
    tokens: Mapping[Answer, torch.Tensor],
    batch_tokens: int,
    seed: int,
) -> list[list[int]]:
    """Return batches of row numbers of pairs of similar length, in seeded order."""
    generator = np.random.default_rng(seed)
    shuffled = generator.permutation(len(pairs)).tolist()
    widths = [2 * max(len(tokens[a]) for a in answers_of(pairs[row])) for row in shuffled]
    buckets = length_buckets(widths, batch_tokens)
    return [[shuffled[n] for n in buckets[b]] for b in generator.permutation(len(buckets))]


def _pad(rows: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    return pad_rows(rows, 0), torch.tensor([len(row) for row in rows])
