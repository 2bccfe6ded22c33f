import pytest

from data_schemas.rl_settings import LossSettings
from data_schemas.settings import PipelineSettings, RLSettings
from tasks.ablation.variants import (
    DOMAIN_ORDERS,
    ESPO_PARTS,
    FROM_PAPERS,
    MAX_ABSTAINED,
    REFILL_ROUNDS,
    RL_ZVP,
    SCAN,
    VARIANTS,
    Variant,
    phase_of,
    select_variants,
)
from tasks.curation.marketplace.drawing import DRAWERS
from tasks.errors import SettingsError

NAMES = [variant.name for variant in VARIANTS]
CHANGED = [*VARIANTS[1:], *FROM_PAPERS]


def flatten(settings: RLSettings) -> dict:
    """Settings by dotted name."""

    def walk(value, name):
        if isinstance(value, dict) and name != "domains.":
            return {
                k: v for key, item in value.items() for k, v in walk(item, f"{name}{key}.").items()
            }
        return {name.rstrip("."): value}

    return walk(settings.model_dump(mode="json"), "")


def named(variant: Variant) -> set[str]:
    def walk(value, name):
        if not isinstance(value, dict):
            return {name}
        return {leaf for key, item in value.items() for leaf in walk(item, f"{name}.{key}")}

    return {leaf for group, values in variant.changes.items() for leaf in walk(values, group)}


@pytest.mark.parametrize("variant", [*VARIANTS, *FROM_PAPERS], ids=lambda variant: variant.name)
def test_a_variant_differs_from_full_in_what_it_names_and_in_nothing_else(variant):
    full, mine = (flatten(phase_of(PipelineSettings(), name, 3)) for name in ("full", variant.name))

    differing = {name for name in full if full[name] != mine[name]}
    assert differing <= named(variant)
    assert bool(differing) == (variant.name != "full")
    assert 3 == mine["seed"]


@pytest.mark.parametrize("variant", CHANGED, ids=lambda variant: variant.name)
def test_a_variant_differs_from_its_rival(variant):
    assert phase_of(PipelineSettings(), variant.name, 0) != phase_of(
        PipelineSettings(), variant.against, 0
    )


def test_the_full_recipe_is_the_default_phase_over_all_domains_with_eq_8_and_replacements():
    default, full = (
        flatten(PipelineSettings().rl_two),
        flatten(phase_of(PipelineSettings(), "full", 0)),
    )

    changed = {name: full[name] for name in full if full[name] != default[name]}
    assert (0, 1) == (default["zero_variance.refill_rounds"], REFILL_ROUNDS)
    assert REFILL_ROUNDS == changed.pop("zero_variance.refill_rounds")
    assert MAX_ABSTAINED == changed.pop("rewards.max_abstained_share")
    assert (0.0, 0.02) == (default["loss.clip_scale"], changed.pop("loss.clip_scale"))
    assert {"domains", "steps"} == set(changed)
    assert dict.fromkeys(DRAWERS, 1.0) == phase_of(PipelineSettings(), "full", 0).domains


def test_the_default_of_the_study_is_the_default_phase_over_all_domains():
    default, named = PipelineSettings().rl_two, phase_of(PipelineSettings(), "default", 0)

    assert (default.loss, default.zero_variance) == (named.loss, named.zero_variance)
    assert default.engines == named.engines


def test_responses_of_a_step_stay_as_many_with_other_group_sizes():
    sizes = [phase_of(PipelineSettings(), name, 0) for name in ("full", "group_4", "group_16")]

    assert {24 * 8} == {phase.prompts_per_step * phase.group_size for phase in sizes}


def test_every_stage_that_is_switched_off_alone_is_off_in_zv_off():
    alone = [v.changes["zero_variance"] for v in VARIANTS if v.name.startswith("zv_")]

    together, *single = alone
    assert together == {name: value for one in single for name, value in one.items()}


@pytest.mark.parametrize("variant", SCAN, ids=lambda variant: variant.name)
def test_the_scan_compares_losses_that_are_equally_off_policy(variant):
    mine, other = (
        phase_of(PipelineSettings(), name, 1) for name in (variant.name, variant.against)
    )

    assert mine.model_copy(update={"loss": other.loss}) == other
    assert f"{mine.num_mini_batches}x{mine.engines.staleness}" == variant.name.rpartition("_")[2]
    assert (mine.loss == other.loss) == (variant.name == variant.against)


def test_the_scan_has_every_loss_at_every_distance_and_only_the_paper_uses_eq_8():
    kinds = {phase_of(PipelineSettings(), v.name, 0).loss.kind for v in SCAN}

    assert 6 * 9 == len({variant.name for variant in SCAN})
    assert {"espo", "grpo", "dapo", "gspo", "cispo"} == kinds
    assert 0.02 == phase_of(PipelineSettings(), "espo_4x0", 0).loss.clip_scale
    assert 0.0 == phase_of(PipelineSettings(), "espo_relative_4x0", 0).loss.clip_scale


@pytest.mark.parametrize("variant", ESPO_PARTS, ids=lambda variant: variant.name)
def test_the_parts_of_espo_change_one_thing_of_the_variant_they_are_compared_with(variant):
    mine, other = (
        phase_of(PipelineSettings(), name, 1) for name in (variant.name, variant.against)
    )

    assert mine.model_copy(update={"loss": other.loss}) == other
    slower = "_slower_" in variant.name
    assert slower == (mine.learning_rate < PipelineSettings().rl_two.learning_rate)
    assert (mine == other) == (variant.name == variant.against)
    if not slower:
        changed = {
            name for name in LossSettings.model_fields if _differs(mine.loss, other.loss, name)
        }
        widths = {"clip_scale", "clip_low", "clip_high"} if "relative" in variant.name else set()
        assert 1 == len(changed - widths)


def _differs(mine, other, name):
    return getattr(mine, name) != getattr(other, name)


@pytest.mark.parametrize("variant", RL_ZVP, ids=lambda variant: variant.name)
def test_the_weights_of_rl_zvp_are_compared_with_the_default_under_the_same_loss(variant):
    mine, other = (
        phase_of(PipelineSettings(), name, 1) for name in (variant.name, variant.against)
    )

    assert 0.1 == other.zero_variance.rl_zvp_alpha
    assert mine.model_copy(update={"zero_variance": other.zero_variance}) == other
    assert variant.name == f"{mine.loss.kind.value}_zvp_{mine.zero_variance.rl_zvp_alpha:g}"


def test_the_orders_of_domains_differ_in_their_domains_alone():
    phases = {v.name: phase_of(PipelineSettings(), v.name, 0) for v in DOMAIN_ORDERS}

    assert 1 == len({str(phase.model_copy(update={"domains": {}})) for phase in phases.values()})
    assert {"maths": 1.0, "code": 1.0} == phases["mixed"].domains == phases["mixed_twice"].domains
    assert ({"maths": 1.0}, {"code": 1.0}) == (
        phases["maths_only"].domains,
        phases["two_stage"].domains,
    )


def test_what_is_compared_was_trained_equally_often():
    by_name = {variant.name: variant for variant in DOMAIN_ORDERS}

    for variant in DOMAIN_ORDERS:
        assert bool(variant.after) == bool(by_name[variant.against].after)
        places = list(by_name)
        assert not variant.after or places.index(variant.after) < places.index(variant.name)


def test_chosen_variants_bring_their_rivals_and_keep_the_order():
    assert NAMES == [variant.name for variant in select_variants(" ")]
    assert ["full", "bf16_r3", "bf16_r2"] == [
        variant.name for variant in select_variants("bf16_r2")
    ]
    assert SCAN == select_variants("clip")
    assert {"espo_8x0", *(v.name for v in ESPO_PARTS)} == {v.name for v in select_variants("espo")}
    assert {"espo_4x0", "grpo_4x0", *(v.name for v in RL_ZVP)} == {
        v.name for v in select_variants("zvp")
    }
    assert ["espo_8x2", "gspo_8x2"] == [v.name for v in select_variants("gspo_8x2")]
    assert DOMAIN_ORDERS == select_variants("domains")
    assert ["mixed", "maths_only", "mixed_twice", "two_stage"] == [
        variant.name for variant in select_variants("two_stage")
    ]
    assert ["full", "espo_4x0"] == [v.name for v in select_variants("full,espo_4x0")]
    with pytest.raises(SettingsError, match="no variant 'gsop'; choose from full, "):
        select_variants("gspo,gsop")
