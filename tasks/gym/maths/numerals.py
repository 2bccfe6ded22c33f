"""Rewrite numbers as people write them to one form, `1234567.8`, whatever the language.

Digits of any script, superscripts (`5²` is `5^{2}`), vulgar fractions, Chinese numerals,
separators of thousands and decimals. A text that consists of an integer in words becomes that
integer (`seventy-two` is `72`); an English noun is kept (`three apples` is `3 apples`). The
problem's language decides between point and comma, unless the number itself is unambiguous
(`1.234.567,8`).
"""

# ruff: noqa: RUF001 - signs that people type

import functools
import re
import unicodedata
from fractions import Fraction

from tasks.algorithms.folding import unified
from tasks.algorithms.language_tags import primary
from tasks.gym.maths.number_words import MAX_WORDS, thousands_of, value_of
from tasks.gym.maths.words import HEDGES, JOINT

COMMA_LANGUAGES = frozenset(
    re.findall(
        r"\S+",
        "af az be bg br bs ca cs cv da de el eo es et eu ff fi fo fr fy gl hr ht hu hy ia id ie "
        "is it jv ka kk kl ku ky lb ln lo lt lu lv mk nb nl nn no pl pt rm rn ro ru rw sc se sg "
        "sk sl sq sr su sv tg tk tr tt uk uz vi wo",
    )
)
"""Languages that write 1.234,5 (CLDR 48, decimal separator)."""
_OTHER_REGIONS = frozenset(
    re.findall(
        r"\S+",
        "ar-dz ar-lb ar-ly ar-ma ar-mr ar-tn de-ch de-li en-at en-be en-cz en-de en-dk en-ee "
        "en-es en-fi en-fr en-ge en-hu en-id en-it en-lt en-lv en-nl en-no en-pl en-pt en-ro en-se "
        "en-si en-sk en-ua en-za es-419 es-br es-bz es-cu es-do es-gt es-hn es-mx es-ni es-pa "
        "es-pe es-pr es-sv es-us fr-rw it-ch ms-bn ms-id sw-cd",
    )
)
"""Regions that write the other separator than their language: `1,234.5` in es-MX (CLDR 48)."""

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
# "²", "⁻¹".
_RAISED = re.compile(f"[{''.join(_SUPERSCRIPTS)}]+")
# "₁₀"
_LOWERED = re.compile(f"[{''.join(_SUBSCRIPTS)}]+")
# "m²" of "5 m²", "cm³" of "3cm³".
_MEASURE = re.compile(r"(?<=\d)\s?([ckm]?m|ft|in|yd)([²³])")
# The dash of "is -5" and "$-5$", typed as an en dash; not those of "3-5", "3 -5" and "$3$-5".
_DASH_MINUS = re.compile(
    r"(?<![\d)\]}$%]\s)(?<![\w)\]}%])(?<![^\s$]\$)[\u2010\u2011\u2013\ufe63\uff0d](?=[\d.])"
)
_HAN_DIGITS = dict(zip("零一二三四五六七八九", range(10), strict=True)) | {
    **dict(zip("〇壹贰叁肆伍陆柒捌玖", range(10), strict=True)),
    "貳": 2,
    "弍": 2,
    "两": 2,
    "兩": 2,
    "參": 3,
    "陸": 6,
}
_HAN_PLACES = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_HAN_TENS = {"廿": 20, "卅": 30}
_HAN_SCALES = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
# "三百二十", "一万", "壹貳", "廿五", behind no digit (3千 is an amount).
_HAN_NUMBER = (
    f"[{''.join(_HAN_DIGITS | _HAN_PLACES | _HAN_TENS)}]"
    f"[{''.join(_HAN_DIGITS | _HAN_PLACES | _HAN_TENS | _HAN_SCALES)}]*"
)
# "三点五", "百分之五十", "三分之一", "一半", "负三".
_HAN = re.compile(
    rf"(?<![\d.])(?:百分之(?P<percent>{_HAN_NUMBER})|(?P<below>{_HAN_NUMBER})分之(?P<top>{_HAN_NUMBER})|"
    rf"(?P<half>一半|半(?=$|[个個]$))|(?P<whole>{_HAN_NUMBER})(?:[点點](?P<decimals>[{''.join(_HAN_DIGITS)}]+))?)"
)
# "2个半", "2斤1/2", as the half at the end of a text is read before
_AND_HALF = re.compile(
    r"(?<![\d.,/])(\d{1,9})(?:[个個]|(?P<unit>年|天|公?斤|公?里|米|升|[岁歲]|倍))(?:半|1/2)"
)
_ONES = "one|two|three|four|five|six|seven|eight|nine"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_WORD_VALUES = {word: value for value, word in enumerate(f"zero|{_ONES}|{_TEENS}".split("|"))} | {
    word: 10 * place for place, word in enumerate(_TENS.split("|"), 2)
}
# " ", "-".
_GAP = r"[\s\u2010-]+"
# "seven", "fifteen", "forty-two".
_BELOW_100 = rf"(?:(?:{_TENS})(?:{_GAP}(?:{_ONES}))?|{_TEENS}|{_ONES})"
# "a hundred", "three hundred and five", "ninety".
_BELOW_1000 = rf"(?:(?:a|{_BELOW_100}){_GAP}hundred(?:{_GAP}(?:and\s+)?{_BELOW_100})?|{_BELOW_100})"
# " " of "two thousand five", ", " of "one thousand, two hundred", " and ".
_GROUP_GAP = rf"(?:,(?=[^,]*hundred))?{_GAP}(?:and\s+)?"
# "it is exactly minus two thousand and five", "a hundred apples", "zero".
_SPELLED = re.compile(
    r"(?:(?:it|that|this) (?:is|equals)\s+|(?:it|that)['’]s\s+|there (?:are|is)\s+)?"
    r"(?:(?:exactly|simply|just|equal to)\s+)?(?P<minus>(?:minus|negative)\s+)?(?:"
    r"zero|"
    rf"(?:(?P<millions>a|{_BELOW_1000}){_GAP}million(?:{_GROUP_GAP}|\b))?"
    rf"(?:(?P<thousands>a|{_BELOW_1000}){_GAP}thousand(?:{_GROUP_GAP}|\b))?"
    rf"(?P<rest>{_BELOW_1000})?"
    r")(?P<noun>"
    r"(?<=\w)\s+"
    r"(?!hal(?:f|ves)|quarter|thirds|\w+ths|hundred|thousand|million|plus|minus|times|dozens)"
    r"(?:percent|per cent|[a-z]{2,}s)"
    r")?",
    re.IGNORECASE,
)
# "three dozen eggs", "a dozen", "half a dozen", "two score"
_DOZENS = re.compile(
    rf"(?:(?P<half>half\s+a)|(?P<count>an?|{_BELOW_1000}))\s+(?P<set>dozen|score)(?P<noun>\s+[a-z]{{2,}}s)?",
    re.IGNORECASE,
)
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6}
_PARTS |= {"seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "hundredth": 100, "thousandth": 1000}
_WITHOUT_ARTICLE = ("half", "quarter")
"""Parts that are one by themselves; `third` alone is a place in an order."""
# "half", "three quarters", "two and a half", "3 fifths"; "3 quarters" may be coins
_PART = re.compile(
    rf"(?:(?P<whole>[a-z -]{{3,60}}|\d{{1,9}}) and )?"
    rf"(?:(?P<top>an?|{_ONES}|\d{{1,3}}(?! quarter))[\s-])?"
    rf"(?P<part>(?:{'|'.join(_PARTS)})s?|halves)"
)
_HALVES = {
    "id": ("setengah", "separuh"),
    "ms": ("setengah", "separuh"),
    "vi": ("một nửa", "nửa"),
    "th": ("ครึ่ง", "ครึ่งหนึ่ง"),
    "pt": ("meio", "metade", "um meio"),
    "es": ("medio", "mitad", "un medio"),
    "fr": ("un demi", "la moitié"),
    "tl": ("kalahati",),
}
_AND_A_HALF = {
    "id": " setengah",
    "ms": " setengah",
    "vi": " rưỡi",
    "th": " ?ครึ่ง",
    "pt": " e mei[oa]",
    "es": " y medi[oa]",
    "fr": " et demie?",
    "de": " ?(?:und )?einhalb",
    "tl": " at kalahati",
}
_DENOMINATORS = {
    own: {word: place for place, words in enumerate(names.split(), 3) for word in words.split("/")}
    for own, names in {
        "pt": "terço/terços quarto/quartos quinto/quintos sexto/sextos sétimo/sétimos "
        "oitavo/oitavos nono/nonos décimo/décimos",
        "es": "tercio/tercios cuarto/cuartos quinto/quintos sexto/sextos séptimo/séptimos "
        "octavo/octavos noveno/novenos décimo/décimos",
        "fr": "tiers quart/quarts cinquième/cinquièmes sixième/sixièmes septième/septièmes "
        "huitième/huitièmes neuvième/neuvièmes dixième/dixièmes",
        "de": "drittel viertel fünftel sechstel siebtel achtel neuntel zehntel",
        "tl": "katlo kapat kalima kaanim kapito kawalo kasiyam kasampu",
    }.items()
}
_FRACTIONS = {
    own: rf"(?P<top>[^\W\d]+(?: [^\W\d]+)?|\d{{1,3}}(?! [cq]uartos))[ -](?P<noun>{'|'.join(nouns)})"
    for own, nouns in _DENOMINATORS.items()
} | {
    "id": "(?:(?P<top>.+?) per|seper) ?(?P<below>[a-z ]+)",
    "ms": "(?:(?P<top>.+?) per|seper) ?(?P<below>[a-z ]+)",
    "vi": "(?P<top>.+?) phần (?P<below>.+)",
    "th": "(?:เศษ)?(?P<top>.+?)(?:ส่วน|ใน)(?P<below>.+)",
}
"""A count and what it is divided by; in Spanish and Portuguese 3 cuartos may be rooms."""
_POINTS = {
    "en": "point",
    "id": "koma",
    "ms": "perpuluhan",
    "vi": "phẩy",
    "th": "จุด",
    "pt": "vírgula",
    "es": "coma|punto",
    "fr": "virgule",
    "de": "komma",
    "tl": "punto",
}
"""What is said for the decimal sign; Chinese has its own numerals."""
# " metres" of "two point five metres"
_DECIMAL_NOUN = re.compile(
    r"\s(?!\w*(?:halves|thirds|ths)$|hundreds$|dozens$)(?:[a-z]{2,}s|per\s?cent|[mbtr]+illion)$",
    re.IGNORECASE,
)
_THAI_DIGIT = re.compile("ศูนย์|หนึ่ง|สอง|สาม|สี่|ห้า|หก|เจ็ด|แปด|เก้า")
MAX_NOUN = 3
"""Most words of the noun behind a number in words."""
_THAI_NOUN = re.compile(
    "(?:บาท|คน|ชิ้น|ลูก|อัน|ตัว|เล่ม|ใบ|ผล|วัน|ปี|เดือน|ชั่วโมง|นาที|วินาที|กิโลกรัม|กรัม|เมตร|"
    "เซนติเมตร|กิโลเมตร|ลิตร|ขวด|กล่อง|ครั้ง|คู่|เปอร์เซ็นต์|ดอลลาร์|หน้า|แผ่น|ดอก|ต้น|คัน|หลัง|ห้อง|ข้อ|"
    "เท่า|แก้ว|ถุง|จาน|แท่ง|ด้าม|เม็ด|ฟอง|สัปดาห์|องศา)$"
)
# "seven", "hundred".
_NUMBER_WORD = rf"(?:{_TENS}|{_TEENS}|{_ONES}|hundred|thousand|million|dozen|zero)(?![A-Za-z])"
# "-two", " and five".
_NEXT_WORD = rf"[\s\u2010-]{{1,3}}(?:and\s)?{_NUMBER_WORD}"
# "minus forty-two", "a hundred and five".
_NUMBER_WORDS = rf"(?:(?:minus|negative|an?)\s)?{_NUMBER_WORD}(?:{_NEXT_WORD}){{0,8}}"
# "six" of "six or 5", of "between six and 8" and of "5 or six".
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
# No number in words has "5", ",", "$".
_NO_WORDS = r"[^\d.,;:!?$\\(){}\[\]]"
_WORDS_AFTER = re.compile(
    rf"(?<=[\d$}})])(?P<joint>{JOINT})(?P<words>{_NO_WORDS}{{1,{MAX_BESIDE}}})", re.IGNORECASE
)
_JOINT_BEFORE = re.compile(rf"{JOINT}(?=[\d$\\])", re.IGNORECASE)
# "The total is", which announces a number in words as it does one in digits.
_TOTALS = re.compile(
    r"(?:(?:so|thus|hence|therefore|jadi|maka|oleh itu|vậy|logo|portanto|kaya|所以|因此|ดังนั้น)"
    r",?\s*)?"
    r"(?:(?:the\s)?(?:total|sum)(?:\s(?:number|amount))?\s(?:is|was|equals)\s|"
    r"(?:total|jumlah)(?:nya)?\s(?:(?:adalah|ialah)\s)?|tổng\s(?:cộng|số)?\s?là\s|"
    r"(?:o\s)?total\sé\s|ang\skabuuan\say\s|(?:一共|总共|總共)(?:是|有)?|รวม(?:ทั้งหมด)?(?:เป็น|คือ)?\s?)",
    re.IGNORECASE,
)
MAX_SPELLED = 150
"""Most characters of a number in words."""
# A number ends: not "1,000" in "1,0000".
_END = r"(?!\d|[.,]\d)"
_START = r"(?<![\d.,])"
# "1 000 000", "1'000".
_SPACED = r"\d{1,3}(?:[ '’]\d{3})+"
# In English "1,234.5" and "1 000" have a point, "1.234,50" and "1.234.567" a comma.
_POINT = re.compile(
    rf"{_START}(?:(?P<point>(?:\d{{1,3}}(?:,\d{{3}})+|{_SPACED})(?:\.\d+)?)|"
    rf"(?P<comma>\d{{1,3}}(?:\.\d{{3}})+,\d{{1,2}}|\d{{1,3}}(?:\.\d{{3}}){{2,}}(?:,\d+)?)){_END}"
)
# In Indonesian "1.234" and "3,5" have a comma, "1,234.5" and "1,234,567" a point.
_COMMA = re.compile(
    rf"{_START}(?:(?P<point>\d{{1,3}}(?:,\d{{3}})+\.\d+|\d{{1,3}}(?:,\d{{3}}){{2,}})|"
    rf"(?P<comma>[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:,\d+)?|{_SPACED}(?:,\d+)?|\d+,\d+)){_END}"
)
# Money is never written with three decimals.
_MONEY = re.compile(
    rf"(?P<before>(?:Rp\.?|IDR|VND|R\\?\$|BRL|€)\s*)?(?<![\d.,])"
    rf"(?:(?P<comma>\d{{1,3}}(?:\.\d{{3}})+(?:,\d{{1,2}})?|(?:{_SPACED}|\d+),\d{{1,2}})|"
    rf"(?P<point>\d{{1,3}}(?:,\d{{3}})+(?:\.\d{{1,2}})?)){_END}(?P<after>\s*(?:₫|đ|€|VND|VNĐ|đồng)(?!\w))?"
)
# ",89", as databases of Latin America and Europe export 0.89.
_NO_WHOLE = re.compile(r"[-+]?,\d+")
# "②" of "②③" and "②和③", which name two statements, and not 23.
_ENCLOSED = re.compile(r"([①-⑳])\s*(?:和|与|與|及|and)?\s*(?=[①-⑳])")
# "\{", "(", "]".
_BRACKETS = re.compile(r"\\\{|\\\}|[()\[\]]")


def typed_minus(text: str) -> str:
    """Rewrite a dash that stands for the sign of a number; a range keeps its dash."""
    return text if text.isascii() else _DASH_MINUS.sub("-", text)


def plain_signs(text: str) -> str:
    """Rewrite digits, superscripts, signs of other scripts and full-width letters."""
    if text.isascii():
        return text
    text = unified(text)
    text = _ENCLOSED.sub(r"\1, ", text)
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


@functools.cache
def writes_comma(language: str) -> bool:
    """True if 1.234,5 is how numbers are written in a language, or in the region of its tag."""
    _, *others = language.lower().replace("_", "-").split("-")
    region = next((one for one in others if len(one) == 2 or one.isdecimal()), "")
    own = primary(language)
    return (own in COMMA_LANGUAGES) is not (f"{own}-{region}" in _OTHER_REGIONS)


def machine_numbers(text: str, language: str) -> str:
    """Rewrite every number of a text; in brackets a comma without a space separates members."""
    text = spelled_out(spelled_beside_digits(text, language), language)
    if primary(language) in ("zh", "ja"):
        text = _AND_HALF.sub(r"\1.5\g<unit>", _HAN.sub(functools.partial(_chinese, language), text))
    if "," not in text and "." not in text and " " not in text and "'" not in text:
        return text
    if _NO_WHOLE.fullmatch(text):  # no group begins with a separator, so that it is a decimal
        return text.replace(",", "0.")
    text = _MONEY.sub(_without_separators_of_money, text)
    pattern = _COMMA if writes_comma(language) else _POINT
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
    if lead := _TOTALS.match(words):
        words = words[lead.end() :]
    if not words or len(text) >= MAX_SPELLED:
        return text
    match = _SPELLED.fullmatch(words)
    han = _HAN.fullmatch(words) if primary(language) in ("zh", "ja") else None
    if match is None and han:
        return _chinese(language, han)
    if match is None and (
        part := _fraction_in_words(words, language)
        or _dozens(words, language)
        or _decimal_in_words(words, language)
    ):
        return part
    if match is None:
        value = value_of(words, language)
        return _with_noun(words, language) or text if value is None else str(value)
    groups = [_below_1000(match[name] or "") for name in ("millions", "thousands", "rest")]
    value = groups[0] * 10**6 + groups[1] * 1000 + groups[2]
    return f"{'-' if match['minus'] else ''}{value}{match['noun'] or ''}"


def _fraction_in_words(words: str, language: str) -> str:
    """Return 1/2 for `one half`, 5/2 for `two and a half`; '' for what is no fraction."""
    folded = " ".join(words.casefold().split())
    if folded in _HALVES.get(primary(language), ()):
        return "1/2"
    if primary(language) != "en":
        return _foreign_fraction(folded, language)
    match = _PART.fullmatch(folded)
    if match is None or not (match["top"] or match["part"] in _WITHOUT_ARTICLE):
        return ""
    whole = spelled_out(match["whole"]) if match["whole"] else "0"
    if not whole.isdecimal():
        return ""
    top = match["top"] or ""
    count = int(top) if top.isdecimal() else _WORD_VALUES.get(top, 1)
    return str(int(whole) + Fraction(count, _PARTS[match["part"].rstrip("s").replace("lve", "lf")]))


def _foreign_fraction(words: str, language: str) -> str:
    """Return 2/3 for `dua pertiga`, 5/2 for `dos y medio`; '' for what is no fraction."""
    own = primary(language)
    if half := re.fullmatch(rf"(.+?){_AND_A_HALF.get(own, '(?!)')}", words):
        whole = _count(half[1], language)
        return f"{2 * whole + 1}/2" if whole else ""
    match = re.fullmatch(_FRACTIONS.get(own, "(?!)"), words)
    if match is None:
        return ""
    groups = match.groupdict()
    top = _count(groups["top"], language) if groups["top"] else 1
    noun = groups.get("noun")
    below = _DENOMINATORS[own].get(noun, 0) if noun else _count(groups["below"] or "", language)
    return f"{top}/{below}" if top and below and below > 1 else ""


def _count(words: str, language: str) -> int | None:
    if words.isdecimal():
        return int(words)
    return 4 if words == "tư" else value_of(words, language)


def _decimal_in_words(words: str, language: str) -> str:
    """Return 2.5 for `two point five`, digit by digit; '' for what is no decimal in words."""
    own = primary(language)
    point = re.search(rf"\s?(?:{_POINTS.get(own, '(?!)')})\s?", words, re.IGNORECASE)
    if point is None:
        return ""
    behind, noun = words[point.end() :], ""
    if own == "en" and (last := _DECIMAL_NOUN.search(behind)):
        behind, noun = behind[: last.start()], last[0]
    digits = _THAI_DIGIT.findall(behind) if own == "th" else behind.split()
    values = [spelled_out(words[: point.start()], language)]
    values += [spelled_out(word, language) for word in digits]
    if len(values) == 1 or "".join(digits) != behind.replace(" ", ""):
        return ""
    if not re.fullmatch(r"-?\d+", values[0]) or any(len(one) != 1 for one in values[1:]):
        return ""
    whole, *decimals = values
    return f"{whole}{',' if writes_comma(language) else '.'}{''.join(decimals)}{noun}"


def _dozens(words: str, language: str) -> str:
    """Return `3 dozen eggs` for `three dozen eggs`; '' for what counts no dozens."""
    match = _DOZENS.fullmatch(words) if primary(language) == "en" else None
    if match is None:
        return ""
    count = "0.5" if match["half"] else _below_1000(match["count"])
    return f"{count} {match['set']}{match['noun'] or ''}"


def _with_noun(words: str, language: str) -> str:
    """Write `26 บาท` for a number in words with at most so many words of a noun; '' for others.

    The noun has no further number in it (dua atau tiga), and in Thai is one that is known.
    """
    if primary(language) == "th":
        noun = _THAI_NOUN.search(words)
        value = value_of(words[: noun.start()], language) if noun else None
        return "" if noun is None or value is None else f"{value} {noun[0]}"
    parts = words.split()
    for count in range(min(len(parts) - 1, MAX_WORDS), 0, -1):
        value = value_of(" ".join(parts[:count]), language)
        noun = parts[count:]
        if value is not None:
            is_noun = len(noun) <= MAX_NOUN and all(
                word.isalpha() and value_of(word, language) is None for word in noun
            )
            hedges = HEDGES.search(" ".join(noun)) or _scale_words(language) & set(noun)
            return f"{value} {' '.join(noun)}" if is_noun and not hedges else ""
    return ""


@functools.cache
def _scale_words(language: str) -> frozenset[str]:
    """Return the words that make another number of the one before them."""
    more = "juta miliar triệu tỷ trăm mươi puluh ratus belas phần setengah rưỡi milhões milhão "
    more += "millones millón millions million meio media medio demi demie vírgula coma koma phẩy "
    more += "milyon milyong daan perseratus por mil nghìn bilhões lusin tá chục"
    return frozenset([*thousands_of(language), *more.split()])


def spelled_beside_digits(text: str, language: str = "en") -> str:
    """Rewrite a number in words next to digits: `5 or six`, `between two and 5`."""
    text = _BESIDE_DIGITS.sub(
        lambda m: f"{m['joined'] or ''}{spelled_out(m['first'] or m['lower'] or m['second'])}", text
    )
    if primary(language) == "en":
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
    if han and primary(language) in ("zh", "ja"):
        return f"{_chinese(language, han)}{text[han.end() :]}"
    words = text.split(" ")
    for count in range(min(len(words), MAX_WORDS), 0, -1):
        value = value_of(" ".join(words[:count]), language)
        if value is not None:
            return " ".join([str(value), *words[count:]])
    return text


def _last_number(text: str, language: str) -> str:
    """Rewrite the longest number in words at the end of a text."""
    words = text.split(" ")
    for start in range(max(0, len(words) - MAX_WORDS), len(words)):
        value = value_of(" ".join(words[start:]), language)
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


def _chinese(language: str, match: re.Match[str]) -> str:
    """Write a Chinese number in digits: a fraction as `1/3`, per cent with its sign."""
    if match["half"]:
        return "1/2"
    integer = functools.partial(_han_integer, counts_tenths=primary(language) != "ja")
    if match["percent"]:
        return f"{integer(match['percent'])}%"
    if match["below"]:
        return f"{integer(match['top'])}/{integer(match['below'])}"
    decimals = "".join(str(_HAN_DIGITS[han]) for han in match["decimals"] or "")
    return f"{integer(match['whole'])}{'.' if decimals else ''}{decimals}"


def _han_integer(text: str, *, counts_tenths: bool) -> int:
    """Return the value.

    Args:
        text: digits and places.
        counts_tenths: a last digit right behind a place counts tenths of it, as in Chinese, where
            一千二 is 1200; in Japanese it is 1002.
    """
    total, section, digit, unit = 0, 0, 0, 0
    if not set(text) & (_HAN_PLACES.keys() | _HAN_TENS.keys() | _HAN_SCALES.keys()):
        return int("".join(str(_HAN_DIGITS[han]) for han in text))
    for han in text:
        if han in _HAN_DIGITS:
            digit, unit = _HAN_DIGITS[han], unit if _HAN_DIGITS[han] else 0
        elif han in _HAN_TENS:
            section, digit, unit = section + _HAN_TENS[han], 0, 0
        elif han in _HAN_PLACES:
            unit = _HAN_PLACES[han]
            section, digit = section + (digit or 1) * unit, 0
        else:
            unit = _HAN_SCALES[han]
            above = total - total % (unit * 10**4) if total >= unit * 10**4 else 0
            total, section, digit = above + (total - above + section + digit) * unit, 0, 0
    # Behind ten a digit counts ones; behind hundred and above, without a zero between, tenths.
    return total + section + digit * (unit // 10 if counts_tenths and digit and unit > 10 else 1)
