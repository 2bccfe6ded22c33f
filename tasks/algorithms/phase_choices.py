"""The loss and the advantages of a phase: refused where they do not go together, or do nothing.

What a choice needs it says itself: nothing here knows one by its name.
"""

from collections.abc import Iterator

from pydantic import BaseModel

from data_schemas.rl_settings import MathsReward, RLSettings
from data_schemas.rows import Domain
from tasks.algorithms.advantages import table as advantages
from tasks.algorithms.losses import table
from tasks.errors import SettingsError


def require_fit(settings: RLSettings) -> None:
    """Refuse choices that do not go together, or with the rest of the phase.

    Raises:
        SettingsError: names the settings; also where a choice cannot be found.
    """
    loss, estimator = table.find(settings.loss), advantages.find(settings)
    kind, own, rewards = settings.loss.kind, settings.advantage.kind, settings.rewards
    if not loss.token_advantages and settings.zero_variance.rl_zvp_alpha:
        raise SettingsError(
            f"loss.kind {kind!r} has one advantage per response, and zero_variance.rl_zvp_alpha "
            f"{settings.zero_variance.rl_zvp_alpha:g} gives tokens their own; set it to 0"
        )
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
    if estimator.divides_by_mean and rewards.error_rates:
        raise SettingsError(
            f"advantage {own!r} divides by the mean score, which "
            "rewards.error_rates correct to about 0 where verdicts are as rare as errors: "
            "advantages of 20 and more; use 'centred' or 'rloo', or leave error_rates out"
        )
    if rewards.error_rates and estimator.cancels_scale and rewards.tie_above == 1.0:
        raise SettingsError(
            f"rewards.error_rates changes nothing with advantage {own!r}: division by the standard "
            "deviation of the group cancels it. Set advantage to 'centred' or 'rloo', or "
            "rewards.tie_above below 1"
        )


def notices(settings: RLSettings) -> list[str]:
    """Refuse what does not go together, and name what has no effect.

    Raises:
        SettingsError: as `require_fit`.
    """
    require_fit(settings)
    return without_effect(settings)


def counts_all_responses(settings: RLSettings) -> bool:
    """Return whether responses without an advantage matter.

    They do to a loss that acts on them, to a term beside it, or to C3PO's budget.
    """
    loss = settings.loss
    beside = loss.auxiliary.is_on or loss.budget_per_response > 0.0
    return beside or table.find(loss).acts_on_all


def without_effect(settings: RLSettings) -> list[str]:
    """Name every value that differs from its default and changes nothing, and why.

    They are no error: a variant of a recipe that changes the loss only keeps the rest.
    """
    loss, zero_variance, rewards = settings.loss, settings.zero_variance, settings.rewards
    chosen, estimator = table.find(loss), advantages.find(settings)
    reasons = {f"loss.{name}": reason for name, reason in chosen.ignored.items()}
    if settings.num_mini_batches == 1 and settings.recomputes:
        alone = "num_mini_batches is 1: no update starts away from the old policy"
        names = ("kl_cov", "router_shift", *sorted(chosen.off_policy))
        reasons |= {f"loss.{name}": alone for name in names}
    if not loss.budget_per_response:
        reasons["loss.truncate_last"] = "loss.budget_per_response is 0"
    if not estimator.reads_floor:
        own = settings.advantage.kind
        by_loss = advantages.name_of(settings) != own
        choice = f"loss.kind '{loss.kind}'" if by_loss else f"advantage '{own}'"
        reasons["zero_variance.std_floor"] = f"{choice} divides by no deviation"
    if not rewards.overlong_weight:
        reasons["rewards.overlong_buffer"] = "rewards.overlong_weight is 0"
    if Domain.MATHS not in settings.domains:
        reasons["rewards.maths"] = "domains has no maths"
    groups = {"loss": chosen, "zero_variance": zero_variance, "rewards": rewards}
    differences = {f"loss.{name}": value for name, value in _changed(loss) if name not in loss.own}
    differences |= {
        f"{group}.{name}": value
        for group, model in groups.items()
        for name, value in _changed(model)
    }
    return [
        f"{name} {differences[name]} has no effect: {reason}"
        for name, reason in reasons.items()
        if name in differences
    ]


def _changed(group: BaseModel) -> Iterator[tuple[str, object]]:
    yield from group.model_dump(mode="json", exclude_defaults=True).items()
