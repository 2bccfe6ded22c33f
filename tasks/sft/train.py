"""Supervised fine-tuning of one parent, and the choice of its checkpoint.

Every epoch's checkpoint is exported and measured: the loss on held-out demonstrations, and
the entropy of its samples on a fixed set of prompts at temperature 1. Ring-lite's rule then
selects the checkpoint that RL starts from.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict, Field
from transformers import PreTrainedTokenizerBase

from data_schemas.arrow import read_table, write_table
from data_schemas.curated import DEMONSTRATIONS
from data_schemas.demonstrations import USES_FILE, Demonstration, DemonstrationUse, Parent
from data_schemas.prompts import Domain
from data_schemas.rollouts import Rollout
from data_schemas.settings import SFTSettings
from tasks.algorithms.schedules import warmup_cosine
from tasks.algorithms.sft_loss import choose_checkpoint, response_cross_entropy, scaled_window
from tasks.engines.chat import load_tokenizer, render_prompt
from tasks.engines.lora.canary import check_adapter
from tasks.engines.lora.factors import describe
from tasks.engines.protocols import Request, RolloutEngine, Sampling, TokenBatch, Trainer
from tasks.engines.select import open_rollout, open_trainer
from tasks.interchange.readiness import demonstrations_of
from tasks.sft.dataset import encode, padding_share, plan, split_validation, token_batch
from tasks.store.files import canonical_json, scratch_folder, write_bytes

ENTROPY_MAX_NEW_TOKENS = 64
SHOWN_SAMPLES = 8
"""Samples of an epoch that its report keeps."""
WEIGHT_DECAY = 0.1
"""Ring-lite."""


class Sample(BaseModel):
    """What the model of an epoch answers to one of the fixed prompts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    demonstration: str = Field(description="its id")
    domain: Domain
    response: str = Field(description="the first ENTROPY_MAX_NEW_TOKENS tokens, at temperature 1")


class EpochReport(BaseModel):
    """Measurements of one epoch's checkpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epoch: int
    train_loss: float
    val_loss: float
    entropy: float
    padding_share: float = Field(description="of the positions of the training batches")
    val_losses: dict[Domain, float] = Field(description="of the domains with held-out rows")
    samples: tuple[Sample, ...] = Field(description="first of those the entropy is measured on")
    chosen: bool = False

    def metrics(self) -> dict[str, float]:
        """Return what is followed by epoch."""
        plain = self.model_dump(exclude={"epoch", "chosen", "samples", "val_losses"})
        return plain | {f"val_loss/{name}": loss for name, loss in self.val_losses.items()}


@dataclass(frozen=True, slots=True)
class Course:
    """Inputs of one fine-tuning."""

    settings: SFTSettings
    rows: list[Demonstration]
    base: Path
    checkpoints: Path
    """Temporary folder with one exported model per epoch."""


def epochs(course: Course) -> Iterator[EpochReport]:
    """Train epoch by epoch; yield each after its checkpoint is exported and measured."""
    engines = course.settings.engines
    with (
        closing(open_trainer(engines, course.base, weight_decay=WEIGHT_DECAY)) as trainer,
        closing(open_rollout(engines, course.base)) as engine,
    ):
        yield from _epochs(course, trainer, engine)


def _epochs(course: Course, trainer: Trainer, engine: RolloutEngine) -> Iterator[EpochReport]:
    settings = course.settings
    tokenizer = load_tokenizer(course.base)
    encoded = encode(tokenizer, course.rows)
    train_rows, val_rows = split_validation(len(encoded), settings.seed)
    prompts = [
        render_prompt(tokenizer, course.rows[row].messages)
        for row in val_rows[: settings.entropy_prompts]
    ]
    lengths = [len(tokens) for tokens, _ in encoded]
    per_epoch = len(plan(lengths, train_rows, settings.batch_tokens, settings.seed))
    done = 0
    if settings.engines.lora.rank:
        check_adapter(engine, trainer, len(tokenizer), version=0)
    for epoch in range(1, settings.epochs + 1):
        # The rollout engine is idle until the epoch is measured.
        engine.sleep()
        seed = settings.seed * 1009 + epoch
        loss_sum = tokens = 0.0
        order = plan(lengths, train_rows, settings.batch_tokens, seed)
        for rows in order:
            batch = token_batch(encoded, rows)
            count = int(batch.response_NT.sum())
            rate = warmup_cosine(
                done,
                peak=settings.learning_rate,
                warmup=round(settings.warmup_share * per_epoch * settings.epochs),
                total=per_epoch * settings.epochs,
            )
            result = trainer.update(batch, CrossEntropy(count), temperature=1.0, learning_rate=rate)
            loss_sum, tokens, done = loss_sum + result["loss"] * count, tokens + count, done + 1
        checkpoint = course.checkpoints / str(epoch)
        checkpoint.mkdir()
        trainer.export(checkpoint)
        losses = validation_losses(trainer, encoded, course.rows, val_rows, settings.batch_tokens)
        rollouts = sample(engine, trainer, prompts, epoch)
        yield EpochReport(
            epoch=epoch,
            train_loss=loss_sum / tokens,
            val_loss=losses.total / losses.tokens,
            entropy=sampled_entropy(rollouts),
            padding_share=padding_share(lengths, order),
            val_losses=losses.by_domain(),
            samples=shown(tokenizer, [course.rows[row] for row in val_rows], rollouts),
        )


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
    for chosen in plan([len(tokens) for tokens, _ in encoded], rows, batch_tokens, seed=0):
        batch = token_batch(encoded, chosen)
        scores = trainer.score(batch, temperature=1.0, record_routes=False)
        nats_N = -scores.logprobs_NT.double().sum(dim=1)
        for row, nats, tokens in zip(
            chosen,
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


def shown(
    tokenizer: PreTrainedTokenizerBase,
    demonstrations: Sequence[Demonstration],
    rollouts: Sequence[Rollout],
) -> tuple[Sample, ...]:
    """Decode the first rollouts, for people."""
    return tuple(
        Sample(
            demonstration=row.id,
            domain=row.domain,
            response=str(tokenizer.decode(rollout.response_tokens)),
        )
        for row, rollout in zip(demonstrations, rollouts[:SHOWN_SAMPLES], strict=False)
    )


def fine_tune(
    settings: SFTSettings,
    parent: Parent,
    curated: Path,
    base: Path,
    model_out: Path,
    report_out: Path,
) -> Iterator[EpochReport]:
    """Yield every epoch's report; once exhausted, the chosen model and the report are written."""
    demonstrations = read_table(curated / DEMONSTRATIONS, Demonstration)
    rows = demonstrations_of(parent, demonstrations)
    with scratch_folder(model_out.parent, ".epochs.") as scratch:
        reports: list[EpochReport] = []
        for report in epochs(Course(settings, rows, base, scratch)):
            reports.append(report)
            yield report
        window = scaled_window(settings.entropy_window, len(load_tokenizer(base)))
        best = choose_checkpoint(
            [report.entropy for report in reports], [report.val_loss for report in reports], window
        )
        shutil.copytree(scratch / str(best + 1), model_out, dirs_exist_ok=True)
    marked = [
        report.model_copy(update={"chosen": index == best}) for index, report in enumerate(reports)
    ]
    write_bytes(
        report_out / "epochs.json",
        canonical_json([report.model_dump(mode="json") for report in marked]),
    )
    write_table(report_out / USES_FILE, DemonstrationUse, _uses(rows, settings.seed, best + 1))
    write_bytes(
        report_out / "report.json",
        canonical_json(
            {
                "parent": parent.value,
                "demonstrations": len(rows),
                "entropy_window_nats": list(window),
                "chosen_epoch": best + 1,
                **describe(settings.engines.lora.rank),
            }
        ),
    )


def _uses(rows: Sequence[Demonstration], seed: int, epochs: int) -> list[DemonstrationUse]:
    """List how often each row was trained up to an epoch."""
    _, validation = split_validation(len(rows), seed)
    held = set(validation)
    return [
        DemonstrationUse(
            id=row.id, source_row=row.source_row, epochs=0 if place in held else epochs
        )
        for place, row in enumerate(rows)
    ]


def facts(report_out: Path) -> dict[str, float | int | str]:
    """Return the facts for the statement of the stage."""
    marked = json.loads((report_out / "epochs.json").read_bytes())
    chosen = next(report for report in marked if report["chosen"])
    report = json.loads((report_out / "report.json").read_bytes())
    return {
        **{name: report[name] for name in ("lora",) if name in report},
        "demonstrations": report["demonstrations"],
        "epochs": len(marked),
        "chosen_epoch": chosen["epoch"],
        "entropy": chosen["entropy"],
        "val_loss": chosen["val_loss"],
        "padding_share": chosen["padding_share"],
    }


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    """Loss of a batch with `num_tokens` response tokens; picklable, to be sent to other ranks."""

    num_tokens: int

    def __call__(
        self, logprobs_NT: torch.Tensor, batch: TokenBatch
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Return the loss of a micro-batch; the losses of a batch add up."""
        return response_cross_entropy(logprobs_NT, batch.response_NT, self.num_tokens), {}
