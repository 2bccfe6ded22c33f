"""One folding of texts that are compared: width, case and blanks, and nothing that carries a value.

Differs from NFKC, which makes `10²` the number 102 and `3½` the number 31/2: an exponent is written
as `^2`, a fraction as ` 1/2`. Letters and digits of another width become equal, as NFKC says.
"""

import re
import unicodedata

# 10² m, 5³, 10⁻²³
_EXPONENT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
# 3½: the vulgar fractions of Unicode
_FRACTION = re.compile("[¼½¾⅐-⅞↉]")


def folded_parts(text: str) -> list[str]:
    """Fold width and case, and split at whitespace."""
    if text.isascii():  # in which NFKC changes nothing
        return text.lower().split()
    text = _EXPONENT.sub(lambda match: f"^{match[0]}", text)
    text = _FRACTION.sub(lambda match: f" {match[0]}", text)
    plain = unicodedata.normalize("NFKC", text).replace("\u2044", "/").replace("\u2212", "-")
    return plain.casefold().split()


def folded(text: str) -> str:
    """Fold width, case and blanks; equal texts differ in these alone."""
    return " ".join(folded_parts(text))
