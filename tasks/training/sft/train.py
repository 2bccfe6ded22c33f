"""Supervised fine-tuning of one parent, and the choice of its checkpoint.

Every epoch's checkpoint is exported and measured: the loss on held-out demonstrations, and
the entropy of its samples on a fixed set of prompts at temperature 1. Ring-lite's rule then
selects the checkpoint that RL starts from. A run that was killed goes on after its last committed
update, to the same bytes.
"""

import logging
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch
from numpy.typing import NDArray

from data_schemas.arrow import read_table, write_table
from data_schemas.rows import (
    DEMONSTRATIONS,
    TRAINED_TOKENS,
    USES_FILE,
    Demonstration,
    DemonstrationUse,
    Domain,
    Parent,
)
from data_schemas.settings import SFTSettings
from tasks.algorithms.schedules import warmup_cosine
from tasks.algorithms.sft_loss import choose_checkpoint, response_cross_entropy, scaled_window
from tasks.durability import states
from tasks.durability.preemption import GRACE_S, Termination, listen_for_sigterm
from tasks.engines.chat import load_tokenizer, render_prompt
from tasks.engines.lora.canary import check_adapter
from tasks.engines.lora.factors import describe
from tasks.engines.protocols import (
    RolloutEngine,
    TokenBatch,
    Trainer,
)
from tasks.engines.select import open_rollout, open_trainer
from tasks.errors import EngineError, PreemptionError
from tasks.formats.readiness import demonstrations_of, fit_mixture
from tasks.store.files import canonical_json, write_bytes
from tasks.training.sft import progress
from tasks.training.sft.dataset import (
    DOMAIN,
    DOMAINS,
    encode,
    mixed,
    plan,
    split_validation,
    token_batch,
)
from tasks.training.sft.measures import (
    EpochReport,
    decoded_samples,
    sample,
    sampled_entropy,
    validation_losses,
)
from tasks.training.sft.progress import COMMIT_SHARE, Committer, Progress

WEIGHT_DECAY = 0.1
"""Ring-lite."""
_LOSS_OF = "loss/"
"""Begins the name of a domain's part of the loss."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FineTuning:
    """Inputs of one fine-tuning, and the rows that every update learns from. Made by `prepare`."""

    settings: SFTSettings
    parent: Parent
    base: Path
    rows: list[Demonstration]
    encoded: list[tuple[torch.Tensor, torch.Tensor]]
    """Tokens and loss mask of every row."""
    validation: list[int]
    batches: list[list[list[int]]]
    """Rows by epoch and update."""
    state: Path
    """Durable folder of this work; a second run with the same folder resumes."""
    code: str
    """Source digest of this program."""
    commit_share: float = COMMIT_SHARE

    @property
    def num_updates(self) -> int:
        """Updates of all epochs together."""
        return sum(map(len, self.batches))

    @property
    def domains(self) -> list[Domain]:
        """Domain of every row."""
        return [row.domain for row in self.rows]

    @property
    def prompts(self) -> list[NDArray]:
        """Tokens of the fixed prompts that every epoch answers."""
        places = self.validation[: self.settings.entropy_prompts]
        tokenizer = load_tokenizer(self.base)
        return [render_prompt(tokenizer, self.rows[row].messages) for row in places]


@dataclass(frozen=True, slots=True)
class OptimizerUpdate:
    """One optimizer update."""

    number: int
    """From 1, over all epochs."""
    epoch: EpochReport | None = None
    """Report of the epoch that it completes."""


def prepare(
    settings: SFTSettings, parent: Parent, curated: Path, base: Path, state: Path, code: str
) -> FineTuning:
    """Read the demonstrations of a parent and plan all updates.

    Args:
        settings: of the fine-tuning.
        parent: whose demonstrations.
        curated: folder of the curated set.
        base: model to start from.
        state: durable folder of this work.
        code: source digest of this program.
    """
    rows = demonstrations_of(parent, read_table(curated / DEMONSTRATIONS, Demonstration))
    encoded = encode(load_tokenizer(base), rows)
    training, validation = split_validation(len(rows), settings.seed)
    lengths, domains = [len(tokens) for tokens, _ in encoded], [row.domain for row in rows]
    weights = fit_mixture(settings.domains, [domains[row] for row in training], parent)
    if weights:
        validation = [row for row in validation if domains[row] in weights] or validation
    batches = [
        plan(
            lengths,
            mixed(domains, training, weights, settings.seed, epoch),
            settings.batch_tokens,
            settings.seed * 1009 + epoch,
        )
        for epoch in range(1, settings.epochs + 1)
    ]
    return FineTuning(settings, parent, base, rows, encoded, validation, batches, state, code)


def past_code(state: Path) -> tuple[str, ...]:
    """Source digests that contributed to the newest whole state; empty if there is none."""
    return progress.newest(state).code


def updates(tuning: FineTuning, stop: Termination | None = None) -> Iterator[OptimizerUpdate]:
    """Train from the last committed update on; yield every update.

    Args:
        tuning: what to do.
        stop: from a caller that already handles SIGTERM.

    Raises:
        PreemptionError: SIGTERM was received; the update in flight was finished and committed,
            or abandoned where the time was too short.
    """
    if stop is None:
        with listen_for_sigterm(GRACE_S) as own:
            yield from updates(tuning, own)
        return
    engines = tuning.settings.engines
    with (
        closing(open_trainer(engines, tuning.base, weight_decay=WEIGHT_DECAY)) as trainer,
        closing(open_rollout(engines, tuning.base)) as engine,
    ):
        now = progress.restore(tuning.state, trainer)
        if now.updates:
            logger.warning("continuing after update %d of %d", now.updates, tuning.num_updates)
        if tuning.code not in now.code:
            now = now.model_copy(update={"code": (*now.code, tuning.code)})
        if engines.lora.rank and now.updates < tuning.num_updates:
            check_adapter(engine, trainer, len(load_tokenizer(tuning.base)), version=0)
        with stop.abandon_late_step():
            yield from _updates(tuning, now, trainer, engine, stop)


def _updates(
    tuning: FineTuning, now: Progress, trainer: Trainer, engine: RolloutEngine, stop: Termination
) -> Iterator[OptimizerUpdate]:
    committer = Committer(tuning.state, tuning.commit_share)
    for epoch in range(len(now.epochs) + 1, len(tuning.batches) + 1):
        # The rollout engine is idle until the epoch is measured.
        engine.sleep()
        batches = tuning.batches[epoch - 1]
        num_done = now.updates - sum(map(len, tuning.batches[: epoch - 1]))
        for number, rows in enumerate(batches[num_done:], start=num_done + 1):
            now = _learn(tuning, now, trainer, rows)
            report = None
            if number == len(batches):
                progress.keep_checkpoint(tuning.state, epoch, trainer)
                report = _measure(tuning, now, trainer, engine, epoch)
                reports = (*now.epochs, report)
                now = Progress(updates=now.updates, epochs=reports, code=now.code)
            if report or committer.is_due() or stop.requested.is_set():
                committer.commit(now, trainer)
            yield OptimizerUpdate(now.updates, report)
            # SIGTERM after this update's commit: the next update commits in any case.
            committed = states.newest(tuning.state) == now.updates
            if stop.requested.is_set() and committed and now.updates < tuning.num_updates:
                raise PreemptionError(f"stopped by SIGTERM after committed update {now.updates}")


def _learn(tuning: FineTuning, now: Progress, trainer: Trainer, rows: list[int]) -> Progress:
    settings = tuning.settings
    batch = token_batch(tuning.encoded, rows, tuning.domains)
    count = int(batch.response_NT.sum())
    rate = warmup_cosine(
        now.updates,
        peak=settings.learning_rate,
        warmup=round(settings.warmup_share * tuning.num_updates),
        total=tuning.num_updates,
    )
    result = trainer.update(batch, CrossEntropy(count), temperature=1.0, learning_rate=rate)
    shares = {
        domain: result[_LOSS_OF + domain] for domain in DOMAINS if _LOSS_OF + domain in result
    }
    amounts = batch.response_NT.sum(dim=1).tolist()
    trained = [(tuning.domains[row], amount) for row, amount in zip(rows, amounts, strict=True)]
    return progress.after_update(now, result, shares, trained)


def _measure(
    tuning: FineTuning, now: Progress, trainer: Trainer, engine: RolloutEngine, epoch: int
) -> EpochReport:
    """Measure the trainer's weights at the end of an epoch."""
    losses = validation_losses(
        trainer, tuning.encoded, tuning.rows, tuning.validation, tuning.settings.batch_tokens
    )
    rollouts = sample(engine, trainer, tuning.prompts, epoch)
    demonstrations = [tuning.rows[row] for row in tuning.validation]
    return EpochReport(
        epoch=epoch,
        train_loss=now.loss_sum / now.tokens,
        val_loss=losses.total / losses.tokens,
        entropy=sampled_entropy(rollouts),
        padding_share=now.padding / now.rows if now.rows else 0.0,
        skipped_updates=now.skipped,
        train_losses={
            domain: now.loss_sums[domain] / now.domain_tokens[domain]
            for domain in sorted(now.loss_sums)
        },
        val_losses=losses.by_domain(),
        samples=decoded_samples(load_tokenizer(tuning.base), demonstrations, rollouts),
    )


def finish(tuning: FineTuning, model_out: Path, report_out: Path) -> dict[str, float | int | str]:
    """Write the chosen model and the report; returns facts for the statement.

    Raises:
        EngineError: epochs are missing; the fine-tuning has to be run again.
    """
    reports = progress.newest(tuning.state).epochs
    if len(reports) < tuning.settings.epochs:
        raise EngineError(
            f"{tuning.state} holds {len(reports)} of {tuning.settings.epochs} epochs, so nothing "
            "is committed as a result. Run again: the fine-tuning continues from there. If it "
            "repeats, another process removes that folder."
        )
    window = scaled_window(tuning.settings.entropy_window, len(load_tokenizer(tuning.base)))
    entropies, losses = [one.entropy for one in reports], [one.val_loss for one in reports]
    best = choose_checkpoint(entropies, losses, window)
    best_report = reports[best]
    source = progress.checkpoint_folder(tuning.state, best_report.epoch)
    shutil.copytree(source, model_out, dirs_exist_ok=True)
    rows = [one.model_copy(update={"chosen": one is best_report}) for one in reports]
    write_bytes(
        report_out / "epochs.json",
        canonical_json([one.model_dump(mode="json") for one in rows]),
    )
    uses = _uses(tuning, best_report.epoch)
    write_table(report_out / USES_FILE, DemonstrationUse, uses)
    trained = describe(tuning.settings.engines.lora.rank)
    report = {
        "parent": tuning.parent.value,
        "demonstrations": len(tuning.rows),
        "entropy_window_nats": list(window),
        "chosen_epoch": best_report.epoch,
    }
    write_bytes(report_out / "report.json", canonical_json(report | trained))
    return {
        **trained,
        "demonstrations": len(tuning.rows),
        TRAINED_TOKENS: _trained_tokens(tuning, uses),
        "epochs": len(reports),
        "chosen_epoch": best_report.epoch,
        "entropy": best_report.entropy,
        "val_loss": best_report.val_loss,
        "padding_share": best_report.padding_share,
        "skipped_updates": sum(one.skipped_updates for one in reports),
    }


def _uses(tuning: FineTuning, epochs: int) -> list[DemonstrationUse]:
    """Count how often each row was trained up to an epoch."""
    times = Counter(
        row for batches in tuning.batches[:epochs] for batch in batches for row in batch
    )
    return [
        DemonstrationUse(id=row.id, source_row=row.source_row, epochs=times[place])
        for place, row in enumerate(tuning.rows)
    ]


def _trained_tokens(tuning: FineTuning, uses: list[DemonstrationUse]) -> int:
    """Count the response tokens that trained the chosen checkpoint, as often as they did."""
    masks = (mask for _, mask in tuning.encoded)
    return sum(use.epochs * int(mask.sum()) for use, mask in zip(uses, masks, strict=True))


@dataclass(frozen=True, slots=True)
class CrossEntropy:
    """Loss of a batch with `num_tokens` response tokens; picklable, to be sent to other ranks."""

    num_tokens: int

    def __call__(
        self, logprobs_NT: torch.Tensor, batch: TokenBatch
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Return the loss of a micro-batch and its parts by domain; those of a batch add up."""
        loss = response_cross_entropy(logprobs_NT, batch.response_NT, self.num_tokens)
        if DOMAIN not in batch.columns:
            return loss, {}
        nats_N = -(logprobs_NT.detach() * batch.response_NT).sum(dim=1).double().cpu()
        places_N = batch.columns[DOMAIN].cpu()
        parts = {
            _LOSS_OF + DOMAINS[place]: float(nats_N[places_N == place].sum()) / self.num_tokens
            for place in places_N.unique().tolist()
        }
        return loss, parts
