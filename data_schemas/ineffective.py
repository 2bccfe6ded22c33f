"""Settings of RL that change nothing beside others."""

from data_schemas.prompts import Domain
from data_schemas.references import is_reference
from data_schemas.rl_settings import PolicyLoss, RLSettings

_WITH_UPPER_BOUND = tuple(kind for kind in PolicyLoss if kind != PolicyLoss.SAPO)
_WITH_LOWER_BOUND = tuple(kind for kind in _WITH_UPPER_BOUND if kind != PolicyLoss.CISPO)
_LOSSES_WITH = dict.fromkeys(
    ("high_entropy_share", "entropy_edges", "clip_scale", "clip_floor", "ratio", "drop_low"),
    (PolicyLoss.ESPO,),
) | {"clip_low": _WITH_LOWER_BOUND, "clip_high": _WITH_UPPER_BOUND}
"""Fields of LossSettings that not every built-in loss reads; one of a user's own may read any."""


def without_effect(settings: RLSettings) -> list[str]:
    """Name every value that differs from its default and changes nothing, and why.

    They are no error: a variant of a recipe that changes the loss only keeps the rest.
    """
    loss, zero_variance, rewards = settings.loss, settings.zero_variance, settings.rewards
    reasons = {
        f"loss.{name}": f"loss.kind '{loss.kind}' does not read it"
        for name, kinds in _LOSSES_WITH.items()
        if loss.kind not in kinds and not is_reference(loss.kind)
    }
    if loss.kind == PolicyLoss.ESPO and loss.clip_scale:
        for name in ("clip_low", "clip_high"):
            reasons[f"loss.{name}"] = "loss.clip_scale sets ESPO's widths; 0 reads it"
    if loss.entropy_edges:
        reasons.setdefault("loss.high_entropy_share", "loss.entropy_edges replaces it")
    if settings.num_mini_batches == 1:
        reasons["loss.kl_cov"] = "num_mini_batches is 1: no update starts away from the old policy"
    if not loss.budget_per_response:
        reasons["loss.truncate_last"] = "loss.budget_per_response is 0"
    if settings.advantage == "of_loss" and loss.kind == PolicyLoss.DR_GRPO:
        reasons["zero_variance.std_floor"] = "loss.kind 'dr_grpo' divides by no deviation"
    if settings.advantage in ("centred", "rloo"):
        reasons["zero_variance.std_floor"] = f"advantage '{settings.advantage}' does not read it"
    if not rewards.overlong_weight:
        reasons["rewards.overlong_buffer"] = "rewards.overlong_weight is 0"
    if Domain.MATHS not in settings.domains:
        reasons["rewards.maths"] = "domains has no maths"
    groups = {"loss": loss, "zero_variance": zero_variance, "rewards": rewards}
    given = {
        f"{group}.{name}": value
        for group, model in groups.items()
        for name, value in model.model_dump(mode="json", exclude_defaults=True).items()
    }
    return [
        f"{name} {given[name]} has no effect: {reason}"
        for name, reason in reasons.items()
        if name in given
    ]
