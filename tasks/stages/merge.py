"""Flyte shell of stage 3: merge of the two SFT parents."""

from data_schemas.artifacts import CheckpointRef, Context
from data_schemas.settings import MergeSettings
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.shell import shell
from tasks.provenance.lineage import finished
from tasks.provenance.lineage.stage import stage
from tasks.store import results
from tasks.training.merge import merge as merge_checkpoints


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
    code = code_digest("merge")
    inputs = (base.digest, reasoning.digest, commerce.digest)
    uri = results.work_uri(context.store.uri, "merge", settings, *inputs)
    with results.exclusive(f"{context.execution.id}, merge", uri):
        if earlier := finished.find(uri, "merge", code, settings, inputs):
            return earlier.model
        with stage("merge", settings, context, code) as record:
            base_folder = record.read("base", base)
            parents = (record.read("reasoning", reasoning), record.read("commerce", commerce))
            tuned = [one for one in (reasoning, commerce) if one.digest != base.digest]
            if not tuned:
                record.facts({"skipped": "both parents are the base, which is passed on"})
                return base
            if len(tuned) == 1 and not settings.copied:
                record.facts({"skipped": "a parent is the base: the other one is passed on"})
                return tuned[0]
            with record.output("model") as out:
                facts = merge_checkpoints(settings, base_folder, parents, out)
            record.facts(facts)
            deck_of_facts("merge", facts)
            merged = record.ref("model", CheckpointRef)
        finished.record(uri, "merge", code, context.execution.id, merged)
    return merged
