"""Repeat a step from its snapshot with the functions that trained it, and compare the bytes.

The computation is that of batch.py, gate.py, ledger.py and objective.py in tasks/rl. No model is
needed: the snapshot contains the log-probs that every loss was computed from.
Letters: N sequences, T tokens, M sequences of a micro-batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.rl_settings import RLSettings
from tasks.algorithms.router_shift import SHIFT
from tasks.algorithms.terms.fold import acting_in_order, fold_step
from tasks.algorithms.terms.table import find_terms
from tasks.engines.protocols import TokenBatch
from tasks.engines.recording_loss import LossCall
from tasks.errors import DataError
from tasks.rl import gate, objective
from tasks.rl import step_snapshot as snapshots
from tasks.rl.batch import StepBatch, build
from tasks.rl.ledger import mismatch_of, slices_of_mismatch
from tasks.rl.step_snapshot import StepOutputs, StepSnapshot
from tasks.store.files import canonical_json


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """Comparison of one recorded output of a step with its repetition."""

    name: str
    shape: str
    difference: str
    """'' if all bytes are equal."""


@dataclass(frozen=True, slots=True)
class StepRepetition:
    """A recomputed step."""

    outputs: StepOutputs
    calls: list[LossCall]
    gradient_NT: torch.Tensor
    """d objective / d log-prob of every token: its weight in the policy gradient."""


def compare(snapshot: StepSnapshot) -> list[OutputComparison]:
    """Repeat a step under its own settings and compare all outputs."""
    repeated = repeat(snapshot, snapshot.settings)
    arrays = snapshots.output_arrays(repeated.outputs, repeated.calls)
    names = [*arrays, *(name for name in snapshot.outputs if name not in arrays)]
    return [
        _compare_gate(snapshot, repeated.outputs.batch),
        *(_compare_array(name, snapshot.outputs.get(name), arrays.get(name)) for name in names),
    ]


def repeat(snapshot: StepSnapshot, settings: RLSettings) -> StepRepetition:
    """Recompute a step under its own settings or others.

    Raises:
        DataError: the settings would train sequences whose log-probs the snapshot lacks.
    """
    batch = build(settings, snapshot.groups, snapshots.taught_owners(snapshot))
    old = snapshots.old_scores(snapshot)
    if batch.tokens.tokens_NT.shape != old.logprobs_NT.shape:
        raise DataError(
            f"step {snapshot.step}: {tuple(batch.tokens.tokens_NT.shape)} tokens would be trained, "
            f"the snapshot has log-probs of {tuple(old.logprobs_NT.shape)}; choose another step"
        )
    rows = objective.split(settings, len(batch.owners), snapshot.step)
    acting, lesson = objective.acting_terms(settings, snapshot.gate), snapshots.lesson_of(snapshot)
    terms = find_terms(acting)
    reference = snapshot.inputs.get("reference_logprobs_NT")
    signal = fold_step(
        acting_in_order(terms, lesson),
        objective.first_signal(
            settings,
            batch,
            (old, snapshots.drawn_scores(snapshot)),
            rows,
            vocabulary=snapshot.vocabulary,
            step=snapshot.step,
            reference_NT=None if reference is None else torch.from_numpy(reference),
        ),
    )
    outputs = StepOutputs(batch, rows, signal)
    if not rows:
        return StepRepetition(outputs, [], torch.zeros(signal.advantages_NT.shape))
    columns = objective.loss_columns(snapshots.ratio_scores(snapshot), signal)
    columns = objective.weigh_prompts(columns, batch)
    if (shift := snapshot.inputs.get("router_shift_NT")) is not None:
        columns[SHIFT] = torch.from_numpy(shift)
    training = objective.without_cut(
        replace(batch.tokens, experts_NTLK=None, columns=columns), signal.kept_NT
    )
    calls, gradient_NT = _compute_losses(
        snapshot, training, objective.policy_loss(settings, batch.num_sequences / len(rows), acting)
    )
    return StepRepetition(outputs, calls, gradient_NT)


def _compute_losses(
    snapshot: StepSnapshot, training: TokenBatch, loss: objective.UpdateLoss
) -> tuple[list[LossCall], torch.Tensor]:
    """Compute every loss of the step on the recorded micro-batches."""
    logprobs_NT = torch.from_numpy(snapshot.inputs["logprobs_NT"])
    gradient_NT = torch.zeros(logprobs_NT.shape)
    sizes = snapshot.inputs["call_sizes"].tolist()
    calls = []
    for rows_M in torch.from_numpy(snapshot.inputs["call_rows"]).split(sizes):
        micro = training.select(rows_M)
        width = micro.tokens_NT.shape[1]
        mine_MT = logprobs_NT[rows_M, :width].requires_grad_()
        value, metrics = loss(mine_MT, micro)
        (slope_MT,) = torch.autograd.grad(-value, mine_MT)
        gradient_NT[rows_M, :width] = slope_MT
        calls.append(LossCall(rows_M, mine_MT.detach(), value.detach(), metrics))
    return calls, gradient_NT


def _compare_gate(snapshot: StepSnapshot, batch: StepBatch) -> OutputComparison:
    """Repeat the gate's decision; the canary probe needs both engines and is not repeated."""
    rows = objective.measured_rows(snapshot.settings, len(batch.owners), snapshot.step)
    again = gate.decide(
        snapshot.step,
        mismatch_of(batch, snapshots.drawn_scores(snapshot), rows),
        snapshot.gate.probe_logprob,
        snapshot.settings.engines.mismatch,
        objective.correcting_kinds(snapshot.settings),
        slices_of_mismatch(batch, snapshots.drawn_scores(snapshot), rows),
    )
    same = canonical_json(again) == canonical_json(snapshot.gate)
    difference = "" if same else f"recorded {snapshot.gate}, repeated {again}"
    return OutputComparison("gate", "1 record", difference)


def _compare_array(
    name: str, recorded: NDArray | None, repeated: NDArray | None
) -> OutputComparison:
    if recorded is None or repeated is None:
        return OutputComparison(name, "-", "not recorded" if recorded is None else "not repeated")
    shape = " x ".join(map(str, recorded.shape))
    return OutputComparison(name, f"{recorded.dtype} {shape}", first_difference(recorded, repeated))


def first_difference(recorded: NDArray, repeated: NDArray) -> str:
    """Describe the first byte difference between two arrays; '' if they are equal."""
    if (recorded.shape, recorded.dtype) != (repeated.shape, repeated.dtype):
        return f"repeated as {repeated.dtype} {repeated.shape}"
    # By bytes, not by value: NaN equals itself, and 0.0 differs from -0.0.
    width = recorded.dtype.itemsize
    left_rows, right = (
        np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8).reshape(-1, width)
        for array in (recorded, repeated)
    )
    places = np.flatnonzero((left_rows != right).any(axis=1))
    if not len(places):
        return ""
    at = np.unravel_index(places[0], recorded.shape)
    where = ", ".join(str(int(index)) for index in at)
    return (
        f"{len(places)} differ, first [{where}]: {recorded[at]} recorded, {repeated[at]} repeated"
    )


def total(calls: Sequence[LossCall], name: str) -> float:
    """Sum a metric over all calls; 0 if the loss has no such metric."""
    metrics: list[Mapping[str, float]] = [call.metrics for call in calls]
    return sum(metric.get(name, 0.0) for metric in metrics)
