"""SDPO (arXiv 2601.20802): failed responses are scored again behind a prompt with more in it.

The prompt of the problem, a solved response of the same group, and the words of the verifier.
Differs: only failed responses are taught, where SDPO also teaches solved ones whose group has
another; the sibling is drawn by seed, where SDPO takes the first; the teacher is the policy before
the step, where SDPO averages weights.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from data_schemas.rl_settings import AnyRecipe, RLSettings
from data_schemas.rollouts import ScoredRollout
from data_schemas.rows import Message
from tasks.algorithms.distillation import Blend
from tasks.algorithms.losses import table
from tasks.errors import SettingsError
from tasks.lab.recipes.self_distillation.settings import SelfDistillationSettings
from tasks.rl.groups import CollectedGroup
from tasks.rl.recipe import Recipe

THINKING_ENDS = "</think>"
SIBLING = "A correct solution:"
REASON = "What was wrong with the last attempt:"
AGAIN = "Solve it again."


class SelfTeacher:
    """A `Teacher`.

    Args:
        settings: what it sees.
        seed: of the phase.
    """

    def __init__(self, settings: SelfDistillationSettings, seed: int) -> None:
        self._settings, self._seed = settings, seed
        self.folders = {domain: Path(folder) for domain, folder in settings.teachers.items()}
        self.blend = Blend(
            settings.weight,
            settings.bound,
            control=settings.control,
            by_entropy=settings.by_entropy,
        )
        self.max_prompt_tokens = settings.max_prompt_tokens

    def prompts(self, entry: CollectedGroup) -> Sequence[Sequence[Message] | None]:
        """Show each failed response a solved sibling and its verdict, as far as there are any.

        Another model than the policy sees the prompt of the problem, and all responses.
        """
        problem, responses = entry.group.problem, entry.group.rollouts
        if self.folders:
            return [problem.messages] * len(responses)
        solved = [item.text for item in responses if item.verdict.solved]
        return [
            None
            if item.verdict.abstained or item.verdict.solved
            else self._prompt(problem.messages, self._sibling(solved, item), item.verdict.detail)
            for item in responses
        ]

    def _sibling(self, solved: Sequence[str], item: ScoredRollout) -> str:
        if not solved or not self._settings.solved_sibling:
            return ""
        name = f"{self._seed}/{item.rollout.problem_id}/{item.rollout.sample}"
        place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % len(solved)
        return solved[place].rpartition(THINKING_ENDS)[2].strip()

    def _prompt(
        self, messages: Sequence[Message], sibling: str, reason: str
    ) -> Sequence[Message] | None:
        parts = [f"{SIBLING}\n{sibling}"] if sibling else []
        if reason and self._settings.reason:
            parts.append(f"{REASON} {reason}")
        if not parts:
            return None
        *before, last = messages
        content = "\n\n".join([last.content, *parts, AGAIN])
        return (*before, last.model_copy(update={"content": content}))


def open_teacher(settings: AnyRecipe, phase: RLSettings) -> Recipe:
    """Open the recipe (an `OpenRecipe`).

    Raises:
        SettingsError: the loss has no advantages of tokens, or a domain has no teacher.
    """
    if not table.find(phase.loss).token_advantages:
        raise SettingsError(
            f"loss.kind {phase.loss.kind!r} has one advantage per response, and a teacher "
            "gives tokens their own; choose another loss"
        )
    distillation = SelfDistillationSettings.model_validate(settings.model_dump())
    if distillation.teachers and (
        missing := sorted(phase.domains.keys() - distillation.teachers.keys())
    ):
        raise SettingsError(
            f"teachers has none for {', '.join(missing)}; name one for every domain of the phase"
        )
    return Recipe(teacher=SelfTeacher(distillation, phase.seed))
