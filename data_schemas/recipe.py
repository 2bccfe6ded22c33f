"""Which recipe a phase of RL follows: its settings, and the implementation that reads them."""

from pydantic import ConfigDict, Field

from data_schemas.group import Settings, no_schema


class AnyRecipe(Settings):
    """A recipe as the loop takes it: its implementation checks the settings of its own."""

    model_config = ConfigDict(
        frozen=True, extra="allow", allow_inf_nan=False, json_schema_extra=no_schema
    )

    implementation: str = Field(
        description="function that opens it: package.module:name, or my_recipe.py:name"
    )
    code: str = Field(default="", description="digest of its source; the workflow fills it in")


class RecipeSettings(AnyRecipe):
    """Base of the settings of one recipe, which adds those of its own."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_extra=no_schema
    )
