"""Flyte shell of stage 3: merge of the two SFT parents."""

from data_schemas.artifacts import CheckpointRef, Execution, StoreRef
from data_schemas.settings import MergeSettings
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.shell import shell
from tasks.provenance.lineage.stage import stage
from tasks.store import results
from tasks.training.merge import checkpoint


@shell("merge")
def merge(
    settings: MergeSettings,
    base: CheckpointRef,
    reasoning: CheckpointRef,
    commerce: CheckpointRef,
    store: StoreRef,
    execution: Execution,
) -> CheckpointRef:
    """Merge two fine-tuned models onto their common base; two equal to it are not merged.

    One run at a time does a merge on a store; the next one waits and returns what was committed.
    """
    code = code_digest("merge")
    inputs = (base.digest, reasoning.digest, commerce.digest)
    uri = results.work_uri(store.uri, "merge", settings, *inputs)
    with results.exclusive(f"{execution.id}, merge", uri):
        if done := results.find(uri, "merge", code):
            return done.model
        with stage("merge", settings, store, execution, code) as record:
            base_folder = record.read("base", base)
            parents = (record.read("reasoning", reasoning), record.read("commerce", commerce))
            if len(set(inputs)) == 1:
                record.facts({"skipped": "both parents are the base, which is passed on"})
                return base
            with record.output("model") as out:
                facts = checkpoint.merge(settings, base_folder, parents, out)
            record.facts(facts)
            deck_of_facts("merge", facts)
            merged = record.ref("model", CheckpointRef)
        results.record(uri, "merge", code, execution.id, merged)
    return merged
