"""Variants of the scaffold study."""

import pytest

from tasks.errors import SettingsError
from tasks.lab.recipes.rusca import presets
from tasks.lab.recipes.rusca.settings import Curve, Form, Ratio, ScaffoldSettings
from tasks.lab.recipes.rusca.variants import MORE, VARIANTS, phase_of, scaffold_for, select_variants

SHOWN = ScaffoldSettings(form=Form.USER, switch_at=0.4)


@pytest.mark.parametrize("variant", [*VARIANTS, *MORE], ids=lambda variant: variant.name)
def test_a_variant_changes_what_it_says_and_nothing_else(variant):
    found = scaffold_for(SHOWN, variant.name)

    assert SHOWN.model_dump() | dict(variant.changes) == found.model_dump()


def test_the_paper_s_comparisons_are_there():
    assert Ratio.IMPORTANCE is scaffold_for(SHOWN, "importance").ratio
    assert Curve.CONSTANT is scaffold_for(SHOWN, "constant").curve
    assert ["none"] == [one.name for one in (*VARIANTS, *MORE) if not one.scaffolded]


def test_variants_are_selected_by_name_with_the_published_one_first():
    assert VARIANTS == select_variants("")
    assert ["ruscarl", "none"] == [one.name for one in select_variants("none")]
    with pytest.raises(SettingsError, match="there is no variant 'magic'; choose from ruscarl"):
        select_variants("magic")


def test_all_variants_of_a_seed_have_the_same_phase():
    phase = phase_of(presets.HOUSE_STYLE, 2)

    assert presets.HOUSE_STYLE.rl_one.model_copy(update={"seed": 2}) == phase
