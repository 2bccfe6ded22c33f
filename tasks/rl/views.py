"""What the page of a running phase shows: its steps, and the newest responses token by token."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from data_schemas.rollouts import Rollout, ScoredRollout
from tasks.algorithms.personal_data import without_personal_data
from tasks.engines.chat import token_texts
from tasks.pages.live import MAX_TOKENS, by_mismatch, render, rounded
from tasks.pages.live_views import GroupView, Responses, ResponseView, StepView
from tasks.rl import state, step_snapshot
from tasks.rl.groups import CollectedGroup
from tasks.rl.step_snapshot import StepSnapshot

LARGEST_SNAPSHOT = 2**27
"""Bytes; reading a larger one would delay the next step."""


def page_of_phase(
    folder: Path,
    tokenizer: PreTrainedTokenizerBase,
    title: str,
    num_steps: int | None,
    last: int,
    *,
    running: bool,
) -> str:
    """Render the page of a phase after step `last`.

    Args:
        folder: of the phase's state.
        tokenizer: of the policy.
        title: the phase and its execution.
        num_steps: of the whole phase; None if its tokens end it.
        last: newest step with a record.
        running: False for the last page.
    """
    records = state.read_steps(folder, last)
    views = [StepView(report=r.report, timing=r.timing, costs=r.costs) for r in records]
    path = folder / step_snapshot.FOLDER / step_snapshot.name_of(last)
    responses = None
    if path.is_file() and path.stat().st_size <= LARGEST_SNAPSHOT:
        responses = responses_of(step_snapshot.decode(path.read_bytes()), tokenizer, MAX_TOKENS)
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    line = f"running, as of {when}; this page loads itself again" if running else f"ended {when}"
    return render(title, line, views, responses, num_steps=num_steps, running=running)


def responses_of(
    snapshot: StepSnapshot, tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> Responses:
    """Read the groups of a step, those with the largest mismatch first.

    Args:
        snapshot: of the step.
        tokenizer: of the policy.
        max_tokens: response tokens in all; what does not fit is left out and counted.
    """
    rows = {(int(g), int(s)): n for n, (g, s) in enumerate(snapshot.outputs["owners_N2"])}
    gaps = [_largest_gaps(snapshot, rows, place) for place in range(len(snapshot.groups))]
    tokens = [
        [len(item.rollout.response_tokens) for item in entry.group.rollouts]
        for entry in snapshot.groups
    ]
    picks = by_mismatch(gaps, tokens, max_tokens)
    views = [
        _group(
            snapshot.groups[place],
            [
                _response(
                    snapshot,
                    snapshot.groups[place].group.rollouts[sample],
                    rows.get((place, sample)),
                    tokenizer,
                )
                for sample in samples
            ],
        )
        for place, samples in picks.items()
    ]
    left_out = len(gaps) - len(picks)
    return Responses(step=snapshot.step, groups=tuple(views), left_out=left_out)


def _group(entry: CollectedGroup, views: Sequence[ResponseView]) -> GroupView:
    problem = entry.group.problem
    return GroupView(
        problem=problem.id,
        domain=problem.domain.value,
        language=problem.language,
        prompt=without_personal_data(problem.prompt_text),
        answer=without_personal_data(problem.answer),
        source_row=problem.source_row,
        outcome=entry.outcome.value,
        responses=tuple(views),
        left_out=len(entry.group.rollouts) - len(views),
    )


def _response(
    snapshot: StepSnapshot,
    item: ScoredRollout,
    row: int | None,
    tokenizer: PreTrainedTokenizerBase,
) -> ResponseView:
    """Read one response; `row` is its place in the batch, None if it was not in it."""
    rollout, verdict = item.rollout, item.verdict
    return ResponseView(
        tokens=token_texts(tokenizer, rollout.response_tokens.tolist()),
        gaps=() if row is None else rounded(_gaps(snapshot, row, rollout)),
        entropies=()
        if row is None
        else rounded(_of_response(snapshot, "old_entropy_NT", row, rollout)),
        logprobs=rounded(rollout.logprobs),
        routes=_routes(rollout),
        environment=_answers(rollout),
        score=verdict.score,
        solved=verdict.solved,
        reason=verdict.reason,
        detail=verdict.detail,
        penalty=item.penalty,
        advantage=None if row is None else _mean_advantage(snapshot, row),
        stop_reason=rollout.stop_reason.value,
    )


def _largest_gaps(
    snapshot: StepSnapshot, rows: dict[tuple[int, int], int], place: int
) -> list[float]:
    """Largest |dlogp| of every response of a group; 0 for one outside of the batch."""
    return [
        float(np.abs(_gaps(snapshot, row, item.rollout)).max(initial=0.0))
        if (row := rows.get((place, sample))) is not None
        else 0.0
        for sample, item in enumerate(snapshot.groups[place].group.rollouts)
    ]


def _gaps(snapshot: StepSnapshot, row: int, rollout: Rollout) -> NDArray[np.float32]:
    key = "drawn_logprobs_NT"
    scored = key if key in snapshot.inputs else "old_logprobs_NT"
    return _of_response(snapshot, scored, row, rollout) - rollout.logprobs


def _of_response(
    snapshot: StepSnapshot, name: str, row: int, rollout: Rollout
) -> NDArray[np.float32]:
    """Return the values of a response's tokens; 0 for those of an environment."""
    first = len(rollout.trained_prompt)
    return snapshot.inputs[name][row, first : first + len(rollout.response_tokens)]


def _mean_advantage(snapshot: StepSnapshot, row: int) -> float:
    """Over the tokens of a response: under RL-ZVP every token has its own."""
    return float(
        snapshot.outputs["advantages_NT"][row][snapshot.outputs["response_NT"][row]].mean()
    )


def _answers(rollout: Rollout) -> tuple[tuple[int, int], ...]:
    """Return first and end of every run of tokens that the policy did not sample."""
    if rollout.sampled is None:
        return ()
    edges = np.flatnonzero(np.diff((~rollout.sampled).astype(np.int8), prepend=0, append=0))
    return tuple((int(first), int(end)) for first, end in edges.reshape(-1, 2))


def _routes(rollout: Rollout) -> tuple[str, ...]:
    """Experts of the position before each response token, '0 3 | 1 2' for two layers."""
    if rollout.trace is None:
        return ()
    first = len(rollout.prompt_tokens) - 1
    experts_RLK = rollout.trace.experts_TLK[first : first + len(rollout.response_tokens)]
    return tuple(
        " | ".join(" ".join(map(str, layer)) for layer in of) for of in experts_RLK.tolist()
    )
