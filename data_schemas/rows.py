"""The records of data: problems and demonstrations, and what a curated or a graded set holds."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from data_schemas.frozen_model import FrozenModel

THINK_OPEN = "<think>"
THINK_CLOSE = "</think>"
"""Around the thought of a response, which precedes its answer."""


class Role(StrEnum):
    """Who speaks in a chat message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Message(FrozenModel):
    """One chat turn."""

    role: Role
    content: str


class Domain(StrEnum):
    """Reward domains: Compass-Gym's (CompassMax) and Ring-lite's science.

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
_OTHER_TAGS = {
    tag: language
    for language, tags in {
        "zh": "cmn zho chi", "en": "eng", "id": "in ind", "ms": "zsm msa may", "pt": "por",
        "th": "tha", "vi": "vie", "fil": "tgl tl", "es": "spa", "fr": "fra fre", "de": "deu ger",
        "it": "ita", "ja": "jpn", "ko": "kor", "nl": "nld dut", "ru": "rus", "ar": "ara",
        "hi": "hin", "tr": "tur", "pl": "pol", "he": "iw", "yi": "ji", "ro": "mo",
    }.items()
    for tag in tags.split()
}  # fmt: skip
"""Tags that systems write for languages that have another one: withdrawn ones (IANA registry), and
codes of three letters where one of two is to be used (RFC 5646, 2.2.1)."""


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
    return "-".join([_OTHER_TAGS.get(primary, primary), *subtags])


_TWO_LETTERS = re.compile(
    "a[abefkmnrsvyz]|b[aeghimnors]|c[aehorsuvy]|d[aevz]|e[elnostu]|f[afijory]|g[adlnuv]|"
    "h[aeiortuyz]|i[adegikostu]|j[av]|k[agijklmnorsuvwy]|l[abginotuv]|m[ghiklnrsty]|"
    "n[abdeglnorvy]|o[cjmrs]|p[ailst]|qu|r[mnouw]|s[acdeghiklmnoqrstuvw]|t[aeghiklnorstwy]|"
    "u[gkrz]|v[eio]|w[ao]|xh|y[io]|z[ahu]"
)
"""ISO 639-1, which is complete: a code of two letters that is not among them is no language."""


def is_language_tag(text: str) -> bool:
    """Return whether a text is a tag of a language in some spelling; `vn` and `English` are none.

    Codes of three letters are not looked up: there are 8,000.
    """
    tag = str(language_tag(text))
    primary = tag.partition("-")[0]
    return (
        len(tag) <= _LONGEST_TAG
        and re.fullmatch(_TAG_FORM, tag) is not None
        and (len(primary) > 2 or _TWO_LETTERS.fullmatch(primary) is not None)
    )


def _check_assigned(tag: str) -> str:
    """Refuse a code of two letters that is no language, as those of most countries.

    Raises:
        ValueError: names it.
    """
    if not is_language_tag(tag):
        raise ValueError(f"{tag!r} is no language of ISO 639-1; vi is Vietnamese, ja Japanese")
    return tag


_LONGEST_TAG = 35
# A language has two letters or three; `English` is a name of one.
_TAG_FORM = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$"
LanguageTag = Annotated[
    str,
    Field(
        max_length=_LONGEST_TAG,
        pattern=_TAG_FORM,
        description="BCP 47 tag: en, zh-TW, id, ms, pt, th, vi ...; it names suites and metrics",
    ),
    AfterValidator(_check_assigned),
    # Outermost: a pattern around a validator is not in the JSON schema that pydantic writes.
    BeforeValidator(language_tag),
]


class Problem(FrozenModel):
    """A prompt with everything its verifier needs; one row of problems.parquet."""

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


class Facet(FrozenModel):
    """A property of a problem that is not part of its prompt; drift is measured on it."""

    problem: str = Field(description="id")
    name: str = Field(description="category, brand, price ...")
    value: str


class Parent(StrEnum):
    """Which model a demonstration teaches: a parent of the merge (CompassMax), or another."""

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


class Demonstration(FrozenModel):
    """A prompt and the response to imitate; only response tokens have a loss."""

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


class DemonstrationUse(FrozenModel):
    """How often the chosen checkpoint was trained on a demonstration."""

    id: str
    source_row: str
    epochs: int = Field(ge=0, description="0 = of the validation rows, which choose the checkpoint")


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


class QuarantinedItem(FrozenModel):
    """One refused item."""

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


REPORT = "mix.json"
ASIDE = "aside.json"
REPLAYED = "replayed.json"
"""Ids of the problems that are old; beside the tables of the mixed set."""


class Aside(FrozenModel):
    """aside.json: files of a curated set that people have to look at; nothing learns from them."""

    curated: str = Field(default="", description="digest of the set")
    files: tuple[str, ...] = Field(default=(), description="sha256 of each")


class MixReport(FrozenModel):
    """mix.json."""

    fresh: int = Field(description="new problems to train on")
    replayed: int = Field(description="old problems among them")
    held_out: int = Field(description="problems of all slices")
    added: int = Field(description="problems of the slice that is new; 0 = the month had one")
    slice: str = Field(description="its name; '' if there is none")
    demonstrations: int = Field(description="new ones, verified by curation")
    practised: int = Field(description="old ones beside them")
    parents: dict[str, int] = Field(description="demonstrations per parent")
    refused: dict[str, int] = Field(description="items dropped here, per reason")


PROBLEMS = "problems.parquet"
"""Problem: those to train on."""
DEMONSTRATIONS = "demonstrations.parquet"
"""Demonstration."""
HELD_OUT = "held_out.parquet"
"""Problem: those to evaluate with."""
FACETS = "facets.parquet"
"""Facet: properties of the problems besides; only there if a source has any."""
QUARANTINE = "quarantine.parquet"
"""QuarantinedItem: every item that was left out; of a graded set too."""
ROWS = "rows.parquet"
"""RowPlace: every raw row that was read."""
DECISIONS = "decisions.parquet"
"""AppliedDecision: what people decided about gold answers; only there if they did."""
CROISSANT = "croissant.json"
"""The tables of a curated set as metadata in Croissant 1.0."""
GRADED = "graded.parquet"
"""GradedProblem: the table of a graded set."""
