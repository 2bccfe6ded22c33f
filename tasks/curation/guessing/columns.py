"""What a column is: by its values first, then by its name, in any language."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from tasks.algorithms.folding import visible
from tasks.curation.readers.cells import Digits
from tasks.curation.readers.missing import is_missing, is_null
from tasks.curation.readers.written_values import written_value
from tasks.gym.maths.amounts import SCALE_WORDS
from tasks.gym.maths.units import CURRENCY, MONEY

# ruff: noqa: RUF001 - other scripts are the point

Row = Mapping[str, object]

MOSTLY = 0.95
"""Share of rows that have a value in a column which is asked about; curation counts the others."""
HALF = 0.5
"""Share of rows that have a label."""
MOST_OPTIONS = 30
_LONG = 24
"""Characters of a text that is no word for a missing value."""
_LEAST_ROWS = 3
"""Rows of a class, on average."""
_DEEP = 6
"""Levels of objects and lists within a cell; Label Studio has its labels in the sixth."""
_FREE_WORDS = 3
"""Words of a free text, on average; of scripts without spaces, twice as many characters."""
_HEADER_LINES = 5
"""Lines in which a header may stand below notes, as in the feeds of marketplaces."""

# Names of columns in English, Indonesian and Malay, Portuguese, Spanish, Vietnamese, Filipino, Thai
# and Chinese: a column is of a kind if its name contains one of the words.
_NAMES = {
    "language": (
        "language lang locale bahasa idioma lingua língua ngôn_ngữ ngon_ngu wika ภาษา 語言 语言"
    ),
    "label": (
        "category categories label labels class sentiment intent kategori katagori sentimen kelas "
        "niat categoria categoría sentimento intenção intencao clase danh_mục danh_muc "
        "phân_loại phan_loai cảm_xúc kategorya damdamin หมวดหมู่ หมวด ประเภท ความรู้สึก "
        "類別 类别 分類 分类 情感 product_type topic topik tópico chủ_đề department cat "
        "emotion emosi"
    ),
    "rating": (
        "rating stars star score bintang nota avaliação avaliacao estrelas đánh_giá คะแนน "
        "評分 评分 stock in_stock available"
    ),
    "no_label": (
        "brand merek merk marca thương_hiệu thuong_hieu tatak แบรนด์ ยี่ห้อ 品牌 seller "
        "toko shop store penjual vendedor loja color colour warna cor size ukuran tamanho "
        "currency mata_uang moeda unit status condition kondisi city kota location lokasi "
        "province country negara país pais market site region payment shipping courier "
        "gender availability"
    ),
    "question": (
        "question prompt instruction query problem input ask pertanyaan soal soalan tanya "
        "pergunta questão questao pregunta câu_hỏi cau_hoi tanong คำถาม 問題 问题 message "
        "質問 질문 frage domanda вопрос"
    ),
    "customer": "customer pelanggan cliente user khách_hàng ลูกค้า 客戶 客户",
    "agent": "agent agen atendente agente nhân_viên เจ้าหน้าที่ 客服 assistant",
    "gold": "gt gold ground_truth groundtruth expected ideal",
    "reference": "reference references",
    "measure": (
        "length len count tokens words chars characters latency duration seconds cost confidence "
        "probability prob score hash start end offset"
    ),
    "alias": "alias aliases normalized",
    "model": "model models llm ai generated actual predicted prediction",
    "suggested": "suggestion suggestions prediction predictions predicted pred",
    "context": (
        "input context passage document article story background konteks bacaan contexto trecho "
        "texto bối_cảnh ngữ_cảnh đoạn_văn konteksto บริบท บทความ 上下文 文章 段落 背景 "
        "premise premis premisa premissa body scenario definition"
    ),
    "answer": (
        "answer answers response output completion reply target solution jawaban jawapan jawab "
        "gt gold ground_truth groundtruth reference expected ideal "
        "balasan resposta respuesta trả_lời tra_loi câu_trả_lời sagot คำตอบ ตอบ 回答 答案 答覆 "
        "kunci gabarito solución clave đáp_án dap_an เฉลย 解答 正解 정답 antwort lösung réponse "
        "risposta ответ"
    ),
    "title": (
        "title name description product judul nama deskripsi produk título titulo nome "
        "nombre descrição descricao descripción tên ten_sản_phẩm mô_tả pangalan ชื่อ "
        "รายละเอียด สินค้า 標題 名稱 商品 描述"
    ),
    "annotator": (
        "annotator annotators annotated_by labeler labeller labelled_by labeled_by rater coder "
        "anotator pelabel dilabeli_oleh anotador rotulador anotado_por rotulado_por "
        "người_gán_nhãn nguoi_gan_nhan ผู้ติดป้าย ผู้กำกับข้อมูล 標註者 标注者 標註人 标注人 標註員 标注员"
    ),
    "identity": (
        "id sku uuid asin gtin ean upc mpn url link image img date time created updated "
        "timestamp kode tanggal código codigo data_criacao ngày mã รหัส วันที่ 編號 日期 "
        "index handle path username nickname"
    ),
}

# "12", "-1.299,50", ",89"; not "00001", which is an identifier.
_DIGITS = r"[-+−]?(?!0\d)[\d.,]*\d[\d.,]*"
_NUMBER = re.compile(rf"{_DIGITS}(?:[eE][-+]?\d+)?")
"""Also as machines write it: "1e-05"."""
SIGN = rf"(?:{CURRENCY}|[A-Z]{{0,3}}\$)\.?"
"""A currency beside a number: "Rp.", "€", "R$"."""
# "\\frac{1}{2}", "$5$", "Rp 12.345", "R$ 1.299,90", "1.299.000 đ", "12 %", "1/3".
_AMOUNT = re.compile(
    rf".*\\[A-Za-z]+.*|\$[^$]+\$|{_DIGITS}(?:\s?%|/[1-9]\d*)?"
    rf"|{SIGN}\s?{_DIGITS}|{_DIGITS}\s?{SIGN}"
)
# "Rp12.345,-", "1,299 บาท", "1 411,50 €", "25 ribu", "299k", "1.5万元".
PRICE = re.compile(
    rf"(?:(?:{SIGN}|[￥＄￡￦]|Rs\.?|P(?=\d{{1,3}},\d{{3}}))\s?)?"
    rf"(?P<number>{_DIGITS}(?:[ \u00a0\u202f']\d{{3}})*(?:[.,]\d+)?)(?:,[-\u2013\u2014]|[.:/]-)?"
    rf"(?:\s?(?:{SCALE_WORDS}|[kK]))?(?:\s?(?:{MONEY}|VNĐ|[块塊圆圓]|руб)s?\.?)?"
)
"""A number with a currency, a scale word or what stands for no small change."""
NUMBERED = re.compile(rf"(?:{_DIGITS}|0\d{{1,3}})(?!\w).*")
"""A text that begins with a number: "123 kg", "12 of them", "033" (AIME)."""
# "4006381333931", of which all have one length.
_CODE = re.compile(r"\d{8,}")
# "https://...", "2026-03-01", "01/03/2026 10:00".
_NO_TEXT = re.compile(r"https?://\S+|\d{4}-\d\d-\d\d.*|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}.*")
# "ก", "の", "中": scripts that put no spaces between words.
_SPACELESS = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
# "", and "Unnamed: 0", as pandas calls a column without a name when it reads the table.
_NAMELESS = re.compile(r"\s*|Unnamed: \d+(?:_level_\d+)?")
NUMPY_LIST = re.compile(
    r"""\[\s*(?:'[^']*'|"[^"]*")(?:\s+(?:'[^']*'|"[^"]*"))+\s*\]""",
)
"""A list of texts as numpy prints it, without commas: "['red' 'blue']"; Python joins its parts."""
_ROLE = re.compile("role|speaker|from|sender|author")
_SPEAKERS = frozenset(
    (
        *("user", "assistant", "system", "tool", "human", "gpt", "prompter", "bot", "model"),
        *("customer", "agent"),
    )
)
_BOOLEANS = [
    {*pair.split()} for pair in ("true false", "yes no", "0 1", "y n", "ya tidak", "sim não")
]


def header_fault(rows: Sequence[Row]) -> str:
    """Say why the first line of a table is not its header; '' if it may be.

    It is a row, if a name is a value of its own column; and the header stands further down, if a
    line there has names of columns.

    Args:
        rows: first rows of a file whose first line names its columns.
    """
    for name in rows[0]:
        if name.strip() and sum(row.get(name) == name for row in rows) > 1:
            return f"its first line is a row, as {name!r} is a value below: write the names above"
    words = {word for kind in _NAMES.values() for word in kind.split()}
    # A template of Amazon names itself above, in fewer cells than the table has.
    has_nameless = not all(name.strip() for name in rows[0])
    for line, row in enumerate(rows[:_HEADER_LINES], start=2):
        cells = [str(cell).strip().casefold().replace(" ", "_") for cell in row.values() if cell]
        known = {*cells} & words
        if has_nameless:
            known |= {cell for cell in cells if words & {*cell.split("_")}}
        if len(cells) > 1 and len(known) >= max(2, HALF * len(cells)):
            return f"line {line} has names of columns, as {cells[0]!r}: remove the lines above it"
    return ""


@dataclass(frozen=True, slots=True)
class Column:
    """What the values of a column, or of a place within its cells, look like."""

    name: str
    values: tuple[str, ...]
    """Values of all rows, '' where there is none."""
    counts: Mapping[str, int]
    classes: Mapping[str, str] = field(default_factory=dict)
    """Number -> what the file says that it stands for."""
    is_typed: bool = False
    """Whether the file's own type says that they are numbers, whose point is a machine's."""
    words: Mapping[str, int] = field(default_factory=dict)
    """Words for a missing value that may be a text, such as None, which are none of the values."""

    @property
    def total(self) -> int:
        """Rows that have a value."""
        return sum(self.counts.values())

    @property
    def fill(self) -> float:
        """Share of the rows that have a value."""
        return self.total / len(self.values)

    def share(self, pattern: re.Pattern[str] | str) -> float:
        """Share of the values that match as a whole."""
        hits = sum(n for value, n in self.counts.items() if re.fullmatch(pattern, value))
        return hits / max(1, self.total)

    def is_named(self, kind: str, *, at_end: bool = False) -> bool:
        """True if the name contains a word of this kind, or ends in one."""
        # "Product Name", "product-name", "productName" and "product__name" are "_product_name_".
        divided = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()
        folded = "_" + re.sub(r"[^\w]+|_+", "_", divided).strip("_") + "_"
        return any(
            (folded.endswith(f"_{word}_") if at_end else f"_{word}_" in folded)
            or (_SPACELESS.search(word) and word in folded)
            for word in _NAMES[kind].split()
        )

    def is_called(self, names: re.Pattern[str]) -> bool:
        """True if the whole name matches."""
        return names.fullmatch("_".join(self.name.casefold().split())) is not None

    @property
    def is_question(self) -> bool:
        """True if the name says that it has questions: no count of tokens, no customer's name."""
        if self.is_named("measure") or self.is_role or self._is_flag:
            return False
        return self.is_named("question") or (self.is_named("customer") and self.is_free_text)

    @property
    def is_answer(self) -> bool:
        """True if the name says that it has answers: no number of tokens, and no agent's name.

        A part of an object that is the same in all rows, such as a role or a type, is none.
        """
        if self.is_named("measure") or self.is_form or self.is_role:
            return False
        return self.is_named("answer") or (self.is_named("agent") and self.is_free_text)

    @property
    def _is_flag(self) -> bool:
        """True for "is_quality_control_question": true or false, of which one may be in no row."""
        return {*map(str.casefold, self.counts)} <= {"true", "false"}

    @property
    def is_part(self) -> bool:
        """True for a part of a list, which may have others."""
        return any(part.isdecimal() for part in self.name.split("."))

    @property
    def is_role(self) -> bool:
        """True if the column says who speaks."""
        name = self.name.casefold().rpartition(".")[2]
        return bool(_ROLE.fullmatch(name)) and {*map(str.casefold, self.counts)} <= _SPEAKERS

    @property
    def is_form(self) -> bool:
        """True for a part of an object that is the same in several rows: a role, a type."""
        return "." in self.name and len(self.counts) == 1 < self.total

    @property
    def is_number(self) -> bool:
        """True for numbers that stand for themselves: no codes, and no numbers of classes."""
        is_number = self.share(_NUMBER) >= MOSTLY and not self._is_code
        return bool(self.counts) and is_number and not self.classes

    @property
    def is_amount(self) -> bool:
        """True for numbers, also with a currency, in per cent, for fractions and for formulas."""
        if self.is_number or not self.counts or self.is_free_text:
            return self.is_number
        return self.share(_AMOUNT) >= MOSTLY or self._is_price

    @property
    def _is_price(self) -> bool:
        return self.share(PRICE) >= MOSTLY

    @property
    def _is_code(self) -> bool:
        """True for EAN codes and telephone numbers: long, and all of one length."""
        return self.share(_CODE) >= MOSTLY and len({*map(len, self.counts)}) == 1

    @property
    def is_coded(self) -> bool:
        """True if a few values are those of many rows, as numbers of classes are."""
        return len(self.counts) <= MOST_OPTIONS and self.total >= _LEAST_ROWS * len(self.counts)

    @property
    def is_boolean(self) -> bool:
        """True if both of two opposites occur, and nothing else."""
        return {value.lower() for value in self.counts} in _BOOLEANS

    @property
    def is_identity(self) -> bool:
        """True for keys, links and dates: nothing to ask about, unless it is called an answer."""
        if self.is_named("answer") and not self.is_named("identity"):
            return False
        if self.share(_NO_TEXT) >= MOSTLY or self._is_code or self.is_named("identity"):
            return True
        digits = sum(any(char.isdigit() for char in value) for value in self.counts)
        codes = sum(" " not in value and not _SPACELESS.search(value) for value in self.counts)
        unique = len(self.counts) == self.total > MOST_OPTIONS
        return unique and min(digits, codes) >= MOSTLY * len(self.counts) and not self.is_number

    @property
    def is_free_text(self) -> bool:
        """True if most rows have a text of their own, of several words."""
        if self.is_number or self._is_price or len(self.counts) < HALF * self.total:
            return False
        words = sum(
            n * (len(value.split()) + len(_SPACELESS.findall(value)) / 2 / _FREE_WORDS)
            for value, n in self.counts.items()
        )
        return words >= _FREE_WORDS * self.total


def list_columns(rows: Sequence[Row], classes: Mapping[str, Sequence[str]]) -> list[Column]:
    """List the columns of scalars, and the scalars within objects and lists, by their path.

    Left out are columns without a value or a name, and those that no template can name.

    Args:
        rows: of the table.
        classes: column -> what its numbers from 0 stand for.
    """
    texts = {
        name for name in dict.fromkeys(n for row in rows for n in row) if _are_texts(rows, name)
    }
    flat = [dict(_scalars(row, texts=texts)) for row in rows]
    columns: list[Column] = []
    for name in dict.fromkeys(name for row in flat for name in row):
        cells = [row.get(name, "") for row in flat]
        values = tuple(map(_text, cells))
        counts = Counter(filter(None, values))
        if not counts or _NAMELESS.fullmatch(visible(name)) or has_braces(name):
            continue
        pairs = [*zip(cells, values, strict=True)]
        is_typed = all(isinstance(cell, int | float | Digits) for cell, value in pairs if value)
        meanings = {str(number): text for number, text in enumerate(classes.get(name, ()))}
        words = Counter(text for cell, value in pairs if not value and (text := _word(cell)))
        columns.append(Column(name, values, counts, meanings, is_typed, words))
    return columns


def without_repeats(columns: Sequence[Column]) -> list[Column]:
    """Leave out columns of which another one has every text: `ctx_a` beside `ctx`."""
    kept: list[Column] = []
    for column in sorted(columns, key=lambda c: -sum(map(len, c.values))):
        pairs = (zip(column.values, other.values, strict=True) for other in kept)
        if not any(all(text in whole for text, whole in pair) for pair in pairs):
            kept.append(column)
    return [column for column in columns if column in kept]


def has_braces(name: str) -> bool:
    """Whether a column has a name that no template can name."""
    return bool({*"{}"} & {*name})


def _are_texts(rows: Sequence[Row], name: str) -> bool:
    """Whether a column has texts, of which some may look like objects: inputs of programs."""
    cells = [cell.strip() for row in rows if isinstance(cell := row.get(name), str)]
    return sum(cell[:1] == "{" for cell in cells) < MOSTLY * sum(map(bool, cells))


def _scalars(
    row: Row, prefix: str = "", depth: int = 0, *, texts: Collection[str] = ()
) -> list[tuple[str, str | bool | int | float]]:
    """List the scalars of a row with their paths: title, left.price, prompts.0.question."""
    scalars: list[tuple[str, str | bool | int | float]] = []
    for name, value in row.items():
        path = f"{prefix}{name}"
        if not str(name).strip() or (depth > 0 and "." in str(name)):
            continue
        if isinstance(value, str) and not (depth == 0 and name in texts):
            value = _written(value, is_inner=depth > 0)
        if isinstance(value, str | bool | int | float):
            scalars.append((path, value))
        elif isinstance(value, Mapping) and depth < _DEEP:
            scalars += _scalars(cast("Row", value), f"{path}.", depth + 1)
        elif isinstance(value, list) and value and depth < _DEEP:
            items = cast("list[object]", value)
            # Of a chat the question is second, behind a system message.
            is_chat = isinstance(items[0], Mapping) and {"role", "from"} & items[0].keys()
            within = {str(n): item for n, item in enumerate(items[: 2 if is_chat else 1])}
            scalars += _scalars(within, f"{path}.", depth + 1)
    return scalars


def _written(text: str, *, is_inner: bool) -> object:
    """Return the object that a text is, or the list of one text in an object; else the text.

    "{'text': ['red'], ...}" is in CSV files, and the gold '["10"]' in Skywork's objects.
    """
    if text[:1] not in ("{", "["):
        return text
    value = written_value(text)
    is_list = isinstance(value, list) and not (is_inner and len(cast("list[object]", value)) == 1)
    return text if is_list else value


def _text(cell: str | bool | int | float) -> str:
    """Return what a cell says; '' where that stands for no value, such as N/A."""
    text = json.dumps(cell) if isinstance(cell, bool) else str(cell).strip()
    if len(text) > _LONG and text[0].isalnum():
        return text
    return "" if is_missing(text) else text


def _word(cell: str | bool | int | float) -> str:
    text = str(cell).strip()
    return "" if is_null(text) else text


def with_rows(values: Sequence[str], counts: Mapping[str, int]) -> str:
    """List values, and in how many rows they stand."""
    return f"{listing(values, 3)} ({sum(map(counts.__getitem__, values)):,} rows)"


def listing(names: Sequence[str], most: int = 8) -> str:
    """List names; of many, the first and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
