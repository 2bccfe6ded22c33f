"""Measure the length of a text: characters, words and sentences, also in scripts without spaces.

Thai has no spaces between words and no mark at the end of a sentence, so its words and sentences
are counted as a range that contains the number, never as a guess. Chinese and Japanese sentences
end at their full stop, at ! and ?, at the end of a line, and not inside quotation marks.
"""

# ruff: noqa: RUF001, RUF002 - punctuation of other scripts

import re
import unicodedata

from tasks.algorithms.folding import unified

SPACELESS = r"\u0e00-\u0e7f\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Thai, kana and Han: a word may stand next to any letter."""
HAN = r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
THAI = r"\u0e01-\u0e3a\u0e40-\u0e4e"

QUOTED = re.compile(r"「[^「」]*」|『[^『』]*』")

LONGEST_THAI_WORD = 16
"""Most written units (consonants with their marks) of a word; only long proper names exceed it."""

_LIST_MARK = re.compile(
    r"^[ \t>#*_-]*(?:\d{1,3}(?:\.\d{1,3}){0,3}|x?(?:i[ivx]|vi{0,3}|x)i{0,2})[.)]+[*_]*(?=[ \t]+\S)",
    re.IGNORECASE | re.MULTILINE,
)
"""`1.`, `2)`, `1.2.`, `iv.` before the text of a list item or heading."""
_ABBREVIATION = re.compile(
    r"\b(?:"
    r"mr|mrs|ms|messrs|dr|prof|rev|gen|col|capt|lt|sgt|gov|sen|rep|hon|sr|jr|st|ste|"  # English
    r"vs|cf|e\.g|i\.e|u\.s|"
    r"sra|srta|sres|dra|drs|exmo|exma|ud|uds|ej|ee|"  # Spanish, Portuguese
    r"mm|mme|mlle|"  # French
    r"tn|ny|pn|jl|hlm|"  # Indonesian
    r"tp|pgs|ths|"  # Vietnamese
    r"nr|bzw|"  # German
    r"sdn|"  # Malay
    r"bb|gng|kgg|"  # Filipino
    r"[a-z]"
    r")\.$",
    re.IGNORECASE,
)
_ABBREVIATION_OR_WORD = re.compile(
    r"\b(?:"
    r"etc|inc|ltd|co|corp|a\.m|p\.m|no|fig|approx|dept|est|al|ca|ex|pp|ed|eds|vol|cap|chap|art|"
    r"av|ave|blvd|tel|min|max|ext|"
    r"núm|num|pág|pag|aprox|env|uu|ltda|"  # Spanish, Portuguese, French
    r"bhd|"  # Malay
    r"cie|"  # French
    r"dll|dsb|dst|"  # Indonesian
    r"atbp|"  # Filipino
    r"usw|"  # German
    r"v\.v|"  # Vietnamese
    r"jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec"
    r")\.$",
    re.IGNORECASE,
)
"""Some are words of another language; before a capital letter they end the sentence."""
_LONGEST_ABBREVIATION = 16
_CLOSING = "\"')]*_”’»"
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]+[\"')\]*_”’»]*(?:\s»)?(?=\s|$)|[。！？।]+[」』”]?")
_NUMBER = re.compile(r"\s*\d{1,3}[.)]+")
_MAY_GO_ON = re.compile(r"(?:\.{2,}|.*…|[.!?…]+[\"')\]_”’»]*\s?[\"”’»])$")
"""Ellipses and marks inside quotation marks; before a small letter they end no sentence."""
_FULL_STOPS = ".。।"
_ENDS = _FULL_STOPS + "!?…"
_WRAPPING = " \t\n\r\"'”“«»」』「『"
_TYPOGRAPHY = str.maketrans("’‘“”", "''\"\"")
_EAST_ASIAN_END = re.compile(r"[。！？!?]+|\n")
_WORD = re.compile(
    r"[^\W_](?:[^\W_]|[\u0300-\u036f])*(?:[-'\u2019][^\W_](?:[^\W_]|[\u0300-\u036f])*)*"
)
_SPACED = rf"[^\W{SPACELESS}]"
_HAN_CHARACTER = re.compile(f"[{HAN}]")
_THAI_RUN = re.compile(f"[{THAI}]+")
_THAI_VOWELLED = re.compile(
    r"[\u0e40-\u0e44]?[\u0e01-\u0e2e](?:[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]+[\u0e30\u0e32\u0e33\u0e45]?"
    r"|[\u0e30\u0e32\u0e33\u0e45])|[\u0e40-\u0e44][\u0e01-\u0e2e]"
)
_THAI_ALONE = "ณธฤฦฯๆ"


def sentences(text: str) -> list[str]:
    """Split text into sentences; a blank line ends one, and so does a numbered list item.

    Abbreviations, initials, decimals and the numbers of a list end none.
    """
    results: list[str] = []
    for paragraph in re.split(r"\n\s*\n", _LIST_MARK.sub("\n\n", text)):
        start = 0
        for match in _SENTENCE_END.finditer(paragraph):
            if _goes_on(paragraph, match) or _abbreviates(paragraph, start, match):
                continue
            number = _NUMBER.fullmatch(paragraph, start, match.end())
            if not number or not paragraph[match.end() :].strip():
                results.append(paragraph[start : match.end()])
            start = match.end()
        results.append(paragraph[start:])
    return [piece.strip() for piece in results if re.search(r"\w", piece)]


def _goes_on(paragraph: str, end: re.Match[str]) -> bool:
    following = paragraph[end.end() : end.end() + 2].lstrip()[:1]
    return following.islower() and _MAY_GO_ON.fullmatch(end[0]) is not None


def _abbreviates(paragraph: str, start: int, end: re.Match[str]) -> bool:
    dotted = end[0].startswith(".") and len(end[0].rstrip(_CLOSING)) == 1
    if not dotted or end.end() == len(paragraph):
        return False
    tail = paragraph[max(start, end.start() - _LONGEST_ABBREVIATION) : end.start() + 1]
    goes_on = not paragraph[end.end() : end.end() + 2].lstrip()[:1].isupper()
    return bool(_ABBREVIATION.search(tail) or (goes_on and _ABBREVIATION_OR_WORD.search(tail)))


def east_asian_sentences(text: str) -> list[str]:
    """Split Chinese or Japanese text at 。！？ and at line ends, outside of quotation marks."""
    return [
        part.strip() for part in _EAST_ASIAN_END.split(unquoted(text)) if re.search(r"\w", part)
    ]


def unquoted(text: str) -> str:
    """Replace 。！？ and line ends inside 「」 and 『』 by spaces."""
    return QUOTED.sub(lambda quote: re.sub(r"[。！？!?\n]", " ", quote[0]), text)


def sentence_bounds(text: str, language: str) -> tuple[int, int]:
    """Return the smallest and the largest number of sentences the text may have.

    They differ in Thai only: at least one per paragraph, at most one per piece between spaces.
    """
    match language:
        case "th":
            pieces = [
                piece for piece in re.split(r"[\s.!?]+", text) if re.search(r"[^\W\d]", piece)
            ]
            return len(paragraphs(text)), len(pieces)
        case "zh":
            count = len(east_asian_sentences(text))
        case _:
            count = len(sentences(text))
    return count, count


def ends_with(text: str, phrase: str) -> bool:
    """Say whether a text ends with a phrase, in any case and with its marks in any typography.

    Quotation marks may follow; so may a full stop, if the phrase has no such mark of its own: "no
    other word" may follow, the instructions say.
    """
    tail, phrase = _typed(text.rstrip()[-4 * len(phrase) - 1000 :]), _typed(phrase) or phrase
    if phrase[-1] not in "*_":  # marks of emphasis are no word
        tail = tail.rstrip("*_" + _WRAPPING)
    if phrase[-1] not in _ENDS:
        tail = tail.rstrip(_FULL_STOPS + "*_" + _WRAPPING)
    return tail.endswith(phrase)


def _typed(text: str) -> str:
    text = folded(text).translate(_TYPOGRAPHY)
    return re.sub(r"(?<!\s)\s+(?=[?!:;»])|(?<=«)\s+", "", text).strip(_WRAPPING)


def paragraphs(text: str) -> list[str]:
    """Split text at blank lines; a paragraph has at least one letter or digit."""
    return [part.strip() for part in re.split(r"\n[^\S\n]*\n", text) if re.search(r"\w", part)]


def words(text: str) -> list[str]:
    """Split text at spaces and punctuation; hyphens and apostrophes between letters join."""
    return _WORD.findall(unicodedata.normalize("NFC", text))


def word_bounds(text: str, language: str) -> tuple[int, int]:
    """Return the smallest and the largest number of words the text may have.

    Chinese counts every character as a word, as word processors do, and a run of Latin letters or
    digits as one. Vietnamese counts syllables, as they are written apart. In Thai the two numbers
    differ: a word is at most LONGEST_THAI_WORD written units long and does not go over a space,
    and a consonant without a vowel or tone mark needs another one to be a word.
    """
    text = unicodedata.normalize("NFC", text)
    match language:
        case "zh":
            count = len(_HAN_CHARACTER.findall(text)) + len(words(_HAN_CHARACTER.sub(" ", text)))
        case "th":
            other = len(words(_THAI_RUN.sub(" ", text)))
            runs = [_thai_words(run) for run in _THAI_RUN.findall(text)]
            return (
                other + sum(low for low, _ in runs),
                other + sum(high for _, high in runs),
            )
        case _:
            count = len(words(text))
    return count, count


def characters(text: str) -> int:
    """Count visible characters without spaces; combining marks belong to their letter."""
    return sum(
        unicodedata.category(char) not in ("Mn", "Me", "Cf", "Cc") and not char.isspace()
        for char in unicodedata.normalize("NFC", text)
    )


def script_characters(text: str, script: str) -> int:
    """Count the characters of a class; combining marks belong to their letter."""
    return characters("".join(re.findall(f"[{script}]", text)))


def occurrences(text: str, word: str) -> int:
    """Count a word or phrase: as whole words; in Thai, kana and Han also inside others.

    Letter case, compatibility forms (full-width letters, decomposed accents) and where a line ends
    do not count.
    """
    word, text = (" ".join(folded(one).split()) for one in (word, text))
    return len(re.findall(_bounded(word), text))


def folded(text: str) -> str:
    """Return the text in one spelling, in NFKC and case-folded."""
    plain = unicodedata.normalize("NFKC", unified(text)).casefold()
    return unicodedata.normalize("NFKC", plain)


def _bounded(word: str) -> str:
    before = rf"(?<!{_SPACED})" if re.match(_SPACED, word) else ""
    after = rf"(?!{_SPACED})" if re.match(_SPACED, word[-1]) else ""
    return before + re.escape(word) + after


def _thai_words(run: str) -> tuple[int, int]:
    vowelled = _THAI_VOWELLED.findall(run)
    bare = [part for part in re.split(r"\x00+", _THAI_VOWELLED.sub("\x00", run)) if part]
    alone = sum(run.count(char) for char in _THAI_ALONE)
    units = len(vowelled) + sum(len(part) for part in bare)
    low = -(-units // LONGEST_THAI_WORD)
    return low, max(low, len(vowelled) + alone + sum(len(part) // 2 for part in bare), 1)
