"""Words and signs next to a number: units, currencies, per cent, words such as million.

A unit is a set of words. Nothing is converted: 5 cm is not 0.05 m.
"""

import math
import re

PERCENT = frozenset({"%"})
DOZEN = frozenset({"dozen"})
_SCALE_WORDS = {
    10**3: "thousand ribu nghìn ngàn mil mille tausend พัน 千",
    10**4: "หมื่น 万 萬",
    10**5: "แสน lakh",
    10**6: "million millions juta triệu millón millones milhão milhões million millionen ล้าน 百万",
    10**8: "亿 億",
    10**9: "billion billions miliar milyar tỷ tỉ bilhão bilhões milliard milliards milliarde",
    10**12: "trillion trillions triliun",
}
_SCALES = {word: factor for factor, words in _SCALE_WORDS.items() for word in words.split()}
_MEASURES = {
    "meter": "m meter metre",
    "centimeter": "cm centimeter centimetre",
    "millimeter": "mm millimeter millimetre",
    "kilometer": "km kilometer kilometre",
    "inch": "in inch inche",
    "foot": "ft foot feet",
    "yard": "yd yard",
    "mile": "mi mile",
    "gram": "g gram",
    "kilogram": "kg kilogram kilo",
    "milligram": "mg milligram",
    "pound": "lb lbs pound",
    "ounce": "oz ounce",
    "liter": "l liter litre",
    "milliliter": "ml milliliter millilitre",
    "second": "s sec second",
    "minute": "min minute",
    "hour": "h hr hrs hour",
    "mph": "mph",
    "am": "am",
    "pm": "pm",
    "degree": "° degree deg",
    "%": "% pct percent",
    "dollar": "$ dollar usd",
    "cent": "¢ cent cents",
    "euro": "€ euro eur",
    "rupiah": "rp idr rupiah",
    "ringgit": "rm myr ringgit",
    "baht": "฿ thb baht บาท",
    "dong": "₫ đ vnd vnđ đồng",
    "real": "brl real reais",
    "yuan": "元 yuan rmb",
    "yen": "¥ yen jpy 円",
    "sterling": "£ gbp",
    "rupee": "₹ inr rupee",
}
KNOWN = {word: name for name, words in _MEASURES.items() for word in words.split()}
MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
"""Thai vowels and tones above and below letters, for a character class."""
_WORD = rf"(?:[^\W\d_]|[{MARKS}])+"
CURRENCY_SIGNS = "€£¥₫฿₹₱₩¢"
_IGNORED = frozenset({"a", "an", "the", "of", "per", "each", "in", "is", "are"})
_POWER = re.compile(r"([^\W\d_]+)\s?\^?\s?\{?([23])\}?")
_SQUARE = re.compile(r"\b(square|sq|cubic|cu)\b\.?\s*([^\W\d_]+)")


def unit(text: str) -> frozenset[str]:
    """Return the words of a unit as canonical names in the singular."""
    text = text.casefold().replace("p.m", "pm").replace("a.m", "am")
    text = _SQUARE.sub(lambda m: f"{m[2]}^{3 if m[1][0] == 'c' else 2}", text)
    powers = {f"{_name(word)}^{power}" for word, power in _POWER.findall(text)}
    words = re.findall(rf"{_WORD}|[°%${CURRENCY_SIGNS}]", _POWER.sub(" ", text))
    named = {_name(word) for word in words if word not in _SCALES}
    return frozenset(powers | named - _IGNORED)


def scale(text: str) -> int:
    """Return the factor of a unit's words: 10**6 for million, 1 for most."""
    return math.prod(_SCALES.get(word, 1) for word in re.findall(_WORD, text.casefold()))


def agree(gold: frozenset[str], other: frozenset[str]) -> bool:
    """Say whether two units agree: measures must be equal, other words may be missing."""
    if not gold or not other or gold == other:
        return True
    return _measures(gold) == _measures(other) and (gold <= other or other <= gold)


def _measures(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if word.partition("^")[0] in _MEASURES)


def _name(word: str) -> str:
    if word in KNOWN:
        return KNOWN[word]
    stem = word[:-1] if len(word) > 3 and word.endswith("s") else word
    return KNOWN.get(stem, stem)
