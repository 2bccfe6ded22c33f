"""The state between two steps, as one file of a committed state.

Unfinished responses, steps rolled out but not yet trained on (asynchronous mode), the prompts'
records, the position in the curriculum and in the prompt stream. Problems are stored by id.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data_schemas.agent_turns import AgentTurn
from data_schemas.ledger import GroupOutcome
from data_schemas.prompts import Problem
from data_schemas.rollouts import Rollout, RolloutGroup, ScoredRollout
from data_schemas.verdicts import Verdict
from tasks.errors import DataError
from tasks.rl.durability import codec
from tasks.rl.rollouts.collected import Collected, CollectorState, Cost, InFlight, Skipped
from tasks.rl.rollouts.curriculum import CurriculumPosition
from tasks.rl.rollouts.group_outcomes import CollectedGroup
from tasks.rl.rollouts.history import PromptRecord
from tasks.rl.rollouts.reuse import Responses
from tasks.rl.rollouts.segments import OpenGroup

FILE = "inflight.npz"


@dataclass(frozen=True, slots=True)
class Between:
    """Everything between a committed step and the next one."""

    collector: CollectorState
    waiting: tuple[Collected, ...]
    """Rolled out and scored, not trained on yet; oldest first."""


def encode(between: Between) -> bytes:
    """Pack everything into one file."""
    rollouts: list[Rollout] = []
    meta = {
        "position": between.collector.position,
        "records": {
            name: record.model_dump(mode="json")
            for name, record in between.collector.records.items()
        },
        "stage": between.collector.stage.model_dump(mode="json"),
        "open": [_open_out(group, rollouts) for group in between.collector.open_groups],
        "waiting": [_collected_out(item, rollouts) for item in between.waiting],
    }
    if between.collector.turns:  # without any, the bytes are those of a plain phase
        meta["turns"] = [turn.model_dump(mode="json") for turn in between.collector.turns]
    if between.collector.memory:
        meta["memory"] = dict(between.collector.memory)
    arrays, rows = codec.rollout_arrays(rollouts)
    responses = between.collector.responses
    flat = [tokens for name in sorted(responses) for tokens in responses[name]]
    arrays["earlier_responses"] = np.concatenate([np.empty(0, np.int32), *flat])
    lengths = {name: [len(tokens) for tokens in responses[name]] for name in sorted(responses)}
    return codec.pack(arrays, meta | {"rollouts": rows, "earlier_responses": lengths})


def decode(data: bytes, problems: Sequence[Problem]) -> Between:
    """Read what `encode` wrote.

    Raises:
        DataError: the file is damaged, or names a problem that the phase does not have.
    """
    by_id = {problem.id: problem for problem in problems}
    arrays, meta = codec.unpack(data)
    rollouts = iter(codec.rollouts_of(arrays, meta["rollouts"]))
    try:
        return Between(
            collector=CollectorState(
                position=meta["position"],
                records={
                    name: PromptRecord.model_validate(record)
                    for name, record in meta["records"].items()
                },
                stage=CurriculumPosition.model_validate(meta["stage"]),
                open_groups=tuple(_open_in(item, by_id, rollouts) for item in meta["open"]),
                responses=_responses_in(arrays, meta.get("earlier_responses", {})),
                turns=tuple(map(AgentTurn.model_validate, meta.get("turns", ()))),
                memory=meta.get("memory", {}),
            ),
            waiting=tuple(_collected_in(item, by_id, rollouts) for item in meta["waiting"]),
        )
    except KeyError as error:
        raise DataError(f"the state names {error}, which this phase does not have") from error


def _responses_in(
    arrays: Mapping[str, NDArray], lengths: Mapping[str, Sequence[int]]
) -> dict[str, Responses]:
    found, start = {}, 0
    for name, of_stream in lengths.items():
        ends = [start + length for length in accumulate(of_stream)]
        begins = [start, *ends[:-1]]
        tokens = arrays["earlier_responses"]
        found[name] = tuple(tokens[b:e].copy() for b, e in zip(begins, ends, strict=True))
        start = ends[-1]
    return found


def _open_out(group: OpenGroup, rollouts: list[Rollout]) -> dict[str, Any]:
    rollouts.extend(group.rollouts)
    return _turn_out(group.turn) | {
        "key": group.key,
        "problem": group.problem.id,
        "round": group.round,
        "size": group.size,
        "rollouts": len(group.rollouts),
    }


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
    )


def _turn_out(turn: AgentTurn | None) -> dict[str, Any]:
    return {"turn": turn.model_dump(mode="json")} if turn else {}


def _turn_in(item: Mapping[str, Any]) -> AgentTurn | None:
    return AgentTurn.model_validate(item["turn"]) if "turn" in item else None


def _collected_out(collected: Collected, rollouts: list[Rollout]) -> dict[str, Any]:
    return {
        "step": collected.step,
        "policy_version": collected.policy_version,
        "groups": [group_out(entry, rollouts) for entry in collected.groups],
        "skipped": [
            [entry.problem.id, entry.round, entry.outcome.value, entry.saved_tokens]
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
) -> Collected:
    return Collected(
        step=item["step"],
        policy_version=item["policy_version"],
        groups=[group_in(entry, problems, rollouts) for entry in item["groups"]],
        skipped=[
            Skipped(problems[problem], draw, GroupOutcome(outcome), saved)
            for problem, draw, outcome, saved in item["skipped"]
        ],
        in_flight=[
            InFlight(_open_in(group, problems, rollouts), new, draft)
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
    given = {} if entry.advantages is None else {"advantages": list(entry.advantages)}
    return (
        given
        | _turn_out(entry.turn)
        | {
            "problem": entry.group.problem.id,
            "round": entry.round,
            "outcome": entry.outcome.value,
            "new_tokens": entry.new_tokens,
            "draft_tokens": entry.draft_tokens,
            "reused_tokens": entry.reused_tokens,
            "pass_rate_change": entry.pass_rate_change,
            "items": [
                [item.text, item.verdict.model_dump(mode="json"), item.penalty]
                for item in entry.group.rollouts
            ],
        }
    )


def group_in(
    item: dict[str, Any], problems: Mapping[str, Problem], rollouts: Iterator[Rollout]
) -> CollectedGroup:
    """Rebuild a group from the result of `group_out`; its rollouts come from the iterator."""
    scored = tuple(
        ScoredRollout(next(rollouts), text, Verdict.model_validate(verdict), penalty)
        for text, verdict, penalty in item["items"]
    )
    turn = _turn_in(item)
    return CollectedGroup(
        group=RolloutGroup(turn.problem if turn else problems[item["problem"]], scored),
        round=item["round"],
        outcome=GroupOutcome(item["outcome"]),
        new_tokens=item["new_tokens"],
        draft_tokens=item["draft_tokens"],
        reused_tokens=item.get("reused_tokens", 0),
        pass_rate_change=item["pass_rate_change"],
        turn=turn,
        advantages=tuple(item["advantages"]) if "advantages" in item else None,
    )
