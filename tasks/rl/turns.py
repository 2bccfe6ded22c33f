"""Turns of other agents than the solver: made from settled groups, taken by quota, measured.

A turn's group is scored and trained like any other. What belongs to the prompts of the stream
(records, curriculum, skips, refills) sees solver's groups only: otherwise a verdict of the
verifier would be booked as a prompt's pass rate.

Pipelined, a turn waits for the next step, whose rollouts mix fresh prompts with waiting turns. Only
its input is older then: its responses are drawn from the current policy, so no importance
correction is due. A turn has the same random numbers whenever it is taken, because these follow
from its key.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from transformers import PreTrainedTokenizerBase

from data_schemas.rl_settings import RLSettings
from data_schemas.rollouts import SOLVER, AgentTurn, ResponseScore
from data_schemas.rows import Problem
from data_schemas.verdicts import abstain
from tasks.algorithms.skips.table import find as find_skip
from tasks.engines.chat import render_prompt
from tasks.errors import SettingsError
from tasks.rl.groups import PARENT_ABSTAINED, CollectedGroup, OpenGroup, scores_vary
from tasks.rl.recipe import AgentTurns, Memory, TurnRewards


def check_turns(settings: RLSettings) -> None:
    """Refuse settings of a phase that turns of several agents do not have.

    Raises:
        SettingsError: names the setting.
    """
    if settings.engines.free_running:
        raise SettingsError(
            "turns of several agents are not free-running; set engines.segment_tokens to 0"
        )
    if find_skip(settings).weighs:
        raise SettingsError(
            f"zero_variance.skip {settings.zero_variance.skip.mode!r} weighs the groups of "
            "prompts, and turns of other agents have no such weight; set skip to {mode: threshold}"
        )
    if settings.group_bounds:
        raise SettingsError(
            "group_bounds gives prompts groups of their own size, and turns of other agents have "
            "that of group_size; leave group_bounds out"
        )


class TurnQueue:
    """The turns that wait; without a recipe there are none.

    Args:
        recipe: which turns follow a group; None for a plain phase.
        problems: of the phase.
        tokenizer: of the policy.
        waiting: from the state of the phase, oldest first.
        memory: from the state of the phase.
    """

    def __init__(
        self,
        recipe: AgentTurns | None,
        problems: Iterable[Problem],
        tokenizer: PreTrainedTokenizerBase,
        waiting: Sequence[AgentTurn] = (),
        memory: Memory | None = None,
    ) -> None:
        self._recipe = recipe
        self._problems = {problem.id: problem for problem in problems} if recipe else {}
        self._tokenizer = tokenizer
        self._waiting = list(waiting)
        self._memory: Memory = dict(memory or {})
        self._taken: Counter[str] = Counter()
        self._num_too_long = 0

    @property
    def waiting(self) -> tuple[AgentTurn, ...]:
        """Turns for later steps, to be committed."""
        return tuple(self._waiting)

    @property
    def memory(self) -> Memory:
        """What the recipe remembers, to be committed."""
        return self._memory

    @property
    def pipelined(self) -> bool:
        """True if what a step's groups lead to waits for the next step."""
        return self._recipe is None or self._recipe.limits.pipelined

    def begin_step(self) -> None:
        """Let every agent have its quota again."""
        self._taken.clear()
        self._num_too_long = 0

    def take(self, size: int) -> list[OpenGroup]:
        """Take the oldest waiting turns, as many as the quotas allow, as groups of this size."""
        if self._recipe is None:
            return []
        turns: list[AgentTurn] = []
        for turn in self._waiting:
            quota = self._recipe.limits.quotas.get(turn.agent)
            if quota is None or self._taken[turn.agent] < quota:
                self._taken[turn.agent] += 1
                turns.append(turn)
        keys = {turn.key for turn in turns}
        self._waiting = [turn for turn in self._waiting if turn.key not in keys]
        return [_open(turn, 0, size) for turn in turns]

    def begin(self, fresh: Sequence[OpenGroup]) -> list[OpenGroup]:
        """Put a recipe's first turns in the place of prompts that were drawn."""
        if self._recipe is None:
            return [*fresh]
        groups = []
        for group in fresh:
            turn = self._recipe.first_turn(group.key, group.problem, self._memory)
            groups.append(_open(turn, group.round, group.size) if turn else group)
        return groups

    def follow(self, key: str, entry: CollectedGroup) -> None:
        """Queue the turns that follow a settled group."""
        if self._recipe is None:
            return
        root = self._problems[entry.turn.root if entry.turn else entry.group.problem.id]
        for turn in self._recipe.next_turns(key, root, entry):
            length = len(render_prompt(self._tokenizer, turn.problem.messages))
            if length <= self._recipe.limits.max_input_tokens:
                self._waiting.append(turn)
            else:
                self._num_too_long += 1

    def reward(self, groups: Sequence[CollectedGroup]) -> TurnRewards:
        """Give a step's groups the rewards that need all of them, and remember what it says."""
        if self._recipe is None:
            return TurnRewards(groups)
        rewarded = self._recipe.reward(groups, self._memory)
        self._memory = rewarded.memory
        metrics = self._metrics(self._recipe, rewarded.groups) | rewarded.metrics
        return replace(rewarded, metrics=metrics)

    def _metrics(self, recipe: AgentTurns, groups: Sequence[CollectedGroup]) -> dict[str, float]:
        """Measure a step by agent."""
        waiting = Counter(turn.agent for turn in self._waiting)
        metrics = {"agent/too_long_count": float(self._num_too_long)}
        for agent in recipe.limits.agents:
            mine = [entry for entry in groups if agent_of(entry) == agent]
            metrics |= {
                f"agent/{agent}_{name}": value for name, value in _measure(mine).items()
            } | {f"agent/{agent}_waiting_turns": float(waiting[agent])}
        return metrics


def _open(turn: AgentTurn, number: int, size: int) -> OpenGroup:
    return OpenGroup(turn.key, turn.problem, number, turn.size or size, turn=turn)


def agent_of(entry: CollectedGroup) -> str:
    """Name the agent that answered in a group."""
    return entry.turn.agent if entry.turn else SOLVER


def excused(turn: AgentTurn | None, scored: ResponseScore) -> ResponseScore:
    """Withdraw the verdict on a response whose turn was made from one without a verdict."""
    if turn is None or not turn.parent_abstained:
        return scored
    verdict = abstain(PARENT_ABSTAINED, turn.parent)
    return ResponseScore(scored.text, verdict, scored.seconds, scored.judge_calls)


def _measure(groups: Sequence[CollectedGroup]) -> dict[str, float]:
    verdicts = [item.verdict for entry in groups for item in entry.group.rollouts]
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    varied = sum(
        scores_vary([i.verdict.score for i in entry.group.rollouts if i.verdict.score is not None])
        for entry in groups
    )
    return {
        "groups": float(len(groups)),
        "reward_mean": sum(scores) / max(1, len(scores)),
        "contrast_share": varied / max(1, len(groups)),
        "abstained_count": float(len(verdicts) - len(scores)),
        "generated_tokens": float(sum(entry.new_tokens + entry.draft_tokens for entry in groups)),
    }
