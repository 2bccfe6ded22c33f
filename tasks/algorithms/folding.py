"""One folding of texts that are compared, in three steps; no step joins what has different values.

`visible` drops what nobody sees. `unified` also writes one spelling of a word that has several: the
order in which Thai marks are typed, the place of a Vietnamese tone, 台 and 臺, apostrophes.
`folded` also folds width, case and blanks.

Differs from NFKC, which makes `10²` the number 102, `10₂` too, and `3½` the number 31/2: a raised
digit is written as `^2`, a lowered one behind a digit as `_2`, a fraction as ` 1/2`, `㎡` as `m^2`.
Letters and digits of another width become equal, as NFKC says.
"""

# ruff: noqa: RUF001 - signs that people type
import functools
import re
import unicodedata

# Default ignorable characters that draw nothing: soft hyphen, zero-width blanks, marks of
# direction. A joiner is kept between signs, where it makes another one: 👨‍👩‍👧 is no 👨👩👧.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]|"
    "(?<=\\w)\u200d|\u200d(?=\\w)"
)
_APOSTROPHES = str.maketrans(dict.fromkeys("’‘ʼʹʻˈ′´`ꞌ＇", "'"))
# The same word in the standards of Taiwan and Hong Kong, and in what people type.
_HAN = str.maketrans(
    dict(zip("臺裏爲衆羣峯牀綫啓麪衞説祕喫", "台裡為眾群峰床線啟麵衛說秘吃", strict=True))
)
_THAI = re.compile("[\u0e00-\u0e7f]")
_TONES = "\u0e48-\u0e4b"
# The typing orders that pythainlp 5.1.2 puts right (util/normalize.py), and no more: a vowel that
# is written twice stays.
_THAI_ORDERS = tuple(
    (re.compile(pattern), by)
    for pattern, by in (
        ("\u0e40\u0e40", "\u0e41"),  # เเ is แ
        (f"([{_TONES}\u0e4c]+)([\u0e31\u0e34-\u0e39\u0e47\u0e4d]+)", r"\2\1"),  # vowel before tone
        (f"\u0e4d([{_TONES}]*)\u0e32", "\\1\u0e33"),  # ํ and า are ำ
        (f"([\u0e30\u0e32\u0e33\u0e45]+)([{_TONES}]+)", r"\2\1"),  # tone before า
        ("([^\u0e24\u0e26])\u0e45", "\\1\u0e32"),
    )
)
# The signs of a tone, on the first of two vowels (hòa) or on the second (hoà).
_VIETNAMESE_TONES = "\u0300\u0301\u0309\u0303\u0323"
_VIETNAMESE_ONSETS = "b|ch?|d|đ|gh?|h|kh?|l|m|ngh?|nh?|ph|q|r|s|th?|tr|v|x"
# 10² m, 5³, 10⁻²³, xⁿ
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ]+")
# 10₂ is no 102; H₂O is H2O
_LOWERED = re.compile("(?<=\\d)[₀₁₂₃₄₅₆₇₈₉]+")
# 3½: the vulgar fractions of Unicode
_FRACTION = re.compile("[¼½¾⅐-⅞↉]")
# ㎡, ㎤, ㎨: signs of units whose last digit is an exponent
_SQUARED = re.compile("[\u339f-\u33a6\u33a8\u33af]")


def visible(text: str) -> str:
    """Drop characters that draw nothing."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def unified(text: str) -> str:
    """Write one spelling of every word, in NFC; width, case, blanks and signs stay."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", visible(text)).translate(_APOSTROPHES).translate(_HAN)
    if _THAI.search(text):
        for pattern, by in _THAI_ORDERS:
            text = pattern.sub(by, text)
    pattern, spellings = _vietnamese()
    return pattern.sub(lambda match: match["onset"] + spellings[match["rime"]], text)


def folded_parts(text: str) -> list[str]:
    """Unify spellings, fold width and case, and split at whitespace."""
    if text.isascii():  # in which nothing else changes
        return text.lower().replace("`", "'").split()
    return of_one_width(text).casefold().split()


def of_one_width(text: str) -> str:
    """Unify spellings and fold width, as NFKC does, but keep what has another value apart."""
    text = _RAISED.sub(lambda match: f"^{match[0]}", unified(text))
    text = _LOWERED.sub(lambda match: f"_{match[0]}", text)
    text = _FRACTION.sub(lambda match: f" {match[0]}", text)
    text = _SQUARED.sub(_power, text)
    return unicodedata.normalize("NFKC", text).replace("\u2044", "/").replace("\u2212", "-")


def folded(text: str) -> str:
    """Unify spellings, fold width, case and blanks; equal texts differ in these alone."""
    return " ".join(folded_parts(text))


def _power(match: re.Match[str]) -> str:
    """Write ㎡ as m^2, ㎨ as m/s^2."""
    unit = unicodedata.normalize("NFKC", match[0]).replace("\u2215", "/")
    return f"{unit[:-1]}^{unit[-1]}"


@functools.cache
def _vietnamese() -> tuple[re.Pattern[str], dict[str, str]]:
    """Match two vowels at the end of a syllable with the tone on the first, and say the other."""
    spellings: dict[str, str] = {}
    for first, second in ("oa", "oe", "uy"):
        for a in (first, first.upper()):
            for b in (second, second.upper()):
                for tone in _VIETNAMESE_TONES:
                    composed = [unicodedata.normalize("NFC", char + tone) for char in (a, b)]
                    spellings[composed[0] + b] = a + composed[1]
    pattern = rf"(?<![^\W\d_])(?P<onset>(?i:{_VIETNAMESE_ONSETS})?)(?P<rime>{'|'.join(spellings)})"
    return re.compile(rf"{pattern}(?![^\W\d_])"), spellings
