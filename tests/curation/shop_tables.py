"""Tables as shops export them, from a seed, each with what is true of it."""

import csv
import datetime
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

# ruff: noqa: E501, RUF001 - texts of other scripts, whose letters have other widths

KINDS = ("feed", "spreadsheet", "reviews", "dialogues", "numbers")
LANGUAGES = ("en", "id", "ms", "pt-BR", "th", "vi", "zh-TW", "fil")
_NULLS = ("NULL", "N/A", "nan", "None", "")


@dataclass(frozen=True)
class _Words:
    """What one language writes: names of columns, goods of three categories, sentences."""

    columns: str
    """title description category price rating review sentiment question answer, by |."""
    goods: str
    """Three categories by /, each a name and four titles."""
    sentences: str
    """Good reviews / bad reviews / questions / replies, each by |."""
    sum: str
    """A question whose answer is a number of money."""
    decimal: str = "."

    def texts(self, place: int) -> list[str]:
        return [text.strip() for text in self.sentences.split("/")[place].split("|")]


WORDS: Mapping[str, _Words] = {
    "en": _Words(
        "title|description|category|price|rating|review|sentiment|question|answer",
        "shoes|running shoe for men|winter boots with fur|leather sandals|canvas sneaker for school/"
        "kitchen|steel frying pan with lid|set of three wooden spoons|large glass bowl|bread knife/"
        "toys|doll with a red dress|wooden train for children|puzzle with a map|kite for the beach",
        "It fits very well and looks good.|Arrived early, I would buy it again./"
        "The colour is not what I ordered.|It broke after one day and nobody answers me./"
        "Where is my order?|How can I return these shoes?|When will it be in stock again?/"
        "It will arrive on Monday.|Please open your account and choose returns.|We expect it in May.",
        "How much are {n} boxes with delivery, in dollars?",
    ),
    "id": _Words(
        "Nama Produk|Deskripsi|Kategori|Harga|Rating|Ulasan|Sentimen|Pertanyaan|Jawaban",
        "sepatu|sepatu lari untuk pria dewasa|sandal kulit yang nyaman|sepatu sekolah anak warna hitam|"
        "bot musim hujan/dapur|wajan baja dengan tutup kaca|sendok kayu isi tiga|mangkuk kaca besar|"
        "pisau roti yang tajam/mainan|boneka dengan gaun merah|kereta kayu untuk anak|teka-teki gambar "
        "peta|layang-layang buat di pantai",
        "Barangnya bagus sekali dan pengirimannya cepat.|Ukurannya pas banget, terima kasih kak./"
        "Warnanya tidak sesuai dengan pesanan saya.|Baru dipakai sehari sudah rusak, kecewa banget./"
        "Pesanan saya sudah sampai di mana ya?|Bagaimana cara mengembalikan barang ini?|Kapan barang "
        "ini tersedia lagi?/Pesanan kakak akan tiba hari Senin.|Silakan buka akun lalu pilih "
        "pengembalian.|Barangnya akan tersedia lagi bulan depan.",
        "Berapa harga {n} kotak dengan ongkos kirimnya, dalam rupiah?",
        ",",
    ),
    "ms": _Words(
        "Nama Produk|Keterangan|Kategori|Harga|Rating|Ulasan|Sentimen|Soalan|Jawapan",
        "kasut|kasut sukan lelaki dewasa|selipar kulit yang selesa|kasut sekolah budak warna hitam|but "
        "musim hujan/dapur|kuali keluli dengan penutup kaca|sudu kayu set tiga|mangkuk kaca besar|"
        "pisau roti yang tajam/mainan|anak patung bergaun merah|kereta api kayu untuk kanak-kanak|"
        "permainan teka-teki peta|layang-layang untuk pantai",
        "Barang memang cantik dan penghantaran pantas.|Saiz ngam sangat, terima kasih banyak penjual./"
        "Warna tak sama macam yang saya pesan.|Baru pakai sehari dah rosak, kecewa betul./"
        "Pesanan saya dah sampai ke mana?|Macam mana nak pulangkan barang ini?|Bila barang ini ada "
        "stok semula?/Pesanan anda akan tiba pada hari Isnin.|Sila buka akaun dan pilih pemulangan.|"
        "Barang ini akan ada semula bulan hadapan.",
        "Berapakah harga {n} kotak termasuk kos penghantaran, dalam ringgit?",
    ),
    "pt-BR": _Words(
        "Título|Descrição|Categoria|Preço|Nota|Avaliação|Sentimento|Pergunta|Resposta",
        "calçados|tênis de corrida masculino|sandália de couro feminina|bota de inverno com pelo|"
        "sapato escolar infantil preto/cozinha|frigideira de aço com tampa|jogo de três colheres de "
        "pau|tigela grande de vidro|faca de pão/brinquedos|boneca com vestido vermelho|trem de madeira "
        "para crianças|quebra-cabeça com mapa|pipa para a praia",
        "Chegou antes do prazo e é muito bonito.|Serviu direitinho, comprarei outra vez./"
        "A cor não é a que eu pedi.|Quebrou no primeiro dia e ninguém me responde./"
        "Onde está o meu pedido?|Como faço para devolver estes sapatos?|Quando volta a ter em estoque?/"
        "O seu pedido chega na segunda-feira.|Abra a sua conta e escolha devoluções.|Esperamos que "
        "volte em maio.",
        "Quanto custam {n} caixas com o frete, em reais?",
        ",",
    ),
    "th": _Words(
        "ชื่อสินค้า|รายละเอียด|หมวดหมู่|ราคา|คะแนน|รีวิว|ความรู้สึก|คำถาม|คำตอบ",
        "รองเท้า|รองเท้าวิ่งผู้ชาย|รองเท้าแตะหนังแท้|รองเท้าบูทกันหนาว|รองเท้าผ้าใบนักเรียน/ครัว|กระทะเหล็กพร้อมฝาแก้ว|"
        "ช้อนไม้ชุดสามคัน|ชามแก้วใบใหญ่|มีดหั่นขนมปัง/ของเล่น|ตุ๊กตาชุดแดง|รถไฟไม้สำหรับเด็ก|จิ๊กซอว์แผนที่|ว่าวชายหาด",
        "ของดีมาก ส่งไวมาก|ใส่พอดี สวยถูกใจ/สีไม่ตรงกับที่สั่ง|ใช้วันเดียวก็พัง ไม่มีใครตอบ/สินค้าของฉันอยู่ที่ไหน|"
        "คืนรองเท้าคู่นี้ได้อย่างไร|จะมีของอีกเมื่อไร/สินค้าจะถึงวันจันทร์ค่ะ|กรุณาเปิดบัญชีแล้วเลือกคืนสินค้า|คาดว่ามีของเดือนหน้าค่ะ",
        "กล่อง {n} ใบรวมค่าส่งราคากี่บาท",
    ),
    "vi": _Words(
        "Tên sản phẩm|Mô tả|Danh mục|Giá|Đánh giá|Nhận xét|Cảm xúc|Câu hỏi|Trả lời",
        "giày|giày chạy bộ nam|dép da thật êm chân|bốt mùa đông có lông|giày vải đi học/nhà bếp|chảo "
        "thép có nắp kính|bộ ba thìa gỗ|bát thủy tinh lớn|dao cắt bánh mì/đồ chơi|búp bê váy đỏ|tàu hỏa "
        "gỗ cho trẻ em|bộ xếp hình bản đồ|diều thả ở biển",
        "Hàng đẹp lắm, giao rất nhanh.|Đi vừa chân, sẽ mua lại./Màu không đúng như tôi đặt.|Dùng một "
        "ngày đã hỏng, không ai trả lời./Đơn hàng của tôi đang ở đâu?|Làm sao để trả lại đôi giày này?|"
        "Khi nào có hàng lại?/Đơn hàng sẽ đến vào thứ Hai.|Bạn hãy mở tài khoản và chọn trả hàng.|Dự "
        "kiến tháng sau có hàng.",
        "{n} hộp kèm phí giao hàng giá bao nhiêu đồng?",
        ",",
    ),
    "zh-TW": _Words(
        "商品名稱|描述|類別|價格|評分|評論|情感|問題|回答",
        "鞋子|男用慢跑運動鞋|真皮舒適涼鞋|冬季保暖雪靴|學生帆布鞋/廚房|不鏽鋼平底鍋附玻璃蓋|木製湯匙三入組|大玻璃碗|麵包刀/"
        "玩具|紅色洋裝娃娃|兒童木製火車|世界地圖拼圖|海邊風箏",
        "品質很好，出貨很快。|尺寸剛好，會再回購。/顏色跟我訂的不一樣。|用一天就壞了，沒有人回覆。/我的訂單到哪裡了？|"
        "這雙鞋要怎麼退貨？|什麼時候會再進貨？/您的訂單星期一會到。|請開啟帳戶並選擇退貨。|預計下個月到貨。",
        "{n}個箱子含運費總共多少元？",
    ),
    "fil": _Words(
        "Pangalan|Paglalarawan|Kategorya|Presyo|Rating|Komento|Damdamin|Tanong|Sagot",
        "sapatos|sapatos na pantakbo para sa lalaki|tsinelas na gawa sa balat|bota para sa tag-ulan|"
        "sapatos ng bata para sa eskwela/kusina|kawali na bakal na may takip|tatlong kutsara na gawa sa "
        "kahoy|malaking mangkok na salamin|kutsilyo para sa tinapay/laruan|manika na may pulang damit|"
        "tren na kahoy para sa mga bata|palaisipan na may mapa|saranggola para sa dalampasigan",
        "Maganda ang produkto at mabilis dumating.|Kasya sa akin, bibili ulit ako./Hindi ito ang kulay "
        "na inorder ko.|Nasira agad pagkatapos ng isang araw, walang sumasagot./Nasaan na po ang order "
        "ko?|Paano ko po maibabalik ang sapatos na ito?|Kailan po magkakaroon ulit nito?/Darating po "
        "ang order ninyo sa Lunes.|Buksan po ang inyong account at piliin ang pagbabalik.|Sa susunod na "
        "buwan po magkakaroon.",
        "Magkano ang {n} kahon kasama ang pagpapadala, sa piso?",
    ),
}


FEEDS = (
    ("g:title", "g:product_type", "g:price"),
    ("item_name", "product_category", "standard_price"),
    ("et_title_product_name", "ps_category_name", "ps_price"),
    ("name", "primary_category", "special_price"),
    ("Title", "Type", "Variant Price"),
)
"""Columns of the feeds and exports of five marketplaces and shops: title, category, price."""


@dataclass(frozen=True)
class ShopTable:
    """A file, and what is true of it."""

    path: Path
    kind: str
    language: str
    has_tags: bool
    """False: no column names the language."""
    num_used: int
    """Rows that have a label or answer, and a language if a column names it."""
    options: frozenset[str] = frozenset()
    numbers: tuple[float, ...] = ()
    """Numbers of the rows in their order."""
    asked: str = ""
    """Column of the question or title."""
    answer: str = ""
    """Column of the label, number or reply."""


def write_table(folder: Path, kind: str, language: str, seed: int) -> ShopTable:
    """Write a table of one kind in one language, with the dirt that exports have."""
    rng = random.Random(f"{kind}/{language}/{seed}")
    words = WORDS[language]
    names: dict[str, str] = dict(
        zip(
            (
                *("title", "description", "category", "price", "rating", "review", "sentiment"),
                *("question", "answer"),
            ),
            words.columns.split("|"),
            strict=True,
        )
    )
    if kind == "feed":
        names |= dict(zip(("title", "category", "price"), rng.choice(FEEDS), strict=True))
    rows, numbers = _rows(kind, words, names, rng)
    label = {"feed": "category", "spreadsheet": "category", "reviews": "sentiment"}.get(kind)
    options = frozenset(str(row[names[label]]) for row in rows) if label else frozenset()
    used = [True] * len(rows)
    if label and rng.random() < 0.5:
        for place in rng.sample(range(len(rows)), len(rows) // 8):
            rows[place][names[label]] = rng.choice(_NULLS)
            used[place] = False
    if label and rng.random() < 0.3:
        for row, is_used in zip(rows, used, strict=True):
            if is_used and rng.random() < 0.5:
                row[names[label]] = f'"{row[names[label]]}"'
    has_tags = rng.random() < 0.4
    if has_tags:
        tag = rng.choice((language, language.replace("-", "_"), language.upper()))
        column = rng.choice(("locale", "lang", "Language"))
        for row in rows:
            row[column] = tag
        if rng.random() < 0.5:
            place = rng.randrange(len(rows))
            rows[place][column], used[place] = "", False
    rows = [_with_columns(row, place, rng, seed) for place, row in enumerate(rows)]
    path = _write(folder, f"{kind} {language} {seed}", rows, rng)
    asked = names[
        {"reviews": "review", "dialogues": "question", "numbers": "question"}.get(kind, "title")
    ]
    answer = names[label or "answer"]
    kept = tuple(number for number, is_used in zip(numbers, used, strict=False) if is_used)
    return ShopTable(path, kind, language, has_tags, sum(used), options, kept, asked, answer)


def _rows(
    kind: str, words: _Words, names: Mapping[str, str], rng: random.Random
) -> tuple[list[dict[str, object]], list[float]]:
    rows: list[dict[str, object]] = []
    numbers: list[float] = []
    for place in range(60):
        code = f"{place:03d}"
        if kind in ("feed", "spreadsheet"):
            category, *titles = rng.choice(words.goods.split("/")).split("|")
            row: dict[str, object] = {names["title"]: f"{rng.choice(titles)} {code}"}
            if kind == "spreadsheet":
                row[names["description"]] = (
                    f"{rng.choice(words.texts(0))} {rng.choice(titles)} {code}"
                )
                row[names["rating"]] = rng.choice(("3.5", "4.0", "4.5", "4.9", "5.0"))
            row |= {names["category"]: category, names["price"]: str(rng.randint(10, 900))}
        elif kind == "reviews":
            mood = rng.randrange(2)
            row = {names["review"]: f"{rng.choice(words.texts(mood))} {code}"}
            row[names["sentiment"]] = ("positif", "negatif")[mood]
        elif kind == "dialogues":
            turn = rng.randrange(3)
            row = {names["question"]: f"{words.texts(2)[turn]} ({code})"}
            row[names["answer"]] = f"{words.texts(3)[turn]} #{code}"
        else:
            value = rng.randint(1000, 900000) / 4
            text = f"{value:,.2f}"
            if words.decimal == ",":
                text = text.translate(str.maketrans(",.", ".,"))
            row = {names["question"]: words.sum.format(n=place + 2), names["answer"]: text}
            numbers.append(value)
        rows.append(row)
    return rows, numbers


def _with_columns(
    row: dict[str, object], place: int, rng: random.Random, seed: int
) -> dict[str, object]:
    """Add what exports have beside: an index, keys, dates, links; and 300 more for some."""
    before: dict[str, object] = {} if seed % 2 else {"": str(place)}
    before |= {"SKU": f"{place:05d}", "created_at": f"2026-03-{1 + place % 28:02d} 10:00:00"}
    after: dict[str, object] = {"url": f"https://shop.example/p/{place}"}
    if seed % 4 == 3:
        after |= {f"attr_{n}": "" for n in range(300)}
    return before | row | after | {"currency": rng.choice(("USD", "USD", "EUR"))}


def _write(
    folder: Path, name: str, rows: Sequence[Mapping[str, object]], rng: random.Random
) -> Path:
    form = rng.choice(("csv", "semicolons", "tabs", "jsonl", "parquet", "xlsx"))
    if form == "parquet":
        path = folder / f"{name}.parquet"
        pq.write_table(_warehouse(pa.Table.from_pylist([dict(row) for row in rows])), path)
        return path
    if form == "xlsx":
        path = folder / f"{name}.xlsx"
        book = openpyxl.Workbook()
        for cells in ([*rows[0]], *([*row.values()] for row in rows)):
            book.worksheets[0].append(cells)
        book.save(path)
        return path
    if form == "jsonl":
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return path
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as file:
        delimiter = {"csv": ",", "semicolons": ";", "tabs": "\t"}[form]
        writer = csv.DictWriter(file, [*rows[0]], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def _warehouse(table: pa.Table) -> pa.Table:
    """Give columns the types that a warehouse has, and add some that a shop never reads."""
    count = table.num_rows
    at = table.column_names.index("created_at")
    times = table["created_at"].cast(pa.timestamp("us"))
    typed = table.set_column(at, "created_at", times)
    codes = typed["currency"].dictionary_encode()
    typed = typed.set_column(typed.column_names.index("currency"), "currency", codes)
    return (
        typed.append_column("cost", pa.array([Decimal("9.90")] * count))
        .append_column("image", pa.array([b"\xff\xd8\xff"] * count))
        .append_column("ratio", pa.array([float("nan")] * count, pa.float32()))
        .append_column("tags", pa.array([["a", None]] * count))
        .append_column("valid", pa.array([datetime.date(2026, 3, 1)] * count))
    )
