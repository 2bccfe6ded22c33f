r"""Units behind a quantity, for golds that name one: 9.8 m/s^2, 5\,\mathrm{J}, 300 kelvin.

Case matters (Pa, kJ, mol). Nothing is converted: 5 cm is not 0.05 m.
"""

import re
from collections import Counter

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
