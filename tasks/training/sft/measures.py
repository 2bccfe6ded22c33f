"""Measurements of an epoch's checkpoint: held-out loss by domain, and what it samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from data_schemas.frozen_model import FrozenModel
from data_schemas.rollouts import Rollout
from data_schemas.rows import Demonstration, Domain
from tasks.engines.protocols import Request, RolloutEngine, Sampling, Trainer
from tasks.training.sft.dataset import plan, token_batch

ENTROPY_MAX_NEW_TOKENS = 64
NUM_SAMPLES = 8
"""Samples of an epoch that its report keeps."""


class EpochSample(FrozenModel):
    """What the model of an epoch answers to one of the fixed prompts."""

    demonstration: str = Field(description="its id")
    domain: Domain
    prompt: str
    reference: str = Field(description="the response of the demonstration")
    response: str = Field(description="the first ENTROPY_MAX_NEW_TOKENS tokens, at temperature 1")


class EpochReport(FrozenModel):
    """Measurements of one epoch's checkpoint."""

    epoch: int
    train_loss: float
    val_loss: float
    entropy: float
    padding_share: float = Field(description="of the rows that the trainer computed")
    skipped_updates: int = Field(
        default=0, description="of the epoch, because gradients overflowed in fp16"
    )
    train_losses: dict[Domain, float] = Field(
        default_factory=dict, description="of the domains with training rows, during the epoch"
    )
    val_losses: dict[Domain, float] = Field(description="of the domains with held-out rows")
    samples: tuple[EpochSample, ...] = Field(
        description="first of those the entropy is measured on"
    )
    chosen: bool = False

    def metrics(self) -> dict[str, float]:
        """Return what is followed by epoch."""
        by_domain = {"val_loss": self.val_losses, "train_loss": self.train_losses}
        plain = self.model_dump(
            exclude={"epoch", "chosen", "samples", "val_losses", "train_losses"}
        )
        return plain | {
            f"{name}/{domain}": loss
            for name, losses in by_domain.items()
            for domain, loss in losses.items()
        }


@dataclass(frozen=True, slots=True)
class Losses:
    """Negative log-likelihoods of held-out demonstrations, summed over response tokens."""

    sums: dict[Domain, float]
    counts: dict[Domain, int]

    @property
    def total(self) -> float:
        """Over all domains, in nats."""
        return sum(self.sums.values())

    @property
    def tokens(self) -> int:
        """Response tokens of all domains."""
        return sum(self.counts.values())

    def by_domain(self) -> dict[Domain, float]:
        """Mean per response token of each domain, in the order of their names."""
        return {domain: self.sums[domain] / self.counts[domain] for domain in sorted(self.sums)}


def validation_losses(
    trainer: Trainer,
    encoded: Sequence[tuple[torch.Tensor, torch.Tensor]],
    demonstrations: Sequence[Demonstration],
    rows: Sequence[int],
    batch_tokens: int,
) -> Losses:
    """Score held-out demonstrations."""
    sums: dict[Domain, float] = {}
    counts: dict[Domain, int] = {}
    for batch_rows in plan([len(tokens) for tokens, _ in encoded], rows, batch_tokens, seed=0):
        batch = token_batch(encoded, batch_rows)
        scores = trainer.score(batch, temperature=1.0, record_routes=False)
        nats_N = -scores.logprobs_NT.double().sum(dim=1)
        for row, nats, tokens in zip(
            batch_rows,
            nats_N.tolist(),
            batch.response_NT.sum(dim=1).tolist(),
            strict=True,
        ):
            domain = demonstrations[row].domain
            sums[domain] = sums.get(domain, 0.0) + nats
            counts[domain] = counts.get(domain, 0) + tokens
    return Losses(sums, counts)


def sample(
    engine: RolloutEngine, trainer: Trainer, prompts: Sequence, version: int
) -> list[Rollout]:
    """Answer each prompt once at temperature 1, in the order of the prompts."""
    engine.load_weights(trainer.weights(), version)
    requests = [Request(str(index), prompt, 1) for index, prompt in enumerate(prompts)]
    sampling = Sampling(ENTROPY_MAX_NEW_TOKENS, 1.0, seed=0, record_routes=False)
    return sorted(engine.generate(requests, sampling), key=lambda one: int(one.problem_id))


def sampled_entropy(rollouts: Sequence[Rollout]) -> float:
    """Mean token entropy in nats of the policy that sampled these.

    Estimated, without bias, by the mean of -log p over sampled tokens.
    """
    tokens = sum(len(rollout.logprobs) for rollout in rollouts)
    return -sum(float(rollout.logprobs.sum()) for rollout in rollouts) / tokens


def decoded_samples(
    tokenizer: PreTrainedTokenizerBase,
    demonstrations: Sequence[Demonstration],
    rollouts: Sequence[Rollout],
) -> tuple[EpochSample, ...]:
    """Decode the first rollouts, for people."""
    return tuple(
        EpochSample(
            demonstration=row.id,
            domain=row.domain,
            prompt=row.prompt_text,
            reference=row.response,
            response=str(tokenizer.decode(rollout.response_tokens)),
        )
        for row, rollout in zip(demonstrations, rollouts[:NUM_SAMPLES], strict=False)
    )
