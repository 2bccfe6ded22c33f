r"""Rewrite numbers as people write them to one form, `1234567.8`, whatever the language.

Digits of any script, superscripts (`5²` is `5^{2}`), vulgar fractions, Chinese numerals, separators
of thousands and decimals. A text that consists of an integer in words becomes that integer
(`seventy-two` is `72`); an English noun is kept (`three apples` is `3 apples`). The problem's
language decides between point and comma, unless the number itself is unambiguous (`1.234.567,8`).
"""

# ruff: noqa: RUF001 - signs that people type
import re
import unicodedata

from tasks.gym.maths import number_words
from tasks.gym.maths.words import JOINT

COMMA_LANGUAGES = frozenset(
    re.findall(
        r"\w+",
        "az be bg bs ca cs da de el es et eu fi fr gl hr hu id is it ka kk lt lv mk nb nl nn no pl "
        "pt ro ru sk sl sq sr sv tr uk uz vi",
    )
)
"""Languages that write 1.234,5 (CLDR 45, decimal separator)."""

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_RAISED = re.compile(f"[{''.join(_SUPERSCRIPTS)}]+")
_LOWERED = re.compile(f"[{''.join(_SUBSCRIPTS)}]+")
_MEASURE = re.compile(r"(?<=\d)\s?([ckm]?m|ft|in|yd)([²³])")
_DASH_MINUS = re.compile(
    r"(?<![\d)\]}$%]\s)(?<![\w)\]}$%])[\u2010\u2011\u2013\ufe63\uff0d](?=[\d.])"
)
_HAN_DIGITS = {han: place for place, han in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_PLACES = {"十": 10, "百": 100, "千": 1000}
_HAN_SCALES = {"万": 10**4, "亿": 10**8}
_HAN = re.compile(
    f"[{''.join(_HAN_DIGITS | _HAN_PLACES)}][{''.join(_HAN_DIGITS | _HAN_PLACES | _HAN_SCALES)}]*"
)
_ONES = "one|two|three|four|five|six|seven|eight|nine"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_WORD_VALUES = {word: value for value, word in enumerate(f"zero|{_ONES}|{_TEENS}".split("|"))} | {
    word: 10 * place for place, word in enumerate(_TENS.split("|"), 2)
}
_GAP = r"[\s\u2010-]+"
_BELOW_100 = rf"(?:(?:{_TENS})(?:{_GAP}(?:{_ONES}))?|{_TEENS}|{_ONES})"
_BELOW_1000 = rf"(?:(?:a|{_BELOW_100}){_GAP}hundred(?:{_GAP}(?:and\s+)?{_BELOW_100})?|{_BELOW_100})"
_GROUP_GAP = rf"(?:,(?=[^,]*hundred))?{_GAP}(?:and\s+)?"
_SPELLED = re.compile(
    r"(?:(?:it|that|this) (?:is|equals)\s+|(?:it|that)['’]s\s+|there (?:are|is)\s+)?"
    r"(?:(?:exactly|simply|just|equal to)\s+)?(?P<minus>(?:minus|negative)\s+)?(?:zero|"
    rf"(?:(?P<millions>a|{_BELOW_1000}){_GAP}million(?:{_GROUP_GAP}|\b))?"
    rf"(?:(?P<thousands>a|{_BELOW_1000}){_GAP}thousand(?:{_GROUP_GAP}|\b))?"
    rf"(?P<rest>{_BELOW_1000})?)"
    r"(?P<noun>(?<=\w)\s+(?!hal(?:f|ves)|quarter|thirds|\w+ths|hundred|thousand|million|plus|"
    r"minus|times|dozens)(?:percent|per cent|[a-z]{2,}s))?",
    re.IGNORECASE,
)
_NUMBER_WORD = rf"(?:{_TENS}|{_TEENS}|{_ONES}|hundred|thousand|million|dozen|zero)(?![A-Za-z])"
_NEXT_WORD = rf"[\s\u2010-]{{1,3}}(?:and\s)?{_NUMBER_WORD}"
_NUMBER_WORDS = rf"(?:(?:minus|negative|an?)\s)?{_NUMBER_WORD}(?:{_NEXT_WORD}){{0,8}}"
_BESIDE_DIGITS = re.compile(
    rf"(?<![\w-])(?P<first>{_NUMBER_WORDS})(?=(?:,?\s(?:or|to|through)\s|\s?[–—/]\s?)[\d$\\])|"
    rf"(?<=between\s)(?P<lower>{_NUMBER_WORDS})(?=\sand\s[\d$\\])|"
    rf"(?<=[\d$}})])(?P<joined>,?\s(?:or|to|through)\s(?:(?:else|maybe|perhaps|possibly)\s)?|"
    rf"\s?[–—/]\s?|\s-\s|(?:,|,?\sand)\s(?={_NUMBER_WORDS}[.!)\s]{{0,9}}$))"
    rf"(?P<second>{_NUMBER_WORDS})(?![\w-])",
    re.IGNORECASE,
)
MAX_BESIDE = 60
"""Most characters of a number in words next to digits."""
_NO_WORDS = r"[^\d.,;:!?$\\(){}\[\]]"
_WORDS_AFTER = re.compile(
    rf"(?<=[\d$}})])(?P<joint>{JOINT})(?P<words>{_NO_WORDS}{{1,{MAX_BESIDE}}})", re.IGNORECASE
)
_JOINT_BEFORE = re.compile(rf"{JOINT}(?=[\d$\\])", re.IGNORECASE)
MAX_SPELLED = 150
"""Most characters of a number in words."""
_END = r"(?!\d|[.,]\d)"
_START = r"(?<![\d.,])"
_SPACED = r"\d{1,3}(?:[ '’]\d{3})+"
_POINT = re.compile(
    rf"{_START}(?:(?P<point>(?:\d{{1,3}}(?:,\d{{3}})+|{_SPACED})(?:\.\d+)?)|"
    rf"(?P<comma>\d{{1,3}}(?:\.\d{{3}})+,\d{{1,2}}|\d{{1,3}}(?:\.\d{{3}}){{2,}}(?:,\d+)?)){_END}"
)
_COMMA = re.compile(
    rf"{_START}(?:(?P<point>\d{{1,3}}(?:,\d{{3}})+\.\d+|\d{{1,3}}(?:,\d{{3}}){{2,}})|"
    rf"(?P<comma>[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:,\d+)?|{_SPACED}(?:,\d+)?|\d+,\d+)){_END}"
)
# Money is never written with three decimals.
_MONEY = re.compile(
    rf"(?P<before>(?:Rp\.?|IDR|VND|R\\?\$|BRL|€)\s*)?(?<![\d.,])"
    rf"(?:(?P<comma>\d{{1,3}}(?:\.\d{{3}})+(?:,\d{{1,2}})?|\d+,\d{{1,2}})|"
    rf"(?P<point>\d{{1,3}}(?:,\d{{3}})+(?:\.\d{{1,2}})?)){_END}(?P<after>\s*(?:₫|đ|€|VND|VNĐ|đồng)(?!\w))?"
)
_BRACKETS = re.compile(r"\\\{|\\\}|[()\[\]]")


def typed_minus(text: str) -> str:
    """Rewrite a dash that stands for the sign of a number; a range keeps its dash."""
    return text if text.isascii() else _DASH_MINUS.sub("-", text)


def plain_signs(text: str) -> str:
    """Rewrite digits, superscripts, signs of other scripts and full-width letters."""
    if text.isascii():
        return text
    text = _MEASURE.sub(lambda m: f" {m[1]}^{_SUPERSCRIPTS[m[2]]}", text)
    text = _RAISED.sub(lambda m: f"^{{{''.join(_SUPERSCRIPTS[c] for c in m[0])}}}", text)
    text = _LOWERED.sub(lambda m: f"_{{{''.join(_SUBSCRIPTS[c] for c in m[0])}}}", text)
    return unicodedata.normalize("NFKC", "".join(map(_plain_sign, text)))


def _plain_sign(sign: str) -> str:
    if sign.isascii():
        return sign
    digit = unicodedata.decimal(sign, None)
    if digit is not None:
        return str(digit)
    if unicodedata.decomposition(sign).startswith("<fraction>"):
        top, _, below = unicodedata.normalize("NFKC", sign).partition("\u2044")
        return f"\\frac{{{top}}}{{{below}}}" if below else sign
    return sign


def machine_numbers(text: str, language: str) -> str:
    """Rewrite every number of a text; in brackets a comma without a space separates members."""
    text = spelled_out(spelled_beside_digits(text, language), language)
    if language.startswith(("zh", "ja")):
        text = _HAN.sub(lambda match: str(_chinese(match[0])), text)
    if "," not in text and "." not in text and " " not in text and "'" not in text:
        return text
    text = _MONEY.sub(_without_separators_of_money, text)
    pattern = _COMMA if language.partition("-")[0].lower() in COMMA_LANGUAGES else _POINT
    spans = _bracketed(text)

    def rewritten(match: re.Match[str]) -> str:
        inside = any(start < match.start() < end for start, end in spans)
        return match[0] if inside and "," in match[0] else _without_separators(match)

    return pattern.sub(rewritten, text)


def spelled_out(text: str, language: str = "en") -> str:
    """Rewrite a text that consists of an integer in words; leave any other unchanged."""
    if text.isdecimal():  # as most answers are
        return text
    words = re.sub(r"\\(?:text(?:bf|it|rm)?|mathrm|mbox)\s*\{([^{}]*)\}", r"\1", text[:MAX_SPELLED])
    words = words.strip(" .!*_\"'“”‘’$。")
    if not words or len(text) >= MAX_SPELLED:
        return text
    found = _SPELLED.fullmatch(words)
    if found is None and language.startswith(("zh", "ja")) and _HAN.fullmatch(words):
        return str(_chinese(words))
    if found is None:
        value = number_words.value_of(words, language)
        return text if value is None else str(value)
    groups = [_below_1000(found[name] or "") for name in ("millions", "thousands", "rest")]
    value = groups[0] * 10**6 + groups[1] * 1000 + groups[2]
    return f"{'-' if found['minus'] else ''}{value}{found['noun'] or ''}"


def spelled_beside_digits(text: str, language: str = "en") -> str:
    """Rewrite a number in words next to digits: `5 or six`, `between two and 5`."""
    text = _BESIDE_DIGITS.sub(
        lambda m: f"{m['joined'] or ''}{spelled_out(m['first'] or m['lower'] or m['second'])}", text
    )
    if language.startswith("en"):
        return text
    text = _WORDS_AFTER.sub(lambda m: m["joint"] + _first_number(m["words"], language), text)
    for joint in reversed(list(_JOINT_BEFORE.finditer(text))):
        before, after = text[: joint.start()], text[joint.start() :]
        text = _last_number(before[-MAX_BESIDE:], language) + after
        text = before[:-MAX_BESIDE] + text
    return text


def _first_number(text: str, language: str) -> str:
    """Rewrite the longest number in words at the beginning of a text."""
    han = _HAN.match(text)
    if han and language.startswith(("zh", "ja")):
        return f"{_chinese(han[0])}{text[han.end() :]}"
    words = text.split(" ")
    for count in range(min(len(words), number_words.MAX_WORDS), 0, -1):
        value = number_words.value_of(" ".join(words[:count]), language)
        if value is not None:
            return " ".join([str(value), *words[count:]])
    return text


def _last_number(text: str, language: str) -> str:
    """Rewrite the longest number in words at the end of a text."""
    words = text.split(" ")
    for start in range(max(0, len(words) - number_words.MAX_WORDS), len(words)):
        value = number_words.value_of(" ".join(words[start:]), language)
        if value is not None:
            return " ".join([*words[:start], str(value)])
    return text


def _below_1000(words: str) -> int:
    total = 0
    for word in re.findall(r"[a-z]+", words.casefold()):
        if word == "hundred":
            total *= 100
        elif word != "and":
            total += _WORD_VALUES.get(word, 1)  # a
    return total


def _bracketed(text: str) -> list[tuple[int, int]]:
    """Find the outermost brackets whose members are separated by bare commas (no `, ` or `;`)."""
    spans: list[tuple[int, int]] = []
    depth, start = 0, 0
    for sign in _BRACKETS.finditer(text):
        opens = sign[0] in ("(", "[", "\\{")
        if opens and depth == 0:
            start = sign.start()
        depth = max(0, depth + (1 if opens else -1))
        if depth == 0 and not opens:
            content = text[start : sign.start()]
            if ", " not in content and ";" not in content:
                spans.append((start, sign.start()))
    return spans


def _without_separators(match: re.Match[str]) -> str:
    point = match["point"] is not None
    number = re.sub(r"[ '’]", "", match["point"] if point else match["comma"])
    return number.replace(",", "") if point else number.replace(".", "").replace(",", ".")


def _without_separators_of_money(match: re.Match[str]) -> str:
    if match["before"] is None and match["after"] is None:
        return match[0]
    return f"{match['before'] or ''}{_without_separators(match)}{match['after'] or ''}"


def _chinese(text: str) -> int:
    total, section, digit = 0, 0, 0
    if not set(text) & (_HAN_PLACES.keys() | _HAN_SCALES.keys()):
        return int("".join(str(_HAN_DIGITS[han]) for han in text))
    for han in text:
        if han in _HAN_DIGITS:
            digit = _HAN_DIGITS[han]
        elif han in _HAN_PLACES:
            section, digit = section + (digit or 1) * _HAN_PLACES[han], 0
        else:
            total, section, digit = (total + section + digit) * _HAN_SCALES[han], 0, 0
    return total + section + digit
