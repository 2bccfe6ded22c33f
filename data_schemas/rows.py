"""The records of data: problems, demonstrations and samples, and what is decided about them."""

import re
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

# One verifiable piece of work.

THINK_OPEN = "<think>"
THINK_CLOSE = "</think>"
"""Around the thought of a response, which precedes its answer."""


class Role(StrEnum):
    """Who speaks in a chat message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Message(BaseModel):
    """One chat turn."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Role
    content: str


class Domain(StrEnum):
    """Reward domains: Compass-Gym's (CompassMax A.3, A.8) and Ring-lite's science.

    A phase of RL trains on a set of them. The sample world has the first seven.
    """

    MATHS = "maths"
    CODE = "code"
    INSTRUCTION = "instruction"
    CHOICE = "choice"
    EXTRACTION = "extraction"
    TOOL_USE = "tool_use"
    OPEN_TEXT = "open_text"
    SCIENCE = "science"
    """Answers are checked like those of maths, with a unit."""
    GENERAL = "general"
    """General questions: choices, and open text."""


OUTSIDE = "environment"
"""Verifier of environments that other libraries play."""


# "pt_BR.UTF-8", "zh_Hant_TW", "EN".
_TAG = re.compile(r"([A-Za-z]{2,3})((?:[-_][A-Za-z0-9]{1,8})*)(?:[.@][\w@.-]*)?")
_WITHDRAWN_TAGS = {"in": "id", "iw": "he", "ji": "yi", "mo": "ro"}
"""Tags that systems still write for languages that have another one today (IANA registry)."""


def language_tag(text: object) -> object:
    """Write a BCP 47 tag of any spelling in the usual one: `pt_BR` is `pt-BR`, `EN` is `en`.

    What is no tag stays as it is.
    """
    match = _TAG.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return text
    primary = match[1].lower()
    subtags = [
        one.title() if len(one) == 4 and one.isalpha() else one.upper() if len(one) == 2 else one
        for one in match[2].lower().replace("_", "-").split("-")[1:]
    ]
    return "-".join([_WITHDRAWN_TAGS.get(primary, primary), *subtags])


LanguageTag = Annotated[
    str,
    BeforeValidator(language_tag),
    Field(
        max_length=35,
        pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$",
        description="BCP 47 tag: en, zh-TW, id, ms, pt, th, vi ...; it names suites and metrics",
    ),
]


class Problem(BaseModel):
    """A prompt with everything its verifier needs; one row of problems.parquet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1, description="stable and unique: '<source>/<row key>'")
    domain: Domain
    language: LanguageTag
    messages: tuple[Message, ...] = Field(min_length=1, description="chat turns up to the answer")
    verifier: str = Field(min_length=1, description="a key of tasks.gym.table.VERIFIERS")
    answer: str = Field(description="canonical JSON: the reference for the verifier")
    source: str = Field(description="name of the adapter that read the row")
    source_row: str = Field(description="sha256 of the raw row's bytes: the end of row lineage")
    level: int = Field(default=0, ge=0, description="the source's own difficulty, 0 if it has none")

    @property
    def prompt_text(self) -> str:
        """All turns in one string."""
        return "\n".join(message.content for message in self.messages)

    @property
    def asked(self) -> str:
        """What is asked, for duplicate and contamination checks: the prompt.

        An environment may know more than it says at first, such as a secret word: of one that
        another library plays, the task belongs to what is asked.
        """
        return f"{self.prompt_text}\n{self.answer}" if self.is_outside else self.prompt_text

    @property
    def is_outside(self) -> bool:
        """Whether another library plays it; its raw row then names many tasks."""
        return self.verifier == OUTSIDE


SLICE = "slice="
"""Begins the id of a problem that was held out later: `slice=2026-11/<id>`."""


class Facet(BaseModel):
    """A property of a problem that is not part of its prompt; drift is measured on it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str = Field(description="id")
    name: str = Field(description="category, brand, price ...")
    value: str


# Result of a verifier: a score with its reason, or an abstention with its reason.
#
#     scored(x, why)             the response was scored
#     abstain(why)               it could not be scored for a cause outside the response: no score
#     response_fault(why)        it could not be scored because it crashed, flooded or timed out
#                                its verifier: score 0, with the reason `response_fault:why`
#
# Differs: a response fault counts as a wrong answer, not as an abstention. Otherwise a policy
# could replace a wrong answer (advantage below 0) by one that breaks the verifier (advantage 0). A
# verifier first tries the next simpler way to score the response, if there is one.

SCORE_TOLERANCE = 1e-6
"""Scores within this distance are equal: to 1 for a solved problem (RL-ZVP sign rule with graded
rewards), to each other for a zero-variance group."""
RESPONSE_FAULT = "response_fault:"
"""Prefix of the reason when the response itself made scoring impossible."""


class Verdict(BaseModel):
    """The verifier's result on one response. `score is None` means the verifier abstained.

    An abstention is excluded, not scored 0: the rollout does not enter its group's mean and
    standard deviation, gets advantage 0 and is counted under its reason.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: float | None = Field(ge=0.0, le=1.0, description="share of the task achieved")
    reason: str = Field(min_length=1, description="short stable code, e.g. 'correct', 'timeout'")
    detail: str = Field(default="", description="for people: what was compared, first failure")

    @property
    def abstained(self) -> bool:
        """True if there is no verdict."""
        return self.score is None

    @property
    def solved(self) -> bool:
        """True if the task was achieved in full."""
        return self.score is not None and self.score >= 1.0 - SCORE_TOLERANCE

    @property
    def by_response_fault(self) -> bool:
        """True if the score is 0 because the response itself made scoring impossible."""
        return self.reason.startswith(RESPONSE_FAULT)


def scored(score: float, reason: str, detail: str = "") -> Verdict:
    """Build a verdict that has a score."""
    return Verdict(score=score, reason=reason, detail=detail)


def abstain(reason: str, detail: str = "") -> Verdict:
    """Build a verdict without a score, for a cause outside the response."""
    return Verdict(score=None, reason=reason, detail=detail)


def response_fault(reason: str, detail: str = "") -> Verdict:
    """Build the verdict on a response that crashed, flooded or timed out its verifier."""
    return Verdict(score=0.0, reason=RESPONSE_FAULT + reason, detail=detail)


# One worked response, for supervised fine-tuning.


class Parent(StrEnum):
    """Which model a demonstration teaches: a parent of the merge (CompassMax A.2), or another."""

    REASONING = "reasoning"
    COMMERCE = "commerce"
    JUDGE = "judge"
    """Compares answers; not a parent of the merge."""
    WRITER = "writer"
    """Writes a rationale and a problem for concepts, p(z, x | c); not a parent of the merge."""
    PLANNER = "planner"
    """Writes the rationale of a problem, q(z | c, x); not a parent of the merge."""
    GENERAL = "general"
    """The model after RL (Ring-lite's last stage), which learns from all but the judge's."""


USES_FILE = "uses.parquet"
"""File of a fine-tuning's report: every demonstration of the parent, as DemonstrationUse."""
TRAINED_TOKENS = "trained_tokens"
"""Fact of a fine-tuning: response tokens that trained the chosen checkpoint, in all its epochs."""
MERGED = (Parent.REASONING, Parent.COMMERCE)
"""The parents of the merge."""


class Demonstration(BaseModel):
    """A prompt and the response to imitate; only response tokens have a loss."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    parent: Parent
    domain: Domain
    language: LanguageTag
    messages: tuple[Message, ...] = Field(min_length=1)
    response: str = Field(min_length=1, description="'<think>...</think>answer', without end token")
    source: str
    source_row: str = Field(description="sha256 of the raw row's bytes")

    @property
    def prompt_text(self) -> str:
        """All turns in one string."""
        return "\n".join(message.content for message in self.messages)

    @property
    def asked(self) -> str:
        """What is asked, for duplicate and contamination checks."""
        return self.prompt_text


class DemonstrationUse(BaseModel):
    """How often the chosen checkpoint was trained on a demonstration."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    source_row: str
    epochs: int = Field(ge=0, description="0 = of the validation rows, which choose the checkpoint")


# What people decide about gold answers that models doubt.


class GoldDecision(StrEnum):
    """About the gold answer of one problem."""

    NONE = ""
    """Not yet decided."""
    KEEP = "keep"
    DROP = "drop"
    CORRECT = "correct"


class Annotation(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str = Field(description="its id")
    source: str
    source_row: str = Field(description="sha256 of the raw row that was shown")
    reason: str = Field(description="why the gold answer is doubtful")
    question: str
    gold: str = Field(description="the answer that was shown, as the verifier reads it")
    answers: dict[str, dict[str, int]] = Field(
        description="responses per model and answer; '' = no answer, or one that is not counted"
    )
    decision: GoldDecision = Field(default=GoldDecision.NONE, description="keep, drop or correct")
    correction: str = Field(default="", description="for correct: the right answer, as in `gold`")
    by: str = Field(default="", description="who decided")
    at: AwareDatetime | None = Field(default=None, description="when: ISO 8601 with a time zone")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.decision is GoldDecision.NONE:
            return self
        if not self.by.strip() or self.at is None:
            raise ValueError("a decision needs `by` and `at`")
        if (self.decision is GoldDecision.CORRECT) != bool(self.correction.strip()):
            raise ValueError("`correction` is needed for correct, and for nothing else")
        if self.correction == self.gold:
            raise ValueError("`correction` is the gold answer; decide keep")
        return self

    @property
    def who(self) -> str:
        """Return who decided and when."""
        return f"{self.by} at {self.at.isoformat() if self.at else ''}"


class Decided(BaseModel):
    """A decision that curation carried out; a row of decisions.parquet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str = Field(description="its id")
    source: str
    source_row: str
    decision: str
    gold: str = Field(description="the answer before")
    correction: str = Field(description="'' unless it was corrected")
    by: str
    at: str = Field(description="ISO 8601")


# What problems are about: the subject that their source names, and its MSC 2020 class.
#
# Source: Mathematics Subject Classification MSC2020 of Mathematical Reviews and zbMATH Open
# (msc2020.org), first level.

SUBJECT = "subject"
"""Name of the facet that says what a problem is about."""
MSC = "msc"
"""Name of the facet with the two-digit classes: '11', or '05, 60' for a subject of two classes."""
_STEP = "->"
"""Between the levels of a subject, as DeepMath-103K writes them."""

CLASSES = {
    "03": "Mathematical logic and foundations",
    "05": "Combinatorics",
    "11": "Number theory",
    "12": "Field theory and polynomials",
    "15": "Linear and multilinear algebra; matrix theory",
    "20": "Group theory and generalizations",
    "26": "Real functions",
    "30": "Functions of a complex variable",
    "34": "Ordinary differential equations",
    "51": "Geometry",
    "53": "Differential geometry",
    "60": "Probability theory and stochastic processes",
    "62": "Statistics",
}
"""Names of the classes below."""
_CLASS_OF = {
    "calculus": "26",
    "combinatorics": "05",
    "complex analysis": "30",
    "counting & probability": "05, 60",
    "differential geometry": "53",
    "field theory": "12",
    "geometry": "51",
    "graph theory": "05",
    "group theory": "20",
    "inequalities": "26",
    "linear algebra": "15",
    "logic": "03",
    "number theory": "11",
    "ordinary differential equations": "34",
    "polynomials": "12",
    "probability": "60",
    "real analysis": "26",
    "statistics": "62",
}
"""Of subjects that lie within a class: graph theory is 05C, inequalities 26D, polynomials 12D.

Algebra, Intermediate Algebra, Prealgebra and Precalculus have none: they are courses whose problems
belong to many classes.
"""


def msc_of(subject: str) -> str:
    """Return the class of a subject, '' if it has none.

    Of 'Mathematics -> Discrete Mathematics -> Graph Theory' it is that of the narrowest level that
    has one.
    """
    levels = [level.strip().casefold() for level in subject.split(_STEP)]
    return next((_CLASS_OF[level] for level in reversed(levels) if level in _CLASS_OF), "")


# How often models solve a problem under its verifier, and which rates a source is trained on.

ANNOTATOR = "annotator"
"""Name of the facet that says who labelled a row."""
PASS_RATE = "pass_rate:"
"""Begins the name of a facet that has a model's pass rate: `pass_rate:small`."""


class SolveRate(BaseModel):
    """What one model made of one problem; a line of solve_rates.jsonl."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str = Field(description="its id")
    source: str
    source_row: str = Field(description="sha256 of the raw row that was answered")
    gold: str = Field(description="the answer that responses were verified against")
    model: str = Field(min_length=1)
    samples: int = Field(ge=1, description="responses")
    scored: int = Field(ge=0, description="responses with a verdict")
    solved: int = Field(ge=0, description="responses with full marks")

    @model_validator(mode="after")
    def _counts_are_nested(self) -> Self:
        if not self.solved <= self.scored <= self.samples:
            raise ValueError(
                f"{self.model} has {self.solved} solved, {self.scored} scored and {self.samples} "
                "samples of a problem; solved <= scored <= samples must hold"
            )
        return self

    @property
    def pass_rate(self) -> float | None:
        """Share of the responses with a verdict that are solved; None if none has one."""
        return self.solved / self.scored if self.scored else None


class PassRateBand(BaseModel):
    """The pass rates of one model between which the problems of a source are kept; a line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = Field(description="adapter, or name of the mapping")
    model: str = Field(description="as solve_rates or a facet names it")
    lowest: float = Field(default=0.0, ge=0.0, le=1.0, description="included")
    highest: float = Field(default=1.0, ge=0.0, le=1.0, description="included")

    @model_validator(mode="after")
    def _something_is_inside(self) -> Self:
        if self.lowest > self.highest:
            raise ValueError(f"lowest is {self.lowest}, above highest, {self.highest}")
        return self

    @property
    def limits(self) -> str:
        """Return the limits in words."""
        return f"{self.lowest:g} to {self.highest:g}"


# A problem with the start model's pass rate; one row of graded.parquet.


class Band(StrEnum):
    """Difficulty by a model's pass rate p; of a graded set, the start model's."""

    UNSOLVED = "unsolved"
    """p = 0"""
    HARD = "hard"
    """0 < p < 1/3"""
    MEDIUM = "medium"
    """1/3 <= p <= 2/3"""
    EASY = "easy"
    """2/3 < p < 1"""
    SOLVED = "solved"
    """p = 1"""
    UNGRADED = "ungraded"
    """Every verdict was an abstention: the pass rate is unknown."""


def band_of(pass_rate: float | None) -> Band:
    """Name the difficulty of a pass rate."""
    if pass_rate is None:
        return Band.UNGRADED
    if pass_rate in (0.0, 1.0):
        return Band.SOLVED if pass_rate else Band.UNSOLVED
    if pass_rate < 1 / 3:
        return Band.HARD
    return Band.EASY if pass_rate > 2 / 3 else Band.MEDIUM


PROBLEMS_FILE = "graded.parquet"


class GradedProblem(Problem):
    """A Problem with grading results, accepted wherever a Problem is."""

    pass_rate: float | None = Field(
        ge=0.0,
        le=1.0,
        description="share of samples with a verdict that were solved; None if none has one",
    )
    mean_tokens: float = Field(ge=0.0, description="mean response length, end token included")
    band: Band


# Refused rows, each with the reason; one row of quarantine.parquet.


class Outcome(StrEnum):
    """Why an item is not in the curated set."""

    DROPPED = "dropped"
    """Valid but excluded: a duplicate, too long, or part of a held-out suite."""
    QUARANTINED = "quarantined"
    """Invalid: the producer of the row should look at it."""


class ItemKind(StrEnum):
    """Kind of the refused item."""

    ROW = "row"
    """A raw row from which no item could be made."""
    PROBLEM = "problem"
    DEMONSTRATION = "demonstration"


class Quarantined(BaseModel):
    """One refused item."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str = Field(description="'read', 'withdrawal', 'quality', 'dedup' ...")
    outcome: Outcome
    kind: ItemKind
    source: str = Field(description="adapter that read the row")
    key: str = Field(description="the item's id, or '<source>/<file>-<row>' where none was made")
    reason: str = Field(min_length=1, description="short stable code, e.g. 'near_duplicate'")
    detail: str = Field(
        default="", description="for people: the offending value, the duplicate's id"
    )
    source_row: str = Field(description="sha256 of the raw row's bytes")


# What a retraining learns from: counts of new and replayed rows.

REPORT = "mix.json"
ASIDE = "aside.json"
REPLAYED = "replayed.json"
"""Ids of the problems that are old; beside the tables of the mixed set."""


class Aside(BaseModel):
    """aside.json: files of a curated set that people have to look at; nothing learns from them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    curated: str = Field(default="", description="digest of the set")
    files: tuple[str, ...] = Field(default=(), description="sha256 of each")


class MixReport(BaseModel):
    """mix.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fresh: int = Field(description="new problems to train on")
    replayed: int = Field(description="old problems among them")
    held_out: int = Field(description="problems of all slices")
    added: int = Field(description="problems of the slice that is new; 0 = the month had one")
    slice: str = Field(description="its name; '' if there is none")
    demonstrations: int = Field(description="new ones, verified by curation")
    practised: int = Field(description="old ones beside them")
    parents: dict[str, int] = Field(description="demonstrations per parent")
    refused: dict[str, int] = Field(description="items dropped here, per reason")


# Names of the files in a curated set and in a graded set.

PROBLEMS = "problems.parquet"
"""Problem: those to train on."""
DEMONSTRATIONS = "demonstrations.parquet"
"""Demonstration."""
HELD_OUT = "held_out.parquet"
"""Problem: those to evaluate with."""
FACETS = "facets.parquet"
"""Facet: properties of the problems besides; only there if a source has any."""
QUARANTINE = "quarantine.parquet"
"""Quarantined: every item that was left out; of a graded set too."""
ROWS = "rows.parquet"
"""RowPlace: every raw row that was read."""
DECISIONS = "decisions.parquet"
"""Decided: what people decided about gold answers; only there if they did."""
CROISSANT = "croissant.json"
"""The tables of a curated set as metadata in Croissant 1.0."""
GRADED = "graded.parquet"
"""GradedProblem: the table of a graded set."""


# Sampled responses: of an evaluation, one row of samples.parquet; as tokens, for their reuse.

RESPONSES = "responses.parquet"
"""ResponseTokens: in a graded set and in the report of a phase, if its engine can reuse them."""


class ResponseTokens(BaseModel):
    """The tokens of a response, environments' included."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stream: str = Field(description="of its random numbers: the problem's id")
    sample: int = Field(ge=0, description="index within the stream")
    tokens: tuple[int, ...]


class RequestKind(StrEnum):
    """Whether a problem is there to see what a model refuses."""

    ORDINARY = ""
    HARMFUL = "harmful"
    """To be refused."""
    HARMLESS = "harmless"
    """To be answered, though it resembles a harmful one."""


class SampleResult(BaseModel):
    """A response with its verdict. All evaluation metrics are computed from these rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem_id: str
    domain: Domain
    language: str
    source: str
    sample: int = Field(ge=0, description="index among the responses to this problem")
    text: str = Field(description="decoded response, without end token")
    score: float | None = Field(description="of the verdict; None = the verifier abstained")
    reason: str
    tokens: int = Field(ge=0, description="generated, end token included")
    truncated: bool = Field(description="stopped by the token limit")
    surprisal_nats: float | None = Field(
        description="minus the sum of the tokens' log-probabilities; None = not known (endpoints)"
    )
    answer: str | None = Field(
        default=None,
        description="final answer in normal form, for majority@k; '' = none was found, "
        "None = answers to this problem cannot be counted, such as programs",
    )
    detail: str = Field(default="", description="of the verdict, for people")
    level: int = Field(default=0, ge=0, description="the problem's difficulty, 0 if it has none")
    request: RequestKind = RequestKind.ORDINARY

    @property
    def scored(self) -> bool:
        """True if there is a verdict."""
        return self.score is not None

    @property
    def solved(self) -> bool:
        """True if the task was achieved in full."""
        return Verdict(score=self.score, reason=self.reason).solved
