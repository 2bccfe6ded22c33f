"""Signs of decimals and thousands in numeric answers: refused where a language misreads them."""

import re
from collections.abc import Sequence

from data_schemas.mappings import TEXT
from tasks.curation.guessing.columns import HALF, MOSTLY, PRICE, SIGN, Column
from tasks.curation.guessing.languages import Tags, is_malay_or_indonesian
from tasks.errors import DataError
from tasks.gym.maths.latex_terms import symbols
from tasks.gym.maths.numerals import writes_comma
from tasks.gym.maths.parse import parse

# "0,5", "1.495,72", "0,125", "3,1416": a comma of decimals for certain; and so with points.
_DECIMALS = {
    sign: re.compile(rf"[-+]?(?:[\d{other}]*{sign}\d{{1,2}}|0?{sign}\d+|\d+{sign}\d{{4,}})")
    for sign, other in (",.", ".,")
}
# "12.500", "1.299.000": thousands in Indonesian, and 12.5 in English; and with commas, vice versa.
_GROUPED = {sign: re.compile(rf"[1-9]\d{{0,2}}(?:[{sign}]\d{{3}})+") for sign in ",."}
# "R$ " and " đ", before and behind a number.
_CURRENCY = re.compile(rf"^{SIGN}\s?|\s?{SIGN}$")
# "1.299", "0,5", "12000": written differently, or with a separator, in another language.
_SEPARABLE = re.compile(r"[.,]|\d{4}")


def check_separators(answers: Column, tags: Tags, remarks: Sequence[str]) -> None:
    """Refuse numbers of no known language, and decimals that it does not write: 0,5 in English.

    Args:
        remarks: what was assumed of the language; none if it was given.

    Raises:
        DataError: names the column and a value.
    """
    pairs = [(value, _number(value)) for value in answers.values if value]
    odd = [number for _, number in pairs if _SEPARABLE.search(number)]
    if odd and (tags == TEXT or is_malay_or_indonesian(tags)):
        remedy = remarks[-1] if remarks else "Give theirs: --language, for example pt-BR."
        raise DataError(
            f"{answers.name} has numbers as {odd[0]}, which languages read differently. {remedy}"
        )
    if answers.is_typed or not isinstance(tags, str) or tags == TEXT or "{" in tags:
        return
    odd, fault = _fault(pairs, tags, is_assumed=bool(remarks))
    if odd:
        raise DataError(f"{len(odd):,} of {len(answers.values):,} values of {answers.name} {fault}")


def _fault(
    pairs: Sequence[tuple[str, str]], tag: str, *, is_assumed: bool
) -> tuple[Sequence[str], str]:
    """Return numbers that a language reads otherwise than they seem to be meant, and why.

    Each value comes with its number, which has no currency.
    """
    num_signed = sum("." in number or "," in number for _, number in pairs)
    decimal, other = ",." if writes_comma(tag) else ".,"
    groups = [
        value
        for value, number in pairs
        if _GROUPED[decimal].fullmatch(number) and _is_below(value, number, tag)
    ]
    if is_assumed and len(groups) > HALF * num_signed:
        return groups, (
            f"are as {groups[0]}, in which {tag} reads {decimal!r} as the sign "
            f"of decimals. If it is one, give --language {tag}; else write thousands without a sign"
        )
    odd = [number for _, number in pairs if _DECIMALS[other].fullmatch(number)]
    name = "comma" if other == "," else "point"
    if decimal == "." and len(odd) > HALF * num_signed:
        return odd, (
            f"have a decimal {name}, as {odd[0]}, which {tag} does not write: 1.299 "
            "would be read wrongly. Give the language of the numbers: --language, for example pt-BR"
        )
    thousands = [value for value, number in pairs if _GROUPED[other].fullmatch(number)]
    if thousands and len(odd) > (1 - MOSTLY) * num_signed:
        return odd, (
            f"have a decimal {name}, as {odd[0]}, and {tag} reads {thousands[0]} as "
            f"thousands. Write decimals with {decimal!r}, or numbers in a file with types (Parquet)"
        )
    unread = [value for value, _ in pairs if not _is_one(value, tag)]
    if len(unread) > HALF * len(pairs):
        return unread, (
            f"are as {unread[0]}, which is not read as one number in {tag}. Write them without "
            "separators, and a currency as its sign or code (₱, PHP)"
        )
    return (), ""


def _is_below(value: str, number: str, tag: str) -> bool:
    """True if a number with separators is read as another one than its digits say."""
    term = parse(value, tag).term
    return term is None or term.value != int(re.sub(r"\D", "", number))


def _number(value: str) -> str:
    """Return what a price says without its currency and words; another value as it is."""
    price = PRICE.fullmatch(value)
    return re.sub(r"[ \u00a0\u202f']", "", price["number"]) if price else _CURRENCY.sub("", value)


def _is_one(value: str, tag: str) -> bool:
    """True if a value is read as one number or formula; 299k is none where k is an unknown."""
    answer = parse(value, tag)
    is_product = PRICE.fullmatch(value) and answer.term is not None and symbols(answer.term)
    return answer.readable and answer.kind != "list" and not is_product
