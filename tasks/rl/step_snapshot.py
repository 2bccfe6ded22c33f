"""A step in one file: all inputs it was computed from, and its outputs.

Inputs: trained groups (tokens, log-probs, routes, verdicts, penalties, outcomes), settings, gate
record, the trainer's old log-probs, entropies and native routes, the log-probs every loss was
computed with, reference log-probs, weight digests before and after. Outputs: advantages, correction
weights, plan, rows of the updates, losses. `tasks/rl/replay` recomputes the outputs from the
inputs.

Everything random is a function of the settings' seed, step and position; the seed is included.

    <phase>/snapshots/000012.npz     whole before the first commit from step 12 on

Letters: N sequences, T tokens, L MoE layers, K experts per token, C calls of the loss.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.reports import GateRecord
from data_schemas.rl_settings import RLSettings
from data_schemas.rollouts import Rollout
from data_schemas.rows import Problem
from tasks.algorithms.distillation import Blend, TeacherSignal
from tasks.algorithms.terms.protocol import StepSignal
from tasks.engines.protocols import TokenBatch, TokenScores
from tasks.engines.recording_loss import ROW, LossCall
from tasks.errors import DataError
from tasks.rl import codec, state
from tasks.rl.batch import StepBatch
from tasks.rl.groups import CollectedGroup
from tasks.store.files import write_stream

FOLDER = "snapshots"
NEWEST = 3
"""Number of most recent snapshots that are kept, for the analysis of a bad step."""
EVERY = 20
"""Steps between two snapshots that are never removed. A step of the embedded default is about 1 MB,
so a phase of 40 steps leaves about 4 MB; at 4096 responses of 32k tokens a step is 40 to 110 GB,
most of it routes."""
ROUTE_BYTES = 2**30
"""If a step has more of routes, only snapshots that are never removed have them, the others have
their digests. Nothing that `replay` repeats is computed from routes."""


BESIDE_BYTES = 2**26
"""A larger snapshot is written while the next step begins: 4,096 responses of 32k tokens have 7 GB
without their routes, 11 CPU s and what the disk takes."""


@dataclass(frozen=True, slots=True)
class StepSnapshot:
    """One step."""

    settings: RLSettings
    vocabulary: int
    groups: tuple[CollectedGroup, ...]
    """Those of the training batch."""
    gate: GateRecord
    inputs: Mapping[str, NDArray]
    """By name: old_logprobs_NT, old_entropy_NT, old_experts_NTLK, logprobs_NT, ..."""
    outputs: Mapping[str, NDArray]
    """By name: advantages_NT, correction_NT, plan/weights_NT, loss/loss_C, ..."""
    ratio_as_drawn: bool = False
    """The denominator of the ratio has the log-probs under the prompts that were drawn with."""
    blend: Blend | None = None
    """Blend of a teacher's advantages; None: there was no teacher."""
    weights_before: str = ""
    weights_after: str = ""

    @property
    def step(self) -> int:
        return self.gate.step


@dataclass(frozen=True, slots=True)
class StepInputs:
    """Inputs of a step that are not tensors."""

    settings: RLSettings
    vocabulary: int
    groups: tuple[CollectedGroup, ...]
    gate: GateRecord
    ratio_as_drawn: bool = False


@dataclass(frozen=True, slots=True)
class StepOutputs:
    """What a step computes before its first update."""

    batch: StepBatch
    rows: tuple[torch.Tensor, ...]
    """Rows of the batch that each update of the step took."""
    signal: StepSignal
    """After the fold over the terms; without an update its plan is of no use, and not written."""


@dataclass(slots=True)
class Recorder:
    """Records every call of a loss with its log-probs and its result."""

    batch: StepBatch
    calls: list[LossCall] = field(default_factory=list)
    logprobs_NT: torch.Tensor = field(init=False)
    """Every sequence is in exactly one update, so one array holds the log-probs of all."""
    reference_NT: torch.Tensor | None = None
    shift_NT: torch.Tensor | None = None
    """RSPO's log gamma, where a trainer gave it."""

    def __post_init__(self) -> None:
        self.logprobs_NT = torch.zeros(self.batch.tokens.tokens_NT.shape)

    def numbered(self, training: TokenBatch) -> TokenBatch:
        """Give every sequence its number, so that micro-batches can be put back in place."""
        self.reference_NT = training.columns.get("reference_logprobs")
        numbers = {ROW: torch.arange(len(training.tokens_NT))}
        return replace(training, columns={**training.columns, **numbers})

    def record(self, calls: Sequence[LossCall]) -> None:
        """Record the calls of one update."""
        for call in calls:
            width = call.logprobs_MT.shape[1]
            self.logprobs_NT[call.rows_M, :width] = call.logprobs_MT
            if call.shift_MT is not None:
                if self.shift_NT is None:
                    self.shift_NT = torch.zeros(self.logprobs_NT.shape)
                self.shift_NT[call.rows_M, :width] = call.shift_MT
            self.calls.append(call)


def seal(
    before: StepInputs,
    scores: tuple[TokenScores, TokenScores],
    watch: Recorder,
    after: StepOutputs,
    teaching: tuple[TeacherSignal | None, Sequence[tuple[int, int]]] = (None, ()),
) -> StepSnapshot:
    """Build the snapshot of a step; its weight digests are added later.

    Args:
        before: inputs of the step.
        scores: of the batch, and with the prompts that its responses were drawn under.
        watch: has the calls of the losses.
        after: outputs of the step.
        teaching: what a teacher says, and the (group, sample) that it may teach.
    """
    old, sampled = scores
    lesson, owners = teaching
    inputs = {
        "old_logprobs_NT": old.logprobs_NT.numpy(),
        "old_entropy_NT": old.entropy_NT.numpy(),
        "logprobs_NT": watch.logprobs_NT.numpy(),
        "call_rows": _concatenate([call.rows_M for call in watch.calls]),
        "call_sizes": np.array([len(call.rows_M) for call in watch.calls], np.int64),
    }
    if old.experts_NTLK is not None:
        inputs["old_experts_NTLK"] = old.experts_NTLK.numpy()
    if sampled is not old:
        inputs["drawn_logprobs_NT"] = sampled.logprobs_NT.numpy()
    if watch.shift_NT is not None:
        inputs["router_shift_NT"] = watch.shift_NT.numpy()
    if watch.reference_NT is not None:
        inputs["reference_logprobs_NT"] = watch.reference_NT.numpy()
    if lesson is not None:
        inputs["teacher_logprobs_NT"] = lesson.teacher_NT.numpy()
        inputs["taught_NT"] = lesson.taught_NT.numpy()
        if lesson.entropy_NT is not None:
            inputs["teacher_entropy_NT"] = lesson.entropy_NT.numpy()
        inputs["taught_owners_N2"] = np.array(owners, np.int64).reshape(-1, 2)
    outputs = output_arrays(after, watch.calls)
    # Commit intervals are not part of a step: a run that saves less often has the same bytes.
    settings = before.settings.model_copy(update={"commit_every": 1})
    return StepSnapshot(
        settings,
        before.vocabulary,
        before.groups,
        before.gate,
        inputs,
        outputs,
        before.ratio_as_drawn,
        None if lesson is None else lesson.blend,
    )


def output_arrays(step_outputs: StepOutputs, calls: Sequence[LossCall]) -> dict[str, NDArray]:
    """Name all outputs of a step; a replay uses the same names."""
    batch = step_outputs.batch
    signal = step_outputs.signal
    plan = signal.plan.columns() if step_outputs.rows else {}
    names = sorted({name for call in calls for name in call.metrics})
    return {
        "tokens_NT": batch.tokens.tokens_NT.numpy(),
        "response_NT": batch.tokens.response_NT.numpy(),
        "owners_N2": np.array(batch.owners, np.int64).reshape(-1, 2),
        "scalar_advantages_N": batch.advantages_N.numpy(),
        "advantages_NT": signal.advantages_NT.numpy(),
        "correction_NT": signal.weights_NT.numpy(),
        "update_rows": _concatenate(step_outputs.rows),
        "update_sizes": np.array([len(part) for part in step_outputs.rows], np.int64),
        **{f"plan/{name}_NT": column.numpy() for name, column in plan.items()},
        "loss/loss_C": np.array([float(call.value) for call in calls], np.float32),
        **{
            f"loss/{name}_C": np.array([call.metrics[name] for call in calls], np.float64)
            for name in names
        },
    }


def old_scores(snapshot: StepSnapshot) -> TokenScores:
    """Return the trainer's scores from before the first update."""
    experts = snapshot.inputs.get("old_experts_NTLK")
    return TokenScores(
        logprobs_NT=torch.from_numpy(snapshot.inputs["old_logprobs_NT"]),
        entropy_NT=torch.from_numpy(snapshot.inputs["old_entropy_NT"]),
        experts_NTLK=None if experts is None else torch.from_numpy(experts),
    )


def drawn_scores(snapshot: StepSnapshot) -> TokenScores:
    """Return these scores with the prompts that the responses were drawn under."""
    old, sampled = old_scores(snapshot), snapshot.inputs.get("drawn_logprobs_NT")
    return old if sampled is None else replace(old, logprobs_NT=torch.from_numpy(sampled))


def lesson_of(snapshot: StepSnapshot) -> TeacherSignal | None:
    """Return what the teacher of a step said; None without one."""
    if snapshot.blend is None:
        return None
    names = ("teacher_logprobs_NT", "taught_NT", "teacher_entropy_NT")
    arrays = (snapshot.inputs[name] for name in names if name in snapshot.inputs)
    return TeacherSignal(snapshot.blend, *map(torch.from_numpy, arrays))


def taught_owners(snapshot: StepSnapshot) -> set[tuple[int, int]]:
    """Return the (group, sample) of the responses that a teacher may teach; none without one."""
    owners = snapshot.inputs.get("taught_owners_N2", np.empty((0, 2), np.int64))
    return {(place, sample) for place, sample in owners.tolist()}


def ratio_scores(snapshot: StepSnapshot) -> TokenScores:
    """Return the scores whose log-probabilities are the old ones of the policy ratio."""
    return drawn_scores(snapshot) if snapshot.ratio_as_drawn else old_scores(snapshot)


def encode(snapshot: StepSnapshot) -> bytes:
    """Pack a snapshot into one file of deterministic bytes."""
    return codec.pack(*_parts(snapshot))


def _parts(snapshot: StepSnapshot) -> tuple[codec.Arrays, dict[str, Any]]:
    """Arrays and JSON of a snapshot's file."""
    rollouts: list[Rollout] = []
    groups = [state.group_out(entry, rollouts) for entry in snapshot.groups]
    traces = [one.trace.experts_TLK for one in rollouts if one.trace is not None]
    few = sum(one.nbytes for one in traces) <= ROUTE_BYTES
    with_routes = few or snapshot.step % EVERY == 0
    arrays, rows = codec.rollout_arrays(rollouts, with_routes=with_routes)
    problems = {entry.group.problem.id: entry.group.problem for entry in snapshot.groups}
    meta = {
        "settings": snapshot.settings.model_dump(mode="json"),
        "vocabulary": snapshot.vocabulary,
        "gate": snapshot.gate.model_dump(mode="json"),
        "weights": [snapshot.weights_before, snapshot.weights_after],
        # Grading results are not needed to repeat a step.
        "problems": [
            problem.model_dump(mode="json", include=set(Problem.model_fields))
            for problem in problems.values()
        ],
        "groups": groups,
        "rollouts": rows,
    }
    if snapshot.ratio_as_drawn:  # a plain step does not mention it
        meta["ratio_as_drawn"] = True
    if snapshot.blend is not None:
        meta["blend"] = asdict(snapshot.blend)
        if not snapshot.blend.by_entropy:  # nor does a blend that does not weigh
            del meta["blend"]["by_entropy"]
    parts = {"rollouts": arrays, "inputs": snapshot.inputs, "outputs": snapshot.outputs}
    flat = {f"{part}/{name}": array for part, of in parts.items() for name, array in of.items()}
    return flat, meta


def decode(data: bytes) -> StepSnapshot:
    """Read what `encode` wrote.

    Raises:
        DataError: the bytes are something else.
    """
    arrays, meta = codec.unpack(data)
    try:
        problems = {row["id"]: Problem.model_validate(row) for row in meta["problems"]}
        rollouts = iter(codec.rollouts_of(_part(arrays, "rollouts"), meta["rollouts"]))
        return StepSnapshot(
            settings=RLSettings.model_validate(meta["settings"]),
            ratio_as_drawn=meta.get("ratio_as_drawn", False),
            blend=Blend(**meta["blend"]) if "blend" in meta else None,
            vocabulary=meta["vocabulary"],
            groups=tuple(state.group_in(row, problems, rollouts) for row in meta["groups"]),
            gate=GateRecord.model_validate(meta["gate"]),
            inputs=_part(arrays, "inputs"),
            outputs=_part(arrays, "outputs"),
            weights_before=meta["weights"][0],
            weights_after=meta["weights"][1],
        )
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"not the snapshot of a step of this version: {error}") from error


def write_snapshot(folder: Path, snapshot: StepSnapshot) -> None:
    """Write a step's snapshot into the phase's folder; remove those no longer needed."""
    arrays, meta = _parts(snapshot)
    path = folder / FOLDER / name_of(snapshot.step)
    write_stream(path, partial(codec.pack_into, arrays=arrays, meta=meta))
    names = {path.name for path in find_snapshots(folder, snapshot.step)}
    for path in (folder / FOLDER).glob("[0-9]*.npz"):
        if path.name not in names and int(path.stem) <= snapshot.step:
            path.unlink()


class Writer:
    """Writes rollouts and snapshots of a phase's steps, in a thread what is large, one at a time.

    A state is committed behind `settle` only: what a crash leaves unwritten is done again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="snapshot")
        self._writing: Future[None] | None = None

    def keep_rollouts(self, step: int, pending: state.PendingState) -> None:
        """Begin to keep a step's rollouts, while it trains on them."""
        self.settle()
        self._writing = self._thread.submit(state.keep_rollouts, self._folder, step, pending)

    def write(self, sealed: StepSnapshot, before: str, after: str) -> None:
        """Write a snapshot with its weight digests, or begin to, when the one before is written."""
        self.settle()
        snapshot = replace(sealed, weights_before=before, weights_after=after)
        arrays = (*snapshot.inputs.values(), *snapshot.outputs.values())
        if sum(one.nbytes for one in arrays) <= BESIDE_BYTES:
            write_snapshot(self._folder, snapshot)
        else:
            self._writing = self._thread.submit(write_snapshot, self._folder, snapshot)

    def settle(self) -> None:
        """Wait for what is in progress; raises what stopped it."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def close(self) -> None:
        """End the thread; what is in progress is finished first."""
        self._thread.shutdown(wait=True)


def find_snapshots(folder: Path, last: int) -> list[Path]:
    """Find the snapshots of a phase up to a step, oldest first: the newest, and every 20th.

    A phase that was resumed on another machine has only those of the steps done there.
    """
    numbered = sorted((int(path.stem), path) for path in (folder / FOLDER).glob("[0-9]*.npz"))
    return [
        path
        for step, path in numbered
        if step <= last and (step > last - NEWEST or step % EVERY == 0)
    ]


def name_of(step: int) -> str:
    """Name the file of a step."""
    return f"{step:06d}.npz"


def _part(arrays: Mapping[str, NDArray], part: str) -> dict[str, NDArray]:
    start = f"{part}/"
    return {n.removeprefix(start): array for n, array in arrays.items() if n.startswith(start)}


def _concatenate(rows: Sequence[torch.Tensor]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *(row.numpy() for row in rows)])
