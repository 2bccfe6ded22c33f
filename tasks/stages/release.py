"""Flyte shell of stage 7: apply the gate, build the release, register it."""

import logging

from data_schemas.artifacts import CheckpointRef, Context, ReportRef
from data_schemas.settings import ReleaseSettings
from tasks.formats.progression import read_comparisons, read_progression
from tasks.gym.error_rates import rates_of
from tasks.platform.shell import shell
from tasks.provenance.lineage.promotions import STORE, next_promotion, pending
from tasks.provenance.lineage.registry import CARD_FILE, MANIFEST_TAG, read_description
from tasks.provenance.lineage.releases import is_current
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.stage import workplace
from tasks.provenance.lineage.statements import chain
from tasks.provenance.release import evidence, gate, mismatch, monitors
from tasks.provenance.release import release as releasing
from tasks.provenance.release.promotion import find_champion, turn
from tasks.stages.runner import Inputs, Outputs, Record, StageResult, Work, run
from tasks.store.lease import Lease

logger = logging.getLogger(__name__)


def _release(
    settings: ReleaseSettings,
    inputs: Inputs,
    outputs: Outputs,
    work: Work,
    replaces: str,
    turn_lease: Lease,
) -> StageResult:
    store = work.context.store
    candidate = work.ref("candidate", CheckpointRef)
    progression = work.ref("progression", ReportRef)
    evaluations = read_progression(inputs["progression"])
    parents = {evaluation.model: evaluation for evaluation in evaluations[:-1]}
    producers = chain(store.uri, [candidate.statement])
    cache = workplace(store)
    current = is_current(settings.name, replaces, candidate.digest, store.uri) if replaces else None
    background = gate.Background(
        gates=mismatch.gates_behind(producers, cache),
        monitors=monitors.changes_behind(producers, cache),
        start_is_released=current,
        champion=find_champion(settings.name, candidate.digest, progression, store),
        audit=evidence.audited(store.uri, [candidate.statement, progression.statement]),
        contamination=evidence.contamination(producers, cache),
        unlicensed=evidence.unlicensed(store.uri, producers),
        waste=evidence.waste(producers, cache),
        practised=evidence.practised(producers, cache),
    )
    comparisons = read_comparisons(inputs["progression"])
    decision = gate.decide(settings, evaluations[-1], parents, comparisons, background)
    contents = releasing.ReleaseCandidate(
        candidate,
        inputs["candidate"],
        [progression.statement],
        evaluations,
        decision,
        background.gates,
        rates_of(evidence.verifiers(producers, cache)),
    )
    facts = releasing.release(settings, contents, store.uri, outputs["model"])
    card = (outputs["model"] / CARD_FILE).read_text()
    digest = outputs.commit("model")
    facts |= {"stale": int(current is False), STORE: store.id}
    promotes = decision.released and not settings.approvals
    if promotes:
        facts |= next_promotion(settings.name, store.uri, trusted_keys(store.uri), digest)
    elif decision.released:
        facts |= {"released": 0} | pending(
            settings.name, store.uri, trusted_keys(store.uri), settings.approvals
        )

    def register() -> None:
        turn_lease.confirm()
        version = work.entry.register(
            "model",
            settings.name,
            released=promotes,
            tags={MANIFEST_TAG: str(facts["manifest_sha256"])},
            description=read_description(card),
            replaces=replaces,
        )
        logger.info("registered %s", version)

    return StageResult(facts, then=register)


RELEASE = Record("release", _release, CheckpointRef, "model")


@shell("release")
def release(
    settings: ReleaseSettings,
    candidate: CheckpointRef,
    progression: ReportRef,
    context: Context,
    replaces: str = "",
) -> CheckpointRef:
    """Build and register the release; it gets the alias `released` only if it passes the gate.

    Args:
        settings: thresholds and name.
        candidate: the model to release.
        progression: evaluations of the candidate and of the models before it, compared.
        context: of the run.
        replaces: statement of the version that has to be the released one; '' = any or none.
    """
    reads = {"candidate": candidate, "progression": progression}
    with turn(settings.name, context) as turn_lease:
        return run(RELEASE, settings, reads, context, [replaces, turn_lease])
