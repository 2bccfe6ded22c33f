"""Clauses that select one option of all: `A: no. B: yes. C: no.`, `Only B works`, `A... no, B`.

A list of what is said of each option, at the beginning, announces the one that it calls right. One
that calls none or several of them right states so many answers.
"""

# ruff: noqa: RUF001 - other scripts
import re
from collections.abc import Collection, Sequence

from tasks.gym.denials import WINDOW
from tasks.gym.options.announcements import HYPOTHESIS
from tasks.gym.options.explanations import NOT_FALSE
from tasks.gym.options.languages import (
    ALSO,
    ALSO_SPACELESS,
    AND,
    BUT,
    BUT_SPACELESS,
    FALSE,
    LANGUAGES,
    OR,
    compile_folded,
)

_YES = (
    "yes|true|right|correct|ya|benar|betul|tepat|sim|cert[ao]|corret[ao]|verdadeir[ao]|sí|si|"
    "verdader[ao]|correct[ao]|oui|vraie?|correcte|juste|ja|richtig|korrekt|wahr|sì|ver[ao]|giust[ao]|"
    "corrett[ao]|có|đúng|oo|opo|tama|ใช่|ถูก(?:ต้อง)?|是|[对對]的?|正[确確]的?|✓|✔|✅|☑"
)
_NO = (
    "no|false|wrong|incorrect|tidak|bukan|salah|keliru|não|errad[ao]|incorret[ao]|fals[ao]|"
    "incorrect[ao]|non|faux|fausse|incorrecte|nein|falsch|inkorrekt|sbagliat[ao]|errat[ao]|không|sai|hindi|mali|"
    "ไม่ใช่|ไม่ถูก(?:ต้อง)?|ผิด|否|不是|不?[错錯]|不[对對]|不正[确確]|[错錯][误誤]|✗|✘|❌|×"
)
_HEAD = (
    r"[\s*(\-•|]{0,6}(?:(?:option|opsi|pilihan|opção|opción|choice|ข้อ|[選选][項项]) )?"
    r"(?<![^\W_])(?P<letter>[a-z])"
    r"(?:\)\s|[)*.]{0,3}\s?(?:[:|=→\u2013\u2014-]|(?:is|é|es|est|ist|è)(?= )|(?=[✓✔✅☑✗✘❌×])|"
    r"(?<=\.) (?=(?:yes|no|true|false|right|wrong|correct|incorrect)[.;\n])))"
)
# "a: no", "(b) - yes, it is blue.", "c is wrong"
# "a. false.", as in a list of three options or more; two may be the options themselves
_DOTTED = re.compile(r"[a-z]\. (?:yes|no|true|false|right|wrong|correct|incorrect)(?!\w)")
_ITEM = compile_folded(
    rf"{_HEAD}[\s*]{{0,4}}(?:(?P<yes>{_YES})|{_NO})(?!\w)\*{{0,2}}"
    r"(?:\s?[,(;\u2013\u2014-][^.。\n]{0,120}?)?[\s.,;。、|]*"
    rf"(?=\Z|(?<=[.\n。])|{_HEAD.replace('?P<letter>', '?:')})"
)
_SAID = compile_folded(rf"{_YES}|{_NO}")
MIN_ITEMS = 2
# "only b works", "hanya b yang benar", "só b está correta", "b lamang ang tama", "只有b正确"
_ONLY = compile_folded(
    r"(?:\A|(?<=[.!,:;\n。])\s?|(?<!\w)(?:so|thus|hence|therefore|jadi|maka|vậy|logo|portanto|donc|"
    r"quindi|also|daher|entonces)\s|因此|所以|ดังนั้น\s?)"
    r"(?:(?:only|hanya|cuma|chỉ(?: có)?|só|apenas|somente|s[oó]lo|solamente|seule?|seulement|nur|"
    r"tanging|soltanto)\s|มีเพียง\s?|มีแค่\s?|เฉพาะ\s?|只有|仅有|僅有)"
    r"(?:(?:option|choice|opsi|pilihan|jawaban|jawapan|a|la|la réponse|l'option|a opção|"
    r"a alternativa|la opción|đáp án|phương án|lựa chọn|die antwort|antwort|l'opzione|"
    r"la risposta)\s|ข้อ\s?|ตัวเลือก\s?|[选選][项項]\s?)?"
    r"\(?(?P<letter>[a-z])\)?\s?(?:(?:is|are|was|é|está|es|est|ist|è|là|yang|ang|can be|that is|"
    r"là đáp án)\s|(?:เท่านั้น)?ที่\s?|เท่านั้น\s?|[才是]{1,2})?"
    rf"(?:(?=[.!\n。]|\Z)|{_YES}|works|fits|holds|applies|makes sense|is possible|funciona|serve|"
    r"sirve|convient|marche|passt|stimmt|funziona|va bene|phù hợp|sesuai|cocok|符合|成立|可行)"
    r"(?=\s?(?:[.!,;\n。]|\Z|because|since|karena|kerana|vì|porque|parce|weil|perché|เพราะ|因))"
)
_END = r"(?=\s?(?:[.!\n。]|\Z))"
_LETTER = (
    r"(?:(?:option|choice|opsi|pilihan|opção|opción|a|la|ข้อ|[選选][項项])\s?)?"
    r"\(?(?P<letter>[a-z])\)?"
)
# "all except b are wrong", "semua salah kecuali b", "除了b都错", "it has to be b", "richtig ist b"
_OTHERWISE = tuple(
    compile_folded(rf"(?:\A|(?<=[.!\n。])\s?)(?:{form.replace('LETTER', _LETTER)}){_END}")
    for form in (
        rf"(?:all|everything|every (?:option|choice))(?: the)?(?: options| choices| answers)? "
        rf"(?:except|but|other than) LETTER (?:is|are) (?:{FALSE})",
        r"semua(?:nya)?(?: opsi| pilihan)? salah kecuali LETTER",
        r"tất cả(?: đều)? sai,? trừ LETTER",
        r"ผิดทุกข้อ ?ยกเว้น ?LETTER",
        r"tod[ao]s,? (?:exceto|menos|excepto|salvo) LETTER,? (?:estão|são|son|están) "
        r"(?:errad|incorret|fals|incorrect)[ao]s",
        r"toutes,? sauf LETTER,? sont fausses",
        r"alle au(?:ß|ss)er LETTER sind falsch",
        r"tutte,? tranne LETTER,? sono (?:sbagliate|errate|false)",
        r"除了? ?LETTER ?(?:以?外,?)?(?:其他|其它)?[都均全]?是?(?:[错錯]的?|不[对對]|不正[确確])",
        r"it (?:has to|must|can only) be LETTER",
        r"(?:i am|i'm) (?:confident|certain|sure)(?: that)? it(?: is|'s) LETTER",
        r"without (?:a |any )?doubt,? (?:it is |it's )?LETTER",
        r"(?:richtig|korrekt) ist LETTER",
        r"(?:lösung|solution|solución|solução): ?LETTER",
        r"(?:tama|wasto) ang LETTER",
    )
)
_LIST = rf"\(?[a-z]\)?(?!\w)(?:(?:, ?| |、|&)(?:(?:{AND}|at|{OR}) )?\(?[a-z]\)?(?!\w)){{0,8}}"
# "none of a, c, d fit; b does", "neither a, c nor d; b"
_NONE_OF = compile_folded(
    rf"(?:\A|(?<=[.!\n])\s?)(?:none of|neither(?: of)?)(?: options?)? (?P<list>{_LIST})"
    r"(?: (?:fits?|works?|applies|apply|is|are|does|do|seems?|makes?)(?: \w+)?)?"
    r"(?:[;,.:] ?|\s[\u2013\u2014-]\s)(?:(?:but|so|only|thus|hence|therefore),? )?"
    rf"{_LETTER}(?: (?:does|do|is|fits|works|applies))?{_END}"
)
# "a and c are red, so b" ends the text
_CONCLUDING = compile_folded(
    r"(?:\A|(?<=[\s,;.:]))(?:(?:so|thus|hence|therefore|in conclusion|in short|to sum up|overall|"
    r"i\.e\.|namely|let's go with|(?:i'd|i would) say|it (?:must|has to|can only) be|has to be|"
    r"only one remains|(?<=\A)sure|jadi|maka|oleh (?:karena )?itu|dengan demikian|"
    r"kesimpulan(?:nya)?|menurut saya|vậy|do đó|vì vậy|vì thế|kết luận|theo tôi(?: là)?|"
    r"logo|portanto|então|assim|conclusão|entonces|conclusión|por (?:lo )?tanto|donc|ainsi|"
    r"quindi|dunque|daher|deshalb|folglich|kaya|samakatuwid|sa tingin ko(?: ay)?)"
    r"(?:(?:,? it is|,? it's|[,:!])?\s)|"
    r"(?:所以|因此|[综綜]上(?:所述)?|我(?:[认認][为為]|[觉覺]得))[,:]?(?:是|就是)?\s?|"
    r"(?:ดังนั้น|เพราะฉะนั้น|สรุป)[:]?\s?|(?:→|➡\ufe0f?|=>)\s?)"
    r"(?:(?:option|choice|opsi|pilihan|opção|opción|đáp án|phương án|ข้อ|[選选][項项])\s?)?"
    r"\(?(?P<letter>[a-z])\)?[\s.!*。]*\Z"
)
_OPEN = compile_folded(
    r"(?<!\w)(?:either|maybe|perhaps|torn|(?:un|not |n't )(?:sure|certain)|"
    r"(?:cannot|can't) decide|guess|mungkin|talvez|quizás?|"
    r"có thể|có lẽ|peut-être|vielleicht|forse|baka)(?!\w)|可能|也[许許]|อาจ"
)
"""Before a conclusion: it may be a guess."""
_OPTION = (
    r"[(*]{0,3}(?:(?:option|choice|opsi|pilihan|opção|opción|đáp án|phương án|ข้อ|[选選][项項]) ?)?"
    r"\(?[a-z][)*]{0,3}(?![a-z0-9])"
)
_START = r"(?:\A|(?<=[.!\n。])\s?)(?=[\w(*])"
_TURN = rf",?\s?(?:(?:{BUT}) |(?:{BUT_SPACELESS}) ?)(?!so |neither |nor )"
_NOT_ALSO = rf"(?![^.!\n。]{{0,{WINDOW}}}?(?:(?<!\w)(?:{ALSO})(?!\w)|{ALSO_SPACELESS}))"
_TEMPTS, _SEEMS = (
    "|".join(getattr(language, kind).replace("X", _OPTION) for language in LANGUAGES)
    for kind in ("tempts", "seems")
)
# "a is tempting but", "a seems right, but": concedes something and asserts nothing
_CONCEDED = compile_folded(rf"{_START}(?:{_TEMPTS}|{_SEEMS})(?!\w){_TURN}{_NOT_ALSO}")
# "b is tempting"
_TEMPTING = compile_folded(rf"{_START}(?:{_TEMPTS})(?!\w){_END}")
_SEEMING = compile_folded(rf"{_START}(?:{_SEEMS})(?!\w){_END}")
MAX_CONCEDED = 4
"""Options that a text concedes something of; there is one question."""
_NO_WORD = (
    r"(?:wait|hmm|oh|eh|ah|à)?\W{0,3}(?:no|nope|wait|sorry|tidak|bukan|maaf|não|non|nein|"
    r"không(?: phải)?|hindi|不[是对對]?|ไม่(?:ใช่)?)"
)
# "a... no, b"; in Thai "a... ไม่ใช่ b" says that it is not b
_RETRACTED = compile_folded(
    rf"\W{{0,6}}[a-z]\W{{1,8}}{_NO_WORD}\s?[,.;:!…、。\u2013\u2014-]{{1,3}}\s?"
    r"(?:it(?:'s| is) |option )?\W{0,3}(?P<last>[a-z])\W{0,6}"
)


def select(text: str, options: Sequence[frozenset[str]]) -> str:
    """Write a list of what is said of each option, and what selects one, as an announcement.

    Args:
        text: of `plain`.
        options: their folded names.
    """
    called, rest = _called(text, options)
    if called:
        right = (f"answer: {letter}" for letter, is_right in called.items() if is_right)
        return "\n".join((*right, rest))
    names = frozenset[str]().union(*options)
    text = _without_concessions(text)
    for pattern in (_ONLY, *_OTHERWISE):
        text = pattern.sub(
            lambda one: f"\nanswer: {one['letter']}" if one["letter"] in names else one[0], text
        )
    text = _NONE_OF.sub(
        lambda one: one[0] if _names(one["letter"], one["list"]) else f"\nanswer: {one['letter']}",
        text,
    )
    return _concluded(text, names)


def _without_concessions(text: str) -> str:
    """Leave out what is said of options that only tempt: `A is tempting but B is right`."""
    for place in range(MAX_CONCEDED):
        text, count = _CONCEDED.subn("", text)
        if not count:
            return (_SEEMING if place else _TEMPTING).sub("", _TEMPTING.sub("", text))
    return text


def _concluded(text: str, names: Collection[str]) -> str:
    """Announce the letter with which a text ends, `..., so B`, if nothing before speaks of it."""
    end = _CONCLUDING.search(text, max(0, len(text) - WINDOW))
    if end is None or end["letter"] not in names:
        return text
    before = text[max(0, end.start() - WINDOW) : end.start()]
    if _names(end["letter"], before) or any(
        pattern.search(before) for pattern in (HYPOTHESIS, NOT_FALSE, _OPEN)
    ):
        return text
    # A sign before it, so that "a is wrong, so b" has no "wrong answer: b".
    return f"{text[: end.start()].rstrip(' ,;:')}.\nanswer: {end['letter']}"


def _names(letter: str, text: str) -> bool:
    return re.search(rf"(?<![^\W\u0e00-\u9fff]){letter}(?![^\W\u0e00-\u9fff])", text) is not None


def unselected(text: str, options: Sequence[frozenset[str]]) -> str:
    """Return why a text leaves open whether it selects the right option, the first; '' if not.

    In `a... no, b` the right one replaces another, and a list calls nothing but the right one
    false, for which the question may ask.
    """
    replacing = _RETRACTED.fullmatch(text)
    if replacing and replacing["last"] in options[0]:
        return "taken_back"
    called, _ = _called(text, options)
    false = [letter for letter, is_right in called.items() if not is_right]
    is_only = len(false) == 1 and len(called) > MIN_ITEMS and false[0] in options[0]
    return "false_option_named" if is_only else ""


def _called(text: str, options: Sequence[frozenset[str]]) -> tuple[dict[str, bool], str]:
    """Return what a list at the beginning of a text calls each option, and the text behind it.

    There is none where an option is called both, or has a word of the list, as yes is, as its name.
    """
    names = frozenset[str]().union(*options)
    place, called = 0, dict[str, bool]()
    while item := _ITEM.match(text, place):
        letter, is_right = item["letter"], item["yes"] is not None
        if letter not in names or called.setdefault(letter, is_right) is not is_right:
            return {}, text
        place = item.end()
    least = MIN_ITEMS + (_DOTTED.match(text) is not None)
    if len(called) < least or any(_SAID.fullmatch(name) for name in names):
        return {}, text
    return called, text[place:]
