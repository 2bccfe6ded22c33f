"""RuscaRL: criteria of a hidden rubric are shown to some samples of a group, and decay.

    pyflyte run workflows/lab/recipes/rusca.py rusca

The start model must gain from seeing the criteria, or nothing is trained. Every phase and every
held-out evaluation is cached on its own, so a study that was stopped goes on. Seeds and variants
shape the graph, so they are read when it is made:

    EACHPROMPT_SEEDS=1 EACHPROMPT_VARIANTS=none pyflyte run workflows/lab/recipes/rusca.py rusca

With other sources it is the recipe for rubrics of one's own (verifier `rubric` or `rule_rubric`).
"""

from itertools import chain

from data_schemas.artifacts import ReportRef
from data_schemas.machine_settings import Positive, Share
from data_schemas.settings import PipelineSettings
from tasks.lab.recipes.rusca import presets
from tasks.lab.recipes.rusca.settings import ScaffoldSettings
from tasks.lab.recipes.rusca.task import prove_lift, tabulate_scaffold, vary_scaffold
from tasks.lab.recipes.rusca.variants import ScaffoldVariant, select_variants
from tasks.platform import environment
from tasks.platform.entry_point import entry_point
from tasks.platform.shell import subworkflow
from tasks.stages.chain import Chain, leading_to, link, wire
from tasks.stages.rl import pin_recipe
from workflows.parts.chain import (
    FINE_TUNING,
    FITTING,
    PREPARATION,
    evaluation,
    grading,
    opening,
    training,
)

SEEDS = range(environment.read("EACHPROMPT_SEEDS", "3", environment.positive))
VARIANTS = environment.read("EACHPROMPT_VARIANTS", "", select_variants)


def _variant(variant: ScaffoldVariant, seed: int) -> Chain:
    """Train a variant with a seed, and evaluate it."""
    name = f"scaffold/{variant.name}/{seed}"
    varied, pinned = f"varied/{variant.name}/{seed}", f"pinned/{variant.name}/{seed}"
    own = {"graded": "proved.graded", "max_tokens": "max_tokens"}
    own |= {"recipe": pinned} if variant.scaffolded else {}
    phase = (
        link(
            varied,
            vary_scaffold,
            constants={"variant": variant.name, "seed": seed},
            settings="fitted",
            scaffold="shown",
        ),
        link(pinned, pin_recipe, recipe=f"{varied}.scaffold"),
        training(name, f"{varied}.settings", "merged", **own),
    )
    return (*leading_to(phase, name), evaluation(name, f"{name}.model"))


CELLS = [f"{variant.name}/{seed}" for seed in SEEDS for variant in VARIANTS]
CHAIN = (
    *opening("rusca", "sources", last="tabulate_scaffold"),
    *PREPARATION,
    *FITTING,
    *FINE_TUNING,
    grading(),
    link(
        "proved",
        prove_lift,
        *("low", "high", "graded", "context"),
        settings="fitted.rl_one",
        scaffold="shown",
        start="merged",
    ),
    evaluation("scaffold/start", "merged"),
    *chain.from_iterable(_variant(variant, seed) for seed in SEEDS for variant in VARIANTS),
    link(
        "report",
        tabulate_scaffold,
        "max_tokens",
        "context",
        constants={"names": CELLS},
        settings="fitted.evaluation",
        lift_of_start="proved.lift",
        trainings=[f"scaffold/{name}.report" for name in CELLS],
        held_out_evaluations=[f"evaluation/scaffold/{name}" for name in ("start", *CELLS)],
    ),
)


@subworkflow
def rusca_study(
    settings: PipelineSettings,
    shown: ScaffoldSettings,
    max_tokens: int,
    low: float,
    high: float,
    store: str,
    sources: str,
) -> ReportRef:
    """Make the start model, prove the lift, train every variant with every seed, tabulate."""
    values = {"settings": settings, "shown": shown, "max_tokens": max_tokens}
    values |= {"low": low, "high": high, "store": store, "sources": sources}
    return wire(CHAIN, **values)["report"]


@entry_point
def rusca(
    settings: PipelineSettings = presets.HOUSE_STYLE,
    shown: ScaffoldSettings = presets.HOUSE_SCAFFOLD,
    max_tokens: Positive = 60_000,
    low: Share = 0.0,
    high: Share = 1.0,
    store: str = "runs",
    sources: str = "",
) -> ReportRef:
    """Train phase one with and without RuscaRL's scaffold.

    Args:
        settings: of the pipeline; rl_one is trained.
        shown: which criteria a step and a sample see.
        max_tokens: generated tokens that end a phase.
        low: lowest quantile of scores kept.
        high: highest quantile of scores kept.
        store: folder or s3:// prefix of results.
        sources: real files: adapter=path,adapter=path.
    """
    return rusca_study(
        settings=settings,
        shown=shown,
        max_tokens=max_tokens,
        low=low,
        high=high,
        store=store,
        sources=sources,
    )
