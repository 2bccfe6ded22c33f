"""A unit is a set of words. Nothing is converted: 5 cm is not 0.05 m."""

import math
import re

PERCENT = frozenset({"%"})
DEGREE = frozenset({"degree"})
RADIAN = frozenset({"radian"})
_SCALE_WORDS = {
    10**2: "hundred hundreds ratus",
    10**3: "thousand ribu nghìn ngàn mil mille tausend พัน 千",
    10**4: "หมื่น 万 萬",
    10**5: "แสน lakh lakhs",
    10**6: "million millions juta triệu millón millones milhão milhões million millionen ล้าน 百万",
    10**7: "crore crores",
    10**8: "亿 億",
    10**9: "billion billions miliar milyar tỷ tỉ bilhão bilhões milliard milliards milliarde",
    10**12: "trillion trillions triliun",
}
_SCALES = {word: factor for factor, words in _SCALE_WORDS.items() for word in words.split()}
_OTHER_CODES = (
    "AFN AMD ANG AOA AWG AZN BBD BGN BHD BIF BMD BSD BTN BWP BYN BZD CRC CVE DJF DOP DZD ERN "
    "ETB FJD FKP GIP GMD GNF GTQ GYD HNL HTG IQD IRR ISK JMD JOD KGS KMF KPW KWD KYD KZT LBP "
    "LRD LSL LYD MDL MGA MKD MNT MRU MUR MVR MWK MZN NAD NIO OMR PAB PGK PYG QAR RON RSD RWF "
    "SBD SCR SDG SHP SLE SRD SSP STN SVC SYP SZL TJS TMT TND TTD TZS UGX UZS VED VES VUV WST "
    "XAF XCD XOF XPF YER ZMW ZWG"
)
_SIGNS_OF = {"AMD": "֏", "AFN": "؋", "KZT": "₸", "MNT": "₮", "PYG": "₲", "CRC": "₡", "AZN": "₼"}
DOLLARS, RUPEES = "XXD", "XXR"
"""What `$` and `Rs` are read as: dollars and rupees of any country."""
_CURRENCIES = {
    "dollar": f"$ {DOLLARS} dollar",
    "us dollar": "USD",
    "cent": "¢ cent cents",
    "euro": "€ EUR euro",
    "rupiah": "Rp IDR rupiah",
    "ringgit": "RM MYR ringgit",
    "baht": "฿ THB baht บาท",
    "dong": "₫ đ VND vnđ đồng",
    "real": "BRL real reais",
    "yuan": "元 yuan",
    "chinese yuan": "RMB CNY",
    "yen": "JPY yen 円",
    "yen or yuan": "¥",
    "sterling": "£ GBP",
    "rupee": f"{RUPEES} rupee",
    "indian rupee": "₹ INR",
    "peso": "peso piso",
    "philippine peso": "₱ PHP Php",
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
    "cedi": "GHS ₵",
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
    "lari": "₾",
    "bitcoin": "₿",
} | {code.casefold(): f"{code} {_SIGNS_OF.get(code, '')}" for code in _OTHER_CODES.split()}
"""Codes of ISO 4217 (2024), signs of Unicode's Sc, and names. Left out are codes that are words or
functions: ALL, BAM, BOB, CDF, CUP, GEL, MAD, SOS, TOP."""
CODES = (
    *("Rp", "Php"),
    *(form for forms in _CURRENCIES.values() for form in forms.split() if form[:2].isupper()),
)
MONEY = "|".join(
    sorted(
        {re.escape(form) for forms in _CURRENCIES.values() for form in forms.split()},
        key=len,
        reverse=True,
    )
)
"""Source of a pattern: a currency's name, code or sign."""
SIGNED_DOLLARS = {
    "US": "USD",
    "NT": "TWD",
    "HK": "HKD",
    "NZ": "NZD",
    "AU": "AUD",
    "CA": "CAD",
    "SG": "SGD",
    "S": "SGD",
    "A": "AUD",
    "C": "CAD",
    "MX": "MXN",
}
"""What stands before the sign of a dollar: NT$ 500. `normal_form` reads R$, which may be a ring."""
# "singapore dollars", "mexican pesos"
_CODE_OF = {name: code.split()[0].casefold() for name, code in _CURRENCIES.items() if " " in name}
_CODE_OF |= {"u.s. dollar": "usd", "american dollar": "usd", "new taiwan dollar": "twd"}
_WITH_COUNTRY = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, _CODE_OF))})s?(?!\w)")
_GENERIC = {
    "dollar": " dollar",
    "yuan": "chinese yuan|(?:taiwan|hong kong) dollar|^yen$|pataca",
    "yen or yuan": "^(?:yen|yuan|chinese yuan)$",
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
    "hertz": "hz hertz",
    "mph": "mph",
    "am": "am",
    "pm": "pm",
    "degree": "° degree deg",
    "radian": "rad radian",
    "%": "% pct percent",
    **{name: forms.casefold() for name, forms in _CURRENCIES.items()},
}
KNOWN = {word: name for name, words in _MEASURES.items() for word in words.split()}
MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
"""Thai vowels and tones above and below letters, for a character class."""
_WORD = rf"(?:[^\W\d_]|[{MARKS}])+"
# "hundred"; not that of "5 hundred-dollar bills"
_SCALING = re.compile(rf"{_WORD}(?![^\W\d_]|-)")
CURRENCY_SIGNS = "€£¥₫฿₹₱₩¢₭៛₽₴₺₦₪৳₵₾₿" + "".join(_SIGNS_OF.values())
CURRENCY = (
    "|".join(sorted(map(re.escape, CODES), key=len, reverse=True)) + rf"|Rp\.|[{CURRENCY_SIGNS}]"
)
"""Source of a pattern: a currency's code or sign."""
COUNTS = {"dozen": 12, "gross": 144}
_COUNT_WORDS = {
    "dozen": "dozen lusin dosena dosenang dúzia dúzias docena docenas douzaine douzaines dutzend "
    "โหล 打 tá",
    "gross": "gross กุรุส",
}
_COUNT_NAMES = {word: name for name, words in _COUNT_WORDS.items() for word in words.split()}
"""Words that count by the dozen and by the gross, and their numbers in `COUNTS`."""
_IGNORED = frozenset({"a", "an", "the", "of", "per", "each", "in", "is", "are"})
# "m^2", "cm3", "m^{2}".
_POWER = re.compile(r"([^\W\d_]+)\s?\^?\s?\{?([23])\}?")
# "square metres", "cu. ft", "sq ft".
_SQUARE = re.compile(r"\b(square|sq|cubic|cu)\b\.?\s*([^\W\d_]+)")


def unit(text: str) -> frozenset[str]:
    """Return the words of a unit as canonical names in the singular."""
    text = text.casefold().replace("p.m", "pm").replace("a.m", "am")
    text = _WITH_COUNTRY.sub(lambda m: _CODE_OF[m[1]], text)
    text = _SQUARE.sub(lambda m: f"{m[2]}^{3 if m[1][0] == 'c' else 2}", text)
    powers = {f"{_name(word)}^{power}" for word, power in _POWER.findall(text)}
    words = re.findall(rf"{_WORD}|[°%${CURRENCY_SIGNS}]", _POWER.sub(" ", text))
    names = {_COUNT_NAMES.get(word) or _name(word) for word in words if word not in _SCALES}
    return frozenset(powers | names - _IGNORED)


def counts_in(text: str) -> frozenset[str]:
    """Return the names of `COUNTS` that a text, in lower case, counts in."""
    return frozenset(
        name
        for word, name in _COUNT_NAMES.items()
        if re.search(rf"(?<![^\W\d_]){word}" if word[0] < "\u0e00" else word, text)
    )


def scale(text: str) -> int:
    """Return the factor of a unit's words: 10**6 for million, 1 for most."""
    return math.prod(_SCALES.get(word, 1) for word in _SCALING.findall(text.casefold()))


def agree(gold: frozenset[str], other: frozenset[str]) -> bool:
    """Say whether two units agree: measures must be equal, other words may be missing."""
    if not gold or not other or gold == other:
        return True
    gold, other = _specific(gold, other), _specific(other, gold)
    return measures(gold) == measures(other) and (gold <= other or other <= gold)


def _specific(words: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Replace a name that several currencies share by the one that the other unit names."""
    for name, meant in _GENERIC.items():
        specific = {word for word in other if re.search(meant, word)}
        if name in words and specific:
            words = words - {name} | specific
    return words


def measures(words: frozenset[str]) -> frozenset[str]:
    """Return the words of a unit that are measures, as hours and euros are."""
    return frozenset(word for word in words if word.partition("^")[0] in _MEASURES)


def _name(word: str) -> str:
    if word in KNOWN:
        return KNOWN[word]
    stem = word[:-1] if len(word) > 3 and word.endswith("s") else word
    return KNOWN.get(stem, stem)
