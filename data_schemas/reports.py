"""Machine-readable results of a step, a stage, an evaluation and a release.

Metric names are `area/what_unit`. A StepReport holds only values that a replay of the step must
reproduce; wall-clock seconds are in StepTiming.
"""

from enum import StrEnum

from pydantic import Field

from data_schemas.frozen_model import FrozenModel
from data_schemas.samples import RequestKind


class MismatchDecision(StrEnum):
    """What the mismatch gate decides for a step."""

    PROCEED = "proceed"
    CORRECT = "correct"
    """Train with importance weights (TIS or IcePop)."""
    PAUSE = "pause"
    """Stop the run: rollout engine and trainer no longer compute the same policy."""


class GateRecord(FrozenModel):
    """The gate's decision on one step; part of the release manifest."""

    step: int = Field(ge=1)
    decision: MismatchDecision
    reason: str
    k3: float = Field(description="KL of trainer to rollout engine on the sampled tokens, nats")
    mean_abs_logprob: float
    extreme_share: float = Field(description="tokens whose probability differs more than twofold")
    effective_share: float = Field(description="effective sample size over tokens")
    overflow_tokens: int = Field(
        default=0, ge=0, description="tokens without a finite log-probability in either engine"
    )
    route_disagreement: float | None = Field(
        description="share of (token, layer) routes that differ; None under router replay"
    )
    worst_slice: str = Field(
        default="", description="domain or language with the largest k3 that is certain"
    )
    slice_k3: float = Field(
        default=0.0, ge=0.0, description="that k3: lower end of its interval, nats"
    )
    probe_logprob: float = Field(
        description="mean |dlogp| on canary sequences after the newest weight sync"
    )


class MonitorChange(FrozenModel):
    """How a reward that is only watched changed over a phase of RL: second half minus first."""

    stage: str = Field(description="'rl/one', 'rl/two' ...")
    monitor: str
    steps: int = Field(ge=0, description="with a score")
    before: float
    after: float
    low: float = Field(description="of the difference; without 8 steps -1")
    high: float = Field(description="likewise; without 8 steps 1")


class PhaseGates(FrozenModel):
    """The gate's decisions over one phase of RL."""

    stage: str = Field(description="'rl/one', 'rl/two' ...")
    steps: int = Field(ge=0, description="steps with a record; 0 = no information")
    proceeded: int
    corrected: int
    paused: int
    max_k3: float
    max_probe: float = Field(description="largest mean |dlogp| on canaries, nats")


SKIPPED_FILE = "skipped.json"
"""The only file in the report of a stage that passed its input on."""
STEPS_FILE = "steps.jsonl"
TIMING_FILE = "timing.jsonl"
LEDGER_FILE = "ledger.parquet"
COSTS_FILE = "costs.parquet"
GATES_FILE = "mismatch.jsonl"
PLOTS_FILE = "plots.json"
"""Files of an RL phase's report: StepReport, LedgerRow, GateRecord, and of a recipe's what is drawn
of its metrics; and beside it, because they differ from run to run, StepTiming and PromptCost."""
Plot = tuple[str, str, str, float]
"""Metric, title, note and factor of a curve over the steps of a phase."""


MONITOR = "monitor/"
"""Beginning of the metric of a reward that is only watched; its name follows."""


ACCEPTED, FRESHNESS = "tokens/accepted", "tokens/freshness"
"""Metrics: tokens that were trained with contrast, and the share of them that is not stale."""
SLICES = "slices/"
"""Beginning of the metrics of a slice: 'slices/language/th/k3'."""


class StepReport(FrozenModel):
    """What one training step did. Deterministic given code, settings and inputs."""

    step: int = Field(ge=1)
    policy_version: int
    metrics: dict[str, float]


_INSIDE = ("rollout", "reward")
"""Times within that of `collect`, or beside other parts: they are no parts of a step's sum."""


class StepTiming(FrozenModel):
    """How long the parts of one step took, in seconds."""

    step: int = Field(ge=1)
    seconds: dict[str, float]
    cpu_seconds: dict[str, float] = Field(
        default={},
        description="of the controller's process, all threads; without the engines' other "
        "processes and without waiting, so other programs on the machine affect them little",
    )

    @property
    def parts(self) -> dict[str, float]:
        """Seconds of the parts that follow each other, which add up to those of the step."""
        return {name: took for name, took in self.seconds.items() if name not in _INSIDE}


SLICE_KINDS = ("domain", "language", "source", "level", "slice", "harmful", "harmless")
"""Words before the ':' of a suite. The slices of one kind have no problem in common."""


class SuiteScore(FrozenModel):
    """One model on one suite: a family of tasks in one language, or a roll-up of them."""

    suite: str = Field(description="'all', 'domain:maths', 'level:math_train/3', ...")
    problems: int = Field(
        description="problems with at least one verdict; with 0 the means are undefined"
    )
    samples: int = Field(description="per problem")
    accuracy: float = Field(description="share of samples solved, mean over problems")
    low: float = Field(description="bootstrap interval over problems, lower end")
    high: float
    score: float = Field(description="mean verdict score, partial credit included")
    pass_at_k: float = Field(description="unbiased pass@k with k = samples")
    abstained: int = Field(description="samples without verdict; excluded from every mean")
    majority_at_k: float | None = Field(
        default=None,
        description="share of problems whose most frequent answer is right; None = "
        "the answers cannot be counted, such as programs",
    )
    mean_tokens: float | None = Field(default=None, description="of a response")
    truncated: int = Field(default=0, description="samples cut at the token limit")
    request: RequestKind = Field(
        default=RequestKind.ORDINARY, description="of its problems, if all are of one kind"
    )


class EchoScore(FrozenModel):
    """The best of many texts that do no task, on one family of problems: reward that is free."""

    suite: str = Field(description="'domain:maths', ...")
    text: str = Field(description="name of the text in tasks/gym/degenerate.py")
    score: float = Field(description="mean verdict score")
    accuracy: float = Field(description="share of problems solved in full")
    problems: int
    difference: float | None = Field(
        default=None,
        description="mean score of the model minus that of the text on the same problems; None = "
        "not compared",
    )
    low: float | None = Field(default=None, description="bootstrap interval of the difference")
    high: float | None = None


class Baseline(FrozenModel):
    """What answers without a model earn, learned from the problems to train on."""

    name: str = Field(description="majority, lookup, arithmetic: see tasks/evaluation/baselines.py")
    accuracy: dict[str, float] = Field(
        description="share of problems solved in full, by suite; of those with an answer"
    )


ABOUT_BASELINES = (
    "majority, lookup and arithmetic are no models. They answer what the problems to train on "
    "teach: the most frequent answer, the most frequent answer behind one word of the prompt, and "
    "the formula of the prompt's numbers that is right most often."
)
ABOUT_MERGED = "merged is what the fine-tuned models were merged into; RL starts from it."


class SamplingRecord(FrozenModel):
    """How the responses of an evaluation were sampled."""

    temperature: float
    top_p: float
    min_p: float
    max_new_tokens: int
    stop: tuple[str, ...]
    seed: int


class EvaluationReport(FrozenModel):
    """One model on all held-out suites. Per-problem results are in samples.parquet."""

    model: str = Field(
        description="name in the checkpoint progression: base, sft/reasoning, merged, rl/one ..."
    )
    checkpoint: str = Field(description="artifact digest; or 'NAME at URL' of an endpoint")
    same_as: str = Field(
        default="", description="model with the same weights whose answers these are; '' = its own"
    )
    suites: tuple[SuiteScore, ...]
    truncated_share: float
    mean_response_tokens: float
    mean_entropy_nats: float | None = Field(description="None = not known (endpoints)")
    sampling: SamplingRecord | None = Field(default=None, description="None = not recorded")
    echoes: tuple[EchoScore, ...] = Field(
        default=(), description="what texts that do no task earn, by family; () = not measured"
    )
    baselines: tuple[Baseline, ...] = Field(
        default=(), description="columns beside those of models; () = not measured"
    )
    judge: dict[str, float] = Field(
        default={},
        description="bias of the judge by position and length; {} = no response was judged",
    )


class Comparison(FrozenModel):
    """Candidate minus parent on the same problems: paired bootstrap."""

    suite: str
    parent: str
    difference: float
    low: float
    high: float
    problems: int


class PrecisionSlice(FrozenModel):
    """What another precision changes in a slice: 'all', 'language:th', 'domain:maths'."""

    suite: str
    responses: int = Field(ge=1, description="of the reference, which both precisions read")
    tokens: int = Field(ge=1, description="of these responses")
    k3: float = Field(
        description="KL of the reference to this precision a token, nats, estimated by "
        "exp(D) - 1 - D on tokens that the reference drew"
    )
    k3_low: float | None = Field(description="95 %, over responses; None for a single one")
    k3_high: float | None
    abs_logprob: float = Field(description="mean |D| a token, nats")
    routes: float | None = Field(
        description="share of (token, layer) choices with other experts; None in a dense model"
    )
    routed_tokens: float | None = Field(
        description="share of tokens with other experts in any layer"
    )
    gain: Comparison | None = Field(
        description="what it solves more than the reference; None without verdicts of both"
    )


class LayerUse(FrozenModel):
    """How another precision changes which experts of a layer are used."""

    layer: int = Field(ge=0, description="among the layers with a router")
    routes: float = Field(description="share of tokens with other experts")
    moved: float = Field(
        description="total variation distance of the shares that the experts have, 0 to 1"
    )
    expert: int = Field(description="whose share changes most")
    change: float = Field(description="of its share; the shares of a layer sum to 1")


class PrecisionReport(FrozenModel):
    """A model in one precision beside the same model in another."""

    model: str
    reference: str = Field(description="precision of the settings")
    precision: str
    slices: tuple[PrecisionSlice, ...] = Field(description="all, then languages, then domains")
    layers: tuple[LayerUse, ...] = Field(description="empty in a dense model")


FAILED = "FAILED: "
"""Beginning of the line of a rule of the release gate that did not pass."""


class GateDecision(FrozenModel):
    """Whether a model may be released, and why."""

    released: bool = Field(description="every rule passed")
    reasons: tuple[str, ...] = Field(description="one line per rule, passed or failed")
    comparisons: tuple[Comparison, ...]
    too_small: tuple[str, ...] = Field(
        default=(),
        description="slices with too few problems to be judged alone; the rules say which of them "
        "were judged together with others of their kind",
    )
    awaits: int = Field(
        default=0, description="approvals by other keys that a model that passed asks for"
    )

    @property
    def failed(self) -> list[str]:
        """The rules that did not pass, each with its numbers."""
        return [one.removeprefix(FAILED) for one in self.reasons if one.startswith(FAILED)]


class MeasuredRate(FrozenModel):
    """How often a verifier erred on responses whose verdict is known."""

    count: int = Field(description="wrong verdicts")
    of: int = Field(ge=1, description="verdicts")
    low: float = Field(description="95 % Wilson interval of the share, lower end")
    high: float


class VerifierRates(FrozenModel):
    """Error rates of one verifier; None is not measured, which is not 0."""

    verifier: str
    false_positive: MeasuredRate | None = Field(default=None, description="wrong, but accepted")
    false_negative: MeasuredRate | None = Field(default=None, description="right, but rejected")


class VerifierExamination(FrozenModel):
    """Error rates of verifiers, and the evidence that they are from."""

    evidence: str = Field(default="", description="file that the examiner wrote")
    sha256: str = Field(default="", description="of that file")
    rates: tuple[VerifierRates, ...] = ()


class ReleaseManifest(FrozenModel):
    """Everything a release was made from, by digest."""

    name: str
    version: str
    checkpoint: str
    statements: tuple[str, ...] = Field(description="digests of every statement in the chain")
    objects: tuple[str, ...] = Field(description="digests of every artifact in the chain")
    raw_files: dict[str, str] = Field(
        description="sha256 of every raw source file, by its name without its place"
    )
    gate: GateDecision
    mismatch: tuple[PhaseGates, ...] = Field(
        default=(), description="the mismatch gate's decisions in every RL phase of the chain"
    )
    verifiers: VerifierExamination = Field(
        default=VerifierExamination(), description="error rates of the verifiers of its problems"
    )


class Claim(FrozenModel):
    """One line of a study's table."""

    claim: str
    number: str
    interval: str
    seeds: str
    shown: bool
