"""Tell the language of a text, or of a column of texts, and say when it is not certain.

Thai, Japanese, Korean and Chinese follow from the script; all others from py3langid 0.4.0, whose
model is in its wheel. Of rows of which it is sure, 97 to 100 % are right on names, messages and
reviews of shops in ten languages. Malay and Indonesian share most words: a short title is in one
of the two, and only many together, or a sentence, tell which.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from data_schemas.mappings import UNDETERMINED
from tasks.curation.cleaning.writing_systems import language_of, primary

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

LANGUAGES = (
    *("ar", "bg", "bn", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "he", "hi", "hu"),
    *("id", "it", "ja", "km", "ko", "lo", "ms", "my", "nl", "no", "pl", "pt", "ro", "ru", "sv"),
    *("ta", "te", "th", "tl", "tr", "uk", "ur", "vi", "zh"),
)
"""Languages, out of 130 that the model knows: with all of them, titles are taken for Latin and
Javanese."""
_TAGS = {"tl": "fil"}
_BY_SCRIPT = ("th", "ja", "ko", "zh")
_CLOSE = frozenset({"id", "ms"})
SURE = 0.8
"""Least probability of a language, or of Malay and Indonesian together, of a row that counts."""
_LEAD = 11.0
"""Nats by which one language has to lead over all rows: 10.6 is the largest lead of a wrong one
over 60 names of countries, and 14.3 the smallest of a right one over 60 short texts."""
_LEAD_PER_ROW = 0.3
"""Nats by which it has to lead on average: repeated texts add up to any lead. Indonesian leads over
Malay by 0.35 to 1.2 on Indonesian texts of six kinds, and by -0.4 to 0.14 on Malay texts."""
_FLOOR = 1e-3
"""Least probability of a row: one odd row must not outweigh a hundred."""
_MOST = 300
"""Texts of a column that are read, evenly spaced."""
_FEW = 0.08
"""Share of sure rows below which a language is taken for a slip of the model."""
_LEAST = 3
"""Sure rows of a language, of a table with more than five texts."""
_DIGITS = re.compile(r"\d+")
_LONG = 400
"""Characters of a text that are read."""


@dataclass(frozen=True, slots=True)
class Languages:
    """In which languages the texts of a column are."""

    tags: tuple[str, ...]
    """One if all rows are in it, several if rows differ; () if nothing is certain."""
    is_certain: bool
    """False: of Malay and Indonesian, the texts do not tell which."""
    num_sure: int
    num_texts: int


def language_among(text: str, tags: Sequence[str] = ()) -> str:
    """Return the language of a text; 'und' if it is not certain, or has no letters.

    Args:
        text: what a row asks.
        tags: the languages that it may be in; () = any.
    """
    chances = _chances(text)
    if tags:
        chances = {tag: chances.get(primary(tag), 0.0) for tag in tags}
        total = sum(chances.values())
        chances = {tag: chance / total for tag, chance in chances.items()} if total else {}
    best = max(chances, key=lambda tag: chances[tag], default=UNDETERMINED)
    return best if chances.get(best, 0.0) >= SURE else UNDETERMINED


def languages_of(texts: Sequence[str]) -> Languages:
    """Tell the languages of a column from all of its texts together."""
    # Copies, and titles that differ in a number, are no further evidence.
    texts = list({_DIGITS.sub("", text): text for text in texts}.values())
    step = max(1, len(texts) // _MOST)
    rows = [chances for text in texts[::step] if (chances := _chances(text))]
    sure = [(group, row) for row in rows if (group := _group(row))]
    counts = Counter(group for group, _ in sure)
    least = max(min(_LEAST, math.ceil(len(rows) / 2)), _FEW * len(sure))
    groups = [group for group, count in counts.most_common() if count >= least]
    if len(groups) <= 1:
        # Titles full of brands: hardly one is certain, and together they are.
        tags, is_certain = _together(rows)
        if tags and (not groups or tags[0] in groups[0]):
            return Languages(tags, is_certain, len(sure), len(rows))
    tags, is_certain = list[str](), True
    for group in groups:
        members = [row for other, row in sure if other == group]
        apart = {max(row, key=lambda tag: row[tag]) for row in members if max(row.values()) >= SURE}
        if len(group) > 1 and len(apart) < len(group):
            apart, told = _together(members, group)
            is_certain = is_certain and told
        tags += sorted(apart) if len(group) > 1 else group
    return Languages(tuple(tags), is_certain and bool(tags), len(sure), len(rows))


def _together(
    rows: Sequence[Mapping[str, float]], tags: Sequence[str] = ()
) -> tuple[tuple[str, ...], bool]:
    """Return the language that leads over all rows, or both of Malay and Indonesian."""
    names = tags or sorted({tag for row in rows for tag in row})
    logs = {tag: sum(math.log(max(row.get(tag, 0.0), _FLOOR)) for row in rows) for tag in names}
    best = sorted(logs, key=lambda tag: -logs[tag])
    least = max(_LEAD, _LEAD_PER_ROW * len(rows))
    if len(best) < 2 or logs[best[0]] - logs[best[1]] >= least:
        return tuple(best[:1]), True
    if {*best[:2]} == _CLOSE and (len(best) < 3 or logs[best[1]] - logs[best[2]] >= least):
        return tuple(sorted(_CLOSE)), False
    return (), False


def _group(chances: Mapping[str, float]) -> tuple[str, ...]:
    """Return the languages of which a row is in one for certain; () if there are none."""
    if sum(chances.get(tag, 0.0) for tag in _CLOSE) >= SURE:
        return tuple(sorted(_CLOSE))
    best = max(chances, key=lambda tag: chances[tag])
    return (best,) if chances[best] >= SURE else ()


def _chances(text: str) -> dict[str, float]:
    """Return the probability of every language; {} without letters."""
    text = text[:_LONG]
    if not any(letter.isalpha() for letter in text):
        return {}
    if (by_script := language_of(text)) in _BY_SCRIPT:
        return {by_script: 1.0}
    ranks = _model().rank(text)
    return {_TAGS.get(str(tag), str(tag)): float(chance) for tag, chance in ranks}


@cache
def _model() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    model.set_languages(list(LANGUAGES))
    return model
