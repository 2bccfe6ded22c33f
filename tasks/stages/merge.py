"""Flyte shell of stage 3: merge of the two SFT parents."""

from collections.abc import Mapping

from data_schemas.artifacts import AnyRef, CheckpointRef, Context, StoreRef
from data_schemas.settings import MergeSettings
from tasks.platform.shell import shell
from tasks.stages.runner import Facts, Inputs, Outputs, PassThrough, Record, Work, run
from tasks.training.merge.checkpoint import merge as merge_checkpoints

BOTH = "both parents are the base, which is passed on"
ONE = "a parent is the base: the other one is passed on"
PARENTS = ("reasoning", "commerce")


def _skip(settings: MergeSettings, refs: Mapping[str, AnyRef], _: StoreRef) -> PassThrough | None:
    tuned = [role for role in PARENTS if refs[role].digest != refs["base"].digest]
    if not tuned:
        return PassThrough("base", BOTH)
    return PassThrough(tuned[0], ONE) if len(tuned) == 1 and not settings.copied else None


def _merge(settings: MergeSettings, inputs: Inputs, outputs: Outputs, _: Work) -> Facts:
    folders = inputs["reasoning"], inputs["commerce"]
    return merge_checkpoints(settings, inputs["base"], folders, outputs["model"])


MERGE = Record("merge", _merge, CheckpointRef, "model", skip=_skip, once=True)


@shell("merge")
def merge(
    settings: MergeSettings,
    base: CheckpointRef,
    reasoning: CheckpointRef,
    commerce: CheckpointRef,
    context: Context,
) -> CheckpointRef:
    """Merge two fine-tuned models onto their common base.

    A parent that is the base has nothing to add: the other one is passed on as it is, neither
    trimmed nor scaled.

    One run at a time does a merge on a store; the next one waits and returns what was committed.
    """
    reads = {"base": base, "reasoning": reasoning, "commerce": commerce}
    return run(MERGE, settings, reads, context)
