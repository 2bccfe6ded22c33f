"""Rewrite amounts as the world writes them, so that every reader behind meets one form.

A machine's exponent (`1e-05` is 0.00001), a currency glued to its number (`RM1,299` is `RM 1,299`),
scale words (`1.5 ล้านบาท` is `1500000 บาท`, `1tr2` is 1200000), what stands for no small change
(`Rp12.345,-`), separators of other countries (`₹1,25,000`, `١٬٥٠٠`) and amounts in two units
(`12 reais e 50 centavos` is `12,50 reais`, `1 hour 30 minutes` is `90 minute`). Numbers in words
are `numerals`.
"""

import functools
import math
import re
from collections.abc import Mapping
from fractions import Fraction

from tasks.algorithms.language_tags import primary
from tasks.gym.maths.numerals import machine_numbers, plain_signs, spelled_out, writes_comma
from tasks.gym.maths.units import CODES, CURRENCY, RUPEES, SIGNED_DOLLARS

# ruff: noqa: RUF001, RUF002, RUF003 - signs that people type

MAX_EXPONENT = 60
"""Largest exponent of a numeral that is written out; no answer is larger."""
# "1e-05", "6.02E+23"; no part of "0x1e5", "x_1e2" or "2e^3".
_MACHINE = re.compile(r"(?<![\w.,\\^{])(\d+(?:\.\d+)?)[eE]([-+]?\d{1,3})(?![\w^{]|\.\d)")
# " x " of "6.5 x 10^3" and "6.5 x 10³", "{3}" of its exponent.
_TIMES_TEN = re.compile(
    r"(?<=\d)\s?[xX]\s?10\s?(?:\^\s?(?:\{\s?([-+]?\d+)\s?\}|([-+]?\d+))|([⁺⁻]?[⁰¹²³⁴-⁹]+))"
)
_BLANKS = re.compile(r"[\u00a0\u2007\u2009\u202f]")
"""Blanks that people and CLDR put between a number and its currency or its thousands."""
# ",89" of "é ,89"; not that of "1,89" or "(2,89)".
_BARE_COMMA = re.compile(r"(?<![\w)\]}.,]),(?=\d+(?!\d|[.,]\d))")
# ",-" of "Rp12.345,-", ".-" of "1,299.-", "/-" of "Rs.1,500/-"; not those of "(3,-x)" and "1.- ".
_NO_CHANGE = re.compile(
    r"(?:(?<=\d\d),[-\u2013\u2014]|(?<=\d\d)\.-|(?<=\d\d)/-)"
    r"(?!\.?\w|[\\({\[$√+\-]|\s[\d\\({\[$√+\-]|\s[^\W\d_](?![^\W_]))"
)
# "!" of "$1,299!" and "12.5!", "！" of "5！": the end of a sentence, and no factorial, which
# "$5!$" and "$3! + 2!$" are.
_EXCLAIMED = re.compile(
    rf"((?:{CURRENCY}|\$)\s{{0,2}}\d+|\d{{1,3}}(?:[.,]\d{{3}})+(?:[.,]\d+)?|\d+\.\d+|(?<=\d)(?=！))"
    r"[!！]+(?![\w$]|\s?(?:[$\\=/+*^<>×·⋅]|[-−]\s?[\d(\\]))"
)
_INDIAN = frozenset(("as", "bn", "gu", "hi", "kn", "ml", "mr", "ne", "or", "pa", "ta", "te", "ur"))
"""Languages that write 12,34,567 for 1,234,567."""
# "1,25,000"; of another language with the sign of a rupee.
_LAKHS = re.compile(
    r"(?P<sign>(?:₹|৳|Rs\.?|INR|PKR|NPR|LKR|BDT)\s{0,2})?(?<![\d.,])(?P<number>\d{1,2}(?:,\d\d)+,\d{3})(?!,?\d)"
)
# "٬" of "١٬٥٠٠", "٫" of "١٫٥".
_ARABIC = re.compile(r"(?<=\d)٬(?=\d{3})|(?<=\d)٫(?=\d)")
_CODE = "|".join(sorted(map(re.escape, CODES), key=len, reverse=True))
# "S$1,299"; the S of "$S$ 5" and of "x in S$ 5" ends a formula.
_DOLLARS = "|".join(
    sign if len(sign) > 1 else rf"(?<!\$){sign}(?=\\?\$\d)" for sign in SIGNED_DOLLARS
)
_BEFORE = re.compile(
    rf"(?:\\(?:text|mathrm)\s*\{{\s*)?(?<![A-Za-z\d_\\])(?:(?P<code>{_CODE}|Rs)|"
    rf"(?P<dollar>{_DOLLARS})\\?\$)"
    r"\.?(?:\s*\})?\s{0,2}(?=[-+\u2212]?(?:[\d(]|[.,]\d))"
)
_AFTER = re.compile(rf"(?<=\d)\s?(?P<code>{_CODE}|VNĐ|[đ₫])(?![^\W_])")
_FIRST, _LAST = ("".join(sorted({code[at] for code in CODES})) for at in (0, -1))
# Signs that every match of a pattern above has: texts without them are most, and cost a tenth.
_HAS_EXPONENT = re.compile(r"\d[eE][-+\d]")
_HAS_SIGNS = re.compile(r"\d(?:[!！]|[,./][-\u2013\u2014]|,\d\d,)")
_HAS_SHORT_SCALE = re.compile("\\d[kKmMbB]")
_HAS_CAPITALS = re.compile(r"[A-Z](?:[A-Zhps]|\\?\$)|[đ₫]")
_HAS_CODE = re.compile(
    rf"(?:[{_LAST}]|Rs|[A-Z]\\?\$)\.?(?:\s*\}})?\s{{0,2}}[-+\u2212]?(?:[\d(]|[.,]\d)|"
    rf"\d\s?(?=[{_FIRST}đ₫])(?:{_CODE}|VNĐ|[đ₫])"
)

_SCALES: Mapping[str, Mapping[int, str]] = {
    "en": {
        2: "hundred",
        3: "thousand|thousands",
        5: "lakh|lakhs",
        6: "million|millions|mln",
        7: "crore|crores",
        9: "billion|billions|bln",
        12: "trillion|trillions",
    },
    "id": {
        1: "puluh",
        2: "ratus",
        3: "ribu|rb",
        6: "juta|jt",
        9: "miliar|milyar",
        12: "triliun|trilyun",
    },
    "ms": {1: "puluh", 2: "ratus", 3: "ribu|rb", 6: "juta|jt", 9: "bilion", 12: "trilion"},
    "tl": {2: "daan|daang", 3: "libo|libong", 6: "milyon|milyong|million", 9: "bilyon|bilyong"},
    "vi": {1: "chục", 2: "trăm", 3: "nghìn|ngàn", 6: "triệu|tr", 9: "tỷ|tỉ"},
    "pt": {3: "mil", 6: "milhão|milhões|mi", 9: "bilhão|bilhões|bi", 12: "trilhão|trilhões|tri"},
    "es": {3: "mil", 6: "millón|millones", 12: "billón|billones"},
    "fr": {3: "mille", 6: "million|millions", 9: "milliard|milliards", 12: "billion|billions"},
    "de": {3: "tausend|tsd", 6: "million|millionen|mio", 9: "milliarde|milliarden|mrd"},
    "th": {1: "สิบ", 2: "ร้อย", 3: "พัน", 4: "หมื่น", 5: "แสน", 6: "ล้าน"},
    "zh": {1: "十", 2: "百", 3: "千|仟", 4: "万|萬", 8: "亿|億", 12: "兆"},
    "ko": {1: "십", 2: "백", 3: "천", 4: "만", 8: "억", 12: "조"},
}
"""Powers of ten and their words, in lower case; mi and bi are no miles in Portuguese."""
# "50k", "5k đồng"; in n = 3k and 2k + 1 it is an unknown.
_THOUSANDS = re.compile(
    r"(?<![\w.,^\\{=+\-*/(])(?<![=+\-*/(]\s)(\d{2,3}(?:[.,]\d)?|\d(?:[.,]\d)?(?=k\s?(?:đ|₫|VN|vn)))k"
    r"(?![\w^])(?!\s?[\\+*/=^(<>-])"
)
SCALE_WORDS = "|".join(
    sorted({word for rules in _SCALES.values() for word in "|".join(rules.values()).split("|")})
)
"""Source of a pattern: a scale word of any language."""
_PRICED_IN_K = frozenset(("vi", "id", "ms", "tl"))
"""Languages whose prices are written in `k`."""
# "Rp25k", "\$299K", "US$1.5M": beside a currency it is a scale in every language; "$3k$" and
# "$2M + 1$" are formulas.
_SCALED_PRICE = re.compile(
    rf"(?P<sign>(?:(?:{CURRENCY}|\\\$)\.?\s?)|(?<![\w$\\])\$(?=[\d.,]+(?:[KMB]|bn)(?!\s?[\\+*/=^(<>$-])))"
    r"(?P<number>\d{1,3}(?:[.,]\d{1,2})?)(?P<scale>[kKmMbB]|[mMbB]n)(?![\w^$])"
)
_SHORT_SCALES = {"k": 3, "m": 6, "mn": 6, "b": 9, "bn": 9}
_MILIAR = 9
"""Power of the M of an Indonesian price, Rp1,5M."""
# "P" of "P1,299", the peso.
_PESO = re.compile(r"(?<![\w\\$.(,])P(?=\d\d|\d,\d{3})")
_HALF_OF_SCALE = {
    "vi": ("", r"\s?rưỡi"),
    "th": ("", r"\s?ครึ่ง"),
    "pt": ("", r"\se\smei[oa]"),
    "es": ("", r"\sy\smedi[oa]"),
    "fr": ("", r"\set\sdemie?"),
    "tl": ("", r"\sat\skalahati"),
    "id": (r"setengah\s", ""),
    "ms": (r"setengah\s", ""),
}
"""Half of a scale word, in front of it or behind: 2 setengah juta and 2 triệu rưỡi are 2500000."""
_HALVES_IN_WORDS = {
    "en": (r"half\san?\sS", r"N\sand\sa\shalf\sS"),
    "id": (r"(?:setengah|separuh)\sS", r"N\ssetengah\sS"),
    "ms": (r"(?:setengah|separuh)\sS", r"N\ssetengah\sS"),
    "vi": (r"nửa\sS", r"N\sS\srưỡi"),
    "pt": (r"meio\sS", r"N\sS\se\smeio"),
    "es": (r"medio\sS", r"N\sS\sy\smedio"),
    "tl": (r"kalahating\sS", r"N(?:'t|\sat)\skalahating\sS"),
    "th": (r"ครึ่งS", r"NSครึ่ง"),
}
"""Half of a scale word S, and a number N in words with half of it, where no digit is written."""
_LANGUAGE_OF = {"ja": "zh"}
_TENTHS = frozenset({"th", "zh"})
"""Languages in which a last digit counts tenths of the scale word in front of it: 1万2."""
_DENSE = _TENTHS | {"ko"}
"""Languages whose scale words are glued to what follows."""
_PRODUCTS = frozenset({"th", "zh", "ko", "es", "pt", "id", "ms", "tl", "vi"})
"""Languages in which scale words multiply: 十万, สิบล้าน, mil millones."""
_AND = {"en": "and", "id": "dan", "ms": "dan", "vi": "và", "pt": "e", "es": "y", "tl": "at"}
_START = r"(?<![\w.,^\\])(?<!(?<!boxed)\{)"
# "1 \text{ h } 30 \text{ min}"
_TEXT_UNITS = re.compile(
    r"(\d)\s*\\(?:text|mathrm)\s?\{\s*([^\W\d_]+)\s*\}(?:[\s~]|\\[,;: ])*(\d[\d.,]*)\s*"
    r"\\(?:text|mathrm)\s?\{\s*([^\W\d_]+)\s*\}"
)
_DENSE_START = r"(?<![0-9A-Za-z_.,^\\第])(?<!(?<!boxed)\{)"
"""In scripts without spaces a word may stand right before a number: 一共是1.2万元."""
# "1.299", "12", "1,5".
_NUMBER = r"\d+(?:[.,]\d+)*"

_CHANGE: Mapping[str, tuple[tuple[str, str, int], ...]] = {
    "en": (
        ("dollars?|euros?", "cents?", 100),
        ("pounds?", "pence|pennies|penny", 100),
        ("ringgit", "sen", 100),
        ("baht", "satang", 100),
        ("pesos?", "centavos?", 100),
        ("rupees?", "paise|paisa", 100),
    ),
    "ms": (("ringgit", "sen", 100),),
    "pt": (("reais|real", "centavos?", 100), ("euros?", "cêntimos?|centavos?", 100)),
    "es": (("pesos?|dólares|dólar", "centavos?", 100), ("euros?", "céntimos?", 100)),
    "tl": (("pesos?|piso", "sentimos?|centavos?", 100),),
    "th": (("บาท", "สตางค์", 100),),
    "zh": (("角|毛", "分", 10), ("元|块|塊|圓|圆", "角|毛", 10), ("元|块|塊|圓|圆", "分", 100)),
}
"""A currency, its small change, and how many of that make one: decimals of the currency."""
_METRIC = (
    ("m", "cm(?![a-z])", 100),
    ("km", "m(?![a-z])", 1000),
    ("kg", "g(?![a-z])", 1000),
    ("l", "ml(?![a-z])", 1000),
)
"""Symbols of every language; a script without spaces needs to be told that m is no part of min."""
_SMALLER: Mapping[str, tuple[tuple[str, str, int], ...]] = {
    "en": (
        ("weeks?", "days?", 7),
        ("days?", "hours?|hrs?", 24),
        ("hours?|hrs?|h", "minutes?|mins?|min", 60),
        ("minutes?|mins?|min", "seconds?|secs?|s", 60),
        ("years?", "months?", 12),
        ("feet|foot|ft", r"inch(?:es)?|in(?=\.?\s*(?:$|[,;)}]))", 12),
        ("met(?:er|re)s?|m", "centimet(?:er|re)s?|cm", 100),
        ("kilomet(?:er|re)s?|km", "met(?:er|re)s?|m", 1000),
        ("kilograms?|kg", "grams?|g", 1000),
        ("lit(?:er|re)s?|l", "millilit(?:er|re)s?|ml", 1000),
        ("pounds?|lbs?", "ounces?|oz", 16),
        ("gallons?|gal", "quarts?|qt", 4),
    ),
    "id": (
        ("jam", "menit|minit", 60),
        ("menit|minit", "detik|saat", 60),
        ("hari", "jam", 24),
        ("minggu", "hari", 7),
        *_METRIC,
    ),
    "ms": (
        ("jam", "minit", 60),
        ("minit", "saat", 60),
        ("hari", "jam", 24),
        ("minggu", "hari", 7),
        *_METRIC,
    ),
    "vi": (
        ("giờ", "phút", 60),
        ("phút", "giây", 60),
        ("ngày", "giờ", 24),
        ("tuần", "ngày", 7),
        *_METRIC,
    ),
    "pt": (
        ("horas?|h", "minutos?|min", 60),
        ("minutos?|min", "segundos?|s", 60),
        ("dias?", "horas?|h", 24),
        ("semanas?", "dias?", 7),
        *_METRIC,
    ),
    "es": (("horas?|h", "minutos?|min", 60), ("minutos?|min", "segundos?|s", 60)),
    "tl": (("oras", "minuto", 60), ("linggo", "araw", 7), *_METRIC),
    "th": (
        ("ชั่วโมง", "นาที", 60),
        ("นาที", "วินาที", 60),
        ("วัน", "ชั่วโมง", 24),
        ("สัปดาห์", "วัน", 7),
        ("เมตร", "เซนติเมตร", 100),
        ("กิโลเมตร", "เมตร", 1000),
        *_METRIC,
    ),
    "zh": (
        ("个?小时|個?小時|时|時", "分钟|分鐘|分", 60),
        ("分钟|分鐘|分", "秒钟?|秒鐘", 60),
        ("天", "个?小时|個?小時", 24),
        ("周|週|个?星期|個?星期", "天", 7),
        ("米", "厘米", 100),
        ("千米|公里", "米", 1000),
        ("千克|公斤", "克(?!拉)", 1000),
        *_METRIC,
    ),
}
"""A measure, the smaller one that may follow it, and how many of that it has: counted in these."""


_AND_A_HALF = {
    "en": r"\sand\sa\shalf",
    "id": r"\ssetengah",
    "ms": r"\ssetengah",
    "vi": r"\srưỡi",
    "th": r"\s?ครึ่ง",
    "pt": r"\se\smei[oa]",
    "es": r"\sy\smedi[oa]",
    "fr": r"\set\sdemie?",
    "tl": r"\sat\skalahati",
    "zh": "半",
}
"""Half of the unit in front of it: 1 hora e meia, 1 giờ rưỡi, 1小时半."""
_HALVED = {
    "th": "ชั่วโมง|นาที|วัน|ปี|เดือน|สัปดาห์|กิโลกรัม|กิโลเมตร|เมตร|ลิตร|ถ้วย|แก้ว|ช้อน|เท่า",
    "zh": "[个個]?(?:小[时時]|月|星期)|年|天|分[钟鐘]|公?里|公?斤|米|升|[岁歲]|倍",
}
"""Units of scripts without spaces, of which a half may follow."""
# "35块5", which is 35.5
_LAST_TENTH = re.compile(r"(?<![\d.,])(\d{1,9})([块塊])(\d)(?![\d.,十百千万萬亿])")


def plain_amounts(text: str, language: str = "en") -> str:
    """Rewrite every amount of a text; the language decides between point and comma.

    Time is linear in the text, because every repetition is bounded or begins at a digit.
    """
    base = _base(language)
    text = _halves_in_words(base).sub(functools.partial(_half_in_words, language), text)
    if not re.search(r"\d", text):
        return text
    if _HAS_EXPONENT.search(text):
        text = _MACHINE.sub(_written_out, text)
    if "10" in text:
        text = _TIMES_TEN.sub(lambda m: f"*10^{m[1] or m[2] or plain_signs(m[3])[2:-1]}", text)
    text = _plain_separators(text, language)
    if "{" in text:
        text = _TEXT_UNITS.sub(r"\1 \2 \3 \4", text)
    if writes_comma(language):
        text = _BARE_COMMA.sub("0,", text)
    if _HAS_CAPITALS.search(text) and _HAS_CODE.search(text):
        text = _AFTER.sub(lambda m: f" {m['code']}", _BEFORE.sub(_before, text))
    if base == "tl" and "P" in text:
        text = _PESO.sub("PHP ", text)
    text = _scaled(text, base, language)
    if base == "zh":
        text = _LAST_TENTH.sub(r"\1.\3\2", text)
    text = _halved(base).sub(lambda m: f"{_plus_half(m[1], language)}{m[2]}", text)
    for pattern, parts, is_money in _pairs(base) if _two_units(base).search(text) else ():
        text = pattern.sub(functools.partial(_pair, parts, is_money, language), text)
    return text


def _plain_separators(text: str, language: str) -> str:
    """Write blanks and separators as a language has them, and nothing for small change of zero."""
    if not text.isascii():
        text = _BLANKS.sub(" ", text)
        decimal = "," if writes_comma(language) else "."
        text = _ARABIC.sub(lambda m: "" if m[0] == "٬" else decimal, text)
    if _HAS_SIGNS.search(text):
        text = _EXCLAIMED.sub(r"\1", _NO_CHANGE.sub("", text))
        text = _LAKHS.sub(functools.partial(_lakhs, language), text)
    return text


def _scaled(text: str, base: str, language: str) -> str:
    """Write out the scale words of a text."""
    scales, folded = _scales(base), text.casefold()
    if _HAS_SHORT_SCALE.search(text):
        if base in _PRICED_IN_K:
            text = _THOUSANDS.sub(lambda m: _raised(m[1], 3, language) or m[0], text)
        text = _SCALED_PRICE.sub(functools.partial(_price, language), text)
    if scales is None or not any(word in folded for word in scales[2]):
        return text
    amount, part, words = scales
    if (half := _half_of_scale(base)) and half.search(text):
        text = half.sub(functools.partial(_and_a_half, language), text)
    return amount.sub(functools.partial(_sum, part, words, language), text)


def _price(language: str, match: re.Match[str]) -> str:
    number = _raised(match["number"], power_of(match["scale"], language), language)
    return f"{match['sign']}{number}" if number else match[0]


def _raised(number: str, power: int, language: str) -> str:
    """Return a number times a power of ten; '' if it is none."""
    value = _value(number, language)
    return "" if value is None else _digits(value * 10**power, language)


def _lakhs(language: str, match: re.Match[str]) -> str:
    """Remove the separators of India: without a sign only in its languages, else it is a list."""
    if match["sign"] is None and _base(language) not in _INDIAN:
        return match[0]
    return f"{match['sign'] or ''}{match['number'].replace(',', '')}"


@functools.cache
def _half_of_scale(language: str) -> re.Pattern[str] | None:
    """Match an integer with a scale word and half of that."""
    if language not in _HALF_OF_SCALE:
        return None
    forms = "|".join(_SCALES[language].values())
    before, behind = _HALF_OF_SCALE[language]
    return re.compile(
        rf"(?<![\w.,])(?P<number>\d{{1,3}})\s?{before}(?P<scale>{forms}){behind}", re.IGNORECASE
    )


@functools.cache
def _halved(language: str) -> re.Pattern[str]:
    """Match an integer, a unit and half of that unit."""
    half = _AND_A_HALF.get(language, "(?!)")
    unit = rf"\s?(?:{_HALVED[language]})" if language in _HALVED else r"\s[^\W\d_]{1,15}"
    start = _DENSE_START if language in _DENSE else _START
    return re.compile(rf"{start}(\d{{1,4}})({unit}){half}(?![^\W_]|-)", re.IGNORECASE)


@functools.cache
def _halves_in_words(language: str) -> re.Pattern[str]:
    """Match half of a scale word, with up to four words in front that may be a number."""
    if language not in _HALVES_IN_WORDS:
        return re.compile("(?!)")
    # สามสิบครึ่ง is 30.5, and ห้าร้อยครึ่ง may be 500.5
    least = 3 if language in _DENSE else 1
    scale = "|".join(words for power, words in _SCALES[language].items() if power >= least)
    if language in _DENSE:
        number, start, end = "[\u0e00-\u0e7f]{0,20}?", r"(?<!\d)(?<!\d\s)", ""
    else:
        number, start, end = r"(?:[^\W\d_]+\s){0,3}?[^\W\d_]+?", r"(?<!\w)(?<!\d\s)", r"(?!\w)"
    half, more = (
        form.replace("S", f"(?P<{name}>{scale})").replace("N", f"(?P<number>{number})")
        for name, form in zip(("scale", "other"), _HALVES_IN_WORDS[language], strict=True)
    )
    return re.compile(f"{start}(?:{half}|{more}){end}", re.IGNORECASE)


def _half_in_words(language: str, match: re.Match[str]) -> str:
    """Return `0.5 million` for half a million, `2.5 million` for two and a half million.

    Without a number in front, setengah juta is half a million and ล้านครึ่ง one and a half.
    """
    if match["scale"]:
        return f"{_digits(Fraction(1, 2), language)} {match['scale']}"
    base = _base(language)
    blank = "" if base in _DENSE else " "
    words = list(match["number"]) if base in _DENSE else match["number"].split()
    for place in range(len(words)):
        number = spelled_out(blank.join(words[place:]), language)
        begins = not blank or spelled_out(words[place], language).isdecimal()  # not "it is two"
        if begins and number.isdecimal():
            before = blank.join([*words[:place], ""])
            return f"{before}{_plus_half(number, language)} {match['other']}"
    half = {"id": Fraction(1, 2), "ms": Fraction(1, 2), "th": Fraction(3, 2)}.get(base)
    if half is None:
        return match[0]
    return f"{match['number']}{blank}{_digits(half, language)} {match['other']}"


def _plus_half(number: str, language: str) -> str:
    return _digits(Fraction(int(number) * 2 + 1, 2), language)


def _and_a_half(language: str, match: re.Match[str]) -> str:
    return f"{_plus_half(match['number'], language)} {match['scale']}"


def power_of(scale: str, language: str) -> int:
    """Return the power of ten of a short scale: 3 of k, 6 of M, in Indonesian 9."""
    scale = scale.casefold()
    return _MILIAR if scale == "m" and _base(language) == "id" else _SHORT_SCALES[scale]


def written_out(text: str) -> str:
    """Write a machine's exponents as digits: `1e-05` is `0.00001`."""
    return _MACHINE.sub(_written_out, text)


def number_text(digits: str, language: str) -> str:
    """Write a machine's number as a language separates it: `1.125` is `1,125` in Portuguese."""
    text = written_out(digits)
    return text.replace(".", ",") if writes_comma(language) else text


def _base(language: str) -> str:
    base = primary(language)
    return _LANGUAGE_OF.get(base, base)


def _written_out(match: re.Match[str]) -> str:
    exponent = int(match[2])
    if abs(exponent) > MAX_EXPONENT:
        return f"{match[1]}*10^{{{exponent}}}"
    return _digits(Fraction(match[1]) * Fraction(10) ** exponent)


def _digits(value: Fraction, language: str = "en") -> str:
    """Write a value with finitely many decimals in digits, as the language separates them."""
    comma = writes_comma(language)
    places = 0
    while 10**places % value.denominator:
        places += 1
    digits = str(value.numerator * 10**places // value.denominator).rjust(places + 1, "0")
    if not places:
        return digits
    return f"{digits[:-places]}{',' if comma else '.'}{digits[-places:]}"


def _before(match: re.Match[str]) -> str:
    # "Rs" is read here alone, since rs behind a number is a product.
    code = {"Rs": RUPEES}.get(match["code"], match["code"]) or SIGNED_DOLLARS[match["dollar"]]
    return f"{code} "


@functools.cache
def _scales(language: str) -> tuple[re.Pattern[str], re.Pattern[str], Mapping[str, int]] | None:
    """Return patterns of an amount and of its parts, and the value of every scale word."""
    rules = _SCALES.get(language)
    if rules is None:
        return None
    words = {word: 10**power for power, forms in rules.items() for word in forms.split("|")}
    word = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    dense = language in _DENSE
    # 5 hundred-dollar bills; 5千克 are 5 kilograms
    end = r"(?!(?<=[千兆])[克米瓦卡伏赫帕焦牛])" if dense else r"(?![^\W_]|-[a-z])"
    scale = rf"(?:{word}){end}"
    if language in _PRODUCTS:
        scale += rf"(?:\s?{scale}){{0,3}}"
    joint = rf",?\s{{0,2}}(?:(?:{_AND.get(language, 'and')})\s)?"
    also = rf"(?:{_AND[language]}\s)?" if language in ("pt", "es") else ""  # 2 mil e 500
    rest = rf"[零〇]?{_NUMBER}" if dense else rf"\s{also}\d{{3}}(?:[.,]\d{{3}})*"
    if language == "tl":  # 2 daan at 50 piso
        rest = rf"(?:{rest}|\sat\s\d{{1,3}})"
    if language == "ko":  # 1만 2,500원; in 1만 2024년 it is another number
        rest = rf"\s?{_NUMBER}(?=\s?원)"
    next_sign = "[0-9a-z^]" if dense else r"[\w^]"
    glued = rf"{_NUMBER}(?:{word})\d{{1,3}}(?![\w.,])|" if language == "vi" else ""  # 1tr2
    start = _DENSE_START if dense else _START
    amount = (
        rf"{start}(?:{glued}{_NUMBER}\s?(?=[^\W\d_]){scale}(?:{joint}[零〇]?{_NUMBER}\s?{scale}){{0,4}}"
        rf"(?:{rest}(?!\s?(?:{word}){end})(?!{next_sign}))?)"
    )
    part = rf"([零〇]?)({_NUMBER})((?:\s?(?:{word}))*)"
    return re.compile(amount, re.IGNORECASE), re.compile(part, re.IGNORECASE), words


def _sum(
    part: re.Pattern[str], words: Mapping[str, int], language: str, match: re.Match[str]
) -> str:
    """Return the sum of the parts; the text itself if they do not descend."""
    total, last = Fraction(0), 10**30
    word = re.compile("|".join(sorted(map(re.escape, words), key=len, reverse=True)))
    for place, (zero, number, scales) in enumerate(part.findall(match[0])):
        value = _value(number, language)
        factor = math.prod(words[one] for one in word.findall(scales.casefold()))
        if value is None:
            return match[0]
        if place and not scales and language.startswith("vi") and " " not in match[0]:
            value = value * last / 10 ** len(number)  # 1tr2 is 1,200,000
        elif (
            place and not scales and not zero and primary(language) in _TENTHS and len(number) == 1
        ):
            value = value * last / 10  # 1万2 is 12,000
        if value * factor >= last:
            return match[0]
        total, last = total + value * factor, factor
    return _digits(total, language)


def _value(number: str, language: str) -> Fraction | None:
    whole, _, places = number.partition(".")
    if (whole + places).isdecimal() and len(places) < 3:  # as most are, in every language
        return Fraction(int(whole + places), 10 ** len(places))
    try:
        return Fraction(machine_numbers(number, language))
    except ValueError:  # 1,2,3
        return None


@functools.cache
def _two_units(language: str) -> re.Pattern[str]:
    """Match where an amount of two units may be; most texts have none, and one search tells."""
    rows = (*_CHANGE.get(language, ()), *_SMALLER.get(language, ()))
    units = "|".join(large for large, _, _ in rows) or "(?!)"
    return re.compile(
        rf"\d\s?(?=[^\W\d_])(?:{units}),?\s{{0,2}}(?:{_AND.get(language, 'and')}\s{{1,2}})?\d",
        re.IGNORECASE,
    )


@functools.cache
def _pairs(language: str) -> tuple[tuple[re.Pattern[str], int, bool], ...]:
    """Match an amount in two units, with the number of small ones and whether it is money."""
    end = "" if language in _DENSE else r"(?![^\W_])"
    start = _DENSE_START if language in _DENSE else _START
    joint = rf",?\s{{0,2}}(?:(?:{_AND.get(language, 'and')})\s{{1,2}})?"
    rows = [(*row, True) for row in _CHANGE.get(language, ())]
    rows += [(*row, False) for row in _SMALLER.get(language, ())]
    return tuple(
        (
            re.compile(
                rf"{start}(?P<large>{_NUMBER})\s?(?P<unit>{large}){end}{joint}"
                rf"(?P<small>{_NUMBER})\s?(?P<part>{small}){end}",
                re.IGNORECASE,
            ),
            parts,
            is_money,
        )
        for large, small, parts, is_money in rows
    )


def _pair(parts: int, is_money: bool, language: str, match: re.Match[str]) -> str:
    """Return `12.5 dollars` for 12 dollars and 50 cents, `90 minutes` for 1 hour 30 minutes."""
    large, small = _value(match["large"], language), _value(match["small"], language)
    if large is None or small is None or large.denominator != 1 or small >= parts:
        return match[0]
    if is_money:
        return f"{_digits(large + small / parts, language)} {match['unit']}"
    return f"{_digits(large * parts + small, language)} {match['part']}"
