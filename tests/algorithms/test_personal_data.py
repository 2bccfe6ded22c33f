"""What a text tells of a person is found, and numbers of orders, products and prices are not."""

import random

from tasks.algorithms.personal_data import (
    PersonalKind,
    personal_passages,
    without_personal_data,
)
from tests.tables import for_each

# Written by hand from the numbering plans and the specifications of the identity numbers; check
# digits were worked out by hand. One line a kind, as customers of eight countries write it.
PEOPLE = {
    PersonalKind.EMAIL: (
        "buyer3@example.com",
        "Siti.Nur+shop@mail.example.co.id",
        "a_b@ex-ample.vn",
    ),
    PersonalKind.PHONE: (
        "+62 812-3456-7890",
        "0812 3456 7890",
        "+60 12-345 6789",
        "012-345 6789",
        "+66 81 234 5678",
        "081-234-5678",
        "+84 91 234 56 78",
        "0912345678",
        "+63 917 123 4567",
        "0917-123-4567",
        "+55 11 91234-5678",
        "(11) 91234-5678",
        "+886 912 345 678",
        "0912-345-678",
        "+65 8123 4567",
    ),
    PersonalKind.CARD: ("4111 1111 1111 1111", "5555-5555-5555-4444", "378282246310005"),
    PersonalKind.IDENTITY: (
        "3171015708890001",  # Jakarta, a woman born on 17 August 1989
        "900101-14-5677",
        "111.444.777-35",
        "1-2345-67890-12-1",
        "A123456789",
        "S1234567D",
    ),
    PersonalKind.PASSPORT: ("passport no. A12345678", "paspor: B 1234567", "hộ chiếu C1234567"),
    PersonalKind.ADDRESS: (
        "Jl. Sudirman No. 12",
        "RT 03/RW 05",
        "No. 7, Jalan Ampang",
        "Rua das Flores, 123",
        "số 5 đường Lê",
        "99/12 ซอยสุขุมวิท",
        "台北市信義區松仁路100號",
        "25 Orchard Road",
        # Each word of a form once: a form is only looked for where one of its words is.
        "Gg. Mawar No. 3",
        "Jln Melati No 4",
        "Jalan Melati Nomor 4",
        "Lot 5, Lorong 3",
        "No. 12, Jln Ampang",
        "No. 12, Persiaran 4",
        "Avenida Paulista, 1578",
        "Av. Paulista, 1578",
        "Travessa do Sol, 9",
        "Alameda Santos, 45",
        "12 Nguyễn Huệ, phường Bến",
        "12 Nguyễn Huệ, Quận 1",
        "12 Nguyễn Huệ, P. 7",
        "12 Nguyễn Huệ, Q.3",
        "số 5 phố Huế",
        "Số 5 ngõ Chợ",
        "12 หมู่ 3",
        "12 ม. 3",
        "5 ถ.สุขุมวิท",
        "99 ถนนสุขุมวิท",
        "7 ซ.ทองหล่อ",
        "台北縣板橋區文化路12号",
        "12 Mabini Street",
        "12 Mabini St.",
        "3 Serangoon Rd.",
        "3 Bukit Timah Avenue",
        "3 Rizal Ave.",
        "4 Palm Lane",
        "4 Ocean Drive",
    ),
}
THINGS = (
    "order 240611QX7K1234",
    "pesanan 2406110812345678",
    "resi JP0812345678",
    "no. resi 081234567890",
    "EAN 8991234567899",
    "ISBN 978-0-306-40615-7",
    "8851234567898",
    "Rp1.299.000",
    "RM 1,299.00",
    "1.299.000₫",
    "R$ 12.345,67",
    "2026-11-28 22:23",
    "08-11-2026",
    "0.081234567",
    "3.14159265",
    "iPhone 15 128GB",
    "SKU 0812-345-678",
    "12,345,678",
    "mã đơn 0912345678",
    "訂單 0912345678",
    "size 38/39/40/41",
    "1920x1080",
    "@shopname",
)
FRAMES = (
    "The red shoe never came: {}.",
    "Barang belum sampai, {} ya kak",
    "ยังไม่ได้รับของ {} ครับ",
    "Ainda não chegou, {}, obrigado",
    "還沒收到 {} 謝謝",
    "Chưa nhận được hàng {} ạ",
)


@for_each(("kind", "text"), [(kind, text) for kind, texts in PEOPLE.items() for text in texts])
def test_what_tells_of_a_person_is_found_in_every_frame(kind: PersonalKind, text: str) -> None:
    for frame in FRAMES:
        passages = personal_passages(frame.format(text))

        assert [kind] == [one.kind for one in passages], frame


@for_each("text", THINGS)
def test_numbers_of_things_are_nobodys(text: str) -> None:
    assert [] == [one for frame in FRAMES for one in personal_passages(frame.format(text))]


def test_a_masked_text_has_nothing_left_and_keeps_what_is_around() -> None:
    draw = random.Random(5)
    pieces = [text for texts in PEOPLE.values() for text in texts] + list(THINGS)
    for _ in range(200):
        text = "; ".join(draw.sample(pieces, 4))
        masked = without_personal_data(text)

        assert masked == without_personal_data(masked)
        assert [piece for piece in text.split("; ") if piece in THINGS] == [
            piece for piece in masked.split("; ") if piece in THINGS
        ]


def test_a_link_that_opens_a_chat_has_the_number_of_a_person() -> None:
    assert "https://wa.me/[phone]" == without_personal_data("https://wa.me/6281234567890")


def test_a_word_in_front_says_what_a_number_is() -> None:
    # Ten digits: a mobile number without its 0, an order, and one that could be either.
    assert "call [phone]" == without_personal_data("call 9171234567 ".strip())
    assert "order 9171234567" == without_personal_data("order 9171234567")
    assert "9171234567" == without_personal_data("9171234567")
    # The last word decides.
    assert "order 77, card [card]" == without_personal_data("order 77, card 4111111111111111")
    # One digit of the card is another: its check digit is wrong.
    assert "card 4111111111111112" == without_personal_data("card 4111111111111112")
