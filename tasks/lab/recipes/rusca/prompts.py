"""RuscaRL (arXiv 2508.16949): the samples of a group see different shares of their rubric, and
fewer from step to step (`shares_of_group`).
"""

from collections.abc import Sequence

from data_schemas.rl_settings import AnyRecipe, RLSettings
from data_schemas.rows import Problem
from tasks.algorithms.terms.protocol import EngineGap
from tasks.algorithms.terms.table import find_terms
from tasks.errors import SettingsError
from tasks.lab.recipes.rusca.criteria import criteria_of, with_criteria
from tasks.lab.recipes.rusca.settings import Ratio, ScaffoldSettings
from tasks.lab.recipes.rusca.shares import scaffold_ratios, scaffold_subset
from tasks.lab.recipes.rusca.shown import ScaffoldPhaseReport
from tasks.rl.recipe import Recipe, ShapedPrompt


class Scaffold:
    """A `PromptShaper`.

    Args:
        settings: of the scaffold.
        phase: whose steps its curve spans.
    """

    def __init__(self, settings: ScaffoldSettings, phase: RLSettings) -> None:
        self._settings = settings
        self._phase = phase
        self.trains_bare = settings.ratio is not Ratio.SCAFFOLDED
        self.ratio_as_drawn = settings.ratio is Ratio.IMPORTANCE

    def check(self, problems: Sequence[Problem]) -> None:
        """Refuse a scaffold that could show nothing.

        Raises:
            SettingsError: no problem has a rubric.
        """
        if not any(map(criteria_of, problems)):
            raise SettingsError(
                "a scaffold shows criteria of rubrics, but no problem of the phase's domains has "
                "the verifier 'rubric' or 'rule_rubric'; leave the scaffold out, or choose other "
                "domains"
            )

    def shape(
        self, problem: Problem, *, step: int, group: str, size: int
    ) -> Sequence[ShapedPrompt | None]:
        """Show each sample its share of the criteria; a problem without a rubric stays bare."""
        criteria = criteria_of(problem)
        if not criteria:
            return [None] * size
        settings, phase = self._settings, self._phase
        results: list[ShapedPrompt | None] = []
        for sample, ratio in enumerate(scaffold_ratios(step, phase.steps, size, settings)):
            picks = scaffold_subset(
                len(criteria), ratio, seed=phase.seed, group=group, sample=sample
            )
            messages = with_criteria(problem.messages, [criteria[i] for i in picks], settings.form)
            results.append(ShapedPrompt(messages, picks) if picks else None)
        return results


def open_scaffold(settings: AnyRecipe, phase: RLSettings) -> Recipe:
    """Open the recipe (an `OpenRecipe`).

    Raises:
        SettingsError: the phase would undo the scaffold.
    """
    scaffold = ScaffoldSettings.model_validate(settings.model_dump())
    for one, term in zip(phase.terms, find_terms(phase.terms), strict=True):
        if term.engine_gap > EngineGap.UNUSED:
            raise SettingsError(
                f"terms has {one.kind!r}, which compares trainer and rollout engine: weights "
                "between the prompts would undo a scaffold; leave it out"
            )
    return Recipe(shaper=Scaffold(scaffold, phase), report=ScaffoldPhaseReport(scaffold, phase))
