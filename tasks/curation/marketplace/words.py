"""The vocabulary of the marketplace: eight categories of goods in eight languages.

Each category has a name and three goods. All goods of a language are distinct, so every
title belongs to exactly one category.
"""

from dataclasses import dataclass

CATEGORIES = ("Bags", "Shoes", "Toys", "Books", "Phones", "Beauty", "Kitchen", "Clothes")
COLOURS = ("red", "blue", "green", "black", "white")
MATERIALS = ("cotton", "leather", "wool", "steel", "silk")
ADJECTIVES = ("soft", "cheap", "new", "light", "strong", "fresh")
NAMES = ("Ana", "Budi", "Chen", "Dewi", "Linh", "Omar")

# fmt: off
BRANDS = (
    "Nara", "Kibo", "Luma", "Zeta", "Tovi", "Mila", "Sono", "Pazu",
    "Vora", "Raki", "Bema", "Dulo", "Fini", "Gato", "Hola", "Jupe",
    "Wero", "Yami", "Oska", "Elvi", "Ixta", "Umbo", "Cava", "Quin",
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Vocabulary and question templates of one language."""

    tag: str
    """BCP 47."""
    categories: tuple[str, ...]
    goods: tuple[tuple[str, str, str], ...]
    """Three per category, in the order of CATEGORIES."""
    colours: tuple[str, ...]
    """In the order of COLOURS."""
    colour_first: bool
    """True: 'red bag'; False: 'tas merah'."""
    which_category: str
    cheapest: str
    dearest: str
    tidy: str
    """Request to tidy up a title."""
    sale: str
    """Sale slogan, which a tidy title does not contain."""


ENGLISH = Vocabulary(
    tag="en",
    categories=CATEGORIES,
    goods=(
        ("backpack", "wallet", "handbag"),
        ("sandal", "boot", "sneaker"),
        ("doll", "puzzle", "kite"),
        ("novel", "comic", "diary"),
        ("charger", "headset", "phone"),
        ("lipstick", "perfume", "soap"),
        ("pan", "plate", "spoon"),
        ("shirt", "skirt", "jacket"),
    ),
    colours=COLOURS,
    colour_first=True,
    which_category="Category of {title}?",
    cheapest="Cheapest?",
    dearest="Dearest?",
    tidy="Tidy:",
    sale="SALE",
)

LANGUAGES = (
    ENGLISH,
    Vocabulary(
        tag="zh-TW",
        categories=("箱包", "鞋類", "玩具", "書籍", "手機", "美妝", "廚房", "服飾"),
        goods=(
            ("背包", "錢包", "手袋"),
            ("涼鞋", "靴子", "球鞋"),
            ("娃娃", "積木", "風箏"),
            ("小說", "漫畫", "日記"),
            ("充電器", "耳機", "電話"),
            ("口紅", "香水", "肥皂"),
            ("鍋子", "盤子", "湯匙"),
            ("襯衫", "裙子", "外套"),
        ),
        colours=("紅", "藍", "綠", "黑", "白"),
        colour_first=True,
        which_category="{title} 屬於哪類?",
        cheapest="最便宜?",
        dearest="最貴?",
        tidy="整理:",
        sale="特價",
    ),
    Vocabulary(
        tag="id",
        categories=("Tas", "Sepatu", "Mainan", "Buku", "Gawai", "Kosmetik", "Dapur", "Pakaian"),
        goods=(
            ("ransel", "dompet", "koper"),
            ("sandal", "bot", "sneaker"),
            ("boneka", "puzzle", "layangan"),
            ("novel", "komik", "diari"),
            ("pengisi", "headset", "ponsel"),
            ("lipstik", "parfum", "sabun"),
            ("wajan", "piring", "sendok"),
            ("kemeja", "rok", "jaket"),
        ),
        colours=("merah", "biru", "hijau", "hitam", "putih"),
        colour_first=False,
        which_category="Kategori {title}?",
        cheapest="Termurah?",
        dearest="Termahal?",
        tidy="Rapikan:",
        sale="DISKON",
    ),
    Vocabulary(
        tag="ms",
        categories=("Beg", "Kasut", "Mainan", "Buku", "Telefon", "Kosmetik", "Dapur", "Pakaian"),
        goods=(
            ("beg galas", "dompet", "beg tangan"),
            ("selipar", "but", "kasut sukan"),
            ("patung", "teka-teki", "wau"),
            ("novel", "komik", "diari"),
            ("pengecas", "fon kepala", "telefon"),
            ("gincu", "wangian", "sabun"),
            ("kuali", "pinggan", "sudu"),
            ("baju", "skirt", "jaket"),
        ),
        colours=("merah", "biru", "hijau", "hitam", "putih"),
        colour_first=False,
        which_category="Jenis {title}?",
        cheapest="Paling murah?",
        dearest="Paling mahal?",
        tidy="Kemaskan:",
        sale="JUALAN",
    ),
    Vocabulary(
        tag="pt",
        categories=(
            "Bolsas",
            "Sapatos",
            "Jogos",
            "Livros",
            "Celulares",
            "Beleza",
            "Casa",
            "Roupas",
        ),
        goods=(
            ("mochila", "carteira", "bolsa"),
            ("chinelo", "bota", "tênis"),
            ("boneca", "pipa", "peteca"),
            ("romance", "gibi", "diário"),
            ("carregador", "fone", "celular"),
            ("batom", "perfume", "sabonete"),
            ("panela", "prato", "colher"),
            ("camisa", "saia", "jaqueta"),
        ),
        colours=("vermelho", "azul", "verde", "preto", "branco"),
        colour_first=False,
        which_category="Categoria de {title}?",
        cheapest="Mais barato?",
        dearest="Mais caro?",
        tidy="Arrume:",
        sale="OFERTA",
    ),
    Vocabulary(
        tag="th",
        categories=("กระเป๋า", "รองเท้า", "ของเล่น", "หนังสือ", "มือถือ", "ความงาม", "ครัว", "เสื้อผ้า"),
        goods=(
            ("เป้", "ย่าม", "ถุง"),
            ("แตะ", "บูต", "ผ้าใบ"),
            ("ตุ๊กตา", "ว่าว", "บอล"),
            ("นิยาย", "การ์ตูน", "สมุด"),
            ("ที่ชาร์จ", "หูฟัง", "โทรศัพท์"),
            ("ลิปสติก", "น้ำหอม", "สบู่"),
            ("กระทะ", "จาน", "ช้อน"),
            ("เชิ้ต", "กระโปรง", "แจ็กเก็ต"),
        ),
        colours=("แดง", "ฟ้า", "เขียว", "ดำ", "ขาว"),
        colour_first=False,
        which_category="{title} หมวดไหน?",
        cheapest="ถูกสุด?",
        dearest="แพงสุด?",
        tidy="จัด:",
        sale="ลด",
    ),
    Vocabulary(
        tag="vi",
        categories=("Túi", "Giày", "Đồ chơi", "Sách", "Điện tử", "Làm đẹp", "Bếp", "Quần áo"),
        goods=(
            ("balo", "ví", "cặp"),
            ("dép", "bốt", "guốc"),
            ("búp bê", "diều", "bóng"),
            ("tiểu thuyết", "truyện", "nhật ký"),
            ("sạc", "tai nghe", "điện thoại"),
            ("son", "nước hoa", "xà phòng"),
            ("chảo", "đĩa", "thìa"),
            ("sơ mi", "váy", "áo khoác"),
        ),
        colours=("đỏ", "xanh", "lục", "đen", "trắng"),
        colour_first=False,
        which_category="{title} loại nào?",
        cheapest="Rẻ nhất?",
        dearest="Đắt nhất?",
        tidy="Sửa:",
        sale="GIẢM",
    ),
    Vocabulary(
        tag="fil",
        categories=(
            "Bag",
            "Sapatos",
            "Laruan",
            "Aklat",
            "Selpon",
            "Pampaganda",
            "Kusina",
            "Damit",
        ),
        goods=(
            ("bakpak", "pitaka", "maleta"),
            ("sandalyas", "bota", "tsinelas"),
            ("manika", "trumpo", "saranggola"),
            ("nobela", "komiks", "talaarawan"),
            ("charger", "headset", "telepono"),
            ("lipistik", "pabango", "sabon"),
            ("kawali", "plato", "kutsara"),
            ("polo", "palda", "dyaket"),
        ),
        colours=("pula", "asul", "berde", "itim", "puti"),
        # As in listings, without the linker (na, -ng) of a sentence.
        colour_first=False,
        which_category="Kategorya ng {title}?",
        cheapest="Pinakamura?",
        dearest="Pinakamahal?",
        tidy="Ayusin:",
        sale="TIPID",
    ),
)
"""What the corpus of the shipped base is written in: another one would be another base."""

ENGLISH_GOODS = tuple(good for row in ENGLISH.goods for good in row)


def plural(noun: str) -> str:
    """Return the English plural of a good; all of them are regular."""
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s"


def with_colour(language: Vocabulary, good: str, colour: str) -> str:
    """Join a colour and a good in the word order of the language."""
    if language.tag == "zh-TW":
        return f"{colour}{good}"
    return f"{colour} {good}" if language.colour_first else f"{good} {colour}"
