"""Settings: one frozen model per stage, at most 15 fields each, unknown keys refused.

Field defaults are the embedded `cpu_smoke` values; where a paper gives a number for
full scale it stands in the description, and in `workflows/presets.py` as a preset.
Rules between fields live in validators here, so code that uses a setting trusts it.
"""

from enum import StrEnum
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from data_schemas.prompts import Domain


class Source(BaseModel):
    """One place raw rows come from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    adapter: str = Field(description="a key of tasks.curation.sources.ADAPTERS")
    path: str = Field(
        default="", description="file or folder; empty for the generated sample world"
    )
    limit: int = Field(default=0, ge=0, description="first rows to read, 0 = all")


class PretrainSettings(BaseModel):
    """Stage 0: the shipped base model, from the marketplace corpus."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: int = Field(default=6000, ge=1, description="optimizer updates")
    batch_rows: int = Field(default=16, ge=1, description="packed rows per update")
    row_tokens: int = Field(default=128, ge=16, description="tokens per packed row")
    warmup_share: float = Field(default=0.03, ge=0.0, lt=1.0)
    vocabulary: int = Field(default=768, ge=272, description="256 bytes, 7 added tokens, merges")
    seed: int = 0


class CurationSettings(BaseModel):
    """Stage 1: raw rows to typed problems, demonstrations and held-out suites."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: tuple[Source, ...] = Field(default=(Source(adapter="sample_world"),), min_length=1)
    seed: int = Field(default=0, description="of the sample world, the split and the mixture")
    max_prompt_tokens: int = Field(default=96, ge=8, description="longer prompts are dropped")
    max_response_tokens: int = Field(
        default=96, ge=8, description="longer demonstrations are dropped"
    )
    near_duplicate_jaccard: float = Field(
        default=0.9,
        gt=0.0,
        le=1.0,
        description="MinHash similarity of word 3-grams; 1 = exact only",
    )
    contamination_ngram: int = Field(default=13, ge=4, description="words; 13 after GPT-3")
    held_out_per_suite: int = Field(
        default=60, ge=1, description="problems per domain kept for evaluation"
    )


class GradingSettings(BaseModel):
    """Stage 1b: pass rates of the start model, bands, and the seeded mixture."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    samples: int = Field(default=4, ge=2, description="responses per problem")
    max_new_tokens: int = Field(default=64, ge=1)
    drop_at_or_above: float = Field(
        default=1.0,
        gt=0.0,
        le=1.01,
        description="too easy: pass rate of the start model",
    )
    drop_at_or_below: float = Field(
        default=-0.01, ge=-0.01, lt=1.0, description="too hard; below 0 keeps unsolved prompts"
    )
    max_problems: int = Field(default=1024, ge=1, description="graded per run, drawn with the seed")
    weights: dict[Domain, float] = Field(
        default_factory=dict, description="mixture weight per domain; empty = as they come"
    )
    seed: int = 0

    @model_validator(mode="after")
    def _band_is_open(self) -> Self:
        if self.drop_at_or_below >= self.drop_at_or_above:
            raise ValueError(
                "drop_at_or_below must be smaller than drop_at_or_above, or nothing is kept"
            )
        return self


class SFTSettings(BaseModel):
    """Stage 2: long-CoT supervised fine-tuning of one parent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(
        default=3, ge=1, description="Ring-lite: 3 in the settings, up to 9 in ablation"
    )
    learning_rate: float = Field(default=1e-3, gt=0.0, description="peak, cosine; Ring-lite 3e-4")
    warmup_share: float = Field(default=0.05, ge=0.0, lt=1.0, description="Ring-lite 0.01")
    batch_tokens: int = Field(
        default=4096, ge=64, description="tokens per update, padding included"
    )
    entropy_window: tuple[float, float] = Field(
        default=(0.3, 0.5),
        description="nats at Ring-lite's 126k vocabulary; scaled by ln|V|",
    )
    entropy_prompts: int = Field(
        default=64, ge=1, description="fixed prompts the entropy is measured on"
    )
    seed: int = 0


class TrimScope(StrEnum):
    """Over what TIES keeps the largest entries."""

    TENSOR = "tensor"
    """mergekit: per tensor."""
    MODEL = "model"
    """The TIES paper: over the whole task vector."""


class RouterPolicy(StrEnum):
    """What a merge does with MoE router weights."""

    FIRST_PARENT = "first_parent"
    """Take the router of the reasoning parent whole."""
    MERGE = "merge"
    """Treat it like any other tensor."""


class MergeSettings(BaseModel):
    """Stage 3: TIES of the two SFT parents onto their common base."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    density: float = Field(
        default=0.6, gt=0.0, le=1.0, description="share kept by trimming; paper 0.2"
    )
    scale: float = Field(default=1.0, gt=0.0, description="lambda; 1 without validation data")
    weights: tuple[float, float] = Field(default=(1.0, 1.0), description="reasoning, commerce")
    trim_scope: TrimScope = TrimScope.TENSOR
    router: RouterPolicy = RouterPolicy.MERGE

    @model_validator(mode="after")
    def _weights_are_positive(self) -> Self:
        if min(self.weights) <= 0.0:
            raise ValueError("weights must be positive; leave a parent out by not merging")
        return self


class PolicyLoss(StrEnum):
    """Policy losses in tasks/algorithms/losses."""

    ESPO = "espo"
    GSPO = "gspo"
    GRPO = "grpo"
    DR_GRPO = "dr_grpo"
    DAPO = "dapo"
    CISPO = "cispo"


class RatioMode(StrEnum):
    """How ESPO's token ratio is read (ESPO eq. 9)."""

    GSPO_TOKEN = "gspo_token"
    LITERAL_EQ9 = "literal_eq9"


class AuxiliarySettings(BaseModel):
    """What is added to the policy loss; 0 = off. Ring-lite's weights stand in the descriptions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kl: float = Field(
        default=0.0, ge=0.0, description="beta of k3 to the phase's start model; Ring-lite 1e-3"
    )
    entropy: float = Field(default=0.0, ge=0.0, description="bonus per nat; Ring-lite 5e-4")
    balance: float = Field(default=0.0, ge=0.0, description="router load; Ring-lite 1e-5")
    router_z: float = Field(default=0.0, ge=0.0, description="router logits; Ring-lite 1e-7")


class LossSettings(BaseModel):
    """The policy loss of RL."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: PolicyLoss = PolicyLoss.ESPO
    high_entropy_share: float = Field(
        default=0.2, gt=0.0, lt=1.0, description="rho, ESPO ablation: 0.2 best"
    )
    entropy_edges: tuple[float, ...] = Field(
        default=(),
        description="ESPO groups by these entropies in nats, ascending; empty = by share",
    )
    clip_scale: float = Field(default=0.02, gt=0.0, description="alpha of eq. 8, ESPO: 0.02")
    clip_floor: float = Field(
        default=0.0, ge=0.0, description="smallest half-width of the clip range"
    )
    ratio: RatioMode = RatioMode.GSPO_TOKEN
    drop_low: bool = Field(default=False, description="train the high-entropy group only")
    clip_low: float = Field(default=0.2, gt=0.0, description="GRPO 0.2; GSPO 3e-4")
    clip_high: float = Field(default=0.28, gt=0.0, description="DAPO 0.28; GSPO 4e-4")
    token_budget: int = Field(
        default=0, ge=0, description="C3PO: tokens of an update on a rank; 0 = all; Ring-lite 12800"
    )
    truncate_last: bool = Field(
        default=True, description="C3PO: cut the last response to the budget exactly"
    )
    auxiliary: AuxiliarySettings = AuxiliarySettings()

    @model_validator(mode="after")
    def _edges_ascend(self) -> Self:
        if list(self.entropy_edges) != sorted(set(self.entropy_edges)):
            raise ValueError(f"entropy_edges must ascend, got {self.entropy_edges}")
        return self


class ZeroVarianceSettings(BaseModel):
    """What happens to groups whose rewards are all equal."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    refill_rounds: int = Field(
        default=1, ge=0, description="extra prompt draws to replace flat groups"
    )
    rl_zvp_alpha: float = Field(default=0.1, ge=0.0, description="RL-ZVP: 0.10 best; 0 = off")
    std_floor: float = Field(
        default=0.05, ge=0.0, description="of the divisor, against amplified penalties"
    )
    skip_above: float = Field(
        default=1.0,
        gt=0.0,
        le=1.0,
        description="skip a prompt whose record predicts a flat group this surely; 1 = never",
    )
    curriculum: tuple[tuple[float, float], ...] = Field(
        default=(),
        description="pass-rate bands [low, high) of the stages, in order; empty = one stage of all",
    )
    group_sizes: tuple[int, ...] = Field(
        default=(), description="choose G from these by signal per token; empty = group_size"
    )

    @model_validator(mode="after")
    def _choices_make_sense(self) -> Self:
        if any(not 0.0 <= low < high for low, high in self.curriculum):
            raise ValueError("curriculum needs bands with 0 <= low < high, e.g. ((0.4, 0.9),)")
        if any(size < 2 for size in self.group_sizes):
            raise ValueError("group_sizes must be at least 2: advantages are relative to a group")
        return self


class CodeReward(StrEnum):
    """What passing some of a program's tests is worth."""

    PASS_RATE = "pass_rate"
    """CompassMax: the share passed."""
    ALL_TESTS = "all_tests"
    """Ring-lite: 1 if every test passes, else 0; the first failure ends the run."""


class JudgeKind(StrEnum):
    """Who compares open text."""

    NONE = "none"
    """Nobody: problems that need a judge are refused."""
    MODEL = "model"
    """A Hugging Face directory, in this process."""
    HTTP = "http"
    """An OpenAI-compatible endpoint, such as `vllm serve`."""


class JudgeSettings(BaseModel):
    """The generative reward model (CompassMax A.7)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: JudgeKind = JudgeKind.NONE
    address: str = Field(
        default="", description="folder of the model, or base URL of the endpoint: http://host/v1"
    )
    model: str = Field(default="", description="name the endpoint serves the judge under")
    timeout_s: float = Field(default=60.0, gt=0.0, description="of one comparison")

    @model_validator(mode="after")
    def _judge_can_be_reached(self) -> Self:
        if self.kind is not JudgeKind.NONE and not self.address:
            raise ValueError(f"judge.kind is {self.kind.value}; set judge.address as well")
        if self.kind is JudgeKind.HTTP and not self.model:
            raise ValueError("judge.kind is http; set judge.model to the name it is served under")
        return self


class RewardSettings(BaseModel):
    """What a verdict is worth, and the shaping beside it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    overlong_buffer: int = Field(
        default=16, ge=0, description="tokens before the limit; paper 4096 of 20480"
    )
    overlong_weight: float = Field(default=0.5, ge=0.0)
    repetition_start: float = Field(
        default=0.3, ge=0.0, le=1.0, description="rho0: tolerated 3-gram repeats"
    )
    repetition_weight: float = Field(default=1.0, ge=0.0)
    max_abstained_share: float = Field(
        default=0.1, ge=0.0, le=1.0, description="error budget of a step; beyond it the run stops"
    )
    code: CodeReward = CodeReward.PASS_RATE
    judge: JudgeSettings = JudgeSettings()
    canary_every: int = Field(
        default=10, ge=1, description="steps between two checks of answers with a known verdict"
    )


class RouterReplay(StrEnum):
    """Whose expert choices the trainer uses."""

    OFF = "off"
    R2 = "r2"
    """Recorded in the trainer's old-log-prob pass, replayed in the update."""
    R3 = "r3"
    """Recorded by the rollout engine, replayed in both passes."""


class RolloutKind(StrEnum):
    """Which rollout engine answers prompts."""

    HF = "hf"
    VLLM = "vllm"


class TrainerKind(StrEnum):
    """Which trainer updates the policy."""

    TORCH = "torch"
    MEGATRON = "megatron"


class Correction(StrEnum):
    """What a token weighs whose probability differs between trainer and rollout engine."""

    OFF = "off"
    TIS = "tis"
    """Truncated importance sampling: the ratio, at most `cap`."""
    ICEPOP = "icepop"
    """The ratio inside [0.5, cap], else 0 (Ring-1T: cap 5)."""


class MismatchSettings(BaseModel):
    """The gate between two numerics of one policy, decided on k3 of every step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    correction: Correction = Field(default=Correction.OFF, description="applied to every step")
    cap: float = Field(default=2.0, gt=1.0, description="TIS 2 (a report saw 1.5 more stable)")
    correct_above: float = Field(
        default=1e-2, gt=0.0, description="k3 from which a step is corrected by TIS at least"
    )
    pause_above: float = Field(
        default=1e-1, gt=0.0, description="k3 from which the run stops with an error"
    )

    @model_validator(mode="after")
    def _pause_is_above_correct(self) -> Self:
        if self.pause_above <= self.correct_above:
            raise ValueError("mismatch.pause_above must be larger than mismatch.correct_above")
        return self


class Precision(StrEnum):
    """Numbers the rollout engine computes with."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP8 = "fp8"
    """vLLM only: quantised experts and projections, all else in bf16."""


class EngineSettings(BaseModel):
    """Which machines run RL, and how they take turns. The loop is the same for all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rollout: RolloutKind = RolloutKind.HF
    trainer: TrainerKind = TrainerKind.TORCH
    precision: Precision = Precision.FP32
    staleness: int = Field(
        default=0, ge=0, description="versions a rollout may be behind; 0 = wait, 1 = one step off"
    )
    segment_tokens: int = Field(
        default=0,
        ge=0,
        description="tokens of a response per step, the rest later; 0 = all now",
    )
    mismatch: MismatchSettings = MismatchSettings()


class RLSettings(BaseModel):
    """Stages 4 and 5: one phase of RL. Phase one and two differ in settings only."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    domains: dict[Domain, float] = Field(description="share of prompts per domain in this phase")
    steps: int = Field(default=40, ge=1)
    prompts_per_step: int = Field(default=24, ge=1, description="CompassMax profile: 512")
    group_size: int = Field(default=8, ge=2, description="G; CompassMax profile: 8")
    max_new_tokens: int = Field(default=64, ge=1, description="CompassMax: 32768")
    temperature: float = Field(default=1.0, gt=0.0, description="ESPO setup: 1.0")
    learning_rate: float = Field(default=3e-4, gt=0.0, description="ESPO setup: 1e-6")
    mini_batches: int = Field(default=2, ge=1, description="optimizer updates per step")
    loss: LossSettings = LossSettings()
    zero_variance: ZeroVarianceSettings = ZeroVarianceSettings()
    rewards: RewardSettings = RewardSettings()
    router_replay: RouterReplay = RouterReplay.R3
    engines: EngineSettings = EngineSettings()
    commit_every: int = Field(default=1, ge=1, description="steps between two saved states")
    seed: int = 0

    @model_validator(mode="after")
    def _domains_have_weight(self) -> Self:
        if not self.domains or min(self.domains.values()) <= 0.0:
            raise ValueError("domains needs at least one domain, each with a positive share")
        if self.prompts_per_step * self.group_size < self.mini_batches:
            raise ValueError("mini_batches exceeds the responses of a step; lower it")
        return self


class EvaluationSettings(BaseModel):
    """Stage 6: held-out suites. Ring-lite evaluates at temperature 1.0, top-p 0.95."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    samples: int = Field(default=4, ge=1, description="responses per problem (avg@k and pass@k)")
    temperature: float = Field(default=1.0, ge=0.0, description="0 = greedy")
    max_new_tokens: int = Field(default=64, ge=1)
    resamples: int = Field(default=2000, ge=100, description="bootstrap resamples over problems")
    seed: int = 0


class ReleaseSettings(BaseModel):
    """Stage 7: the gate between a candidate and the alias `released`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        default="eachprompt-tiny", min_length=1, description="MLflow registered model"
    )
    min_gain: float = Field(
        default=0.0, description="lower interval end of candidate minus parent, 'all'"
    )
    max_domain_drop: float = Field(
        default=0.03, ge=0.0, description="no domain may lose more than this (point estimate)"
    )
    max_truncated_share: float = Field(default=0.2, ge=0.0, le=1.0)


def _on_defaults(model: type[BaseModel], given: object) -> object:
    """Lay the fields that a group was given over those the group has by default."""
    if not isinstance(given, dict):
        return given
    filled = dict(cast("dict[str, object]", given))
    for name, value in filled.items():
        default = model.model_fields[name].default if name in model.model_fields else None
        if isinstance(value, dict) and isinstance(default, BaseModel):
            filled[name] = default.model_dump() | cast("dict[str, object]", value)
    return filled


def _outline(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Name the fields of every group instead of nesting their schemas: Flyte prints it as help."""
    schema.clear()
    schema["type"] = "object"
    schema["properties"] = {
        name: {"description": ", ".join(field.annotation.model_fields)}
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        else {"description": field.description or name}
        for name, field in model.model_fields.items()
    }


class PipelineSettings(BaseModel):
    """Everything `workflows/post_training.py post_training` can be told."""

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=_outline)

    base_model: str = Field(
        default="", description="Hugging Face directory; empty = the shipped tiny MoE"
    )
    curation: CurationSettings = CurationSettings()
    sft: SFTSettings = SFTSettings()
    merge: MergeSettings = MergeSettings()
    grading: GradingSettings = GradingSettings()
    rl_one: RLSettings = RLSettings(
        domains={Domain.MATHS: 2.0, Domain.CODE: 1.0, Domain.INSTRUCTION: 1.0}
    )
    rl_two: RLSettings = RLSettings(
        domains={
            Domain.CHOICE: 1.0,
            Domain.EXTRACTION: 1.0,
            Domain.TOOL_USE: 1.0,
            Domain.OPEN_TEXT: 1.0,
            Domain.MATHS: 0.5,
            Domain.CODE: 0.25,
            Domain.INSTRUCTION: 0.25,
        }
    )
    evaluation: EvaluationSettings = EvaluationSettings()
    release: ReleaseSettings = ReleaseSettings()

    @model_validator(mode="before")
    @classmethod
    def _give_only_what_differs(cls, given: object) -> object:
        return _on_defaults(cls, given)


class RetrainSettings(BaseModel):
    """Everything `workflows/retrain.py retrain` can be told."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    inbox: str = Field(
        default="inbox", min_length=1, description="folder or s3://bucket/prefix of .jsonl files"
    )
    min_rows: int = Field(
        default=32, ge=1, description="new valid problems worth a run; fewer wait for more"
    )
    min_unsolved_share: float = Field(
        default=0.1,
        ge=0.0,
        le=1.0,
        description="of graded problems the released model does not always solve; below it, skip",
    )
    curation: CurationSettings = CurationSettings()
    grading: GradingSettings = Field(
        default=GradingSettings(drop_at_or_above=1.01),
        description="of the released model; nothing is dropped, so that what it solves is counted",
    )
    rl: RLSettings = RLSettings(domains=dict.fromkeys(Domain, 1.0))
    evaluation: EvaluationSettings = EvaluationSettings()
    release: ReleaseSettings = ReleaseSettings()

    @model_validator(mode="before")
    @classmethod
    def _give_only_what_differs(cls, given: object) -> object:
        return _on_defaults(cls, given)
