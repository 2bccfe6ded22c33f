"""The saved state of a phase, from which step n+1 is the same as without a crash.

A state folder belongs to one phase on one start model and one set of problems:

    steps/000012.json         report, timing and ledger rows of step 12
    steps/pause-000012.json   that the mismatch gate stopped step 12, signed
    committed/000012/         run.json, the trainer's state, rollouts in flight
    rollouts/000013/          those of step 13, scored, until it is committed; signed
    ended/000012-<sha256>/    responses that ended while others of their step decoded (rl/ended.py)

Everything random is a function of seed, step and position, so there is no generator state to save.
The step number is also the policy's version and the ledger's offset. `tasks.durability` commits and
recovers states.

Between two steps there are unfinished responses, steps rolled out but not yet trained on
(asynchronous mode), the prompts' records, the position in the curriculum and in the prompt stream:
one file of a committed state. Problems are stored by id.
"""

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, JsonValue

from data_schemas.frozen_model import FrozenModel
from data_schemas.ledgers import AgentLedgerRow, GroupOutcome, LedgerRow, PromptCost
from data_schemas.reports import GateRecord, StepReport, StepTiming
from data_schemas.rollouts import AgentTurn, Rollout, RolloutGroup, ScoredRollout
from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict
from tasks.durability import states
from tasks.engines.protocols import Trainer
from tasks.errors import DataError
from tasks.provenance.lineage.signatures.working import seal, unseal
from tasks.rl import codec
from tasks.rl.collector import CollectorState, Cost, InFlightPrompt, SkippedPrompt, StepRollouts
from tasks.rl.groups import KEPT, CollectedGroup, KeptPrompt, OpenGroup
from tasks.rl.prompts import CurriculumPosition, PromptRecord
from tasks.store.files import (
    canonical_json,
    sha256_bytes,
    sha256_file,
    staged_folder,
    write_bytes,
)
from tasks.store.manifest import MANIFEST

STATE_FILE = "run.json"
_PAUSE = "pause"
logger = logging.getLogger(__name__)


class RunState(FrozenModel):
    """Where a phase stands after a committed step."""

    step: int = 0
    updates: int = 0
    """Optimizer updates so far, for the learning-rate schedule."""
    code: tuple[str, ...] = ()
    """Source digests that contributed, oldest first."""


class StepRecord(FrozenModel):
    """All that is kept of one step."""

    report: StepReport
    timing: StepTiming
    ledger: tuple[LedgerRow | AgentLedgerRow, ...]
    costs: tuple[PromptCost, ...]
    gate: GateRecord
    rows: tuple[dict[str, JsonValue], ...] = Field(default=(), exclude_if=lambda rows: not rows)
    """Rows of a recipe; the record of a plain phase does not mention them."""


def write_step(folder: Path, record: StepRecord) -> None:
    """Write a step's record. It is valid once a state at or beyond that step is committed."""
    path = states.record_path(folder, _record_name(record.report.step))
    write_bytes(path, canonical_json(record))


def write_pause(folder: Path, record: GateRecord) -> None:
    """Write the record of a step that the mismatch gate stopped; kept if the step is repeated.

    It is signed by itself, because no state follows it at once. From the next one on it cannot be
    removed either: a state without all its records is not whole.
    """
    name = states.notice_name(_record_name(record.step))
    signed = seal(_PAUSE, f"{folder.name}/{name}", canonical_json(record))
    write_bytes(states.record_path(folder, name), signed)


def read_pauses(folder: Path) -> list[GateRecord]:
    """Read the records of all stopped steps, in order.

    Raises:
        TamperError: one was not signed for this phase.
    """
    notices = []
    for name in states.notices(folder):
        path = states.record_path(folder, name)
        payload = unseal(_PAUSE, f"{folder.name}/{name}", path.read_bytes(), str(path))
        notices.append(GateRecord.model_validate_json(payload))
    return notices


def read_steps(folder: Path, last: int) -> Iterator[StepRecord]:
    """Yield the records of steps 1 to `last`."""
    for step in range(1, last + 1):
        path = states.record_path(folder, _record_name(step))
        yield StepRecord.model_validate_json(path.read_bytes())


def commit(folder: Path, state: RunState, trainer: Trainer, files: Mapping[str, bytes]) -> None:
    """Save the state atomically, and drop states that are no longer needed.

    Args:
        folder: of the phase.
        state: progress of the phase.
        trainer: saves weights and optimizer.
        files: further content of the state, by file name.
    """
    records = [_record_name(step) for step in range(1, state.step + 1)]
    records += states.notices(folder)
    content = {STATE_FILE: canonical_json(state), **files}
    states.commit(folder, state.step, trainer, content, records)
    _drop_between(folder, state.step + 1)


def restore(folder: Path, trainer: Trainer) -> RunState:
    """Load the newest complete state into the trainer; a fresh RunState if there is none."""
    path = states.restore(folder, trainer)
    state = read_state(path) if path else RunState()
    _drop_between(folder, state.step + 1)
    return state


def read_state(path: Path) -> RunState:
    """Read the progress of a committed state."""
    return RunState.model_validate_json((path / STATE_FILE).read_bytes())


def past_code(folder: Path) -> tuple[str, ...]:
    """Source digests that contributed to the newest whole state; empty if there is none."""
    path = states.newest_whole(folder)
    return read_state(path).code if path else ()


def _record_name(step: int) -> str:
    return f"{step:06d}.json"


INFLIGHT_FILE = "state.npz"


@dataclass(frozen=True, slots=True)
class PendingState:
    """Everything between a committed step and the next one."""

    collector: CollectorState
    waiting: tuple[StepRollouts, ...]
    """Rolled out and scored, not trained on yet; oldest first."""


def keep_rollouts(folder: Path, step: int, pending: PendingState) -> None:
    """Keep a step's rollouts until it is committed: a crash in its updates then repeats none.

    Args:
        folder: of the phase.
        step: that comes next; if the one before is not committed, nothing is kept.
        pending: as after the step's rollouts, which are the first ones that wait.
    """
    path = folder / states.ROLLOUTS / f"{step:06d}"
    if states.newest(folder) != step - 1 or path.exists():
        return
    with staged_folder(path) as staged:
        with (staged / INFLIGHT_FILE).open("wb") as stream:
            codec.pack_into(stream, *_parts(pending))
        signed = identity(folder, step, sha256_file(staged / INFLIGHT_FILE))
        signature = seal(states.ROLLOUTS, states.signed_name(folder.name, step), signed)
        (staged / states.SIGNATURE).write_bytes(signature)


def kept_rollouts(folder: Path, step: int) -> bytes | None:
    """Return what was kept of a step; None, and it is dropped, if its policy was another one.

    It is dropped as well if it is damaged, or if the gate stopped the step: an engine that computes
    with other weights is not believed a second time.

    Raises:
        TamperError: it was not signed for this phase.
    """
    path = folder / states.ROLLOUTS / f"{step:06d}"
    data, signature = path / INFLIGHT_FILE, path / states.SIGNATURE
    if data.exists() and signature.exists() and not was_stopped(folder, step):
        name = states.signed_name(folder.name, step)
        signed = unseal(states.ROLLOUTS, name, signature.read_bytes(), str(path))
        content = data.read_bytes()
        if signed == identity(folder, step, sha256_bytes(content)):
            return content
    if path.exists():
        logger.warning("rollouts of step %d are damaged, or were stopped: drawn again", step)
        shutil.rmtree(path)
    return None


def was_stopped(folder: Path, step: int) -> bool:
    """True if the gate stopped a step in an earlier attempt."""
    return states.record_path(folder, states.notice_name(_record_name(step))).exists()


def identity(folder: Path, step: int, content: str) -> bytes:
    """Say what a step's rollouts are, and which policy they are of."""
    before = states.committed_folder(folder) / f"{step - 1:06d}" / MANIFEST
    policy = sha256_file(before) if step > 1 else ""
    return canonical_json({"policy": policy, "sha256": content})


def _drop_between(folder: Path, step: int) -> None:
    """Remove the rollouts of all steps but one, and responses of other policies than its own."""
    for kind, kept in ((states.ROLLOUTS, step), (states.ENDED, step - 1)):
        for path in (folder / kind).glob("[0-9]*"):
            if states.step_of(path) != kept:
                shutil.rmtree(path)


def encode(pending: PendingState) -> bytes:
    """Pack everything into one file."""
    return codec.pack(*_parts(pending))


def _parts(pending: PendingState) -> tuple[codec.Arrays, dict[str, Any]]:
    """Arrays and JSON of that file."""
    rollouts: list[Rollout] = []
    meta = {
        "position": pending.collector.position,
        "records": {
            name: record.model_dump(mode="json")
            for name, record in pending.collector.records.items()
        },
        "stage": pending.collector.stage.model_dump(mode="json"),
        "open": [_open_out(group, rollouts) for group in pending.collector.open_groups],
        "waiting": [_collected_out(item, rollouts) for item in pending.waiting],
    }
    if pending.collector.turns:  # without any, the bytes are those of a plain phase
        meta["turns"] = [turn.model_dump(mode="json") for turn in pending.collector.turns]
    if pending.collector.memory:
        meta["memory"] = dict(pending.collector.memory)
    arrays, rows = codec.rollout_arrays(rollouts)
    return arrays, meta | {"rollouts": rows}


def decode(data: bytes, problems: Sequence[Problem]) -> PendingState:
    """Read what `encode` wrote.

    Raises:
        DataError: the file is damaged, or names a problem that the phase does not have.
    """
    by_id = {problem.id: problem for problem in problems}
    arrays, meta = codec.unpack(data)
    rollouts = iter(codec.rollouts_of(arrays, meta["rollouts"]))
    try:
        return PendingState(
            collector=CollectorState(
                position=meta["position"],
                records={
                    name: PromptRecord.model_validate(record)
                    for name, record in meta["records"].items()
                },
                stage=CurriculumPosition.model_validate(meta["stage"]),
                open_groups=tuple(_open_in(item, by_id, rollouts) for item in meta["open"]),
                turns=tuple(map(AgentTurn.model_validate, meta.get("turns", ()))),
                memory=meta.get("memory", {}),
            ),
            waiting=tuple(_collected_in(item, by_id, rollouts) for item in meta["waiting"]),
        )
    except KeyError as error:
        raise DataError(f"the state names {error}, which this phase does not have") from error


def _open_out(group: OpenGroup, rollouts: list[Rollout]) -> dict[str, Any]:
    rollouts.extend(group.rollouts)
    return (
        _turn_out(group.turn)
        | _kept_out(group.kept)
        | {
            "key": group.key,
            "problem": group.problem.id,
            "round": group.round,
            "size": group.size,
            "rollouts": len(group.rollouts),
        }
    )


def _open_in(
    item: dict[str, Any], problems: Mapping[str, Problem], rollouts: Iterator[Rollout]
) -> OpenGroup:
    turn = _turn_in(item)
    return OpenGroup(
        key=item["key"],
        problem=turn.problem if turn else problems[item["problem"]],
        round=item["round"],
        size=item["size"],
        rollouts=tuple(next(rollouts) for _ in range(item["rollouts"])),
        turn=turn,
        kept=_kept_in(item),
    )


def _turn_out(turn: AgentTurn | None) -> dict[str, Any]:
    return {"turn": turn.model_dump(mode="json")} if turn else {}


def _turn_in(item: Mapping[str, Any]) -> AgentTurn | None:
    return AgentTurn.model_validate(item["turn"]) if "turn" in item else None


def _kept_out(kept: KeptPrompt) -> dict[str, Any]:
    """Say how a prompt was kept; nothing where none could be skipped, whose bytes stay."""
    return {} if kept == KEPT else {"kept": list(astuple(kept))}


def _kept_in(item: Mapping[str, Any]) -> KeptPrompt:
    return KeptPrompt(*item["kept"]) if "kept" in item else KEPT


def _collected_out(collected: StepRollouts, rollouts: list[Rollout]) -> dict[str, Any]:
    return {
        "step": collected.step,
        "policy_version": collected.policy_version,
        "groups": [group_out(entry, rollouts) for entry in collected.groups],
        "skipped": [
            [
                entry.problem.id,
                entry.round,
                entry.outcome.value,
                entry.saved_tokens,
                entry.keep_probability,
            ]
            for entry in collected.skipped
        ],
        "in_flight": [
            [_open_out(entry.group, rollouts), entry.new_tokens, entry.draft_tokens]
            for entry in collected.in_flight
        ],
        "costs": [
            [
                cost.round,
                cost.problem_id,
                cost.engine_seconds,
                cost.verifier_seconds,
                cost.judge_calls,
            ]
            for cost in collected.costs
        ],
        "metrics": collected.metrics,
        "seconds": [collected.rollout_seconds, collected.reward_seconds],
    }


def _collected_in(
    item: dict[str, Any], problems: Mapping[str, Problem], rollouts: Iterator[Rollout]
) -> StepRollouts:
    return StepRollouts(
        step=item["step"],
        policy_version=item["policy_version"],
        groups=[group_in(entry, problems, rollouts) for entry in item["groups"]],
        skipped=[
            SkippedPrompt(problems[problem], draw, GroupOutcome(outcome), saved, probability)
            for problem, draw, outcome, saved, probability in item["skipped"]
        ],
        in_flight=[
            InFlightPrompt(_open_in(group, problems, rollouts), new, draft)
            for group, new, draft in item["in_flight"]
        ],
        costs=[Cost(*cost) for cost in item["costs"]],
        metrics=item["metrics"],
        rollout_seconds=item["seconds"][0],
        reward_seconds=item["seconds"][1],
    )


def group_out(entry: CollectedGroup, rollouts: list[Rollout]) -> dict[str, Any]:
    """Turn a finished group into JSON; its rollouts go to the end of the list."""
    rollouts.extend(item.rollout for item in entry.group.rollouts)
    advantages = {} if entry.advantages is None else {"advantages": list(entry.advantages)}
    return (
        advantages
        | _turn_out(entry.turn)
        | _kept_out(entry.kept)
        | {
            "problem": entry.group.problem.id,
            "round": entry.round,
            "outcome": entry.outcome.value,
            "new_tokens": entry.new_tokens,
            "draft_tokens": entry.draft_tokens,
            "pass_rate_change": entry.pass_rate_change,
            "items": [
                [
                    item.text,
                    item.verdict.model_dump(mode="json"),
                    item.penalty,
                    # Without monitors, the bytes are those of a phase that has none.
                    *([list(item.monitored)] if item.monitored else []),
                ]
                for item in entry.group.rollouts
            ],
        }
    )


def group_in(
    item: dict[str, Any], problems: Mapping[str, Problem], rollouts: Iterator[Rollout]
) -> CollectedGroup:
    """Rebuild a group from the result of `group_out`; its rollouts come from the iterator."""
    scored = tuple(
        ScoredRollout(
            next(rollouts),
            text,
            Verdict.model_validate(verdict),
            penalty,
            *(tuple(scores) for scores in monitored),
        )
        for text, verdict, penalty, *monitored in item["items"]
    )
    turn = _turn_in(item)
    return CollectedGroup(
        group=RolloutGroup(turn.problem if turn else problems[item["problem"]], scored),
        round=item["round"],
        outcome=GroupOutcome(item["outcome"]),
        new_tokens=item["new_tokens"],
        draft_tokens=item["draft_tokens"],
        pass_rate_change=item["pass_rate_change"],
        turn=turn,
        advantages=tuple(item["advantages"]) if "advantages" in item else None,
        kept=_kept_in(item),
    )
