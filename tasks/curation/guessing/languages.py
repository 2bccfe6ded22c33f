"""Which language the rows of a table are in: by a column that says it, else by their texts."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from data_schemas.mappings import TEXT
from data_schemas.rows import is_language_tag, language_tag
from tasks.curation.cleaning.languages import Languages, languages_of
from tasks.curation.cleaning.writing_systems import primary
from tasks.curation.guessing.columns import HALF, MOSTLY, Column, listing, with_rows
from tasks.curation.readers.missing import is_doubtful

Tags = str | tuple[str, ...]
"""As in a mapping: a tag, the column that has it in braces, `text`, or tags to choose from."""

_LANGUAGE_NAMES = {
    "en": "english inggris bahasa_inggris inglés inglês ingles tiếng_anh อังกฤษ ภาษาอังกฤษ 英文 英語",
    "id": "indonesian indonesia bahasa_indonesia",
    "ms": "malay melayu bahasa_melayu bahasa_malaysia",
    "th": "thai ไทย ภาษาไทย",
    "vi": "vietnamese tiếng_việt tieng_viet",
    "pt": "portuguese português portugues",
    "zh": "chinese 中文 mandarin",
    "fil": "filipino tagalog pilipino",
    "es": "spanish español espanol",
    "de": "german deutsch",
    "fr": "french français francais",
    "ja": "japanese 日本語",
    "ko": "korean 한국어",
}
_TAGS_OF_NAMES = {
    name.replace("_", " "): tag for tag, names in _LANGUAGE_NAMES.items() for name in names.split()
}
_ISO_639 = (
    "af am ar as az be bg bn br bs ca ceb cs cy da de el en eo es et eu fa fi fil fr fy ga gd gl "
    "gu ha he hi hr ht hu hy id ig is it ja jv ka kk km kn ko ku ky la lb lo lt lv mg mi mk ml mn "
    "mr ms mt my nb ne nl nn no ny om or pa pl ps pt qu rm ro ru rw sd si sk sl sm sn so sq sr st "
    "su sv sw ta te tg th tk tl tn tr ts tt ug uk ur uz vi wo xh yi yo yue zh zu"
)
_KNOWN_TAGS = frozenset(_ISO_639.split())
"""Part 1 and three more: a country code such as VN or MX is no language."""
_UNDETERMINED = frozenset(("und", "mul", "zxx", "mis"))
"""Codes of ISO 639 for no language, or none that is known."""


def is_language(column: Column) -> bool:
    """True for a column of tags in any spelling, or of names of languages."""
    known = sum(n for value, n in column.counts.items() if _tag_of(value))
    unsure = [value for value in column.counts if value in _UNDETERMINED or is_doubtful(value)]
    stated = column.total - sum(map(column.counts.__getitem__, unsure))
    if known < MOSTLY * max(stated, 1):
        return False
    regions = sum("-" in _tag_of(value) for value in column.counts)
    is_plain = _has_names(column) or regions == len(column.counts) - len(unsure)
    # The names of rows may look alike: "id-1", "th-002".
    is_repeated = 1 < len(column.counts) <= HALF * column.total
    is_identity = column.is_named("identity")
    is_full = column.fill >= HALF
    return is_full and (
        column.is_named("language") or (is_plain and is_repeated and not is_identity)
    )


def _tag_of(value: str) -> str:
    """Return the tag of a language that a cell names; '' if it names none."""
    tag = _TAGS_OF_NAMES.get(value.casefold()) or str(language_tag(value))
    # "pt-BR", "fil", "es-419"; not "id-1", "in progress", and not "vn", which is a country.
    is_tag = re.fullmatch(r"[a-z]{2,3}(-[A-Za-z]{2,8}|-\d{3})*", tag)
    is_tag = is_tag and primary(tag) in _KNOWN_TAGS
    return tag if is_tag else ""


def language_of(
    columns: Sequence[Column], sources: Sequence[Column], texts: Sequence[str], language: str
) -> tuple[Tags, dict[str, dict[str, str]], list[str]]:
    """Return the language of a mapping, tags for the names in its column, and remarks.

    Args:
        columns: of the table.
        sources: those of them that say a language.
        texts: what each row asks.
        language: a tag, or the column that has it; '' = guess.
    """
    names = [column.name for column in columns]
    if language and language not in names:
        return _tag_of(language) or str(language_tag(language)), {}, []
    if sources:
        column = next((c for c in sources if c.name == language), sources[0])
        tags = {value: tag for value in sorted(column.counts) if (tag := _tag_of(value))}
        values = {column.name: tags} if _has_names(column) else {}
        return f"{{{column.name}}}", values, _rows_left_out(column)
    odd = [column for column in columns if column.is_named("language")]
    tags, assumption = _detected(languages_of([text for text in texts if text.strip()]))
    return tags, {}, [*map(_not_used, odd[:1]), assumption]


def _has_names(column: Column) -> bool:
    """True if a value is the name of a language, which a mapping has to translate into its tag."""
    return any(value.casefold() in _TAGS_OF_NAMES for value in column.counts)


def _rows_left_out(column: Column) -> list[str]:
    """Say in how many rows a column of languages is blank or names none."""
    remarks: list[str] = []
    num_rows = len(column.values)
    if blank := num_rows - column.total:
        remarks.append(
            f"{column.name} is blank in {blank:,} of {num_rows:,} rows; they are left out."
        )
    # A tag of a language that the list above lacks is one all the same.
    if odd := [value for value in _no_languages(column) if not is_language_tag(value)]:
        rows = sum(map(column.counts.__getitem__, odd))
        remarks.append(
            f"{listing(odd, 3)} in {column.name} ({rows:,} rows) is no language; they are left out."
        )
    return remarks


def _no_languages(column: Column) -> list[str]:
    return [value for value in column.counts if not _tag_of(value)]


def _not_used(column: Column) -> str:
    """Say why a column that is called a language is not taken for one."""
    odd = _no_languages(column)
    if column.fill < HALF:
        return f"{column.name} is blank in most rows, and is not used as the language."
    if not odd or len(odd) == len(column.counts):
        return f"{column.name} names no languages, and is not used as such."
    return (
        f"{column.name} is not used as the language: {with_rows(odd, column.counts)} is none. "
        "Correct the column, or write `values` for it."
    )


def _detected(languages: Languages) -> tuple[Tags, str]:
    """Return the language of a mapping whose table does not name it, and what was assumed."""
    tags, remedy = languages.tags, "Write it into the mapping, or give --language."
    if len(tags) == 0:
        remark = "No language is certain: each row has that of its own prompt, or none."
        return TEXT, f"{remark} {remedy}"
    if not languages.is_certain:
        names = " and ".join(tags)
        return tags, f"The texts do not tell {names} apart: a row is one of them, or none. {remedy}"
    if len(tags) > 1:
        return tags, f"Rows are in {', '.join(tags)}: each has the language of its prompt, or none."
    return tags[0], f"All rows are taken for {tags[0]}, as their prompts read. Else: --language."


def main_language(tags: Tags, columns: Mapping[str, Column]) -> str:
    """Return the language of nearly all rows; '' if there is none."""
    if isinstance(tags, tuple):
        # What is asked reads alike in both.
        return tags[0] if is_malay_or_indonesian(tags) else ""
    column = columns.get(tags.strip("{}"))
    if column is None:
        return tags
    counts = Counter[str]()
    for value, count in column.counts.items():
        counts[_tag_of(value)] += count
    tag, count = counts.most_common(1)[0]
    return tag if count >= MOSTLY * counts.total() else ""


def is_malay_or_indonesian(tags: Tags) -> bool:
    """True for the two languages that short texts do not tell apart."""
    return isinstance(tags, tuple) and {*tags} == {"id", "ms"}
