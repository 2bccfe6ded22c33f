"""Rows that tell something of a person, and rows that do not, with what is known of each.

Numbers are drawn from the published plans and specifications of eight countries (check digits by
the formulas, written out here, not by the libraries that the rules use), and stand in sentences as
customers write them, with and without a word that names them. None is copied from anywhere.
"""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tasks.algorithms.personal_data import PersonalKind


class Row(NamedTuple):
    """A text; what it tells of a person and where, or what thing its number belongs to."""

    text: str
    kind: PersonalKind | None
    name: str
    """Form of the number: 'phone BR'."""
    start: int
    end: int


def digits(draw: random.Random, count: int) -> str:
    return "".join(draw.choice("0123456789") for _ in range(count))


def with_luhn(body: str) -> str:
    """Add the check digit of payment cards and of the serial numbers of telephones."""
    total = 0
    for place, digit in enumerate(reversed(body)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 * (value > 9)
    return body + str(-total % 10)


def with_ean(body: str) -> str:
    """Add the check digit of EAN-13."""
    total = sum(int(one) * (3 if place % 2 else 1) for place, one in enumerate(body))
    return body + str(-total % 10)


def cpf(draw: random.Random) -> str:
    body = digits(draw, 9)
    for _ in range(2):
        total = sum(
            int(one) * weight for one, weight in zip(body, range(len(body) + 1, 1, -1), strict=True)
        )
        body += str(0 if total % 11 < 2 else 11 - total % 11)
    return f"{body[:3]}.{body[3:6]}.{body[6:9]}-{body[9:]}"


def thai(draw: random.Random) -> str:
    body = draw.choice("12345678") + digits(draw, 11)
    total = sum(int(one) * (13 - place) for place, one in enumerate(body))
    full = body + str((11 - total % 11) % 10)
    return f"{full[0]}-{full[1:5]}-{full[5:10]}-{full[10:12]}-{full[12]}"


def birth(draw: random.Random) -> tuple[int, int, int]:
    return draw.randint(50, 99), draw.randint(1, 12), draw.randint(1, 28)


def nik(draw: random.Random) -> str:
    """A man's number; of a woman the day is 40 more."""
    year, month, day = birth(draw)
    district = draw.choice(("317101", "327301", "337401", "357801", "127101"))
    return f"{district}{day + draw.choice((0, 40)):02}{month:02}{year:02}{draw.randint(1, 30):04}"


def mykad(draw: random.Random) -> str:
    year, month, day = birth(draw)
    place = draw.choice(("01", "07", "08", "10", "14"))
    return f"{year:02}{month:02}{day:02}-{place}-{digits(draw, 4)}"


def nric(draw: random.Random) -> str:
    first, body = draw.choice("ST"), digits(draw, 7)
    total = sum(map(int.__mul__, map(int, body), (2, 7, 6, 5, 4, 3, 2))) + 4 * (first == "T")
    return first + body + "JZIHGFEDCBA"[total % 11]


def taiwan(draw: random.Random) -> str:
    letters = "ABCDEFGHJKLMNPQRSTUVXYWZIO"
    letter = draw.choice(letters)
    code = 10 + letters.index(letter)
    body = draw.choice("12") + digits(draw, 7)
    total = code // 10 + 9 * (code % 10)
    total += sum(int(one) * weight for one, weight in zip(body, range(8, 0, -1), strict=True))
    return letter + body + str(-total % 10)


def spaced(number: str, draw: random.Random, *sizes: int) -> str:
    """Group digits as people do, by blanks, by hyphens or not at all."""
    mark, parts = draw.choice(("", " ", "-")), []
    for size in sizes:
        parts.append(number[:size])
        number = number[size:]
    return mark.join([*parts, number] if number else parts)


Form = tuple[PersonalKind, str, Callable[[random.Random], str], tuple[str, ...]]
"""Kind, name, what draws it, words that may stand before it; '' = none."""
PHONES: dict[str, tuple[str, str, Callable[[random.Random], str], tuple[int, ...]]] = {
    # Country code, trunk prefix, digits after it, groups: mobile numbers.
    "BR": (
        "+55",
        "",
        lambda d: d.choice(("11", "21", "31")) + "9" + d.choice("6789") + digits(d, 7),
        (2, 5),
    ),
    "ID": ("+62", "0", lambda d: d.choice(("812", "813", "852", "878")) + digits(d, 8), (3, 4)),
    "MY": (
        "+60",
        "0",
        lambda d: d.choice(("12", "13", "16", "17", "19")) + d.choice("23456789") + digits(d, 6),
        (2, 3),
    ),
    "PH": ("+63", "0", lambda d: d.choice(("905", "917", "918", "927")) + digits(d, 7), (3, 3)),
    "SG": ("+65", "", lambda d: d.choice(("81", "82", "91", "96")) + digits(d, 6), (4,)),
    "TH": ("+66", "0", lambda d: d.choice(("81", "86", "89", "91")) + digits(d, 7), (2, 3)),
    "TW": ("+886", "0", lambda d: d.choice(("912", "922", "933", "955")) + digits(d, 6), (3, 3)),
    "VN": ("+84", "0", lambda d: d.choice(("91", "98", "90", "86")) + digits(d, 7), (2, 3)),
}
PHONE_WORDS = {
    "BR": ("meu celular é", "telefone:", "whatsapp"),
    "ID": ("hubungi", "no hp saya", "WA"),
    "MY": ("telefon saya", "call saya", "hp:"),
    "PH": ("tawag po sa", "cell:", "mobile number ko"),
    "SG": ("call me at", "hp", "my mobile is"),
    "TH": ("โทร", "เบอร์", "มือถือ"),
    "TW": ("電話", "手機:", "請打電話"),
    "VN": ("gọi", "sđt:", "điện thoại"),
}


def phone(country: str, *, is_named: bool) -> Callable[[random.Random], str]:
    code, trunk, body_of, sizes = PHONES[country]

    def draw_phone(draw: random.Random) -> str:
        body = body_of(draw)
        # Without a word only a country code or a trunk prefix says that it is a phone.
        if draw.random() < 0.5 or not (trunk or is_named):
            return f"{code} {spaced(body, draw, *sizes)}"
        first, *rest = sizes
        return spaced(trunk + body, draw, first + len(trunk), *rest)

    return draw_phone


def card(draw: random.Random) -> str:
    if draw.random() < 0.2:
        number = with_luhn(draw.choice(("34", "37")) + digits(draw, 12))
        return spaced(number, draw, 4, 6)
    number = with_luhn(
        draw.choice(("4", "51", "55", "2221", "3530", "6011")).ljust(6, "1") + digits(draw, 9)
    )
    return spaced(number, draw, 4, 4, 4)


ADDRESSES = (
    lambda d: f"Jl. {d.choice(('Sudirman', 'Gatot Subroto', 'Melati'))} No. {d.randint(1, 200)}",
    lambda d: (
        f"Jalan Diponegoro no {d.randint(1, 200)} RT 0{d.randint(1, 9)}/RW 0{d.randint(1, 9)}"
    ),
    lambda d: f"No. {d.randint(1, 99)}, Jalan {d.choice(('Ampang', 'Bukit Bintang', 'SS2/24'))}",
    lambda d: f"Rua {d.choice(('das Flores', 'Augusta', 'XV de Novembro'))}, {d.randint(1, 2000)}",
    lambda d: f"Av. {d.choice(('Paulista', 'Atlântica'))}, {d.randint(1, 2000)}",
    lambda d: f"{d.randint(1, 300)} Nguyễn Huệ, phường {d.choice(('Bến Nghé', '5'))}",
    lambda d: f"số {d.randint(1, 300)} đường {d.choice(('Trần Phú', 'Hai Bà Trưng'))}",
    lambda d: f"{d.randint(1, 99)}/{d.randint(1, 30)} ถนน{d.choice(('สุขุมวิท', 'พระราม 4'))}",
    lambda d: f"{d.randint(1, 99)}/{d.randint(1, 30)} หมู่ {d.randint(1, 9)}",
    lambda d: f"台北市{d.choice(('信義區松仁路', '大安區和平東路'))}{d.randint(1, 300)}號",
    lambda d: f"高雄市苓雅區四維三路{d.randint(1, 9)}巷{d.randint(1, 9)}號",
    lambda d: f"{d.randint(1, 99)} {d.choice(('Orchard Road', 'Mabini Street', 'Rizal Avenue'))}",
    lambda d: f"Blk {d.randint(1, 900)} Ang Mo Kio Ave {d.randint(1, 9)} #0{d.randint(2, 9)}-21",
    lambda d: f"Blk {d.randint(1, 40)} Lot {d.randint(1, 60)}, Brgy. San Isidro",
)
ADDRESS_NAMES = (
    "ID",
    "ID RT/RW",
    "MY",
    "BR Rua",
    "BR Av.",
    "VN ward",
    "VN",
    "TH road",
    "TH moo",
    "TW",
    "TW lane",
    "SG, PH street",
    "SG block",
    "PH barangay",
)


def forms() -> Iterator[Form]:
    """Yield every form in which a row may tell something of a person."""
    email = PersonalKind.EMAIL
    name = lambda d: d.choice(("siti", "joao.silva", "tan_wm", "minh", "somchai"))  # noqa: E731
    host = lambda d: d.choice(("gmail.com", "mail.example.co.id", "ex-ample.vn"))  # noqa: E731
    yield email, "email", lambda d: f"{name(d)}{digits(d, 3)}@{host(d)}", ("", "mail:")
    for country, words in PHONE_WORDS.items():
        yield PersonalKind.PHONE, f"{country}, named", phone(country, is_named=True), words
        yield PersonalKind.PHONE, country, phone(country, is_named=False), ("",)
    yield PersonalKind.CARD, "card", card, ("", "kartu", "card", "cartão")
    identity = PersonalKind.IDENTITY
    yield identity, "KTP", nik, ("", "KTP", "NIK")
    yield identity, "MyKad", mykad, ("", "IC", "MyKad")
    yield identity, "CPF", cpf, ("", "CPF")
    yield identity, "Thai id", thai, ("", "บัตรประชาชน")
    yield identity, "NRIC", nric, ("", "NRIC")
    yield identity, "Taiwan id", taiwan, ("", "身分證")
    yield identity, "CCCD", lambda d: f"0{d.randint(1, 96):02}{digits(d, 9)}", ("CCCD", "căn cước")
    words = ("passport no.", "paspor", "passaporte", "hộ chiếu", "護照", "หนังสือเดินทาง")
    yield PersonalKind.PASSPORT, "passport", lambda d: d.choice("ABCEP") + digits(d, 7), words
    for country, address in zip(ADDRESS_NAMES, ADDRESSES, strict=True):
        yield PersonalKind.ADDRESS, country, address, ("", "kirim ke", "to")


THINGS: tuple[tuple[str, Callable[[random.Random], str], tuple[str, ...]], ...] = (
    (
        "order number",
        lambda d: f"24{d.randint(1, 12):02}{d.randint(1, 28):02}{digits(d, 8)}",
        ("order", "pesanan", "pedido", "đơn", "訂單", "คำสั่งซื้อ", ""),
    ),
    (
        "order with letters",
        lambda d: f"24{d.randint(1, 12):02}{digits(d, 2)}QX7K{digits(d, 4)}",
        ("order", ""),
    ),
    (
        "EAN-13",
        lambda d: with_ean(
            d.choice(("899", "955", "885", "893", "480", "888", "789", "471")) + digits(d, 9)
        ),
        ("EAN", "barcode", ""),
    ),
    (
        "ISBN",
        lambda d: f"978-{d.randint(0, 9)}-{digits(d, 3)}-{digits(d, 5)}-{digits(d, 1)}",
        ("ISBN", ""),
    ),
    (
        "parcel",
        lambda d: d.choice(("JP", "SPXID0", "JNE", "TH0")) + digits(d, 11),
        ("resi", "parcel", ""),
    ),
    ("parcel of digits", lambda d: digits(d, 12), ("tracking", "no. resi", "awb", "vận đơn")),
    ("serial of a phone", lambda d: with_luhn("35" + digits(d, 12)), ("IMEI", "")),
    ("SKU", lambda d: f"{digits(d, 4)}-{digits(d, 3)}-{digits(d, 3)}", ("SKU", "model")),
    ("price in rupiah", lambda d: f"Rp{d.randint(1, 99)}.{d.randint(100, 999)}.000", ("", "harga")),
    ("price in dong", lambda d: f"{d.randint(1, 9)}.{d.randint(100, 999)}.000₫", ("", "giá")),
    ("price in reais", lambda d: f"R$ {d.randint(1, 99)}.{d.randint(100, 999)},90", ("", "por")),
    (
        "price with a code",
        lambda d: f"PHP {d.randint(1, 9)},{d.randint(100, 999)}.00",
        ("", "price"),
    ),
    (
        "date and time",
        lambda d: f"2026-11-{d.randint(1, 28):02} {d.randint(10, 23)}:{d.randint(10, 59)}",
        ("", "on"),
    ),
    ("date", lambda d: f"{d.randint(1, 28):02}/{d.randint(1, 12):02}/2026", ("", "until")),
    (
        "measure",
        lambda d: f"{d.randint(10, 90)} x {d.randint(10, 90)} x {d.randint(10, 90)} cm",
        ("", "size"),
    ),
    ("sizes", lambda d: "36/37/38/39/40/41", ("", "size")),
    (
        "number",
        lambda d: f"{d.randint(1, 99)},{d.randint(100, 999)},{d.randint(100, 999)}",
        ("", "sold"),
    ),
    ("decimal", lambda d: f"0.{digits(d, 9)}", ("", "x =")),
    (
        "model",
        lambda d: f"{d.choice(('Galaxy S', 'iPhone ', 'RTX ', 'WH-'))}{d.randint(10, 5090)}",
        ("", "model"),
    ),
    ("voucher", lambda d: f"SALE{d.randint(1, 12):02}{d.randint(10, 99)}", ("voucher", "")),
    ("quantity", lambda d: f"{d.randint(2, 48)} pcs", ("", "qty")),
    (
        "street's name alone",
        lambda d: d.choice(("Orchard Road", "Jalan Alor", "Rua Augusta")),
        ("near", ""),
    ),
    ("handle", lambda d: f"@shop{digits(d, 3)}", ("follow", "")),
    ("chat id", lambda d: digits(d, d.randint(5, 8)), ("chat", "ref", "")),
)
FRAMES = (
    "Halo kak, {} , barang belum sampai",
    "hi {} thanks",
    "Pls check {} asap!",
    "Olá, {} obrigado",
    "Shop ơi {} nhé",
    "สวัสดีค่ะ {} ค่ะ",
    "你好 {} 謝謝",
    "{}",
    "My blender came broken ({}), refund please.",
)


def _row(draw: random.Random, kind: PersonalKind | None, name: str, value: str, word: str) -> Row:
    before, after = draw.choice(FRAMES).split("{}")
    head = before + (f"{word} " if word else "")
    return Row(f"{head}{value}{after}", kind, name, len(head), len(head) + len(value))


def rows_of_people(each: int, seed: int = 0) -> list[Row]:
    """Draw as many rows of every form."""
    draw = random.Random(seed)
    return [
        _row(draw, kind, name, value(draw), draw.choice(words))
        for kind, name, value, words in forms()
        for _ in range(each)
    ]


def rows_of_things(each: int, seed: int = 1) -> list[Row]:
    """Draw as many rows of everything that looks like one and is not."""
    draw = random.Random(seed)
    return [
        _row(draw, None, name, value(draw), draw.choice(words))
        for name, value, words in THINGS
        for _ in range(each)
    ]
