"""The loss and the advantages of a phase: refused where they do not go together, or do nothing.

What a choice needs it says itself: nothing here knows one by its name.
"""

from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from data_schemas.machine_settings import TrainerKind
from data_schemas.rl_settings import MathsReward, OldPolicy, RLSettings, RouterReplay
from data_schemas.rows import Domain
from tasks.algorithms.advantages import table as advantages
from tasks.algorithms.losses import table
from tasks.algorithms.skips import table as skips
from tasks.algorithms.terms.protocol import EngineGap, Term
from tasks.algorithms.terms.table import TERMS, find_terms
from tasks.errors import SettingsError

CORRECTED_BY = "engines.mismatch.corrected_by"
ON_POLICY = "num_mini_batches is 1: no update starts away from the old policy"


def require_fit(settings: RLSettings) -> None:
    """Refuse choices that do not go together, or with the rest of the phase.

    Raises:
        SettingsError: names the settings; also where a choice cannot be found.
    """
    loss, estimator = table.find(settings.loss), advantages.find(settings)
    skip = skips.find(settings)
    kind, own, rewards = settings.loss.kind, settings.advantage.kind, settings.rewards
    if loss.needs_entropy and not settings.recomputes:
        raise SettingsError(
            "engines.mismatch.old_policy 'rollout' skips the trainer's pass before the updates, "
            f"and loss.kind {kind!r} needs the entropies of that pass; set loss.kind to 'dapo' or "
            "another one"
        )
    if estimator.divides_by_mean and rewards.maths is MathsReward.RULE:
        raise SettingsError(
            f"advantage {own!r} divides by the mean score, and rewards.maths 'rule' has scores "
            "below 0; use 'value'"
        )
    if settings.group_dro and not (skip.weighs or skip.is_idle):
        raise SettingsError(
            f"group_dro and zero_variance.skip {settings.zero_variance.skip.mode!r} both move the "
            "shares of the domains; set skip to {mode: threshold, above: 1} or {mode: draw}, or "
            "group_dro to 0"
        )
    if settings.group_bounds and not estimator.ignores_size:
        raise SettingsError(
            f"group_bounds compares groups of different sizes, and what advantage {own!r} expects "
            "depends on the size; use 'rloo', or leave group_bounds out"
        )
    _require_terms_fit(settings)


def _require_terms_fit(settings: RLSettings) -> None:
    """Refuse terms that are listed twice, or need what the rest of the phase does not have.

    Raises:
        SettingsError: names the term.
    """
    correcting = settings.engines.mismatch.corrected_by
    if TERMS.choose(correcting, CORRECTED_BY).engine_gap < EngineGap.WEIGHS:
        raise SettingsError(
            f"{CORRECTED_BY}.kind is {correcting.kind!r}, which does not weigh by the ratio of "
            "trainer and rollout engine; use 'tis' or 'icepop', and list others in terms"
        )
    kinds = [one.kind for one in settings.terms]
    for kind in kinds:
        if kinds.count(kind) > 1:
            raise SettingsError(f"terms has {kind!r} {kinds.count(kind)} times; list it once")
    terms = find_terms(settings.terms)
    for place, (kind, term) in enumerate(zip(kinds, terms, strict=True)):
        if term.trains_zero_variance:
            _require_zero_variance_fits(settings, kind, terms[:place])
        if term.needs_entropy and not settings.recomputes:
            raise SettingsError(
                "engines.mismatch.old_policy 'rollout' skips the trainer's pass before the "
                f"updates, and the term {kind!r} needs the entropies of that pass; leave it out"
            )
        if term.engine_gap >= EngineGap.MASKS and not settings.recomputes:
            raise SettingsError(
                "engines.mismatch.old_policy is 'rollout': trainer and rollout engine are then "
                f"compared in the policy ratio alone, and the term {kind!r} would see a ratio of "
                "1. Leave it out, or set old_policy to 'trainer'"
            )
        if term.needs_router_scores and settings.engines.trainer is TrainerKind.MEGATRON:
            raise SettingsError(
                f"the term {kind!r} needs the routers' scores of all layers where the loss is "
                "computed, and with engines.trainer 'megatron' they are on other pipeline stages; "
                "use 'torch', or leave the term out"
            )
        if term.needs_router_scores and settings.router_replay is RouterReplay.OFF:
            raise SettingsError(
                f"the term {kind!r} compares scores of the same experts, and router_replay is "
                "'off'; use 'r3' or 'r2', or leave the term out"
            )


def notices(settings: RLSettings) -> list[str]:
    """Refuse what does not go together, and name what has no effect.

    Raises:
        SettingsError: as `require_fit`.
    """
    require_fit(settings)
    return without_effect(settings)


def _require_zero_variance_fits(settings: RLSettings, kind: str, before: Sequence[Term]) -> None:
    """Refuse a term that trains zero-variance groups where the phase cannot have one."""
    if not all(term.trains_zero_variance for term in before):
        raise SettingsError(
            f"the term {kind!r} gives advantages, which the terms before it would not see; list it "
            "first"
        )
    if not table.find(settings.loss).token_advantages:
        raise SettingsError(
            f"loss.kind {settings.loss.kind!r} has one advantage per response, and the term "
            f"{kind!r} gives tokens their own; leave it out of terms"
        )
    if settings.group_bounds:
        raise SettingsError(
            f"group_bounds compares groups of different sizes, and the term {kind!r} acts on more "
            "of them the smaller they are; leave it out of terms, or leave group_bounds out"
        )


def trains_zero_variance(settings: RLSettings) -> bool:
    """Return whether groups whose rewards are all equal are trained: a term gives advantages."""
    return any(term.trains_zero_variance for term in find_terms(settings.terms))


def counts_all_responses(settings: RLSettings) -> bool:
    """Return whether responses without an advantage matter.

    They do to a loss or a term that acts on them.
    """
    beside = any(term.acts_on_all for term in find_terms(settings.terms))
    return beside or table.find(settings.loss).acts_on_all


def without_effect(settings: RLSettings) -> list[str]:
    """Name every value that differs from its default and changes nothing, and why.

    They are no error: a variant of a recipe that changes the loss only keeps the rest.
    """
    loss, zero_variance, rewards = settings.loss, settings.zero_variance, settings.rewards
    chosen, estimator = table.find(loss), advantages.find(settings)
    reasons = {f"loss.{name}": reason for name, reason in chosen.ignored.items()}
    on_policy = settings.num_mini_batches == 1 and settings.recomputes
    if on_policy:
        reasons |= {f"loss.{name}": ON_POLICY for name in sorted(chosen.off_policy)}
    if not estimator.reads_floor:
        own = settings.advantage.kind
        by_loss = advantages.name_of(settings) != own
        choice = f"loss.kind '{loss.kind}'" if by_loss else f"advantage '{own}'"
        reasons["zero_variance.std_floor"] = f"{choice} divides by no deviation"
    mismatch = settings.engines.mismatch
    if mismatch.old_policy is OldPolicy.ROLLOUT:
        uncorrected = "the policy ratio is to the rollout engine, so no step is corrected"
        reasons |= {"engines.mismatch.correct_above": uncorrected, CORRECTED_BY: uncorrected}
    elif any(term.engine_gap >= EngineGap.WEIGHS for term in find_terms(settings.terms)):
        reasons[CORRECTED_BY] = "a term that is listed weighs by the same ratio"
    if not rewards.overlong_weight:
        reasons["rewards.overlong_buffer"] = "rewards.overlong_weight is 0"
    if Domain.MATHS not in settings.domains:
        reasons["rewards.maths"] = "domains has no maths"
    groups = {
        "loss": chosen,
        "zero_variance": zero_variance,
        "rewards": rewards,
        "engines.mismatch": mismatch,
    }
    differences = {f"loss.{name}": value for name, value in _changed(loss) if name not in loss.own}
    differences |= {
        f"{group}.{name}": value
        for group, model in groups.items()
        for name, value in _changed(model)
    }
    listed = zip(settings.terms, find_terms(settings.terms), strict=True)
    idle = [one.kind for one, term in listed if term.off_policy] if on_policy else []
    return [
        f"{name} {differences[name]} has no effect: {reason}"
        for name, reason in reasons.items()
        if name in differences
    ] + [f"the term {kind} has no effect: {ON_POLICY}" for kind in idle]


def _changed(group: BaseModel) -> Iterator[tuple[str, object]]:
    yield from group.model_dump(mode="json", exclude_defaults=True).items()
