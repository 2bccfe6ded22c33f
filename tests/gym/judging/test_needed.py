"""Problems that need a judge are refused where none is set, before anything is trained."""

import pytest

from data_schemas import presets
from data_schemas.arrow import write_table
from data_schemas.artifacts import DatasetRef, StoreRef
from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.rows import (
    DEMONSTRATIONS,
    HELD_OUT,
    PROBLEMS,
    Demonstration,
    Domain,
    Message,
    Parent,
    Problem,
    Role,
)
from tasks.errors import SettingsError
from tasks.stages.curation import fit_settings
from tasks.store.local import new_object
from tests.records import filled, problem_of

ASKED = (Message(role=Role.USER, content="Write a title for a red shoe."),)
JUDGE = JudgeSettings(kind=JudgeKind.HTTP, address="http://judge:8000/v1", model="judge")


def problem(verifier: str, domain: Domain = Domain.OPEN_TEXT) -> Problem:
    return problem_of(ASKED, "{}", id=f"mine/{verifier}", domain=domain, verifier=verifier)


@pytest.fixture
def curate(tmp_path):
    """Write a curated set with these problems to train on and to hold out."""

    def build(problems, held_out=()):
        rows = [
            filled(
                Demonstration,
                id=f"mine/{parent.value}/{place}",
                parent=parent,
                domain=Domain.OPEN_TEXT,
                messages=ASKED,
                response="<think>" + "word " * 40 + "</think>Red shoe",
            )
            for parent in (Parent.REASONING, Parent.COMMERCE)
            for place in range(3)
        ]
        with new_object(tmp_path) as (folder, committed):
            write_table(folder / PROBLEMS, Problem, problems)
            write_table(folder / HELD_OUT, Problem, held_out)
            write_table(folder / DEMONSTRATIONS, Demonstration, rows)
        return DatasetRef(uri=committed.uri, digest=committed.digest)

    return build


def fit(settings, curated):
    store = StoreRef(uri=str(curated.uri).rpartition("/objects/")[0], id="0", tracking_uri="")
    return fit_settings.task_function(settings=settings, curated=curated, store=store)


def with_judges(*stages):
    """The laptop's settings with a judge in some stages."""
    settings = presets.CPU_SMOKE
    for name in stages:
        group = getattr(settings, name)
        if name.startswith("rl"):
            rewards = group.rewards.model_copy(update={"judge": JUDGE})
            group = group.model_copy(update={"rewards": rewards})
        else:
            group = group.model_copy(update={"judge": JUDGE})
        settings = settings.model_copy(update={name: group})
    return settings


@pytest.mark.parametrize("verifier", ["rubric", "generative_judge"])
@pytest.mark.parametrize(
    ("stages", "named"),
    [
        ((), "grading.judge"),
        (("grading",), "evaluation.judge"),
        (("grading", "evaluation"), "rl_one.rewards.judge"),
        (("grading", "evaluation", "rl_one"), "rl_two.rewards.judge"),
    ],
)
def test_every_stage_without_the_judge_that_it_needs_is_named_before_sft(
    curate, verifier, stages, named
):
    curated = curate([problem(verifier)], [problem(verifier)])

    with pytest.raises(SettingsError) as refused:
        fit(with_judges(*stages), curated)

    assert f"{named}.kind is none, but 1 problems need a judge, first mine/{verifier}" in str(
        refused.value
    )


def test_with_judges_in_all_stages_and_without_such_problems_nothing_is_refused(curate):
    judged = [problem("rubric")]
    plain = [problem("reference_text")]

    assert fit(with_judges("grading", "evaluation", "rl_one", "rl_two"), curate(judged, judged))
    assert fit(with_judges(), curate(plain, plain))


def test_a_domain_that_a_phase_does_not_draw_needs_no_judge_there(curate):
    settings = with_judges("grading", "evaluation")
    phases = {
        name: getattr(settings, name).model_copy(update={"domains": {Domain.MATHS: 1.0}})
        for name in ("rl_one", "rl_two")
    }

    assert fit(
        settings.model_copy(update=phases),
        curate([problem("rubric"), problem("final_answer", Domain.MATHS)]),
    )
