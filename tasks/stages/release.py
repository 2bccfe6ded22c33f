"""Flyte shell of stage 7: apply the gate, build the release, register it."""

import logging

from data_schemas.artifacts import CheckpointRef, Context, ReportRef
from data_schemas.settings import ReleaseSettings
from tasks.formats.progression import read_comparisons, read_progression
from tasks.gym.error_rates import rates_of
from tasks.platform.cache_version import code_digest
from tasks.platform.deck import deck_of_facts
from tasks.platform.shell import shell
from tasks.provenance.lineage.promotions import STORE, next_promotion
from tasks.provenance.lineage.registry import CARD_FILE, MANIFEST_TAG, read_description
from tasks.provenance.lineage.releases import is_current
from tasks.provenance.lineage.signatures.keys import trusted_keys
from tasks.provenance.lineage.stage import stage, workplace
from tasks.provenance.lineage.statements import chain
from tasks.provenance.release import evidence, gate, mismatch
from tasks.provenance.release import release as releasing
from tasks.provenance.release.promotion import find_champion, turn

logger = logging.getLogger(__name__)


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
    with (
        turn(settings.name, context) as turn_lease,
        stage("release", settings, context, code_digest("release")) as record,
    ):
        folder, compared = (
            record.read("candidate", candidate),
            record.read("progression", progression),
        )
        evaluations = read_progression(compared)
        parents = {evaluation.model: evaluation for evaluation in evaluations[:-1]}
        producers = chain(context.store.uri, [candidate.statement])
        cache = workplace(context.store)
        current = None
        if replaces:
            current = is_current(settings.name, replaces, candidate.digest, context.store.uri)
        background = gate.Background(
            gates=mismatch.gates_behind(producers, cache),
            start_is_released=current,
            champion=find_champion(settings.name, candidate.digest, progression, context.store),
            audit=evidence.audited(context.store.uri, [candidate.statement, progression.statement]),
            contamination=evidence.contamination(producers, cache),
            waste=evidence.waste(producers, cache),
            practised=evidence.practised(producers, cache),
        )
        decision = gate.decide(
            settings, evaluations[-1], parents, read_comparisons(compared), background
        )
        contents = releasing.Candidate(
            candidate,
            folder,
            [progression.statement],
            evaluations,
            decision,
            background.gates,
            rates_of(evidence.verifiers(producers, cache)),
        )
        with record.output("model") as out:
            facts = releasing.release(settings, contents, context.store.uri, out)
            card = (out / CARD_FILE).read_text()
        facts |= {"stale": int(current is False), STORE: context.store.id}
        if decision.released:
            digest = record.digest_of("model")
            facts |= next_promotion(
                settings.name, context.store.uri, trusted_keys(context.store.uri), digest
            )
        record.facts(facts)
        deck_of_facts("release", facts)
        tags = {MANIFEST_TAG: str(facts["manifest_sha256"])}
        turn_lease.confirm()
        version = record.register(
            "model",
            settings.name,
            released=decision.released,
            tags=tags,
            description=read_description(card),
            replaces=replaces,
        )
        logger.info("registered %s", version)
        return record.ref("model", CheckpointRef)
