"""Settings of reinforcement learning: losses, zero variance, rewards, engines and a whole phase.

A phase names its recipe: the settings of one, and the implementation that reads them. See
`data_schemas.settings` for the conventions of all settings.
"""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self, cast

from pydantic import ConfigDict, Field, field_validator, model_validator

from data_schemas.addresses import split_base_url
from data_schemas.machine_settings import (
    LOWEST_TEMPERATURE,
    Choice,
    RolloutKind,
    Seed,
    Settings,
    TrainerKind,
    TrainingEngines,
    are_shares,
    no_schema,
)
from data_schemas.references import Named, Pluggable, is_reference, monitor_label
from data_schemas.rows import Domain


class AnyRecipe(Settings):
    """A recipe as the loop takes it: its implementation checks the settings of its own."""

    model_config = ConfigDict(
        frozen=True, extra="allow", allow_inf_nan=False, json_schema_extra=no_schema
    )

    implementation: str = Field(
        description="function that opens it: package.module:name, or my_recipe.py:name"
    )
    code: str = Field(default="", description="digest of its source; the workflow fills it in")


class RecipeSettings(AnyRecipe):
    """Base of the settings of one recipe, which adds those of its own."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_extra=no_schema
    )


class AdvantageSettings(Choice):
    """The advantage estimator, with its own settings beside its name; a name alone is enough."""

    kind: Named = Field(
        default="of_loss",
        min_length=1,
        description="of_loss = as the loss was published; one's own: my_advantage.py:Name",
    )

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, values: object) -> object:
        return {"kind": values} if isinstance(values, str) else values


_LAB = "tasks/lab/terms"
MOVED = {
    "rl_zvp_alpha": "{kind: rl_zvp, alpha: 0.1}",
    "budget_per_response": "{kind: token_budget, tokens_per_response: 12800}",
    "truncate_last": "{kind: token_budget, truncate_last: false}",
    "stale_below": "{kind: stale, above_nats: 0.5}",
    "clip_cov": f'{{kind: "{_LAB}/clip_cov.py:ClipCov", share: 2.0e-4}}',
    "kl_cov": f'{{kind: "{_LAB}/kl_cov.py:KLCov", share: 2.0e-3}}',
    "router_shift": f'{{kind: "{_LAB}/router_shift.py:RouterShift", least: 0.8}}',
    "auxiliary": "{kind: kl, weight: 1.0e-3}, and likewise entropy, balance and router_z",
    "correction": "{kind: tis, cap: 2.0} or {kind: icepop, floor: 0.5, cap: 5.0}",
    "cap": "{kind: tis, cap: 2.0}",
    "floor": "{kind: icepop, floor: 0.5, cap: 5.0}",
    "geometric_band": f'{{kind: "{_LAB}/geometric_band.py:GeometricBand", low: 0.99, high: 1.01}}',
    "token_band": f'{{kind: "{_LAB}/token_band.py:TokenBand", low: 1.0e-4, high: 100}}',
}
"""Terms as they are listed, by the setting of a loss or of the gate that they once were."""
NOISY_VERDICTS = "tasks.lab.recipes.noisy_verdicts.rewards:open_corrected"
"""Recipe that was a part of the rewards."""


def refuse_moved(values: object, group: str) -> object:
    """Refuse a setting that is a term, and say how it is listed."""
    for name, term in MOVED.items():
        if isinstance(values, dict) and name in values:
            raise ValueError(
                f"{group}.{name} is a term of the phase, in the order in which they act: "
                f"terms: [{term}]; [] = none"
            )
    return cast("object", values)


class LossSettings(Choice):
    """The policy loss of RL, with its own settings beside its name."""

    kind: Named = Field(
        default="espo",
        min_length=1,
        description="policy loss; one's own: my_loss.py:Name",
    )

    @model_validator(mode="before")
    @classmethod
    def _terms_stand_by_themselves(cls, values: object) -> object:
        return refuse_moved(values, "loss")


class PairLossSettings(Choice):
    """How the tokens of a right and a wrong response weigh in DPO."""

    kind: Named = Field(
        default="dpo",
        min_length=1,
        description="loss of pairs: 'dpo' weighs all tokens equally, 'otpo' by what an optimal "
        "transport between both responses moves; one's own: my_loss.py:Name",
    )


class TermSettings(Choice):
    """What acts on the tokens of a step beside the loss, with its own settings beside its name."""

    kind: Named = Field(min_length=1, description="term; one's own: my_term.py:Name")


class SkipSettings(Choice):
    """Which prompts are not rolled out, because they are predicted to teach nothing."""

    CHOSEN_BY: ClassVar[str] = "mode"

    mode: Named = Field(
        default="threshold",
        min_length=1,
        description="threshold = all above a probability, without weights; draw = by a draw, "
        "what is kept is weighted; one's own: my_skip.py:Name",
    )


NO_SKIPS = SkipSettings.model_validate({"mode": "threshold", "above": 1.0})


class ZeroVarianceSettings(Settings):
    """How groups whose rewards are all equal are handled."""

    refill_rounds: int = Field(
        default=0,
        ge=0,
        le=10**3,
        description="dynamic sampling: draws that replace zero-variance groups",
    )
    refill_share: float = Field(
        default=0.0,
        ge=0.0,
        description="tokens of all refills of a step, as a share of its first draw's: prompts are "
        "refilled while their mean cost fits; 0 = only refill_rounds bounds them",
    )
    std_floor: float = Field(
        default=0.05, ge=0.0, description="of the divisor, against amplified penalties"
    )
    skip: SkipSettings = SkipSettings()
    curriculum: tuple[tuple[float, float], ...] = Field(
        default=(),
        description="pass-rate bands [low, high) of the curriculum, in order; empty = none",
    )

    @model_validator(mode="before")
    @classmethod
    def _skips_and_terms_are_choices(cls, values: object) -> object:
        values = refuse_moved(values, "zero_variance")
        if isinstance(values, dict) and "skip_above" in values:
            raise ValueError(
                f"skip_above {values['skip_above']} is a setting of one rule of skips: "
                f"skip: {{mode: threshold, above: {values['skip_above']}}}"
            )
        return cast("object", values)

    @model_validator(mode="after")
    def _choices_make_sense(self) -> Self:
        if any(not 0.0 <= low < high for low, high in self.curriculum):
            raise ValueError("curriculum needs bands with 0 <= low < high, e.g. ((0.4, 0.9),)")
        if self.refill_share and not self.refill_rounds:
            raise ValueError(
                "refill_share bounds the tokens of refills, and refill_rounds is 0: there are "
                "none; set refill_rounds, or refill_share to 0"
            )
        return self


class CodeReward(StrEnum):
    """Reward of a program that passes some of its tests."""

    PASS_RATE = "pass_rate"
    """CompassMax: the share passed."""
    ALL_TESTS = "all_tests"
    """Ring-lite: 1 if every test passes, else 0; the first failure ends the run."""


class MathsReward(StrEnum):
    """Which verifier rewards final answers in training, and with what."""

    VALUE = "value"
    """`final_answer`: 1 or 0; the right value wherever the response states it."""
    RULE = "rule"
    """Compass-Thinker's: `rule_answer`, +1 or -1; every box, or marked line, must be right. A
    verifier of one's own has +1 or -1 if it declares `signed`."""


class JudgeKind(StrEnum):
    """How the judge of open text is run."""

    NONE = "none"
    """No judge: problems that need one are refused."""
    MODEL = "model"
    """A Hugging Face model directory, loaded in this process."""
    HTTP = "http"
    """An OpenAI-compatible endpoint, such as `vllm serve`."""


class JudgeSettings(Settings):
    """The generative reward model (CompassMax)."""

    kind: JudgeKind = JudgeKind.NONE
    address: str = Field(
        default="", description="folder of the model, or base URL of the endpoint: http://host/v1"
    )
    model: str = Field(default="", description="name under which the endpoint serves the judge")
    weights: str = Field(
        default="",
        pattern=r"^([0-9a-f]{64})?$",
        description="sha256 that an endpoint of `eachprompt chat --serve` has to prove; '' = any",
    )
    timeout_s: float = Field(default=60.0, gt=0.0, le=86400.0, description="of one comparison")

    @model_validator(mode="after")
    def _judge_can_be_reached(self) -> Self:
        if self.kind is not JudgeKind.NONE and not self.address:
            raise ValueError(f"kind is {self.kind.value}; set address as well")
        if self.kind is JudgeKind.HTTP:
            try:
                split_base_url(self.address)
            except ValueError as error:
                raise ValueError(f"address {error}; write http://host:8000/v1") from error
        if self.kind is JudgeKind.HTTP and not self.model.strip():
            raise ValueError("kind is http; set model to the name it is served under")
        if self.weights and self.kind is not JudgeKind.HTTP:
            raise ValueError(
                "weights are what an endpoint has to prove; leave them out, or use http"
            )
        if self.kind is JudgeKind.NONE and self.address:
            raise ValueError("address is set, but kind is none; use 'http' or 'model'")
        return self


class RewardSettings(Settings):
    """The reward of a verdict, and the shaping penalties added to it."""

    overlong_buffer: int = Field(
        default=16, ge=0, le=2**24, description="tokens before the limit; paper 4096 of 20480"
    )
    overlong_weight: float = Field(default=0.5, ge=0.0, description="reward lost at the limit")
    repetition_weight: float = Field(default=1.0, ge=0.0, description="of the penalty")
    length_weight: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="of Kimi k1.5's length reward within a group: thought that was not needed is "
        "not paid; 0 = none, as CompassMax",
    )
    max_abstained_share: float = Field(
        default=0.1, ge=0.0, le=1.0, description="share of abstentions above which the run stops"
    )
    code: CodeReward = CodeReward.PASS_RATE
    maths: MathsReward = MathsReward.VALUE
    judge: JudgeSettings = JudgeSettings()
    monitor: Annotated[tuple[str, ...], Pluggable()] = Field(
        default=(),
        description="verifiers that score every response as well, and give no gradient: "
        "my_monitor.py:name, tasks.gym.monitors:brevity",
    )
    canary_every: int = Field(
        default=10,
        ge=1,
        le=10**6,
        description="steps between two checks of the verifiers on answers with a known verdict",
    )

    @field_validator("monitor")
    @classmethod
    def _monitors_read_no_gold(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        labels = [monitor_label(name) for name in names]
        for name, label in zip(names, labels, strict=True):
            if not is_reference(name):
                raise ValueError(
                    f"{name!r} reads the answer of its own problems; a monitor reads none: "
                    "tasks.gym.monitors:brevity, tasks.gym.monitors:form or my_monitor.py:name"
                )
            if labels.count(label) > 1:
                raise ValueError(f"two monitors are called {label!r}; rename a function")
        return names

    @model_validator(mode="before")
    @classmethod
    def _noisy_verdicts_are_a_recipe(cls, values: object) -> object:
        for name in ("error_rates", "noise", "tie_above"):
            if isinstance(values, dict) and name in values:
                raise ValueError(
                    f"rewards.{name} is a setting of a recipe of the phase, recipe: "
                    f"{{implementation: {NOISY_VERDICTS}, {name}: ...}}"
                )
        return cast("object", values)


class RouterReplay(StrEnum):
    """Which recorded expert choices the trainer replays."""

    OFF = "off"
    R2 = "r2"
    """Recorded in the trainer's old-log-prob pass, replayed in the update."""
    R3 = "r3"
    """Recorded by the rollout engine, replayed in both passes."""


class OldPolicy(StrEnum):
    """Whose log-probabilities the policy ratio divides by."""

    TRAINER = "trainer"
    """The trainer's: it scores every response before the first update of a step."""
    ROLLOUT = "rollout"
    """The rollout engine's, as recorded: the ratio has the mismatch in it, nothing else corrects
    for it, and the trainer scores a sample of the responses, for the gate."""


class MismatchSettings(Settings):
    """The mismatch gate between trainer and rollout engine, decided on k3 of every step."""

    old_policy: OldPolicy = Field(
        default=OldPolicy.TRAINER,
        description="whose log-probabilities the policy ratio divides by; rollout = the recorded "
        "ones, without the trainer's pass but for the eighth of responses that the gate measures",
    )
    correct_above: float = Field(
        default=1e-2,
        gt=0.0,
        description="k3 above which a step is corrected, unless a term of the phase weighs by the "
        "ratio of trainer and rollout engine on every step",
    )
    corrected_by: TermSettings = TermSettings(kind="tis")
    pause_above: float = Field(
        default=1e-1, gt=0.0, description="k3 above which the run stops with an error"
    )
    routes: bool = Field(
        default=False,
        description="report for each MoE layer how many of the trainer's own routes differ from "
        "the recorded ones, on an eighth of the responses, which it scores once more",
    )

    @model_validator(mode="after")
    def _pause_is_above_correct(self) -> Self:
        if self.pause_above <= self.correct_above:
            raise ValueError("mismatch.pause_above must be larger than mismatch.correct_above")
        return self

    @model_validator(mode="before")
    @classmethod
    def _corrections_are_terms(cls, values: object) -> object:
        return refuse_moved(values, "mismatch")


class EngineSettings(TrainingEngines):
    """Engines of RL and how rollouts and updates are interleaved; the loop is the same for all."""

    staleness: int = Field(
        default=0,
        ge=0,
        le=10**3,
        description="policy versions a rollout may be behind; 0 = on-policy, 1 = one step off",
    )
    segment_tokens: Annotated[int, Field(ge=0)] | Literal["free"] = Field(
        default=0,
        description="tokens per response and step, the rest in later steps; 0 = no limit; "
        "'free' = rollouts end when a step's prompts are complete, within staleness",
    )
    mismatch: MismatchSettings = MismatchSettings()

    @property
    def free_running(self) -> bool:
        """Whether responses in flight are cut when a step's rollouts end, not by length."""
        return self.segment_tokens == "free"

    @property
    def steps_ahead(self) -> int:
        """Steps that are rolled out while the trainer works on an earlier one."""
        return 0 if self.free_running else self.staleness

    @model_validator(mode="after")
    def _free_running_is_bounded_and_exact(self) -> Self:
        if self.free_running and not self.staleness:
            raise ValueError(
                "engines.segment_tokens 'free': set engines.staleness to the most versions it spans"
            )
        if self.free_running and self.layout.dedicated_rollout_gpus:
            raise ValueError(
                "engines.segment_tokens 'free': where responses are cut would depend on how fast "
                "engines in processes of their own are; set layout.dedicated_rollout_gpus to 0"
            )
        return self

    @model_validator(mode="after")
    def _asynchrony_needs_engines_of_their_own(self) -> Self:
        both = self.trainer is TrainerKind.MEGATRON and self.rollout is RolloutKind.VLLM
        if both and self.steps_ahead > 0 and self.layout.dedicated_rollout_gpus == 0:
            raise ValueError(
                "engines.staleness lets rollouts and updates run at once, but they share their "
                "GPUs; set layout.dedicated_rollout_gpus"
            )
        return self


class RLSettings(Settings):
    """Stages 4 and 5: one phase of RL. Phase one and two differ in settings only."""

    domains: dict[Domain, float] = Field(description="share of prompts per domain in this phase")
    steps: int = Field(default=40, ge=0, le=10**6, description="of this phase; 0 = no training")
    prompts_per_step: int = Field(default=24, ge=1, le=10**6, description="CompassMax profile: 512")
    group_size: int = Field(default=8, ge=2, le=1024, description="G; CompassMax profile: 8")
    group_bounds: tuple[Annotated[int, Field(ge=2, le=1024)], ...] = Field(
        default=(),
        description="responses of a prompt at least and at most: 1 / its pass rate within these, "
        "for as many expected tokens as group_size of each; () = group_size of each",
    )
    max_new_tokens: int = Field(default=64, ge=1, le=2**24, description="CompassMax: 32768")
    temperature: float = Field(
        default=1.0, ge=LOWEST_TEMPERATURE, le=10.0, description="ESPO setup: 1.0"
    )
    top_p: float = Field(
        default=1.0,
        gt=0.0,
        le=1.0,
        description="responses are drawn from the likeliest tokens with this probability mass; the "
        "loss is over them",
    )
    top_k: int = Field(default=0, ge=0, le=2**24, description="and from so many at most; 0 = all")
    learning_rate: float = Field(default=6e-5, gt=0.0, le=1.0, description="ESPO setup: 1e-6")
    group_dro: float = Field(
        default=0.0,
        ge=0.0,
        le=20.0,
        description="eta: prompts of domains with a lower pass rate are drawn more often "
        "(2601.19280); 0 = as `domains` weighs them",
    )
    advantage: AdvantageSettings = AdvantageSettings()
    num_mini_batches: int = Field(
        default=2, ge=1, le=10**4, description="optimizer updates per step"
    )
    loss: LossSettings = LossSettings()
    terms: tuple[TermSettings, ...] = Field(
        default=(TermSettings(kind="rl_zvp"),),
        description="what acts on the tokens of a step beside the loss, in this order: "
        "[{kind: rl_zvp}, {kind: kl, weight: 1.0e-3}]; one's own: my_term.py:Name",
    )
    zero_variance: ZeroVarianceSettings = ZeroVarianceSettings()
    rewards: RewardSettings = RewardSettings()
    router_replay: RouterReplay = RouterReplay.R3
    engines: EngineSettings = EngineSettings()
    commit_every: int = Field(
        default=1, ge=1, le=10**6, description="steps between two checkpoints"
    )
    recipe: AnyRecipe | None = Field(
        default=None,
        description="turns of other agents, other prompts: {implementation: my_recipe.py:name}",
    )
    seed: Seed = 0

    @model_validator(mode="before")
    @classmethod
    def _draws_from_what_is_recorded(cls, values: object) -> object:
        for name in ("min_p", "stop"):
            if isinstance(values, dict) and name in values:
                raise ValueError(
                    f"{name} is a setting of evaluation: the trainer renormalises over what top_p "
                    "and top_k keep, and trains the end of a response. Set "
                    f"evaluation.{name}, and leave it out here"
                )
        return cast("object", values)

    @property
    def recomputes(self) -> bool:
        """Whether the trainer scores all responses before the first update of a step."""
        return self.engines.mismatch.old_policy is OldPolicy.TRAINER

    @property
    def truncates(self) -> bool:
        """Whether responses are drawn from sets, which are recorded for the trainer."""
        return self.top_p < 1.0 or self.top_k > 0

    @model_validator(mode="after")
    def _more_than_one_token_can_be_drawn(self) -> Self:
        if self.top_k == 1:
            raise ValueError(
                "top_k is 1, which draws the likeliest token only: no token has a gradient, and "
                "all responses of a group are the same; use 2 or more, or 0 for all"
            )
        return self

    @model_validator(mode="after")
    def _sets_are_recorded(self) -> Self:
        if self.truncates and self.engines.rollout is RolloutKind.VLLM and not self.top_k:
            raise ValueError(
                f"top_p is {self.top_p:g}, and engines.rollout 'vllm' records what it drew from "
                "only where top_k bounds it; set top_k as well, 1024 for instance"
            )
        return self

    @model_validator(mode="after")
    def _routes_are_recorded(self) -> Self:
        if self.engines.mismatch.routes and self.router_replay is not RouterReplay.R3:
            raise ValueError(
                "engines.mismatch.routes compares the trainer's routes with recorded ones, and "
                f"router_replay '{self.router_replay.value}' hands it none; use 'r3', or set "
                "engines.mismatch.routes to false"
            )
        return self

    @model_validator(mode="after")
    def _nothing_needs_the_pass_that_is_skipped(self) -> Self:
        if not self.recomputes and self.router_replay is RouterReplay.R2:
            raise ValueError(
                "engines.mismatch.old_policy 'rollout' skips the trainer's pass before the "
                "updates, and router_replay 'r2' needs the routes of that pass; set router_replay "
                "to 'r3' or 'off'"
            )
        return self

    @model_validator(mode="after")
    def _one_rule_moves_the_shares(self) -> Self:
        if self.group_dro and len(self.domains) == 1:
            raise ValueError("group_dro weighs domains against each other, and there is one; set 0")
        return self

    @model_validator(mode="after")
    def _bounds_hold_the_size(self) -> Self:
        if self.group_bounds:
            low, high = self.group_bounds if len(self.group_bounds) == 2 else (0, 0)
            if not (2 <= low <= self.group_size <= high <= 1024 and low < high):
                raise ValueError(
                    f"group_bounds {list(self.group_bounds)} are two sizes around group_size "
                    f"{self.group_size}, from 2 to 1024: [{max(2, self.group_size // 2)}, "
                    f"{2 * self.group_size}]; [] = group_size for all"
                )
        return self

    @model_validator(mode="after")
    def _domains_have_weight(self) -> Self:
        if not self.domains or not are_shares(self.domains.values()):
            raise ValueError("domains needs at least one domain, each with a positive share")
        if self.prompts_per_step * self.group_size < self.num_mini_batches:
            raise ValueError("num_mini_batches exceeds the responses of a step; lower it")
        return self


class RecipePhase(Settings):
    """One phase of RL with its recipe, as its statement records it."""

    rl: RLSettings
    recipe: AnyRecipe
