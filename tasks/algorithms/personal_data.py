"""Personal data in a text: e-mail addresses, phones, payment cards, identity numbers, addresses.

What is looked for is what a rule can recognise in the countries of the eight languages: Brazil,
Indonesia, Malaysia, the Philippines, Singapore, Taiwan, Thailand and Vietnam. Names of people are
not looked for: no rule knows them. Numbers are checked by the libraries that know their plans
(phonenumbers, python-stdnum); a number that order numbers, product codes or prices could be as well
counts only in its official spelling or behind a word that names it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import phonenumbers
from stdnum import luhn
from stdnum.br import cpf
from stdnum.id import nik
from stdnum.my import nric
from stdnum.th import pin


class PersonalKind(StrEnum):
    """What a passage tells of a person."""

    EMAIL = "email"
    PHONE = "phone"
    CARD = "card"
    IDENTITY = "identity"
    """KTP, MyKad, CPF, Thai and Taiwanese identity numbers, NRIC, CCCD, PhilSys."""
    PASSPORT = "passport"
    ADDRESS = "address"


class Passage(NamedTuple):
    """Where a text tells something of a person: characters `start` to `end`."""

    start: int
    end: int
    kind: PersonalKind


REGIONS = ("BR", "ID", "MY", "PH", "SG", "TH", "TW", "VN")
_CANDIDATE = re.compile(r"[@\d]")
"""A text without one of these has nothing that is looked for."""

# buyer3@example.com; at least one dot in the domain, which ends with letters.
_EMAIL = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,24}(?![\w-])")
# A bracket may stand before it, but that of a function: f(81234567).
# +62 812-3456-7890, (021) 555 0199, 4111 1111 1111 1111, 111.444.777-35, 1-1017-02073-69-1
_DIGITS = re.compile(
    r"(?<![\w.,/])(?<!\w\()(?:\+|(?:\+?\d{1,3} ?)?\(\+?\d{1,4}\)[ -]?)?"
    r"\d(?:[ \u00a0.-]{0,2}\d){6,24}(?![\w(]|[.,]\d)"
)
# American Express has 15 digits, the others 16. A serial number of a telephone (IMEI) has 15 as
# well, the same check digit, and mostly begins with 35.
_CARD = re.compile(r"3[47]\d{13}|(?:4|5[1-5]|2[2-7]|35|6)\d{14,15}")
_GROUPED = re.compile(r"\d{4}([ -])\d{4}\1\d{4}\1\d{4}|\d{4}([ -])\d{6}\2\d{5}")

# Words before a number, in the languages of the shops. At most _BEFORE characters lie between.
_BEFORE = 24


class _Word(StrEnum):
    """What a word says of the number behind it."""

    THING = "thing"
    """An order, a parcel or a product: whatever its digits are, the number is no person's."""
    PHONE = "phone"
    CARD = "card"
    IDENTITY = "identity"


_WORDS = {
    _Word.THING: re.compile(
        r"(?<![\w-])(?:order|invoice|tracking|awb|waybill|sku|ean|upc|gtin|asin|isbn|barcode|voucher|serial|"
        r"model|ticket|pesanan|faktur|resi|pedido|rastreio|nota fiscal|đơn|vận|mã)\b"
        r"|คำสั่งซื้อ|พัสดุ|訂單|订单|編號|编号|條碼|条码|貨號|货号",
        re.IGNORECASE,
    ),
    _Word.PHONE: re.compile(
        r"(?<![\w-])(?:phone|tel|telp|telepon|telefon|telefone|mobile|cell|celular|hp|wa|whatsapp|call|"
        r"hubungi|fone|sđt|điện thoại|gọi|tawag|tawagan)\b|โทร|เบอร์|มือถือ|電話|电话|手機|手机",
        re.IGNORECASE,
    ),
    _Word.CARD: re.compile(
        r"(?<![\w-])(?:card|kartu|kad|cartão|thẻ|visa|mastercard|amex)\b|บัตรเครดิต|卡", re.IGNORECASE
    ),
    _Word.IDENTITY: re.compile(
        r"(?<![\w-])(?:ktp|nik|mykad|ic|kad pengenalan|cpf|nric|cccd|cmnd|căn cước|chứng minh|"
        r"philsys|national id|identity card|id card|umid|sss)\b|บัตรประชาชน|ประชาชน|身分證|身份证",
        re.IGNORECASE,
    ),
}
_IDENTITY_LENGTHS = (8, 9, 10, 11, 12, 13, 16)
# Formats that nothing else has: 111.444.777-35 (CPF), 1-1017-02073-69-1 (Thailand), 900101-14-5677.
_CPF = re.compile(r"\d{3}\.\d{3}\.\d{3}-\d{2}")
_THAI = re.compile(r"\d[- ]\d{4}[- ]\d{5}[- ]\d{2}[- ]\d")
_MYKAD = re.compile(r"\d{6}-\d{2}-\d{4}")
# wa.me/6281234567890, a link that opens a chat with this number
_CHAT_LINK = re.compile(r"\bwa\.me/\+?(?P<number>\d{8,15})\b")
# A123456789 (Taiwan), S1234567D (Singapore).
_LETTERED = re.compile(r"(?<![\w-])(?:[A-Z][1289]\d{8}|[STFGM]\d{7}[A-Z])(?![\w-])")
# "Passport no. A1234567", "paspor: B 1234567", "護照 300123456"
_PASSPORT = re.compile(
    r"(?:\b(?:passport|paspor|pasport|passaporte|pasaporte|hộ chiếu)\b|หนังสือเดินทาง|護照|护照)"
    r"[^\w\n]{0,3}(?:(?:no|nomor|number|número|số|號碼|号码)\b)?[^\w\n]{0,3}"
    r"(?P<number>[A-Z]{0,2} ?\d{6,9})(?!\w)",
    re.IGNORECASE,
)
_NUMBER = r"(?:(?:No|Nomor|nº|n°|n)\.? ?)?\d{1,5}[A-Za-z]?(?:/\d+)*"
_NAME = r"(?:(?:d[aeo]s? )?[A-ZÀ-Ỹ][\w'.-]*[ ,]{1,2}){1,5}"
_NAME_BEHIND = r"(?: [A-ZÀ-Ỹ0-9][\w/]*){1,4}"
_ADDRESSES: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (words, re.compile(pattern))
    for words, pattern in (
        # Jl. Sudirman No. 12; RT 03/RW 05
        (
            ("Jl", "Jalan", "Gg", "Gang"),
            rf"\b(?:Jl|Jln|Jalan|Gg|Gang)\.? {_NAME}(?:[Nn]o|[Nn]omor)\.? ?\d{{1,4}}[A-Za-z]?",
        ),
        (("RW",), r"\bRT\.? ?\d{1,3} ?/ ?RW\.? ?\d{1,3}\b"),
        # No. 12, Jalan Ampang; Lot 5, Lorong 3
        (
            ("Jalan", "Jln", "Lorong", "Persiaran"),
            rf"\b(?:No|Lot)\.? ?\d{{1,4}}[A-Z]?,? (?:Jalan|Jln|Lorong|Persiaran){_NAME_BEHIND}",
        ),
        # Rua das Flores, 123; Avenida Paulista, nº 1578
        (
            ("Rua", "Avenida", "Av.", "Travessa", "Alameda"),
            rf"\b(?:Rua|Avenida|Av\.|Travessa|Alameda) {_NAME}{_NUMBER}\b",
        ),
        # 12 Nguyễn Huệ, phường Bến Nghé; số 5 đường Lê Lợi
        (
            ("hường", "uận", "P.", "Q."),
            r"\b\d{1,4}[A-Za-z]?(?:/\d+)* (?:đường |phố )?[A-ZÀ-Ỹ][\w ]{2,30}, ?"
            rf"(?:[Pp]hường|[Qq]uận|P\.|Q\.)(?:{_NAME_BEHIND}| ?\w+)",
        ),
        (
            ("đường", "phố", "ngõ"),
            rf"\b[Ss]ố (?:nhà )?\d{{1,4}}[A-Za-z]?(?:/\d+)*,? (?:đường|phố|ngõ){_NAME_BEHIND}",
        ),
        # 99/12 ซอยสุขุมวิท 5, 12 หมู่ 3
        (
            ("หมู่", "ม.", "ซอย", "ซ.", "ถนน", "ถ."),
            r"\d{1,4}(?:/\d+)? ?(?:(?:หมู่|ม\.) ?\d+|(?:ซอย|ซ\.|ถนน|ถ\.) ?[\u0e00-\u0e7f\w]+"
            r"(?: \d{1,3}\b)?)",
        ),
        # 台北市信義區松仁路100號
        (
            ("號", "号"),
            r"[\u4e00-\u9fff]{2,3}[市縣县][\u4e00-\u9fff]{1,4}[區区鄉乡鎮镇市][\u4e00-\u9fff]{1,8}?[路街道]"
            r"[\d一二三四五六七八九十段巷弄之 -]*\d+ ?[號号]",
        ),
        # Blk 277 Ang Mo Kio Ave 3 #05-70; Blk 3 Lot 5, Brgy. San Isidro
        (
            ("Blk", "Block"),
            r"\b(?:Blk|Block)\.? \d{1,4}[A-Z]?,?"
            r"(?: Lot \d{1,3}(?:,? (?:Brgy|Barangay)\.?(?: [A-Z]\w+){1,3})?"
            r"|(?: [A-Z][\w.]*){1,4} \d{1,3}(?: #\d{1,2}-\d{1,4})?)",
        ),
        # 25 Orchard Road; 12 Mabini Street
        (
            ("Street", "St.", "Road", "Rd.", "Avenue", "Ave.", "Lane", "Drive"),
            r"\b\d{1,5}[A-Z]? (?:[A-Z][a-z]+ ){1,3}"
            r"(?:Street|St\.|Road|Rd\.|Avenue|Ave\.|Lane|Drive)(?!\w)",
        ),
    )
)
"""Words of which an address of a form has one, and the form: most texts need no look for it."""
_LONG_NUMBER = re.compile(r"\d{6}")
"""In every number of a passport and in every number that begins with a letter."""


def personal_passages(text: str) -> list[Passage]:
    """Find what a text tells of people, in the order of the text, without overlaps.

    Degenerate case: a text without digits and without `@` has nothing.
    """
    if not _CANDIDATE.search(text):
        return []
    passages: list[Passage] = []
    for passage in sorted(_candidates(text), key=lambda one: (one.start, -one.end)):
        if not passages or passage.start >= passages[-1].end:
            passages.append(passage)
    return passages


def without_personal_data(text: str) -> str:
    """Replace each passage by its kind in brackets: `[phone]`.

    Equal passages get equal texts, and a second call changes nothing.
    """
    return _without(text, personal_passages(text))


def replace_spellings(text: str, spellings: Mapping[str, PersonalKind]) -> str:
    """Replace what is spelled like one of these by its kind in brackets, and nothing else.

    What a text tells by its own words is replaced where it is one of the spellings; a number that
    is part of a longer one never is. Degenerate case: without spellings the text stays.
    """
    if not spellings:
        return text
    own = [one for one in personal_passages(text) if text[one.start : one.end] in spellings]
    longest_first = sorted(spellings, key=len, reverse=True)
    pattern = rf"(?<!\d)(?:{'|'.join(map(re.escape, longest_first))})(?!\d)"
    return re.sub(pattern, lambda match: f"[{spellings[match[0]]}]", _without(text, own))


def _without(text: str, passages: Sequence[Passage]) -> str:
    end, kept = 0, []
    for passage in passages:
        kept += [text[end : passage.start], f"[{passage.kind}]"]
        end = passage.end
    return "".join([*kept, text[end:]])


def _candidates(text: str) -> Iterator[Passage]:
    if "@" in text:
        for match in _EMAIL.finditer(text):
            yield Passage(*match.span(), PersonalKind.EMAIL)
    yield from _of_long_numbers(text) if _LONG_NUMBER.search(text) else ()
    for match in _DIGITS.finditer(text):
        if kind := _kind_of_number(match[0], text, match.start()):
            yield Passage(*match.span(), kind)
    for words, pattern in _ADDRESSES:
        if any(word in text for word in words):
            for match in pattern.finditer(text):
                yield Passage(*match.span(), PersonalKind.ADDRESS)


def _of_long_numbers(text: str) -> Iterator[Passage]:
    for match in _PASSPORT.finditer(text):
        yield Passage(*match.span("number"), PersonalKind.PASSPORT)
    for match in _CHAT_LINK.finditer(text):
        yield Passage(*match.span("number"), PersonalKind.PHONE)
    for match in _LETTERED.finditer(text):
        if _word_before(text, match.start()) is not _Word.THING and _has_check_letter(match[0]):
            yield Passage(*match.span(), PersonalKind.IDENTITY)


def _kind_of_number(spelling: str, text: str, start: int) -> PersonalKind | None:
    """Say what a number is: the word in front of it decides, then its own form."""
    digits = "".join(str(unicodedata.decimal(one)) for one in spelling if one.isdecimal())
    word = _word_before(text, start)
    if word is _Word.THING:
        return None
    is_named = word is _Word.IDENTITY and len(digits) in _IDENTITY_LENGTHS
    if is_named or _is_identity(spelling, digits):
        return PersonalKind.IDENTITY
    if _is_card(spelling, digits):
        return PersonalKind.CARD
    is_phone = _is_phone(spelling, is_named=word is _Word.PHONE)
    return PersonalKind.PHONE if is_phone else None


def _word_before(text: str, start: int) -> "_Word | None":
    """Return what the last word in front of a number names, if it names anything."""
    first = max(0, start - _BEFORE)
    ends = [
        (match.end(), word)
        for word, pattern in _WORDS.items()
        for match in pattern.finditer(text, first, start)
    ]
    return max(ends)[1] if ends else None


def _is_identity(spelling: str, digits: str) -> bool:
    checks: tuple[tuple[re.Pattern[str] | None, Callable[[str], bool]], ...] = (
        (_CPF, cpf.is_valid),
        (_THAI, pin.is_valid),
        (_MYKAD, nric.is_valid),
        (None, lambda number: spelling == number and nik.is_valid(number)),
    )
    return any((not form or form.fullmatch(spelling)) and check(digits) for form, check in checks)


def _is_card(spelling: str, digits: str) -> bool:
    return (
        len(digits) in (15, 16)
        and (spelling == digits or _GROUPED.fullmatch(spelling) is not None)
        and _CARD.fullmatch(digits) is not None
        and luhn.is_valid(digits)
    )


# 08-11-2026, 2026-11-28, 0.16210937
_DATE_OR_DECIMAL = re.compile(
    r"\d{1,2}[-./ ]\d{1,2}[-./ ]\d{4}|\d{4}[-./ ]\d{1,2}[-./ ]\d{1,2}|\d*\.\d+$"
)


def _is_phone(spelling: str, *, is_named: bool) -> bool:
    """Ask the numbering plans of the eight countries; with a country code, those of the world.

    Without a word that names it, a country code or an area code in parentheses, only a mobile
    number counts: a part number may begin with 0 like a landline.
    """
    if _DATE_OR_DECIMAL.match(spelling) or not (is_named or spelling.startswith(("+", "0", "("))):
        return False
    for region in (None,) if "+" in spelling else REGIONS:
        try:
            number = phonenumbers.parse(spelling, region)
        except phonenumbers.NumberParseException:
            continue
        kind = phonenumbers.number_type(number)
        is_certain = is_named or not spelling[0].isdecimal()
        if kind == _MOBILE or (is_certain and kind != _UNKNOWN):
            return True
    return False


_MOBILE, _UNKNOWN = phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.UNKNOWN


# The letter of a Taiwanese number counts as two digits, by the place of registration.
_TAIWAN = {letter: 10 + place for place, letter in enumerate("ABCDEFGHJKLMNPQRSTUVXYWZIO")}
_SINGAPORE = {"S": (0, "JZIHGFEDCBA"), "T": (4, "JZIHGFEDCBA"), "F": (0, "XWUTRQPNMLK")}
_SINGAPORE |= {"G": (4, "XWUTRQPNMLK"), "M": (3, "XWUTRQPNJLK")}


def _has_check_letter(number: str) -> bool:
    """Check an identity number of Taiwan (weights 1 9 8 ... 1) or Singapore (2 7 6 5 4 3 2)."""
    if number[-1].isdigit():
        place = _TAIWAN[number[0]]
        weights = (1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1)
        digits = [place // 10, place % 10, *map(int, number[1:])]
        return sum(map(int.__mul__, weights, digits)) % 10 == 0
    offset, letters = _SINGAPORE[number[0]]
    total = offset + sum(map(int.__mul__, (2, 7, 6, 5, 4, 3, 2), map(int, number[1:8])))
    return letters[total % 11] == number[-1]
