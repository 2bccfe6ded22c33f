"""Dates of the calendar: `March 3, 2024`, `3 Maret 2024`, `2024年3月3日`, `2024-03-03`.

A date is one answer, written `2024-03-03` or, without its year, `03-03`. None of its numbers is an
answer: not the last one of a sentence that ends in a date, nor the difference of 2024-03-03.
"""

import functools
import re
from collections.abc import Mapping

from tasks.algorithms.language_tags import primary

MAX_CHARACTERS = 60
"""Most characters of a text that is a date and nothing else."""
_MONTHS: Mapping[str, str] = {
    "en": "January/Jan February/Feb March/Mar April/Apr May June/Jun July/Jul August/Aug "
    "September/Sept/Sep October/Oct November/Nov December/Dec",
    "id": "Januari Februari Maret April Mei Juni Juli Agustus September Oktober November Desember",
    "ms": "Januari Februari Mac April Mei Jun Julai Ogos September Oktober November Disember",
    "tl": "Enero Pebrero Marso Abril Mayo Hunyo Hulyo Agosto Setyembre Oktubre Nobyembre Disyembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro "
    "dezembro",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
    "diciembre",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "th": "มกราคม กุมภาพันธ์ มีนาคม เมษายน พฤษภาคม มิถุนายน กรกฎาคม สิงหาคม กันยายน ตุลาคม พฤศจิกายน ธันวาคม",
}
"""Twelve names in order, as they are spelled: `may` without its capital is no month."""
_DAY = r"(?P<day{0}>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|º)?"
_NUMBER_OF_MONTH = r"(?P<month{0}>0?[1-9]|1[0-2])"
_YEAR = r"(?P<year{0}>\d{{4}})"
_BEFORE = r"(?<![\w.,/\-])"
_AFTER = r"(?![\w/\-]|[.,]\d)"
# "2024-03-03"; 2024-10-12 may be a difference, and a zero in front of a number is none.
_ISO = (
    rf"{_BEFORE}(?=\d{{4}}-(?:0\d-|\d\d-0))(?P<year0>1[5-9]\d\d|20\d\d)-"
    rf"(?P<month0>0[1-9]|1[0-2])-(?P<day0>0[1-9]|[12]\d|3[01]){_AFTER}"
)
# "2024年3月3日", "3월 3일", "ngày 2 tháng 9 năm 2024"; 3 tháng 10 ngày is a time.
_BY_NUMBER = {
    "zh": (r"(?:{year}\s?年\s?)?(?<!\d){month}\s?月\s?{day}\s?[日号號]", r"(?!\d)"),
    "ko": (r"(?:{year}\s?년\s?)?(?<!\d){month}\s?월\s?{day}\s?일", r"(?!\d)"),
    "vi": (r"(?:[Nn]gày\s{day}\stháng\s{month}(?:\snăm\s{year})?)", _AFTER),
}
_LANGUAGE_OF = {"ja": "zh"}
# "3/4/2024", "03.04.2024", "14-3-24"
_IN_DIGITS = re.compile(
    r"(?P<first>\d{1,2})(?P<sign>[/.\-])(?P<second>\d{1,2})(?P=sign)(?P<year>\d{4}|\d\d)"
)
# "\text{", "$", ".": what may stand around a date.
_AROUND = re.compile(r"^(?:\\(?:text|mathrm)\s?\{|[\s$*_(\"'])+|[\s$*_)}\"'.。]+$")


def date_of(text: str, language: str) -> str:
    """Return the date that a text is; '' for any other text."""
    if len(text) > MAX_CHARACTERS or not re.search(r"\d", text):
        return ""
    match = _pattern(primary(language)).fullmatch(_AROUND.sub("", text))
    return _written(match, language) if match else ""


def dates_in_digits(text: str) -> frozenset[str]:
    """Return the dates that `3/4/2024` may be, day first and month first; a day of 13 is no month.

    Without another date to compare with it is none, but a quotient or a difference.
    """
    match = _IN_DIGITS.fullmatch(text.replace(" ", ""))
    if match is None:
        return frozenset()
    first, second, year = int(match["first"]), int(match["second"]), match["year"]
    year = year if len(year) == 4 else f"20{year}"
    return frozenset(
        f"{year}-{month:02}-{day:02}"
        for day, month in ((first, second), (second, first))
        if 0 < month <= 12 and 0 < day <= 31
    )


def cut_dates(text: str, language: str) -> tuple[str, list[re.Match[str]]]:
    """Return a text without its dates, and these."""
    pattern = _pattern(primary(language))
    dates = list(pattern.finditer(text))
    return (pattern.sub("", text), dates) if dates else (text, dates)


@functools.cache
def _pattern(language: str) -> re.Pattern[str]:
    """Match the dates of a language, and English ones."""
    language = _LANGUAGE_OF.get(language, language)
    months = "|".join(sorted(map(re.escape, _numbers(language)), key=len, reverse=True))
    name = rf"(?P<name{{0}}>{months})\.?"
    # "3rd of March, 2024", "3 de março de 2024", "3 มีนาคม พ.ศ. 2567"
    day_first = (
        rf"{_BEFORE}{_DAY}\.?\s?(?:of\s|de\s)?{name}"
        rf"(?:,?\s(?:de\s)?(?:พ\.ศ\.\s?|ค\.ศ\.\s?)?{_YEAR})?{_AFTER}"
    )
    # "March 3rd, 2024"
    month_first = rf"(?<!\w){name}\s{_DAY}(?:,?\s{_YEAR})?{_AFTER}"
    forms = [_ISO, day_first.format(1), month_first.format(2)]
    if language in _BY_NUMBER:
        form, after = _BY_NUMBER[language]
        parts = {"year": _YEAR, "month": _NUMBER_OF_MONTH, "day": _DAY}
        forms.append(form.format(**{part: one.format(3) for part, one in parts.items()}) + after)
    return re.compile("|".join(forms))


@functools.cache
def _numbers(language: str) -> Mapping[str, int]:
    """Return the number of every name of a month, those of English among them."""
    return {
        form: number
        for one in {"en", language} & _MONTHS.keys()
        for number, names in enumerate(_MONTHS[one].split(), 1)
        for form in names.split("/")
    }


def _written(match: re.Match[str], language: str) -> str:
    groups = {key[:-1]: value for key, value in match.groupdict().items() if value}
    base = primary(language)
    month = groups.get("month") or _numbers(_LANGUAGE_OF.get(base, base))[groups["name"]]
    year = f"{groups['year']}-" if "year" in groups else ""
    return f"{year}{int(month):02}-{int(groups['day']):02}"
