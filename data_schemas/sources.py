"""Where rows come from: raw files, mapping files, suites of benchmarks and public sets."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from data_schemas.rows import Domain, Parent

# How the columns of a table become the fields of problems and demonstrations: a mapping file.
#
# A template is text with column names in braces: `{title}`, `{Product Name}`, `{left.price}` for
# a value inside an object, `{messages.0.content}` for one in a list; `{{` and `}}` are braces. A
# template that is one column alone keeps the column's own value, so that a list stays a list; a
# number becomes text where the verifier compares texts.

SUFFIXES = (".yaml", ".yml", ".json")
"""Of a mapping file; JSON is read as YAML, which contains it."""
FILE = "file"
"""As a language: the one that the name of the file or its folder states."""
TEXT = "text"
"""As a language: the one in which the prompt of a row is written; `und` if that is not certain."""
UNDETERMINED = "und"
"""The BCP 47 tag of a text whose language nobody knows."""


class ColumnMapping(BaseModel):
    """What one mapping file says. Rows become problems, demonstrations, or one of each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$", description="source of the rows")
    domain: Domain
    language: str | tuple[str, ...] = Field(
        min_length=1,
        description="BCP 47 tag, the column that has it, `file`, `text`, or a list of tags: the "
        "one of these in which the prompt is written",
    )
    prompt: str = Field(min_length=1, description="template of what the user asks")
    system: str = Field(default="", description="template of the system message")
    verifier: str = Field(
        default="",
        description="a key of tasks.gym.table.VERIFIERS, or one's own: my_file.py:name; "
        "'' = no problem",
    )
    answer: dict[str, JsonValue] = Field(
        default_factory=dict, description="the verifier's reference; every text is a template"
    )
    options: tuple[str, ...] = Field(
        default=(), description="all options of a choice: those not `correct` become `others`"
    )
    response: str = Field(
        default="", description="template of a response to imitate; '' = no demonstration"
    )
    parent: Parent = Field(default=Parent.COMMERCE, description="that a response teaches")
    id: str = Field(default="", description="template; '' = file name and row number")
    values: dict[str, dict[str, str | bool]] = Field(
        default_factory=dict,
        description="column -> value in the file -> value to use, a text or true or false",
    )
    facets: dict[str, str] = Field(
        default_factory=dict,
        description="name -> template, on which drift is measured; `pass_rate:MODEL` is 0 to 1",
    )
    licence: str = Field(
        default="", description="of the rows: an SPDX name, or words for terms; '' = not recorded"
    )
    responsible: str = Field(
        default="", description="who answers for the rows, such as a team; '' = not recorded"
    )

    @model_validator(mode="after")
    def _a_row_becomes_something(self) -> Self:
        if bool(self.verifier) != bool(self.answer):
            raise ValueError("verifier and answer are given together, or neither")
        if not self.verifier and not self.response:
            raise ValueError("give verifier and answer, or response: rows would become nothing")
        if self.options and (self.verifier != "choice" or "correct" not in self.answer):
            raise ValueError("options are those of verifier 'choice' with 'correct' in answer")
        return self

    @model_validator(mode="after")
    def _templates_can_be_filled(self) -> Self:
        unused = sorted(self.values.keys() - set(self.columns))
        if unused:
            raise ValueError(f"values translates {unused[0]!r}, which no template uses")
        if not any(placeholders(self.prompt)):
            raise ValueError("prompt uses no column, so that all rows would ask the same")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that a row needs, in the order of the fields."""
        optional = (self.system, self.prompt, *self.facets.values())
        names = [column for text in optional for column in placeholders(text)]
        return tuple(dict.fromkeys((*self.required, *names)))

    @property
    def required(self) -> tuple[str, ...]:
        """The columns among them that may not be blank in any row."""
        language = self.language if isinstance(self.language, str) else ""
        texts = (self.id, language, self.response, *_texts(self.answer))
        return tuple(dict.fromkeys(column for text in texts for column in placeholders(text)))


# "{{", "}}", "{g:title}", or text; a brace that is left alone matches the last.
_PART = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<column>[^{}]+)\}|(?P<text>[^{}]+)|(?P<alone>[{}])")


def template_parts(template: str) -> Iterator[tuple[str, str]]:
    """Split a template into pairs of text and the column that follows it; '' at the end.

    A column may have any name without braces: `{g:title}`, `{a.b[0]}`, `{Product Name!}`.

    Raises:
        ValueError: a brace is not closed, or names no column.
    """
    text = ""
    for part in _PART.finditer(template):
        if part["alone"]:
            raise ValueError(
                f"{template!r} is no template: braces hold the name of a column, and {{{{ is a "
                "brace"
            )
        if part["column"]:
            yield text, part["column"]
            text = ""
        else:
            text += part["brace"][0] if part["brace"] else part["text"]
    if text:
        yield text, ""


def placeholders(template: str) -> Iterator[str]:
    """Yield the columns of a template in order.

    Raises:
        ValueError: as `template_parts`.
    """
    return (column for _, column in template_parts(template) if column)


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _texts(item)
        case dict():
            for item in cast("dict[str, JsonValue]", value).values():
                yield from _texts(item)
        case _:
            pass


# A benchmark as a data file: how its rows are read, how often it is asked, what is reported.

SUITES_FILE = "suites.json"
"""Suites of a curated set, beside its held-out problems."""


class Metric(StrEnum):
    """The number that stands for a suite; a report has all of them."""

    AVG = "avg"
    """avg@k: share of responses that solve their problem."""
    PASS = "pass"
    """pass@k, unbiased."""
    MAJORITY = "majority"
    """majority@k."""
    SCORE = "score"
    """Mean score, partial credit included."""


class Selection(BaseModel):
    """Which rows are read, by the value of one column as text; none where it is blank."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    equals: tuple[str, ...] = Field(default=(), description="one of these; empty = any")
    first: str = Field(default="", description="not before: a date as 2024-08-01")
    last: str = Field(default="", description="not after, to the precision given here")

    def __contains__(self, value: object) -> bool:
        text = "" if value is None else str(value)
        if not text or (self.equals and text not in self.equals):
            return False
        return text >= self.first and (not self.last or text[: len(self.last)] <= self.last)


class SuiteGroup(BaseModel):
    """Suites that are evaluated together under one name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    members: tuple[str, ...] = Field(
        min_length=1,
        description="suite=path in the folder of the group; without a path, one that is generated "
        "or another group",
    )


class Suite(BaseModel):
    """What one file of a suite says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$", description="source of its problems")
    rows: str = Field(default="", description="adapter or mapping of the same name; '' = mapping")
    mapping: ColumnMapping | None = Field(default=None, description="instead of rows")
    select: dict[str, Selection] = Field(
        default_factory=dict, description="column -> rows that are read; others are dropped"
    )
    metric: Metric = Metric.AVG
    k: int = Field(
        default=0, ge=0, le=1024, description="responses per problem; 0 = evaluation.samples"
    )
    prompt: str = Field(default="{prompt}", description="form of the question: text and {prompt}")
    system: str = Field(default="", description="system message; '' = none")
    hub: tuple[str, str] | None = Field(
        default=None, description="dataset and task on the model hub, for .eval_results"
    )

    @model_validator(mode="after")
    def _problems_can_be_found_by_its_name(self) -> Self:
        if bool(self.rows) == (self.mapping is not None):
            raise ValueError("give rows, or a mapping")
        name = self.mapping.name if self.mapping else self.rows
        if name != self.name:
            raise ValueError(f"its rows are called {name!r}; give both the same name")
        if list(placeholders(self.prompt)) != ["prompt"]:
            raise ValueError("prompt needs {prompt}, once, and no other column")
        return self


# The leaves of the lineage chain: which raw files and rows a run read, by content.

RAW_FILES = "raw_files.json"
"""List of RawFile."""


class RawFile(BaseModel):
    """One raw file as it was when it was ingested; an entry of raw_files.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    adapter: str = Field(description="a name that `eachprompt data` lists, or a mapping")
    uri: str = Field(description="absolute path, or relative to the folder of raw_files.json")
    sha256: str
    bytes: int = Field(ge=0)
    limit: int = Field(ge=0, description="first rows of its source to read, 0 = all")
    source: int = Field(ge=0, description="position of its source in CurationSettings.sources")
    mapping: ColumnMapping | None = Field(
        default=None, description="that reads the rows instead of an adapter of that name"
    )
    suite: Suite | None = Field(
        default=None, description="of a benchmark: how its problems are asked"
    )
    verifier: str | None = Field(
        default=None, description="scores the problems instead of the one that the adapter names"
    )
    evaluation: Literal[True] | None = Field(
        default=None, description="true: its problems are held out, all of them"
    )
    licence: str | None = Field(default=None, description="that its source states, if it does")
    responsible: str | None = Field(default=None, description="as licence")


class RowPlace(BaseModel):
    """Where a raw row was read; the same bytes may lie in several places. A row of rows.parquet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source_row: str = Field(description="sha256 of the raw row's bytes")
    file: str = Field(description="sha256 of the raw file, as in raw_files.json")
    number: int = Field(ge=1, description="of the row in its file; blank lines do not count")


class Part(BaseModel):
    """Shards that one task maps: those of its number, modulo the number of parts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int = Field(ge=0, description="from 0")
    of: int = Field(ge=1, description="parts")


# The public data sets of this project, each with its role: trained on, or only evaluated with.
#
# One list for all who name them: workflows/runs.mk reads the lines of `SETS`, presets are checked
# with `BENCHMARKS`. An entry is an option of `--sources`, adapter=path below a folder of public
# data, with `evaluation:` in front of benchmarks: test and dev files, and sets that are published
# to evaluate with. A set may have a file of either role.

SETS = (
    "evaluation:mgsm=mgsm",
    "evaluation:gsm8k=gsm8k/test.jsonl",
    "evaluation:amc23=amc23",
    "evaluation:olympiadbench=olympiadbench",
    "evaluation:cmath=cmath_zh",
    "evaluation:humaneval=humaneval",
    "evaluation:cruxeval=cruxeval",
    "evaluation:bbh=bbh",
    "evaluation:xcopa=xcopa",
    "evaluation:knights_knaves=knights_knaves/3ppl_test.parquet",
    "evaluation:knights_knaves=knights_knaves/4ppl_test.parquet",
    "evaluation:knights_knaves=knights_knaves/5ppl_test.parquet",
    "evaluation:ifeval=ifeval",
    "evaluation:m_ifeval=m_ifeval",
    "evaluation:bfcl=bfcl_v4",
    "evaluation:api_bank=api_bank",
    "evaluation:tau_bench_retail=tau_bench_retail/tasks_dev.jsonl",
    "evaluation:ae110k=attribute_extraction/ae-110k_test.jsonl",
    "evaluation:amazon_google=product_matching/amazon_google_test.parquet",
    "evaluation:amazon_google=product_matching/amazon_google_valid.parquet",
    "evaluation:shoppingbench_knowledge=shoppingbench/web_simpleqa.jsonl",
    "evaluation:sentiment_id=nusax/sentiment_indonesian_test.jsonl",
    "evaluation:wisesight=wisesight_th",
    "gsm8k=gsm8k/train.jsonl",
    "gsm8k_model_solutions=gsm8k_model_solutions",
    "math_train=math_train",
    "qwen_math_graded=qwen_math_graded",
    "mbpp=mbpp",
    "marco_o1=marco_o1_cot",
    "s1k=s1k_sample",
    "knights_knaves=knights_knaves/3ppl_train.parquet",
    "knights_knaves=knights_knaves/5ppl_train.parquet",
    "toolrl_rlla=toolrl_rlla",
    "tau_bench_retail=tau_bench_retail/tasks_train.jsonl",
    "tau_bench_address=tau_bench_retail/db_users.jsonl",
    "ae110k=attribute_extraction/ae-110k_train.jsonl",
    "oa_mine=attribute_extraction",
    "amazon_google=product_matching/amazon_google_train.parquet",
    "product_matching=product_matching/walmart_amazon_train.parquet",
    "prdect_id=prdect_id",
    "prdect_id_emotion=prdect_id",
    "casa=indonlu/casa_train.jsonl",
    "hoasa=indonlu/hoasa_train.jsonl",
    "sentiment_id=indonlu/smsa_valid.jsonl",
    "nusax_translation=nusax/mt_train.jsonl",
)
_NOT_AT_HAND = (
    "aime24",
    "aime25",
    "av_speakerbench_blind",
    "bfcl_multi_turn",
    "gpqa",
    "hmmt",
    "livecodebench",
    "math500",
    "mmlu_redux",
    "sample_chains_both",
    "sample_chains_level",
    "sample_chains_template",
    "xstest_safe",
    "xstest_unsafe",
    "zebra_logic",
)
"""Benchmarks that are described, read or generated here and are not in the list."""


def _adapters(*, evaluation: bool) -> frozenset[str]:
    prefix = "evaluation:"
    return frozenset(
        entry.removeprefix(prefix).partition("=")[0]
        for entry in SETS
        if entry.startswith(prefix) is evaluation
    )


BENCHMARKS = (_adapters(evaluation=True) - _adapters(evaluation=False)) | {*_NOT_AT_HAND}
"""Sets of which no file is trained on."""
