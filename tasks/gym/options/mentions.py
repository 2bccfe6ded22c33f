"""Mentions of options in the clauses of a text, and what names an option.

A mention is a span of a text folded by `clauses`. An option of one letter that is also a word, as
"a" is in English, is mentioned only where its neighbours show that it is no word.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice

from tasks.gym.denials import LEAD, WINDOW, clauses, fold
from tasks.gym.options.languages import AND, OR

MAX_MENTIONS = 500
"""Mentions of options; a response with more counts as flooded."""
ARTICLES = frozenset("ao")
"""Words of one letter behind a verb, in English and Portuguese: `is a`, `é o`."""
# "b while a could be right", "b mientras que a podría": before such a verb "a" is no article.
# After "i", "o" and "y" one may stand that is a word: "i could", Spanish "y podría".
_POSSIBLE = (
    r"(?<=(?<!\w)[aeu]) (?:could|might|may|would|should|can(?= (?:also|be|work|fit|apply|equally))|"
    r"must(?= be)|will(?= (?:be|do|work|also))|also|works|fits|seems|looks|appears|"
    r"sounds|applies)(?!\w)"
    r"(?! (?:\w+ )?(?:seem|look|appear|sound)(?!\w))|"
    r"(?<=(?<!\w)a) (?:bisa|boleh|dapat|mungkin|barangkali|có (?:thể|lẽ)|pode(?:ria)?|poss[ao]|"
    r"talvez|podría|puede|pueda|quizás?|peut|pourrait|puisse|könnte|kann|auch|può|potrebbe|"
    r"ay (?:maaari|pwede)|(?:maaari|pwede)(?:ng)?)(?!\w)|"
    r" ?(?:อาจ|可能|也[许許]|或[许許]|大概)"
)
# "tetapi a juga benar", "a salah", "a不对": there "a" is no article; "e também" is "and also"
_ALSO = (
    r"(?<=(?<!\w)[aeiouy]) (?:também|instead|too|as well)(?= ?[|?]| ?$)|"
    r"(?<=(?<!\w)a) também(?!\w)|(?<=(?<!\w)mas [eo]) também(?!\w)|"
    r"(?<=(?<!\w)[ai]) está(?!\w)|(?<=(?<!\w)[aeiou]) también(?!\w)|"
    r" (?:juga|cũng|ay|è|benar|betul|tepat|salah|keliru|đúng|sai|richtig|falsch)(?!\w)|"
    r" [\u0e00-\u0e7f\u3400-\u9fff]"
)
# "b dan a benar", "b e a estão corretas"; in "b e a resposta" it is one.
_BOTH = "|".join(
    rf"(?<=(?<!\w)[a-z] {and_} [aeiouy]){verbs}(?!\w)"
    for and_, verbs in (
        ("and", " (?:both|are|fit|work|seem|apply)"),
        ("dan", ""),
        ("và", ""),
        ("e", " (?:estão|são|sono)"),
        ("y", " son"),
        ("et", " sont"),
        ("und", " sind"),
    )
)
# "so option", "therefore (", "选项", "所以"
BEFORE_LETTER = re.compile(
    r"(?:(?:(?:i|we) (?:conclude|find|see|know|believe|think)|"
    r"so|thus|hence|therefore|then|and|the|only|options?|choices?|answers?|letter|that|means|"
    r"opção|opción|"
    r"pilihan|opsi|jawa[bp]an|lựa chọn|phương án|đáp án|antwort|réponse|respuesta|resposta|"
    r"risposta|alternativa|"
    r"letra|l option|opzione|l opzione|also|daher|ist|jadi|maka|logo|portanto|donc|quindi|vậy|"
    r"la|a|die|huruf|ข้อ|"
    r"ตัวเลือก|ดังนั้น|"
    r"[選选][項项]|因此|所以|故|只有|makes|making|leaves) ?)*"
)
_SPACELESS_AND = re.compile(r"(?<=\S)(?:และ|[和與与及])(?=\S)")
_LISTED = re.compile(
    rf" (?:\| )?(?:(?:{AND}|&|{OR}) )+"
    r"(?:(?:the )?(?:option|choice|answer|opsi|pilihan|opção|opción) )?"
)
"""Between two options of a list."""
WORD_LETTERS = frozenset("aeiouy")
"""Options of one letter that are also words: "a" is an article."""
_AFTER_LETTER = (
    "is|are|or|because|since|as|é|es|est|ist|adalah|ialah|karena|kerana|vì|porque|parce|weil|"
    "but|sondern|sino|mais|mas|melainkan|tetapi|mà|แต่เป็น|แต่|项|項"
)
_CONTRAST = r"แต่|(?<!\w)(?:but|sondern|melainkan|tetapi|sino|mais|mas|mà) "
_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
BORDER = re.compile(
    r"(?<=[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff])(?=[0-9a-z])|"
    r"(?<=[0-9a-z])(?=[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff])"
)
"""Between scripts with and without spaces: `选B` is two words."""
# "a o b", Spanish or Filipino
_OR_LETTER = rf" (?:{OR}) [a-z](?= ?[|?]| ?$)"
_NO_WORD = (
    rf"(?= ?[|?]| ?$| (?:{_AFTER_LETTER}|&|{AND})(?!\w)|{_ALSO}|{_BOTH}|{_OR_LETTER}|{_POSSIBLE})"
)
_LETTERS = "".join(sorted(WORD_LETTERS))
_NAMING = re.compile(
    rf"(?:\A|(?<=\| )|(?={_CONTRAST})){LEAD}"
    rf"(?<!\w)(?P<name>[{_LETTERS}]{_NO_WORD}|[0-9a-z](?<![{_LETTERS}]))(?!\w)"
)
"""A clause that begins with a letter, or with words that announce it."""
_LEAD = re.compile(LEAD)
Span = tuple[int, int]


def place_of(clause: str, options: Sequence[Collection[str]]) -> int:
    """Return the place of the option that a clause consists of, as `option b` does; else -1."""
    clause = clause.rstrip("项項 ")  # 选B项
    for place, names in enumerate(options):
        if clause in names or any(ends_with(clause, name) for name in names if len(name) == 1):
            return place
    return -1


def ends_with(words: str, name: str) -> bool:
    """Say whether a clause ends with a name; one of a letter needs "option" or nothing before."""
    before = words.removesuffix(name)
    if before == words or (before and before[-1].isascii() and before[-1].isalnum()):
        return False
    if len(name) > 1 or not name.isascii():
        return True
    return BEFORE_LETTER.fullmatch(before) is not None


def find_mentions(aliases: Sequence[str], text: str, *, right: bool) -> list[Span]:
    """Find an option. A single letter that is right counts only where a clause names it."""
    results: list[Span] = []
    for alias in aliases:
        folded = fold(alias)
        if right and len(folded) == 1 and folded.isascii():
            names = (match.span("name") for match in _NAMING.finditer(text))
            spans = (span for span in names if text[slice(*span)] == folded)
            results += islice(spans, MAX_MENTIONS + 1)
            continue
        results += [
            match.span() for match in islice(pattern_of(alias).finditer(text), MAX_MENTIONS + 1)
        ]
    return results


def is_letter(text: str, span: Span) -> bool:
    return span[1] - span[0] == 1 and text[span[0]].isascii()


def end_of_naming(text: str, others: Sequence[Span]) -> int:
    """Return where the first clause ends that names no other option."""
    start = 0
    for end in re.finditer(rf"\||{_CONTRAST}", text):
        says = text[start : end.start()].strip(" |?")
        if (
            says
            and not _LEAD.fullmatch(f"{says} ")
            and not any(start <= span[0] < end.start() for span in others)
        ):
            return end.start()
        start = end.end()
    return len(text)


def group_lists(text: str, spans: Sequence[Span]) -> list[list[Span]]:
    """Return the options in lists, as in `A, C and D`; one that stands alone is a list too."""
    lists: list[list[Span]] = []
    for span in sorted(spans):
        if lists and _LISTED.fullmatch(text[lists[-1][-1][1] : span[0]]):
            lists[-1].append(span)
        else:
            lists.append([span])
    return lists


def is_inside(span: Span, longer: Sequence[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in longer if span != (start, end))


def context_of(text: str, span: Span) -> tuple[str, str]:
    start, end = span
    return text[max(0, start - WINDOW) : start], text[end : end + WINDOW]


@lru_cache(maxsize=4096)
def pattern_of(alias: str) -> re.Pattern[str]:
    """Match an alias: as a substring in scripts without spaces, else between word boundaries.

    Its `&` may be written as a word or left out, its "and" as `&`.
    """
    words = [
        word
        for word in BORDER.sub(" ", _SPACELESS_AND.sub(" & ", clauses(alias))).split()
        if word not in "|?"
    ]
    words = words or fold(alias).split()
    pattern, last = "", ""
    for place, word in enumerate(words):
        joins = 0 < place < len(words) - 1 and (word == "&" or word in AND.split("|"))
        gap = "[ |?]*" if last and (is_spaceless(last[-1]) or is_spaceless(word[0])) else "[ |?]+"
        if joins:
            pattern += rf"(?:[ |?]*(?:&|{AND}))" + ("?" if "&" in alias else "")
        else:
            pattern += (gap if last else "") + re.escape(word)
            last = word
    left = "" if is_spaceless(words[0][0]) else r"(?<!\w)"
    right = "" if is_spaceless(last[-1]) else r"(?!\w)"
    return re.compile(left + pattern + right + (_NO_WORD if fold(alias) in WORD_LETTERS else ""))


def is_spaceless(char: str) -> bool:
    return unicodedata.name(char, "").startswith(_SPACELESS)
