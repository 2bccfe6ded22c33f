"""Units behind a quantity, for golds that name one: 9.8 m/s^2, 5\\,\\mathrm{J}, 300 kelvin.

Case matters (Pa, kJ, mol). Nothing is converted: 5 cm is not 0.05 m.
"""

import re
from collections import Counter

_NAMES = {
    "metre": "m meter metre",
    "second": "s second sec",
    "gram": "g gram",
    "kilogram": "kg kilogram",
    "ampere": "A ampere amp",
    "kelvin": "K kelvin",
    "celsius": "celsius",
    "fahrenheit": "fahrenheit",
    "mole": "mol mole",
    "candela": "cd candela",
    "hertz": "Hz hertz",
    "newton": "N newton",
    "pascal": "Pa pascal",
    "kilopascal": "kPa kilopascal",
    "joule": "J joule",
    "kilojoule": "kJ kilojoule",
    "watt": "W watt",
    "kilowatt": "kW kilowatt",
    "coulomb": "C coulomb",
    "volt": "V volt",
    "ohm": "Ω ohm",
    "farad": "F farad",
    "tesla": "T tesla",
    "weber": "Wb weber",
    "henry": "H henry",
    "electronvolt": "eV electronvolt",
    "litre": "L litre liter",
    "kilometre": "km kilometer kilometre",
    "centimetre": "cm centimeter centimetre",
    "millimetre": "mm millimeter millimetre",
    "nanometre": "nm nanometer nanometre",
    "hour": "h hour hr",
    "minute": "min minute",
}
_KNOWN = {form: name for name, forms in _NAMES.items() for form in forms.split()}
_WRITTEN = (
    (r"\^\s*\{\s*([-+]?\d)\s*\}", r"^\1"),
    (r"\\(?:text|mathrm|mathit|rm|operatorname)\s*\{([^{}]*)\}", r" \1 "),
    (r"\\[,;:!> ]|[~$]", " "),
    (r"\\(?:cdot|times)(?![A-Za-z])|[·⋅]", "*"),
    (r"\\(?:Omega|ohm)(?![A-Za-z])|\u2126", "Ω"),
    (r"(?:°|\^\s*\{?\s*\\circ\s*\}?)\s*C(?![A-Za-z])", " celsius"),
    (r"(?:°|\^\s*\{?\s*\\circ\s*\}?)\s*F(?![A-Za-z])", " fahrenheit"),
    ("⁻¹", "^-1"),
    ("⁻²", "^-2"),
    ("²", "^2"),
    ("³", "^3"),
    (r"\bper\b", "/"),
)
_QUANTITY = re.compile(r"(?P<number>.*?[\d)}])\s*(?P<unit>[^\W\d_][^\d{}\\]*(?:\d[^\d{}\\]*)*)")
_DIVISOR = re.compile(r"/\s*\(([^()]*)\)")
_FACTOR = re.compile(r"\s*([*/]?)\s*([^\W\d_]+)(?:\s*\^\(?([-+]?\d)\)?)?\s*")


def without_unit(text: str, unit: str) -> str | None:
    """Return a quantity without its unit; None if it has another one, the text if it has none."""
    found = _QUANTITY.fullmatch(_plain(text).strip().rstrip("."))
    written = _exponents(found["unit"]) if found else None
    if found is None or written is None:
        return text
    return found["number"] if written == _exponents(unit) else None


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
        name = _name(factor[2]) if factor else None
        if factor is None or name is None:
            return None
        sign = -1 if factor[1] == "/" else 1
        exponents[name] += sign * int(factor[3] or 1)
        rest = rest[factor.end() :]
    return {name: power for name, power in exponents.items() if power} or None


def _divided(divisor: re.Match[str]) -> str:
    """Write /(mol K) as /mol/K."""
    return "/" + "/".join(re.split(r"[\s*]+", divisor[1].strip()))


def _name(word: str) -> str | None:
    """Look up a symbol, or a name in any case and in the plural."""
    lower = word.lower()
    names = (lower, lower.removesuffix("s")) if len(word) > 2 else ()
    return next((_KNOWN[form] for form in (word, *names) if form in _KNOWN), None)
