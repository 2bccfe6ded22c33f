"""Words and signs next to a number: units, currencies, per cent, words such as million."""

import math
import re
from collections import Counter

# A unit is a set of words. Nothing is converted: 5 cm is not 0.05 m.

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
_CURRENCIES = {
    "dollar": "$ USD dollar",
    "cent": "¢ cent cents",
    "euro": "€ EUR euro",
    "rupiah": "Rp IDR rupiah",
    "ringgit": "RM MYR ringgit",
    "baht": "฿ THB baht บาท",
    "dong": "₫ đ VND vnđ đồng",
    "real": "BRL real reais",
    "yuan": "元 RMB CNY yuan",
    "yen": "¥ JPY yen 円",
    "sterling": "£ GBP",
    "rupee": "₹ INR rupee",
    "peso": "₱ PHP peso piso",
    "won": "₩ KRW won 원",
    "singapore dollar": "SGD",
    "taiwan dollar": "TWD NTD",
    "hong kong dollar": "HKD",
    "australian dollar": "AUD",
    "canadian dollar": "CAD",
    "new zealand dollar": "NZD",
    "brunei dollar": "BND",
    "pataca": "MOP",
    "kip": "LAK kip ₭",
    "riel": "KHR riel ៛",
    "kyat": "MMK kyat",
    "franc": "CHF",
    "krona": "SEK",
    "krone": "NOK",
    "danish krone": "DKK",
    "zloty": "PLN",
    "forint": "HUF",
    "koruna": "CZK",
    "rouble": "RUB ₽",
    "hryvnia": "UAH ₴",
    "lira": "TRY ₺",
    "rand": "ZAR",
    "naira": "NGN ₦",
    "shilling": "KES",
    "cedi": "GHS",
    "egyptian pound": "EGP",
    "shekel": "ILS ₪",
    "dirham": "AED",
    "riyal": "SAR",
    "mexican peso": "MXN",
    "argentine peso": "ARS",
    "chilean peso": "CLP",
    "colombian peso": "COP",
    "sol": "PEN",
    "uruguayan peso": "UYU",
    "taka": "BDT ৳",
    "pakistani rupee": "PKR",
    "sri lankan rupee": "LKR",
    "nepalese rupee": "NPR",
}
"""Codes of ISO 4217 (2024) that are no English words, signs of Unicode's Sc, and names."""
CODES = (
    "Rp",
    *(form for forms in _CURRENCIES.values() for form in forms.split() if form[:2].isupper()),
)
SIGNED_DOLLARS = {
    "US": "USD",
    "NT": "TWD",
    "HK": "HKD",
    "NZ": "NZD",
    "AU": "AUD",
    "CA": "CAD",
    "SG": "SGD",
    "MX": "MXN",
}
"""What stands before the sign of a dollar: NT$ 500. `parse` reads R$ and S$, which may be rings."""
_GENERIC = {
    "dollar": " dollar",
    "yuan": "(?:taiwan|hong kong) dollar|yen|pataca",
    "peso": " peso",
    "rupee": " rupee",
}
"""Names that several currencies share: 500 元 may be NT$ 500."""
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
    **{name: forms.casefold() for name, forms in _CURRENCIES.items()},
}
KNOWN = {word: name for name, words in _MEASURES.items() for word in words.split()}
MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
"""Thai vowels and tones above and below letters, for a character class."""
_WORD = rf"(?:[^\W\d_]|[{MARKS}])+"
CURRENCY_SIGNS = "€£¥₫฿₹₱₩¢₭៛₽₴₺₦₪৳"
CURRENCY = (
    "|".join(sorted(map(re.escape, CODES), key=len, reverse=True)) + rf"|Rp\.|[{CURRENCY_SIGNS}]"
)
"""Source of a pattern: a currency's code or sign."""
_IGNORED = frozenset({"a", "an", "the", "of", "per", "each", "in", "is", "are"})
# "m^2", "cm3", "m^{2}".
_POWER = re.compile(r"([^\W\d_]+)\s?\^?\s?\{?([23])\}?")
# "square metres", "cu. ft", "sq ft".
_SQUARE = re.compile(r"\b(square|sq|cubic|cu)\b\.?\s*([^\W\d_]+)")


def unit(text: str) -> frozenset[str]:
    """Return the words of a unit as canonical names in the singular."""
    text = text.casefold().replace("p.m", "pm").replace("a.m", "am")
    text = _SQUARE.sub(lambda m: f"{m[2]}^{3 if m[1][0] == 'c' else 2}", text)
    powers = {f"{_name(word)}^{power}" for word, power in _POWER.findall(text)}
    words = re.findall(rf"{_WORD}|[°%${CURRENCY_SIGNS}]", _POWER.sub(" ", text))
    names = {_name(word) for word in words if word not in _SCALES}
    return frozenset(powers | names - _IGNORED)


def scale(text: str) -> int:
    """Return the factor of a unit's words: 10**6 for million, 1 for most."""
    return math.prod(_SCALES.get(word, 1) for word in re.findall(_WORD, text.casefold()))


def agree(gold: frozenset[str], other: frozenset[str]) -> bool:
    """Say whether two units agree: measures must be equal, other words may be missing."""
    if not gold or not other or gold == other:
        return True
    gold, other = _specific(gold, other), _specific(other, gold)
    return _measures(gold) == _measures(other) and (gold <= other or other <= gold)


def _specific(words: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Replace a name that several currencies share by the one that the other unit names."""
    for name, meant in _GENERIC.items():
        specific = {word for word in other if re.search(meant, word)}
        if name in words and specific:
            words = words - {name} | specific
    return words


def _measures(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if word.partition("^")[0] in _MEASURES)


def _name(word: str) -> str:
    if word in KNOWN:
        return KNOWN[word]
    stem = word[:-1] if len(word) > 3 and word.endswith("s") else word
    return KNOWN.get(stem, stem)


# Units behind a quantity, for golds that name one: 9.8 m/s^2, 5\,\mathrm{J}, 300 kelvin.
#
# Case matters (Pa, kJ, mol). Nothing is converted: 5 cm is not 0.05 m.

_PREFIXES = {
    "T": "tera",
    "G": "giga",
    "M": "mega",
    "k": "kilo",
    "h": "hecto",
    "d": "deci",
    "c": "centi",
    "m": "milli",
    "µ": "micro",
    "μ": "micro",
    "u": "micro",
    "n": "nano",
    "p": "pico",
    "f": "femto",
}
_SCALED = {
    "metre": "m meter metre",
    "second": "s second sec",
    "gram": "g gram",
    "ampere": "A ampere amp",
    "kelvin": "K kelvin",
    "mole": "mol mole",
    "candela": "cd candela",
    "hertz": "Hz hertz",
    "newton": "N newton",
    "pascal": "Pa pascal",
    "joule": "J joule",
    "watt": "W watt",
    "coulomb": "C coulomb",
    "volt": "V volt",
    "ohm": "Ω ohm",
    "siemens": "S siemens",
    "farad": "F farad",
    "tesla": "T tesla",
    "weber": "Wb weber",
    "henry": "H henry",
    "becquerel": "Bq becquerel",
    "gray": "Gy gray",
    "sievert": "Sv sievert",
    "lumen": "lm lumen",
    "lux": "lx lux",
    "radian": "rad radian",
    "electronvolt": "eV electronvolt",
    "litre": "L l litre liter",
    "bar": "bar",
    "calorie": "cal calorie",
    "dalton": "Da dalton",
    "molar": "M molar",
}
"""Units that prefixes multiply: symbols and names."""
_UNSCALED = {
    "celsius": "celsius",
    "fahrenheit": "fahrenheit",
    "degree": "deg degree",
    "percent": "percent",
    "minute": "min minute",
    "hour": "h hour hr",
    "day": "d day",
    "week": "week wk",
    "month": "month",
    "year": "yr year",
    "tonne": "t tonne",
    "hectare": "ha hectare",
    "inch": "inch inche",
    "foot": "ft foot feet",
    "yard": "yd yard",
    "mile": "mi mile",
    "pound": "lb pound",
    "ounce": "oz ounce",
    "atmosphere": "atm atmosphere",
    "torr": "torr mmHg",
    "angstrom": "Å angstrom",
    "lightyear": "ly lightyear",
    "parsec": "pc parsec",
    "decibel": "dB decibel",
    "revolution": "revolution rev",
}


def _forms() -> dict[str, str]:
    """Map every symbol and name, with every prefix, to one name of its unit."""
    results: dict[str, str] = {}
    for name, forms in (_SCALED | _UNSCALED).items():
        results |= dict.fromkeys(forms.split(), name)
    for name, forms in _SCALED.items():
        for form in forms.split():
            # A symbol has the symbol of a prefix; a name, which is longer, has its name.
            symbol = len(form) <= 2 or form in {"mol", "rad", "bar", "cal"}
            for short, long in _PREFIXES.items():
                results.setdefault(f"{short if symbol else long}{form}", f"{long}{name}")
                if symbol and len(form) > 2:
                    results.setdefault(f"{long}{form}", f"{long}{name}")
    return results


_KNOWN = _forms()
_WRITTEN = (
    (r"\\mu\s*\\(?:text|mathrm|rm)\s*\{([^{}]*)\}", r"μ\1"),
    (r"\^\s*\{\s*([-+]?\d)\s*\}", r"^\1"),
    (r"\\(?:text|mathrm|mathit|rm|operatorname)\s*\{([^{}]*)\}", r" \1 "),
    (r"\\mu(?![A-Za-z])\s*", "μ"),
    (r"\\[,;:!> ]|[~$]", " "),
    (r"(?i)\blight[- ]year", "lightyear"),
    (r"(?i)\bdegrees?\s+c(?:elsius)?\b", "celsius"),
    (r"(?i)\bdegrees?\s+f(?:ahrenheit)?\b", "fahrenheit"),
    (r"\\(?:cdot|times)(?![A-Za-z])|[·⋅]", "*"),
    (r"\\(?:Omega|ohm)(?![A-Za-z])|\u2126", "Ω"),
    (r"(?:°|\^\s*\{?\s*\\circ\s*\}?)\s*C(?![A-Za-z])", " celsius"),
    (r"(?:°|\^\s*\{?\s*\\circ\s*\}?)\s*F(?![A-Za-z])", " fahrenheit"),
    # Not the angle of a phasor, which other letters follow: 5\angle 30^\circ V.
    (r"(?:°|\^\s*\{?\s*\\circ\s*\}?)(?=\s*(?:$|[*/.)}]))", " degree"),
    (r"\\?%", " percent"),
    (r"\brpm\b", "rev/min"),
    (r"\bmph\b", "mi/h"),
    (r"\b([kM]?)Nm\b", r"\1N*m"),
    (r"\b([kMGT]?W|m?A)h\b", r"\1*h"),
    (r"\bkm?ph\b", "km/h"),
    ("⁻¹", "^-1"),
    ("⁻²", "^-2"),
    ("²", "^2"),
    ("³", "^3"),
    (r"\bper\b", "/"),
)
# "5 km/h", "2.5\times 10^{3} J": number, then unit.
_QUANTITY = re.compile(
    r"(?P<number>(?![A-Za-z]).*?[\d)}])\s*(?P<unit>[^\W\d_][^\d{}\\]*(?:\d[^\d{}\\]*)*)"
)
# "kJ of heat", "kJ is released", "kJ for one mole", "kJ (to two places)", "J 。"
_CONTINUES = re.compile(
    r"(?:^|\s)(?:of|is|are|was|as|which|that|for|in|at|on|when|if|so|and|or|because|since|to|by|with|"
    r"from|here|using|after|before|during|approximately|about|the|this|it|has|have|gets?|we)(?!\w)|"
    r"[()。]|\\(?:end|implies|quad|qquad|Rightarrow)(?![A-Za-z])"
)
# "/(mol K)" of "J/(mol K)".
_DIVISOR = re.compile(r"/\s*\(([^()]*)\)")
_NAMED = re.compile(r",?\s*(?:\w+ed\s+)?in\s+(?:units?\s+of\s+)?(\S.*)")
"""`in MJ`, `measured in MJ`; `in total` names no unit."""
# "m", "/s^2", "* K^-1".
_FACTOR = re.compile(r"\s*([*/]?)\s*([^\W\d_]+)(?:\s*\^\(?([-+]?\d)\)?)?\s*")


def without_unit(text: str, unit: str) -> str | None:
    """Return a quantity without its unit; None if it has another one, the text if it has none.

    An unknown word after a number is another unit: 12 furlongs.
    """
    match = _QUANTITY.fullmatch(_plain(text).strip().rstrip("."))
    if match is None:
        return text
    return match["number"] if _exponents(match["unit"]) == _exponents(unit) else None


def is_another(clause: str, unit: str) -> bool:
    """Say whether the clause after a number names another unit: `MJ of heat` is not kJ.

    What follows the first word that continues the sentence (`of`, `which`) is no part of a unit.
    """
    text = _plain(clause).strip(" .}{()[]")
    by_name = _NAMED.match(text)
    if by_name and _exponents(by_name[1].strip(" .}{()[]")):
        return _exponents(by_name[1].strip(" .}{()[]")) != _exponents(unit)
    other = _CONTINUES.split(text, maxsplit=1)[0].strip(" .}{()[]")
    if not re.search(r"[^\W\d_]", other):
        return False
    return _exponents(other) != _exponents(unit)


def is_unit(text: str) -> bool:
    """Return whether a text is a product of known units."""
    return _exponents(text) is not None


def _plain(text: str) -> str:
    for pattern, plain in _WRITTEN:
        text = re.sub(pattern, plain, text)
    return text


def _exponents(unit: str) -> dict[str, int] | None:
    """Return the exponent of every base unit; None if something else is in the text."""
    rest, exponents = _DIVISOR.sub(_divided, _plain(unit)).strip(), Counter[str]()
    while rest:
        factor = _FACTOR.match(rest)
        name = _unit_name(factor[2]) if factor else None
        if factor is None or name is None:
            return None
        sign = -1 if factor[1] == "/" else 1
        exponents[name] += sign * int(factor[3] or 1)
        rest = rest[factor.end() :]
    return {name: power for name, power in exponents.items() if power} or None


def _divided(divisor: re.Match[str]) -> str:
    """Write /(mol K) as /mol/K."""
    return "/" + "/".join(re.split(r"[\s*]+", divisor[1].strip()))


def _unit_name(word: str) -> str | None:
    """Look up a symbol, or a name in any case and in the plural."""
    lower = word.lower()
    names = (lower, lower.removesuffix("s")) if len(word) > 2 else ()
    return next((_KNOWN[form] for form in (word, *names) if form in _KNOWN), None)
