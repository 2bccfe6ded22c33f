"""How the columns of a table become the fields of problems and demonstrations: a mapping file.

A template is text with column names in braces: `{title}`, `{Product Name}`, `{left.price}` for
a value inside an object, `{choices.0}` for one in a list; `{{` and `}}` are braces. A
template that is one column alone keeps the column's own value, so that a list stays a list; a
number becomes text where the verifier compares texts.
"""

import re
from collections.abc import Iterator
from typing import Self, cast

from pydantic import Field, JsonValue, model_validator

from data_schemas.frozen_model import FrozenModel
from data_schemas.rows import Domain, Parent

SUFFIXES = (".yaml", ".yml", ".json")
"""Endings of a mapping file; JSON is read as YAML, which contains it."""
FILE = "file"
"""As a language: the one that the name of the file or its folder states."""
TEXT = "text"
"""As a language: the one in which the prompt of a row is written; `und` if that is not certain."""
UNDETERMINED = "und"
"""The BCP 47 tag of a text whose language nobody knows."""


class ColumnMapping(FrozenModel):
    """What one mapping file says. Rows become problems, demonstrations, or one of each."""

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
        description="column -> value in the file -> value to use, a text or true or false; a value "
        "may be that of another column of the row: `'{choices.0}': A`",
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
