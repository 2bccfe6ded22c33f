"""The gate before self-play: does the start model write the forms of all three roles?

A questioner whose questions cannot be read has a reward of -1 for most of them, and nothing to
learn from. Measured on prompts of its own demonstrations, so that a failure is one of the model.
"""

from collections.abc import Mapping, Sequence

from data_schemas.rows import Demonstration, Problem
from tasks.errors import DataError, SettingsError
from tasks.evaluation.respondents import ScoredModel
from tasks.lab.recipes.spell.roles import NAME, agent_of, task_of
from tasks.lab.recipes.spell.settings import SpellRole

ROLES = (SpellRole.QUESTIONER, SpellRole.RESPONDER, SpellRole.VERIFIER)
PER_FORM = 48
"""Prompts of a role, and of each task of the questioner."""
LEAST = 0.5
"""Share of the responses of a role that must have its form."""


def taught_prompts(demonstrations: Sequence[Demonstration]) -> dict[str, list[Problem]]:
    """Take the first prompts of every form, as problems whose verifier reads the form.

    Raises:
        DataError: a role was not taught.
    """
    results: dict[str, list[Problem]] = {}
    for demonstration in demonstrations:
        agent = agent_of(demonstration.messages)
        if agent is None:
            continue
        task = f"/{task_of(demonstration.messages)}" if agent == SpellRole.QUESTIONER else ""
        of_form = results.setdefault(f"{agent}{task}", [])
        if len(of_form) < PER_FORM:
            of_form.append(_problem(demonstration))
    missing = [role for role in ROLES if not any(_is_of(form, role) for form in results)]
    if missing:
        raise DataError(
            f"no demonstration teaches the {missing[0]}; self-play needs those of all three roles, "
            "as the source tasks.lab.recipes.spell.sample:SAMPLE has them"
        )
    return dict(sorted(results.items()))


def valid_shares(model: ScoredModel, prompts: Mapping[str, Sequence[Problem]]) -> dict[str, float]:
    """Measure the share of responses with the form asked for, by role and by form."""
    right: dict[str, list[bool]] = {}
    for form, problems in prompts.items():
        texts = model.texts({problem.id: problem for problem in problems}, 1)
        right[form] = [model.right(problem, texts[problem.id])[0] for problem in problems]
    by_role = {
        role.value: [
            one for form, outcomes in right.items() if _is_of(form, role) for one in outcomes
        ]
        for role in ROLES
    }
    return {name: sum(outcomes) / len(outcomes) for name, outcomes in (by_role | right).items()}


def require_forms(shares: Mapping[str, float]) -> None:
    """Refuse a model that does not write the form of a role often enough.

    Raises:
        SettingsError: a share is too small.
    """
    weak = {role.value: shares[role] for role in ROLES if shares[role] < LEAST}
    if weak:
        listing = ", ".join(f"{role} {100 * share:.0f} %" for role, share in weak.items())
        raise SettingsError(
            f"the start model writes too few responses in the form asked for: {listing}, where "
            f"self-play needs {100 * LEAST:.0f} %. Fine-tune it for longer (sft.epochs), or begin "
            "with a wider base model: 'python -m tasks.training.foundation.wider wider_model' "
            "trains the configuration wider_moe, and base_model names its folder"
        )


def _is_of(form: str, role: SpellRole) -> bool:
    return form.split("/")[0] == role


def _problem(demonstration: Demonstration) -> Problem:
    return Problem(
        id=demonstration.id,
        domain=demonstration.domain,
        language=demonstration.language,
        messages=demonstration.messages,
        verifier=NAME,
        answer="{}",
        source=demonstration.source,
        source_row=demonstration.source_row,
    )
