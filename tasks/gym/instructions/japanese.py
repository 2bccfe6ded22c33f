"""The Japanese instructions of M-IFEval (2502.04688), each a predicate on the response.

未満 is fewer than, 以上 at least.

Differs: no morphological analyser is used. Keywords are searched as strings, also inside words. A
sentence ends in a noun (taigendome) if it ends in kanji, katakana or one of a few formal nouns,
and not in a noun if it ends in a common ending of verbs or adjectives; if the verdict depends on
other sentences, the check cannot decide. Spaces and line ends are not counted as characters;
section numbers may be kanji; every run of kanji needs furigana directly after it.
"""

# ruff: noqa: RUF001 - the Japanese marks are the point
import operator
import re
import unicodedata

from tasks.gym.instructions.arguments import (
    Arguments,
    Kind,
    between,
    check_count,
    phrase,
    relation,
    whole,
)
from tasks.gym.instructions.checks import (
    BULLETS,
    CHECKS,
    END,
    FORBIDDEN,
    LETTERS,
    NTH,
    POSTSCRIPT,
    SECTIONS,
    SENTENCES,
    ends,
    nth_paragraph,
)
from tasks.gym.instructions.european import one_answer
from tasks.gym.instructions.measures import HAN, QUOTED, east_asian_sentences

_KATAKANA = r"\u30a1-\u30fa\uff66-\uff9f"
_TO_KATAKANA = 0x60
_FURIGANA = re.compile(rf"[{HAN}]+(?:（[ぁ-ゖー]+）)?")
_NOUN_END = re.compile(rf"(?:[{HAN}{_KATAKANA}\u30fc0-9０-９A-Za-z]|こと|もの|ところ|とき|ため)$")
_NO_NOUN_END = re.compile(
    rf"(?:(?:です|ます|ました|ません|でした|ください|ない)[かねよ]?|である|だった|なかった|だろう|でしょう|"
    rf"ましょう|なさい|[うしきい]たい|しい|する|して|した|いる|いた|ある|なる|れる|せる|できる|った|んだ|のだ|"
    rf"[{HAN}][うくすつぬぶむるぐ]|[{HAN}][えけせてねべめれげぜ]る)$"
)


def _noun_endings(text: str) -> tuple[int, int]:
    certain = possible = 0
    for sentence in re.split(r"[。！？!?]", QUOTED.sub("", text))[:-1]:
        end = sentence.rpartition("\n")[2].rstrip()
        if not end:
            continue
        certain += bool(_NOUN_END.search(end))
        possible += not _NO_NOUN_END.search(end) or bool(_NOUN_END.search(end))
    return certain, possible


def _nominal(text: str, arguments: Arguments) -> bool | None:
    return between(*_noun_endings(text), operator.ge, arguments["count"])


def _unified(text: str, arguments: Arguments) -> bool:
    parts = re.split(r"[。！？!?]", QUOTED.sub("", text))
    results = [part.strip() for part in parts if re.search(r"\w", part)]
    return bool(results) and all(part.endswith(arguments["ending"].strip("。")) for part in results)


def _only(letters: str, text: str) -> bool:
    results = [char for char in text if unicodedata.category(char).startswith("L") and char != "ー"]
    return bool(results) and all(re.match(f"[{letters}]", char) for char in results)


def _letter_frequency(text: str, arguments: Arguments) -> bool:
    letter = arguments["letter"]
    count = text.count(letter)
    if "ぁ" <= letter <= "ゖ":
        count += text.count(chr(ord(letter) + _TO_KATAKANA))
    return arguments["let_relation"](count, arguments["let_frequency"])


def _forbidden(text: str, arguments: Arguments) -> bool:
    return not any(word in text for word in arguments["forbidden_words"])


def _postscript(text: str, arguments: Arguments) -> bool:
    marker = re.sub(r"\s", "", arguments["postscript_marker"])
    pattern = re.escape(marker).replace(r"\.", r"\.\s?").removesuffix(r"\s?")
    before = r"(?<![A-Za-z])" if marker[0].isascii() else ""
    return re.search(before + pattern, text, re.IGNORECASE) is not None


def _first_word(text: str, arguments: Arguments) -> bool:
    paragraph = nth_paragraph(text, arguments)
    return paragraph is not None and paragraph.lstrip("「『").startswith(arguments["first_word"])


def _sections(text: str, arguments: Arguments) -> bool:
    marker = re.escape(arguments["section_spliter"].strip())
    matches = re.findall(rf"第\s?[\d一二三四五六七八九十]+\s?{marker}", text)
    return len(matches) >= arguments["num_sections"]


def _quoted(text: str, arguments: Arguments) -> bool:
    del arguments
    return len(text.strip()) > 1 and text.strip()[0] == "「" and text.strip()[-1] == "」"


def _count_filled(pattern: str, text: str) -> int:
    return sum(bool(content.strip()) for content in re.findall(pattern, text))


def _furigana(text: str, arguments: Arguments) -> bool:
    del arguments
    return all(run.endswith("）") for run in _FURIGANA.findall(text))


_AS_IN_IFEVAL = (
    "keywords:existence",
    "keywords:frequency",
    "language:response_language",
    "length_constraints:number_paragraphs",
    "detectable_content:number_placeholders",
    "detectable_format:json_format",
    "combination:two_responses",
    "combination:repeat_prompt",
)

_KINDS: dict[str, Kind] = {
    **{name: CHECKS[name] for name in _AS_IN_IFEVAL},
    "keywords:forbidden_words": Kind(_forbidden, FORBIDDEN, "none of these words, nor inside one"),
    "keywords:letter_frequency": Kind(
        _letter_frequency, LETTERS, "how often a kana, as hiragana or katakana"
    ),
    "length_constraints:number_sentences": Kind(
        check_count(lambda text: len(east_asian_sentences(text)), "num_sentences"),
        SENTENCES,
        "how many sentences; a line end ends one, quotation marks hold none",
    ),
    "length_constraints:number_letters": Kind(
        check_count(lambda text: sum(not char.isspace() for char in text), "num_letters"),
        {"relation": relation, "num_letters": whole},
        "how many characters without blanks",
    ),
    "length_constraints:nth_paragraph_first_word": Kind(
        _first_word, NTH, "so many paragraphs, a blank line between them; one starts with a word"
    ),
    "detectable_content:postscript": Kind(_postscript, POSTSCRIPT, "a postscript"),
    "detectable_format:constrained_response": Kind(
        one_answer("はい、そうです。", "いいえ、違います。", "どちらとも言えません。"),
        {},
        "one of three answers",
    ),
    "detectable_format:multiple_sections": Kind(
        _sections, SECTIONS, "at least so many sections under 第1章, 第1節, 第1項"
    ),
    "detectable_format:nominal_ending": Kind(
        _nominal, {"count": whole}, "at least so many sentences end in a noun", "count_undecided"
    ),
    "detectable_format:number_bullet_lists": Kind(
        lambda text, a: (
            len(re.findall(r"^[^\S\n]*・[^・\n]", text, re.MULTILINE)) == a["num_bullets"]
        ),
        BULLETS,
        "exactly so many ・",
    ),
    "detectable_format:number_highlighted_sections": Kind(
        lambda text, a: _count_filled("《([^\n《》]*)》", text) >= a["num_highlights"],
        {"num_highlights": whole},
        "at least so many 《highlights》",
    ),
    "detectable_format:number_numbered_lists": Kind(
        lambda text, a: len(re.findall(r"^[^\S\n]*\d+\.\s", text, re.MULTILINE)) == a["num_items"],
        {"num_items": whole},
        "exactly so many lines that start with a number and a dot",
    ),
    "detectable_format:title": Kind(
        lambda text, _: _count_filled("『([^\n『』]*)』", text) > 0, {}, "a 『title』"
    ),
    "letters:furigana": Kind(_furigana, {}, "hiragana in （） after every run of kanji"),
    "letters:hiragana_only": Kind(lambda text, _: _only("ぁ-ゖゝゞ", text), {}, "hiragana only"),
    "letters:katakana_only": Kind(lambda text, _: _only(_KATAKANA, text), {}, "katakana only"),
    "letters:no_hiragana": Kind(
        lambda text, _: re.search(r"[ぁ-ゖ]", text) is None, {}, "no hiragana"
    ),
    "letters:no_katakana": Kind(
        lambda text, _: re.search(f"[{_KATAKANA}]", text) is None, {}, "no katakana"
    ),
    "letters:kanji": Kind(
        check_count(lambda text: len(re.findall(f"[{HAN}]", text)), "kanji_limit"),
        {"relation": relation, "kanji_limit": whole},
        "how many kanji",
    ),
    "letters:kansuuji": Kind(
        lambda text, _: re.search(r"\d", text) is None, {}, "numbers in kanji only"
    ),
    "punctuation:no_comma": Kind(lambda text, _: not set("、､，") & set(text), {}, "no 読点"),
    "punctuation:no_period": Kind(lambda text, _: not set("。｡") & set(text), {}, "no 句点"),
    "startend:end_checker": Kind(
        lambda text, a: ends(text.rstrip("*\n "), a), END, "these words last"
    ),
    "startend:quotation": Kind(_quoted, {}, "all in 「」"),
    "startend:sentence_unified_end": Kind(
        _unified, {"ending": phrase}, "every sentence has this ending, except in 「」 and 『』"
    ),
}

JAPANESE: dict[str, Kind] = {f"ja:{name}": kind for name, kind in _KINDS.items()}
