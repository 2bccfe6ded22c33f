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
from pydantic import BaseModel, ConfigDict

from data_schemas.arrow import read_table, write_table
from data_schemas.curated import DEMONSTRATIONS
from data_schemas.demonstrations import USES_FILE, Demonstration, DemonstrationUse, Parent
from data_schemas.settings import SFTSettings
from tasks.algorithms.schedules import warmup_cosine
from tasks.algorithms.sft_loss import choose_checkpoint, response_cross_entropy, scaled_window
from tasks.engines.chat import load_tokenizer, render_prompt
from tasks.engines.protocols import Request, RolloutEngine, Sampling, TokenBatch, Trainer
from tasks.engines.select import open_rollout, open_trainer
from tasks.interchange.readiness import demonstrations_of
from tasks.sft.dataset import batches, encode, split_validation
from tasks.store.files import canonical_json, scratch_folder, write_bytes

ENTROPY_MAX_NEW_TOKENS = 64
WEIGHT_DECAY = 0.1
"""Ring-lite."""


class EpochReport(BaseModel):
    """Measurements of one epoch's checkpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epoch: int
    train_loss: float
    val_loss: float
    entropy: float
    chosen: bool = False


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
    per_epoch = len(list(batches(encoded, train_rows, settings.batch_tokens, settings.seed)))
    done = 0
    for epoch in range(1, settings.epochs + 1):
        # The rollout engine is idle until the epoch is measured.
        engine.sleep()
        seed = settings.seed * 1009 + epoch
        loss_sum = tokens = 0.0
        for batch in batches(encoded, train_rows, settings.batch_tokens, seed):
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
        yield EpochReport(
            epoch=epoch,
            train_loss=loss_sum / tokens,
            val_loss=validation_loss(trainer, encoded, val_rows, settings.batch_tokens),
            entropy=sampled_entropy(engine, trainer, prompts, epoch),
        )


def validation_loss(
    trainer: Trainer,
    encoded: Sequence[tuple[torch.Tensor, torch.Tensor]],
    rows: Sequence[int],
    batch_tokens: int,
) -> float:
    """Mean negative log-likelihood per response token on held-out demonstrations."""
    total = tokens = 0.0
    for batch in batches(encoded, rows, batch_tokens, seed=0):
        scores = trainer.score(batch, temperature=1.0, record_routes=False)
        total -= float(scores.logprobs_NT.double().sum())
        tokens += int(batch.response_NT.sum())
    return total / tokens


def sampled_entropy(
    engine: RolloutEngine, trainer: Trainer, prompts: Sequence, version: int
) -> float:
    """Mean token entropy in nats of the policy at temperature 1.

    Estimated, without bias, by the mean of -log p over sampled tokens.
    """
    engine.load_weights(trainer.weights(), version)
    requests = [Request(str(index), prompt, 1) for index, prompt in enumerate(prompts)]
    sampling = Sampling(ENTROPY_MAX_NEW_TOKENS, 1.0, seed=0, record_routes=False)
    rollouts = list(engine.generate(requests, sampling))
    tokens = sum(len(rollout.logprobs) for rollout in rollouts)
    return -sum(float(rollout.logprobs.sum()) for rollout in rollouts) / tokens


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
    return {
        "demonstrations": json.loads((report_out / "report.json").read_bytes())["demonstrations"],
        "epochs": len(marked),
        "chosen_epoch": chosen["epoch"],
        "entropy": chosen["entropy"],
        "val_loss": chosen["val_loss"],
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
