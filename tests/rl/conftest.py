"""A small phase on the tiny model: rewards come from a rule on the text, so it learns fast."""

import pytest

from data_schemas.prompts import Domain, Message, Problem, Role
from data_schemas.settings import RLSettings
from tasks.rl.run import Phase


def problem(number: int, domain: Domain = Domain.MATHS) -> Problem:
    return Problem(
        id=f"rule/{domain.value}/{number}",
        domain=domain,
        language="en",
        messages=(Message(role=Role.USER, content=f"say {number}"),),
        verifier="final_answer",
        answer='{"value":"1"}',
        source="rule",
        source_row="0" * 64,
    )


@pytest.fixture
def problems():
    return tuple(problem(number) for number in range(12))


@pytest.fixture
def settings():
    return RLSettings(
        domains={Domain.MATHS: 1.0},
        steps=4,
        prompts_per_step=3,
        group_size=4,
        max_new_tokens=6,
        learning_rate=1e-3,
    )


@pytest.fixture
def phase_in(tiny_moe, problems, settings):
    def build(folder, **changes):
        return Phase(settings.model_copy(update=changes), tiny_moe, problems, folder, "code-a")

    return build
