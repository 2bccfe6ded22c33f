"""What the workflow of this recipe takes of its settings, as Flyte's propeller takes it."""

from tasks.lab.recipes.promptcot.presets import SYNTHESIS_RECIPE
from tasks.lab.recipes.promptcot.settings import SynthesisRecipe
from tests.platform.test_literals import SAMPLES, attributes_of, check_attributes
from workflows.lab.recipes import promptcot


def test_an_attribute_of_the_recipe_is_what_it_holds_in_any_order():
    attributes = attributes_of([promptcot.__name__])

    assert (SynthesisRecipe, ("synthesis",)) in attributes
    check_attributes(attributes, {SynthesisRecipe: SYNTHESIS_RECIPE} | SAMPLES)
