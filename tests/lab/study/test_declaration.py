"""Declarations of studies: from a YAML file to the settings of every cell."""

from functools import cache
from pathlib import Path

import pytest

from data_schemas.settings import PipelineSettings
from data_schemas.study import StudyPlan
from tasks.algorithms.phase_choices import require_fit
from tasks.algorithms.skips.table import find as find_skip
from tasks.errors import SettingsError
from tasks.lab.study.declaration import apply, read_study

STUDIES = sorted((Path(__file__).parents[3] / "workflows" / "lab" / "studies").glob("*.yaml"))


@cache
def plan_in(path: Path) -> StudyPlan:
    """A study of the repository, read once for all tests."""
    return read_study(str(path))


def settings_of(plan, variant: str, seed: int = 0) -> PipelineSettings:
    (cell,) = [one for one in plan.cells if (one.variant, one.seed) == (variant, seed)]
    return PipelineSettings.model_validate_json(cell.settings)


def write(folder: Path, text: str, name: str = "study.yaml") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_of_the_repository_has_a_cell_per_variant_and_seed(path):
    plan = plan_in(path)

    names = [(cell.variant, cell.seed) for cell in plan.cells]
    assert len(set(names)) == len(names) == len(plan.against) * len({seed for _, seed in names})
    assert plan.digest == read_study(str(path)).digest


@pytest.mark.parametrize("study", ["skips", "real_skips"])
def test_the_arms_of_skips_differ_in_what_they_name_and_can_run(study):
    (path,) = [one for one in STUDIES if one.stem == study]
    plan = plan_in(path)
    phases = {name: settings_of(plan, name).rl_one for name in plan.against}

    for phase in phases.values():
        require_fit(phase)
    rules = {name: find_skip(phase) for name, phase in phases.items()}
    assert {"draw", "draw_rloo", "draw_sizes"} == {n for n, one in rules.items() if one.weighs}
    assert {"grpo", "dynamic"} == {name for name, one in rules.items() if one.is_idle}
    assert ["draw_sizes"] == [name for name, phase in phases.items() if phase.group_bounds]
    assert len({cell.seed for cell in plan.cells}) >= 3


def test_no_two_variants_of_a_study_are_the_same():
    for path in STUDIES:
        cells = [cell for cell in plan_in(path).cells if not cell.seed]
        assert len(cells) == len({cell.settings for cell in cells}), path


def test_changes_are_paths_with_wildcards_or_groups_over_those_of_the_study(tmp_path):
    plan = read_study(
        write(
            tmp_path,
            """
title: t
changes: {rl_*.steps: 3, evaluation: {samples: 2}}
seeds: [5]
variants:
  one: {}
  other:
    changes: {rl_*.loss.kind: grpo, rl_two: {zero_variance: {skip: {above: 1.0}}}, rl_two.steps: 4}
""",
        )
    )

    one, other = (settings_of(plan, name, 5) for name in ("one", "other"))
    assert (3, 3, 2) == (one.rl_one.steps, one.rl_two.steps, one.evaluation.samples)
    assert (3, 4) == (other.rl_one.steps, other.rl_two.steps)
    assert ["grpo"] * 2 == [phase.loss.kind for phase in (other.rl_one, other.rl_two)]
    assert (0.4, 1.0) == tuple(find_skip(phase).above for phase in (other.rl_one, other.rl_two))
    assert {"one": "one", "other": "one"} == plan.against


def test_seeds_reach_training_and_leave_the_held_out_problems_alone(tmp_path):
    plan = read_study(write(tmp_path, "title: t\nseeds: [0, 7]\n"))

    seeded = settings_of(plan, "default", 7)
    assert {7} == {seeded.sft.seed, seeded.rl_one.seed, seeded.rl_two.seed, seeded.grading.seed}
    assert 0 == seeded.curation.seed
    assert [0, 1, 2] == [c.seed for c in read_study(str(tmp_path / "study.yaml"), "", 3).cells]


def test_models_multiply_the_variants(tmp_path):
    text = "title: t\nseeds: [0]\nmodels: {small: '', big: /models/big}\nvariants: {a: {}, b: {}}\n"

    plan = read_study(write(tmp_path, text))

    assert {"a on small": "a on small", "b on small": "a on small"}.items() <= plan.against.items()
    assert "/models/big" == settings_of(plan, "b on big").base_model


def test_two_settings_files_are_compared_over_three_seeds(tmp_path):
    mine = write(tmp_path, "parent: base.yaml\nrl_two: {steps: 9}\n", "mine.yaml")
    base = write(tmp_path, "parent: laptop\nrl_two: {steps: 8, group_size: 4}\n", "base.yaml")

    plan = read_study(mine, base)

    assert {"base": "base", "mine": "base"} == plan.against
    assert (9, 4) == (
        settings_of(plan, "mine").rl_two.steps,
        settings_of(plan, "mine").rl_two.group_size,
    )
    assert 8 == settings_of(plan, "base", 2).rl_two.steps
    assert f"--of {mine} --against {base}" in plan.command


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: t\nvariant: {}", "variant is not a key of a study; did you mean `variants`"),
        ("rl_two: {steps: 3}", "has no title, so it is no study; .* --against"),
        ("title: t\nvariants: {a: {changes: {rl_twoo.steps: 3}}}", "variants.a: rl_twoo"),
        (
            "title: t\nvariants: {a: {changes: {rl_two.steps: -1}}}",
            "variants.a: rl_two.steps is -1",
        ),
        ("title: t\nvariants: {a: {changes: {x_*.steps: 1}}}", r"variants.a: x_\*.steps matches"),
        ("title: t\nvariants: {a: {against: b}, c: {}}", "variants.a.against is 'b', no variant"),
        ("title: t\nsettings: lapto", "there is no preset 'lapto'; did you mean `laptop`"),
        ("title: t\nsettings: nightly", "the preset 'nightly' has no PipelineSettings"),
        ("title: t\nsettings: nowhere.yaml", "nowhere.yaml cannot be read"),
        ("title: t\nrun: nowhere:RUN", "run 'nowhere:RUN' cannot be imported"),
        ("title: t\nrun: data_schemas.presets:CPU_SMOKE", "name a tasks.lab.study.runs.CellKind"),
        ("title: t\nseeded: [sftt]", "seeded: sftt"),
        ("title: t\nseeds: []", "seeds is"),
    ],
)
def test_what_cannot_run_is_refused_by_name_before_any_work(tmp_path, text, message):
    with pytest.raises(SettingsError, match=message):
        read_study(write(tmp_path, text))


def test_shares_by_domain_are_replaced_as_a_whole():
    changed = apply(PipelineSettings(), {"rl_two.domains": {"maths": 1.0}}, "x")

    assert ["maths"] == [*changed.rl_two.domains]
