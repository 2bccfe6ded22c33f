"""Guess a mapping from the rows of a table, by evidence and in any language: a draft to correct.

What a column is follows from its values first, then from its name. Every guess that another one
could beat is a remark, so that a person sees what is doubtful.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import cast

from data_schemas.mappings import TEXT, ColumnMapping
from data_schemas.pass_rates import ANNOTATOR
from data_schemas.rows import Domain, Parent, is_language_tag, language_tag
from tasks.curation.adapters.chats import Chat, read_chat, turns_of
from tasks.curation.cleaning.languages import Languages, languages_of
from tasks.curation.cleaning.writing_systems import primary
from tasks.curation.lettered import LETTERS, find_options
from tasks.curation.readers.cells import Digits
from tasks.curation.readers.missing import is_doubtful, is_missing
from tasks.curation.readers.written_values import written_value
from tasks.curation.rows import BadRow
from tasks.errors import DataError
from tasks.gym.instructions.languages import simplified, traditional
from tasks.gym.maths.numerals import writes_comma
from tasks.gym.maths.parse import parse
from tasks.gym.maths.units import CURRENCY

# ruff: noqa: RUF001 - other scripts are the point

Row = Mapping[str, object]

_MOST_OPTIONS = 30
_LEAST_ROWS_PER_OPTION = 3
_RARE = 50
"""Rows of a table in which a label of one row is an exception."""
_LONG_OPTION = 40
"""Characters above which a value is no label."""
_MOSTLY = 0.95
"""Share of rows that have a value in a column which is asked about; curation counts the others."""
_HALF = 0.5
"""Share of rows that have a label."""
_MOST_COLUMNS = 6
"""Columns of a prompt, and facets: of a table with 300, the best are chosen."""
_DEEP = 3
"""Levels of objects and lists within a cell that are looked into."""
_FREE_WORDS = 3
"""Words of a free text, on average; of scripts without spaces, twice as many characters."""
_HEADER_LINES = 5
"""Lines in which a header may stand below notes, as in the feeds of marketplaces."""
_SURE_LEAD = 2
"""Points by which a label has to lead to be beyond doubt."""

# Names of columns in English, Indonesian and Malay, Portuguese, Spanish, Vietnamese, Filipino, Thai
# and Chinese: a column is of a kind if its name contains one of the words.
_NAMES = {
    "language": (
        "language lang locale bahasa idioma lingua língua ngôn_ngữ ngon_ngu wika ภาษา 語言 语言"
    ),
    "label": (
        "category categories label class sentiment intent kategori katagori sentimen kelas "
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
        "pergunta questão questao pregunta câu_hỏi cau_hoi tanong คำถาม 問題 问题 customer "
        "pelanggan cliente user khách_hàng ลูกค้า 客戶 客户 message"
    ),
    "context": (
        "input context passage document article story background konteks bacaan contexto trecho "
        "texto bối_cảnh ngữ_cảnh đoạn_văn konteksto บริบท บทความ 上下文 文章 段落 背景"
    ),
    "answer": (
        "answer answers response output completion reply target solution jawaban jawapan jawab "
        "gt gold ground_truth groundtruth reference expected "
        "balasan resposta respuesta trả_lời tra_loi câu_trả_lời sagot คำตอบ ตอบ 回答 答案 "
        "答覆 agent agen atendente agente nhân_viên เจ้าหน้าที่ 客服 assistant"
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
        "index handle path"
    ),
}
_SYSTEM = re.compile("system(?:_prompt|_message)?|sistema?|系[統统]")
"""Whole names of columns of system messages: an `operating_system` is none."""
_THOUGHTS = re.compile("reasoning(?:_content)?|thinking|thoughts?|chain_of_thought|cot|rationale")
"""Whole names of columns of a thought in front of the answer."""
_VERDICT = re.compile(
    r"label|kto_tag|(?:is_)?(?:correct|right|desirable|accepted|approved|chosen|preferred)|"
    "thumbs_?up"
)
"""Whole names of columns that say whether an answer is good, if they hold booleans (KTO)."""
_RULED = frozenset(("accept", "reject", "ignore"))
"""What annotators say of a label (Prodigy)."""
_LANGUAGE_NAMES = {
    "en": "english inggris bahasa_inggris inglés inglês ingles tiếng_anh อังกฤษ ภาษาอังกฤษ 英文 英語",
    "id": "indonesian indonesia bahasa_indonesia",
    "ms": "malay melayu bahasa_melayu bahasa_malaysia",
    "th": "thai ไทย ภาษาไทย",
    "vi": "vietnamese tiếng_việt tieng_viet",
    "pt": "portuguese português portugues",
    "zh": "chinese 中文 mandarin",
    "fil": "filipino tagalog pilipino",
    "es": "spanish español espanol",
    "de": "german deutsch",
    "fr": "french français francais",
    "ja": "japanese 日本語",
    "ko": "korean 한국어",
}
_TAGS_OF_NAMES = {
    name.replace("_", " "): tag for tag, names in _LANGUAGE_NAMES.items() for name in names.split()
}
_KNOWN_TAGS = frozenset(
    re.findall(
        r"\S+",
        "af am ar as az be bg bn br bs ca ceb cs cy da de el en eo es et eu fa fi fil fr fy ga gd "
        "gl gu ha he hi hr ht hu hy id ig is it ja jv ka kk km kn ko ku ky la lb lo lt lv mg mi "
        "mk ml mn mr ms mt my nb ne nl nn no ny om or pa pl ps pt qu rm ro ru rw sd si sk sl sm "
        "sn so sq sr st su sv sw ta te tg th tk tl tn tr ts tt ug uk ur uz vi wo xh yi yo yue "
        "zh zu",
    )
)
"""ISO 639-1 and three more: a country code such as VN or MX is no language."""
_ASK = {
    "en": ("Which {label} is this: {options}?", "or"),
    "id": ("Pilih satu {label}: {options}.", "atau"),
    "ms": ("Pilih satu {label}: {options}.", "atau"),
    "pt": ("Escolha um valor para {label}: {options}.", "ou"),
    "es": ("Elige un valor para {label}: {options}.", "o"),
    "de": ("Wähle einen Wert für {label}: {options}.", "oder"),
    "fr": ("Choisis une valeur pour {label} : {options}.", "ou"),
    "vi": ("Chọn một giá trị cho {label}: {options}.", "hoặc"),
    "fil": ("Pumili ng isa para sa {label}: {options}.", "o"),
    "th": ("เลือกหนึ่งค่าสำหรับ {label}: {options}", "หรือ"),
    "zh": ("请为{label}选择一项：{options}。", "或"),
    "zh-Hant": ("請為{label}選擇一項：{options}。", "或"),
}
"""How a label is asked for, by the language of the table; elsewhere in English."""
_ASK_LETTER = "Answer {options}."

# "12", "-1.299,50", ",89"; not "00001", which is an identifier.
_NUMBER = re.compile(r"[-+−]?(?!0\d)[\d.,]*\d[\d.,]*")
# "4006381333931", of which all have one length.
_CODE = re.compile(r"\d{8,}")
# "0,5", "1.495,72", "0,125", "3,1416": a comma of decimals for certain; and so with points.
_DECIMALS = {
    sign: re.compile(rf"[-+]?(?:[\d{other}]*{sign}\d{{1,2}}|0?{sign}\d+|\d+{sign}\d{{4,}})")
    for sign, other in (",.", ".,")
}
# "12.500", "1.299.000": thousands in Indonesian, and 12.5 in English; and with commas, vice versa.
_GROUPED = {
    ",": re.compile(r"[1-9]\d{0,2}(?:,\d{3})+"),
    ".": re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+"),
}
# "https://...", "2026-03-01", "01/03/2026 10:00".
_NO_TEXT = re.compile(r"https?://\S+|\d{4}-\d\d-\d\d.*|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}.*")
_SPACELESS = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_SIGN = rf"(?:{CURRENCY}|[A-Z]{{0,3}}\$)\.?"
# "\\frac{1}{2}", "$5$", "Rp 12.345", "R$ 1.299,90", "1.299.000 đ", "12 %", "1/3".
_AMOUNT = re.compile(
    rf".*\\[A-Za-z]+.*|\$[^$]+\$|{_NUMBER.pattern}(?:\s?%|/[1-9]\d*)?|{_SIGN}\s?{_NUMBER.pattern}|{_NUMBER.pattern}\s?{_SIGN}"
)
# "123 kg", "12 of them".
_NUMBERED = re.compile(rf"{_NUMBER.pattern}(?!\w).*")
_BOOLEANS = (
    {"true", "false"},
    {"yes", "no"},
    {"0", "1"},
    {"y", "n"},
    {"ya", "tidak"},
    {"sim", "não"},
)
# "", and "Unnamed: 0", as pandas calls a column without a name when it reads the table.
_NAMELESS = re.compile(r"\s*|Unnamed: \d+(?:_level_\d+)?")
_QUOTES = "\"'“”‘’`"


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
    for line, row in enumerate(rows[:_HEADER_LINES], start=2):
        cells = [str(cell).strip().casefold().replace(" ", "_") for cell in row.values() if cell]
        if len(cells) > 1 and len({*cells} & words) >= max(2, _HALF * len(cells)):
            return f"line {line} has names of columns, as {cells[0]!r}: remove the lines above it"
    return ""


@dataclass(frozen=True, slots=True)
class Guess:
    """A mapping, and what a person has to know about it."""

    mapping: ColumnMapping
    remarks: tuple[str, ...] = ()
    """What is doubtful, left out or assumed; one sentence each."""
    label: str = ""
    """The column whose values are the options."""


@dataclass(frozen=True, slots=True)
class _Column:
    """What the values of a column, or of a place within its cells, look like."""

    name: str
    values: tuple[str, ...]
    """Values of all rows, '' where there is none."""
    counts: Mapping[str, int] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    """Number -> what the file says that it stands for."""
    is_typed: bool = False
    """Whether the file's own type says that they are numbers, whose point is a machine's."""

    @property
    def fill(self) -> float:
        return sum(self.counts.values()) / len(self.values)

    def share(self, pattern: re.Pattern[str]) -> float:
        """Share of the values that match as a whole."""
        hits = sum(n for value, n in self.counts.items() if pattern.fullmatch(value))
        return hits / max(1, sum(self.counts.values()))

    def is_named(self, kind: str) -> bool:
        folded = "_" + re.sub(r"[^\w]+|_+", "_", self.name.lower()).strip("_") + "_"
        words = _NAMES[kind].split()
        return any(
            f"_{word}_" in folded or (_SPACELESS.search(word) and word in folded) for word in words
        )

    def is_called(self, names: re.Pattern[str]) -> bool:
        """True if the whole name matches."""
        return names.fullmatch("_".join(self.name.casefold().split())) is not None

    @property
    def is_number(self) -> bool:
        is_number = self.share(_NUMBER) >= _MOSTLY and not self._is_code
        return bool(self.counts) and is_number and not self.classes

    @property
    def is_amount(self) -> bool:
        """True for numbers, also with a currency, in per cent, for fractions and for formulas."""
        if self.is_number or not self.counts or self.is_free_text:
            return self.is_number
        return self.share(_AMOUNT) >= _MOSTLY

    @property
    def _is_code(self) -> bool:
        """True for EAN codes and telephone numbers: long, and all of one length."""
        return self.share(_CODE) >= _MOSTLY and len({*map(len, self.counts)}) == 1

    @property
    def is_boolean(self) -> bool:
        return {value.lower() for value in self.counts} in _BOOLEANS

    @property
    def is_identity(self) -> bool:
        """True for keys, links and dates: nothing to ask about, unless it is called an answer."""
        if self.is_named("answer") and not self.is_named("identity"):
            return False
        if self.share(_NO_TEXT) >= _MOSTLY or self._is_code or self.is_named("identity"):
            return True
        digits = sum(any(char.isdigit() for char in value) for value in self.counts)
        codes = sum(" " not in value and not _SPACELESS.search(value) for value in self.counts)
        unique = len(self.counts) == sum(self.counts.values()) > _MOST_OPTIONS
        return unique and min(digits, codes) >= _MOSTLY * len(self.counts) and not self.is_number

    @property
    def is_free_text(self) -> bool:
        """True if most rows have a text of their own, of several words."""
        total = sum(self.counts.values())
        if self.is_number or len(self.counts) < _HALF * total:
            return False
        words = sum(
            n * (len(value.split()) + len(_SPACELESS.findall(value)) / 2 / _FREE_WORDS)
            for value, n in self.counts.items()
        )
        return words >= _FREE_WORDS * total


def guess_mapping(
    name: str,
    rows: Sequence[Row],
    label: str = "",
    language: str = "",
    classes: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Guess:
    """Draft the mapping of a table.

    A chat becomes demonstrations, a column of few values a choice, a question with a number as its
    answer a problem of maths, and any other pair of texts demonstrations.

    Args:
        name: of the source.
        rows: of the table, all of them if labels are rare.
        label: the column whose values are the options; '' = guess.
        language: a tag, or the column that has it; '' = guess.
        classes: column -> what its numbers from 0 stand for, where the file says it.

    Raises:
        DataError: there is no row, no column that could be an answer, or not the one that is named.
    """
    if not rows:
        raise DataError(f"{name} has no row")
    columns = [
        replace(one, classes={str(n): text for n, text in enumerate(classes.get(one.name, ()))})
        for one in _columns(rows)
    ]
    by_name = {column.name: column for column in columns}
    if label and label not in by_name:
        raise DataError(f"{name} has no column {label!r}; it has {_listed(list(by_name))}")
    spoken = [column for column in columns if _is_language(column) or column.name == language]
    signed = [c for c in columns if c.is_named("annotator") and c.name not in (label, language)]
    own = [c for c in columns if c.name not in (label, language)]
    systems = [c for c in own if c.is_called(_SYSTEM)]
    thoughts = [c for c in own if c.is_called(_THOUGHTS) and c.is_free_text and c.fill >= _MOSTLY]
    taken = (*spoken, *signed, *systems, *thoughts)
    rest = [one for one in columns if one not in taken and not one.is_identity]
    draft = None if label else _chat(rows, rest) or _examination(rows, rest)
    draft = draft or _draft(name, rest, by_name.get(label), list(by_name))
    _check_not_judged(name, columns, draft)
    draft = _framed(draft, systems, thoughts)
    values, remarks = dict(draft.values), list(draft.remarks)
    texts = draft.texts or tuple(
        "\n".join(cells) for cells in zip(*(by_name[n].values for n in draft.asked), strict=True)
    )
    tags, how = _language(rows, columns, spoken, texts, language, values)
    remarks += how
    if draft.numbers:
        _check_separators(by_name[draft.numbers], tags, how)
    fields: dict[str, object] = {"name": name, "language": tags, "parent": Parent.COMMERCE}
    asked = _question(draft, tags, by_name)
    mapping = ColumnMapping.model_validate(
        fields | draft.fields | ({"prompt": asked} if asked else {}) | {"values": values}
    )
    left = _unused(mapping, [*([] if draft.options else rest), *systems, *thoughts])
    if left:
        remarks.append(f"Not used: {_listed(left, 3)}.")
    remarks += _cut_lists(mapping, rows)
    if signed:
        facets = {ANNOTATOR: f"{{{signed[0].name}}}"} | mapping.facets
        mapping = mapping.model_copy(update={"facets": facets})
        remarks.append(f"Who labelled a row, by {signed[0].name}, is kept as facet {ANNOTATOR}.")
    return Guess(mapping, tuple(remarks), draft.label)


def _unused(mapping: ColumnMapping, columns: Sequence[_Column]) -> list[str]:
    """List the columns that no template takes anything from."""
    used = {name.partition(".")[0] for name in mapping.columns} | {*mapping.columns}
    tops = [c.name.partition(".")[0] for c in columns if c.name not in used]
    return [name for name in dict.fromkeys(tops) if name not in used]


@dataclass(frozen=True, slots=True)
class _Draft:
    """The fields of a mapping without language, and the columns that they rest on."""

    fields: dict[str, object]
    asked: tuple[str, ...] = ()
    """Columns of the prompt."""
    label: str = ""
    numbers: str = ""
    """Column of the answers, if they are numbers."""
    options: tuple[str, ...] = ()
    values: Mapping[str, dict[str, str]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    lettered: tuple[str, ...] = ()
    """Columns of the options, if these are letters."""
    texts: tuple[str, ...] = ()
    """What is asked in each row, if the table is a chat."""
    is_chat: bool = False
    """Whether the response is the last turn of a chat."""
    has_system: bool = False
    """Whether turns of a chat begin with a system message."""


def _draft(
    name: str, columns: Sequence[_Column], label: _Column | None, names: Sequence[str]
) -> _Draft:
    """Choose between a label, a number and a pair of texts.

    Raises:
        DataError: there is none of these.
    """
    if label is not None:
        return _choice([c for c in columns if c is not label], label, ())
    labels = sorted(_labels(columns), key=lambda one: -one[1])
    pair = _pair(columns, labels)
    if pair:
        remarks = ()
        if labels and labels[0][1] > 0:
            remarks = (f"If {labels[0][0].name} is what to answer: --label {labels[0][0].name}.",)
        return _answered(*pair, columns, remarks)
    if labels:
        best, points = labels[0]
        rivals = [column.name for column, other in labels[1:] if points - other < _SURE_LEAD]
        remarks = [f"The label is {best.name} ({len(_spellings(best))} values)."]
        if rivals:
            remarks = [f"{remarks[0][:-1]}; {_listed(rivals, 3)} could be it, too: --label."]
        elif points <= 0:
            remarks = [f"{remarks[0][:-1]}, for want of a better one: is that what to ask for?"]
        elif len(labels) > 1:
            remarks = [f"{remarks[0][:-1]}; next comes {labels[1][0].name}: --label."]
        return _choice([c for c in columns if c is not best], best, tuple(remarks))
    raise DataError(
        f"{name} has the columns {_listed(names)}, and none of them is an answer: a label of at "
        f"most {_MOST_OPTIONS} values, answer, response, output, or messages. Name one with "
        "--label, or write the mapping by hand (tasks/curation/README.md)"
    )


def _chat(rows: Sequence[Row], columns: Sequence[_Column]) -> _Draft | None:
    """Return the templates of a chat, a list of messages, all of which are read.

    A chat that ends before the response (verl, TRL) is a question, whose answer a column has.
    """
    for column in dict.fromkeys(name for row in rows for name in row):
        cell = next((row[column] for row in rows if row.get(column)), None)
        value = turns_of(cell)
        if not isinstance(value, list) or not value or not isinstance(value[0], Mapping):
            continue
        first = cast("Mapping[str, object]", value[0])
        if not {"role", "from"} & first.keys() or set(column) & set("{}"):
            continue
        whole = f"{{{column}}}"
        chats = [_read(row.get(column), column) for row in rows]
        turns = [chat.messages if chat else [] for chat in chats]
        texts = tuple(map(_asked, turns))
        others = [c for c in columns if c.name.partition(".")[0] != column]
        answers = _answers(others)
        if answers and not any(chat and chat.response for chat in chats):
            asked = _Column(column, texts, Counter(filter(None, texts)))
            draft = _answered(asked, answers[0], columns=(), remarks=())
        else:
            fields = {"domain": Domain.GENERAL, "prompt": whole, "response": whole}
            draft = _Draft(fields, is_chat=True)
        has_system = any(one[:1] and one[0].get("role") == "system" for one in turns)
        return replace(draft, texts=texts, has_system=has_system)
    return None


def _read(cell: object, column: str) -> Chat | None:
    """Read a chat; None if it cannot be read."""
    try:
        return read_chat(turns_of(cell), column)
    except (BadRow, ValueError):
        return None


def _asked(turns: Sequence[Mapping[str, object]]) -> str:
    """Return what turns say without the system message."""
    return "\n".join(str(one.get("content", "")) for one in turns if one.get("role") != "system")


def _check_not_judged(name: str, columns: Sequence[_Column], draft: "_Draft") -> None:
    """Refuse answers of which a column says that some are wrong: all would be learned.

    Raises:
        DataError: names the column.
    """
    for column in columns:
        values = {value.casefold() for value in column.counts}
        is_verdict = column.is_boolean and column.is_called(_VERDICT)
        if column.name == draft.label or not (is_verdict or (len(values) > 1 and values <= _RULED)):
            continue
        raise DataError(
            f"{name}: {column.name} says of each row whether its answer is right or wanted, and "
            "answers that are not would be learned, too. Keep the rows that are, or give "
            f"--label {column.name} to ask for it"
        )


def _framed(draft: "_Draft", systems: Sequence[_Column], thoughts: Sequence[_Column]) -> "_Draft":
    """Add the system message and the thought that columns of a table have, if it has them."""
    fields = dict(draft.fields)
    if systems and not draft.has_system:
        fields["system"] = f"{{{systems[0].name}}}"
    # The response of a chat is its last turn, with a thought of its own.
    if thoughts and not draft.is_chat:
        fields["response"] = f"<think>{{{thoughts[0].name}}}</think>{fields['response']}"
    return replace(draft, fields=fields)


def _cut_lists(mapping: ColumnMapping, rows: Sequence[Row]) -> list[str]:
    """Say of which lists templates read the first parts, where rows have more."""
    read: dict[str, int] = {}
    for column in mapping.columns:
        parts = [] if any(column in row for row in rows) else column.split(".")
        for place, part in enumerate(parts):
            if part.isdecimal():
                name = ".".join(parts[:place])
                read[name] = max(read.get(name, 0), int(part) + 1)
    longer = {name: sum(_length(row, name) > most for row in rows) for name, most in read.items()}
    return [
        f"{name} has more than {read[name]} parts in {count:,} of {len(rows):,} rows, which "
        "nothing reads."
        for name, count in longer.items()
        if count
    ]


def _length(row: Row, path: str) -> int:
    """Return how many parts a list has; 0 if there is none."""
    cell: object = row
    for part in path.split("."):
        cell = written_value(cell)
        if isinstance(cell, list):
            items = cast("list[object]", cell)
            cell = items[int(part)] if part.isdecimal() and int(part) < len(items) else None
        else:
            cell = cast("Row", cell).get(part) if isinstance(cell, Mapping) else None
    value = written_value(cell)
    return len(cast("list[object]", value)) if isinstance(value, list) else 0


def _examination(rows: Sequence[Row], columns: Sequence[_Column]) -> _Draft | None:
    """Return the templates of a question with its options; None if the table has none."""
    found = find_options(rows)
    if found is None:
        return None
    taken = {found.key, *(path.partition(".")[0] for path in found.options)}
    free = [c for c in columns if c.name.partition(".")[0] not in taken]
    asked = [c.name for c in free if c.is_named("question") or c.is_named("context")]
    asked = asked or [c.name for c in free if c.is_free_text]
    if not asked:
        return None
    options = tuple(LETTERS[: len(found.options)])
    is_plain = all(value == letter for value, letter in found.values.items())
    fields: dict[str, object] = {
        "domain": Domain.CHOICE,
        "verifier": "choice",
        "answer": {"correct": [f"{{{found.key}}}"]},
        "options": options,
        "response": f"{{{found.key}}}",
    }
    return _Draft(
        fields,
        tuple(asked[:_MOST_COLUMNS]),
        found.key,
        options=options,
        lettered=found.options,
        values={} if is_plain else {found.key: dict(found.values)},
        remarks=(
            f"{found.key} names the right one of {len(options)} options.",
            *_fewer(rows, found.options),
        ),
    )


def _fewer(rows: Sequence[Row], options: Sequence[str]) -> list[str]:
    """Say how many rows have not all of the options, if these are a list."""
    path, _, place = options[-1].rpartition(".")
    if not place.isdecimal():
        return []
    count = sum(0 < _length(row, path) < len(options) for row in rows)
    words = f"{path} has less than {len(options)} parts in {count:,} of {len(rows):,} rows"
    return [f"{words}; they are left out."] if count else []


def _pair(
    columns: Sequence[_Column], labels: Sequence[tuple[_Column, int]]
) -> tuple[_Column, _Column] | None:
    """Return the columns of a question and its answer."""
    asks = [c for c in columns if c.is_named("question") and c.fill >= _HALF]
    answers = _answers([c for c in columns if c not in asks])
    few = {column.name for column, points in labels if points > 0}
    free = [column for column in columns if column.is_free_text]
    if asks and answers and answers[0].name not in few:
        return asks[0], answers[0]
    if answers and free and answers[0].name not in few and free[0] is not answers[0]:
        return free[0], answers[0]
    questions = [
        c for c in free if sum(v.rstrip()[-1] in "?？" for v in c.counts) >= _HALF * len(c.counts)
    ]
    numbers = [column for column in columns if column.is_number and column.fill >= _MOSTLY]
    if questions and not few:
        others = [column for column in free if column is not questions[0]]
        if others or len(numbers) == 1:
            return questions[0], (others or numbers)[0]
    if len(free) == 2 and not few and not any(column.is_named("title") for column in free):
        return free[0], free[1]
    return None


def _answers(columns: Sequence[_Column]) -> list[_Column]:
    """Return columns that are called an answer, one of each object: first what verifies the others.

    That is an amount beside a `solution`; but of a text and where it starts (SQuAD) the text, and
    of a turn its content and not its role, which is the same in all rows.
    """
    named = [c for c in columns if c.is_named("answer") and c.fill >= _HALF]
    firsts: dict[str, _Column] = {}
    for column in sorted(named, key=lambda c: (len(c.counts) == 1, c.is_number)):
        firsts.setdefault(column.name.partition(".")[0], column)
    first = [c for c in named if c in firsts.values()]
    return sorted(first, key=lambda c: not c.is_amount)


def _answered(
    ask: _Column, answer: _Column, columns: Sequence[_Column], remarks: tuple[str, ...]
) -> _Draft:
    """Write the templates of a question and its answer, with what the question is about."""
    about = [c.name for c in columns if c.is_named("context") and c not in (ask, answer)]
    asked = (ask.name, *about[:_MOST_COLUMNS])
    remarks = (*remarks, *_blanks([answer] if about else [ask, answer]))
    prompt = "\n".join(f"{{{name}}}" for name in asked)
    fields: dict[str, object] = {"prompt": prompt, "response": f"{{{answer.name}}}"}
    if not answer.is_amount:
        if answer.share(_NUMBERED) >= _HALF:
            words = f"Many values of {answer.name} are numbers, which nothing checks as they stand"
            remarks = (*remarks, f"{words}: verifier final_answer would.")
        return _Draft(fields | {"domain": Domain.GENERAL}, asked, remarks=remarks)
    worked = [c for c in columns if c.is_named("answer") and c.is_free_text and c is not answer]
    shown = worked[0].name if worked and worked[0].fill >= _MOSTLY else ""
    response = f"{{{shown}}}" if shown else f"Answer: {{{answer.name}}}"
    gold = {"answer": {"value": f"{{{answer.name}}}"}, "response": response}
    maths = {"domain": Domain.MATHS, "verifier": "final_answer"}
    return _Draft(fields | maths | gold, asked, numbers=answer.name, remarks=remarks)


def _blanks(columns: Sequence[_Column]) -> list[str]:
    """Say of columns that no row can do without in how many there is no value."""
    blank = {column.name: column.values.count("") for column in columns}
    return [
        f"{name} is empty in {count:,} of {len(columns[0].values):,} rows; they are left out."
        for name, count in blank.items()
        if count
    ]


def _labels(columns: Sequence[_Column]) -> list[tuple[_Column, int]]:
    """Return the columns that could be labels, each with the points that speak for it."""
    found: list[tuple[_Column, int]] = []
    for place, column in enumerate(columns):
        options, total = _spellings(column), sum(column.counts.values())
        if not (
            2 <= len(options) <= _MOST_OPTIONS
            and column.fill >= _HALF
            and total >= _LEAST_ROWS_PER_OPTION * len(options)
            and all(len(value) <= _LONG_OPTION for value in column.counts)
        ):
            continue
        is_order = column.is_number and not column.is_boolean
        if is_order and not (column.is_named("rating") or column.is_named("label")):
            continue
        points = 4 * column.is_named("label") + column.is_named("rating") - 3 * is_order
        points -= 3 * column.is_named("no_label") + 2 * column.is_named("title")
        points -= 3 * (max(column.counts.values()) > _MOSTLY * total)
        # A label often stands behind what it is about.
        points += column.fill >= _MOSTLY and place == len(columns) - 1
        found.append((column, points))
    return found


def _choice(columns: Sequence[_Column], label: _Column, remarks: tuple[str, ...]) -> _Draft:
    spellings = _spellings(label)
    options = tuple(sorted(spellings))
    if len(options) < 2:
        raise DataError(f"the label {label.name} has {len(options)} value: nothing to choose from")
    # Of a feed with a row a variant (Shopify), title and label are in the first row of a product.
    fills = {c.name: _fill_beside(c, label) for c in columns}
    full = [c for c in columns if fills[c.name] >= _MOSTLY and len(c.counts) > 1]
    same = [column.name for column in full if _is_bijection(column, label)]
    facets = [column.name for column in full if column.is_number and column.name not in same]
    texts = [column for column in full if column.name not in {*facets, *same}]
    if not texts:  # what is blank in more rows than a few is better than nothing to ask about
        free = [c for c in columns if c.is_free_text and fills[c.name] >= _HALF]
        most = max((fills[c.name] for c in free), default=0.0)
        texts = [c for c in free if fills[c.name] == most and c.name not in same]
    if not texts:
        raise DataError(f"no column is left to ask about, beside the label {label.name}")
    best = sorted(texts, key=lambda c: (not c.is_named("title"), not c.is_free_text))
    chosen = [column.name for column in texts if column in best[:_MOST_COLUMNS]]
    notes = list(remarks)
    if rest := len(columns) - len(full) + len(texts) - len(chosen):
        notes.append(f"Not in the prompt: columns that are mostly blank, constant or many: {rest}.")
    if same:
        notes.append(f"Not in the prompt, as it gives the label away: {_listed(same, 3)}.")
    notes += [*(_blanks(texts) if len(texts) == 1 else []), *_label_notes(label, spellings)]
    values: dict[str, dict[str, str]] = {}
    if any(raw != [option] for option, raw in spellings.items()):
        values[label.name] = {one: option for option, raw in spellings.items() for one in raw}
    fields: dict[str, object] = {
        "domain": Domain.CHOICE,
        "verifier": "choice",
        "answer": {"correct": [f"{{{label.name}}}"]},
        "options": options,
        "response": f"{{{label.name}}}",
        "facets": {name: f"{{{name}}}" for name in facets[:_MOST_COLUMNS]},
    }
    return _Draft(fields, tuple(chosen), label.name, "", options, values, tuple(notes))


def _fill_beside(column: _Column, label: _Column) -> float:
    """Return the share of the rows with a label that have a value of a column."""
    pairs = zip(column.values, label.values, strict=True)
    return sum(bool(value) for value, one in pairs if one) / sum(label.counts.values())


def _label_notes(label: _Column, spellings: Mapping[str, Sequence[str]]) -> list[str]:
    """Say what was made of labels, and which may be none."""
    notes: list[str] = []
    if odd := [value for value in label.counts if label.classes and value not in label.classes]:
        rows = sum(label.counts[value] for value in odd)
        notes.append(f"{_listed(odd, 3)} ({rows:,} rows) is no class; they are left out.")
    is_counted = label.is_number and any(value not in ("-1", "0", "1") for value in label.counts)
    doubtful = [one for one in spellings if is_doubtful(one) or (is_counted and one == "-1")]
    if doubtful:
        rows = sum(label.counts[raw] for option in doubtful for raw in spellings[option])
        notes.append(
            f"{_listed(doubtful, 3)} ({rows:,} rows) may stand for no label: remove it from "
            "options, and such rows are left out."
        )
    total = sum(label.counts.values())
    if total > _RARE and (
        rare := [
            one for one, raw in spellings.items() if sum(map(label.counts.__getitem__, raw)) == 1
        ]
    ):
        notes.append(
            f"Labels of a single row: {_listed(rare, 3)}. Is that row a header or a note? Remove "
            "them from options, and such rows are left out."
        )
    if label.classes:
        notes.append(f"The file says what the numbers of {label.name} stand for.")
    if merged := sum(len(raw) for raw in spellings.values()) - len(spellings):
        notes.append(
            f"Other spellings of labels (case, quotes, code points) are one with theirs: {merged}."
        )
    return notes


def _spellings(label: _Column) -> dict[str, list[str]]:
    """Return the labels, each with its spellings.

    Case, quotes, signs that nobody sees and another composition of letters (`é` in one code point
    or in two) make no other label.
    """
    groups: dict[str, Counter[str]] = {}
    for value, count in label.counts.items():
        if label.classes and value not in label.classes:
            continue  # -1, as `datasets` writes what has no label
        said = _said(label, value)
        bare = said.strip(_QUOTES).strip() or said
        seen = "".join(char for char in bare if unicodedata.category(char) != "Cf")
        key = unicodedata.normalize("NFKC", seen).casefold()
        groups.setdefault(key, Counter())[value] += count
    result: dict[str, list[str]] = {}
    for group in groups.values():
        commonest = group.most_common(1)[0][0]
        commonest = _said(label, commonest)
        result[commonest.strip(_QUOTES).strip() or commonest] = sorted(group)
    return result


def _said(label: _Column, value: str) -> str:
    """Return what a value of a label says: the name of its class, or the text alone in a list."""
    parts = written_value(value)
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return label.classes.get(value, value)


def _is_bijection(column: _Column, label: _Column) -> bool:
    """True if a column says the same as the label in other words, such as its number."""
    pairs = {(a, b) for a, b in zip(column.values, label.values, strict=True) if a and b}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def _question(draft: _Draft, tags: str | tuple[str, ...], columns: Mapping[str, _Column]) -> str:
    """Write the prompt of a choice, in the table's language; '' if the draft has its prompt."""
    if not draft.options:
        return ""
    tag = _commonest(tags, columns)
    key = primary(tag)
    sample = " ".join(value for name in draft.asked for value in columns[name].values[:50])
    if key == "zh" and (
        re.search("Hant|TW|HK|MO", tag) or traditional(sample) > simplified(sample)
    ):
        key = "zh-Hant"
    form, joint = _ASK.get(key, _ASK["en"])
    comma = "、" if key.startswith("zh") else ", "
    head, space = comma.join(draft.options[:-1]), "" if key.startswith("zh") else " "
    options = f"{head}{space}{joint}{space}{draft.options[-1]}"
    if draft.lettered:
        form = _ASK_LETTER if form == _ASK["en"][0] else form
        pairs = zip(draft.options, draft.lettered, strict=True)
        lines = [*(f"{{{name}}}" for name in draft.asked), *(f"{a}: {{{b}}}" for a, b in pairs)]
        return "\n".join([*lines, _escaped(form.format(label=draft.label, options=options))])
    label = re.sub(r"^\w{1,3}:", "", draft.label.strip()).replace(
        "_", " "
    )  # g:product_type of feeds
    lines = [_escaped(form.format(label=label, options=options))]
    lines += [f"{_escaped(name.strip())}: {{{name}}}" for name in draft.asked]
    return "\n".join(lines)


def _commonest(tags: str | tuple[str, ...], columns: Mapping[str, _Column]) -> str:
    """Return the language of nearly all rows; '' if there is none."""
    if isinstance(tags, tuple):
        return tags[0] if {*tags} == {"id", "ms"} else ""
    column = columns.get(tags.strip("{}"))
    if column is None:
        return tags
    counts = Counter[str]()
    for value, count in column.counts.items():
        counts[_tag_of(value)] += count
    tag, count = counts.most_common(1)[0]
    return tag if count >= _MOSTLY * counts.total() else ""


def _is_language(column: _Column) -> bool:
    """True for a column of tags in any spelling, or of names of languages."""
    known = sum(n for value, n in column.counts.items() if _tag_of(value))
    has_known = bool(column.counts) and known >= _MOSTLY * sum(column.counts.values())
    named = any(value.casefold() in _TAGS_OF_NAMES for value in column.counts)
    regions = sum("-" in (_tag_of(value) or "") for value in column.counts)
    return has_known and (
        column.is_named("language")
        or ((named or regions == len(column.counts)) and len(column.counts) > 1)
    )


def _tag_of(value: str) -> str:
    """Return the tag of a language that a cell names; '' if it names none."""
    if tag := _TAGS_OF_NAMES.get(value.casefold()):
        return tag
    tag = str(language_tag(value))
    return tag if re.fullmatch(r"[a-z]{2,3}(-\w+)*", tag) and primary(tag) in _KNOWN_TAGS else ""


def _language(
    rows: Sequence[Row],
    columns: Sequence[_Column],
    spoken: Sequence[_Column],
    texts: Sequence[str],
    language: str,
    values: dict[str, dict[str, str]],
) -> tuple[str | tuple[str, ...], list[str]]:
    """Return the language of a mapping and remarks; names of languages go into `values`."""
    if language and language not in {column.name for column in columns}:
        return _tag_of(language) or str(language_tag(language)), []
    named = [c for c in columns if c.name == language] or list(spoken)
    if named:
        column = named[0]
        if any(value.casefold() in _TAGS_OF_NAMES for value in column.counts):
            values[column.name] = {v: tag for v in sorted(column.counts) if (tag := _tag_of(v))}
        blank = len(rows) - sum(column.counts.values())
        remark = f"{column.name} is blank in {blank:,} of {len(rows):,} rows; they are left out."
        return f"{{{column.name}}}", [*([remark] if blank else []), *_no_tags(column)]
    odd = [column for column in columns if column.is_named("language")]
    remarks = [_not_used(odd[0])] if odd else []
    tags, assumed = _detected(languages_of([text for text in texts if text.strip()]))
    return tags, [*remarks, assumed]


def _no_tags(column: _Column) -> list[str]:
    """Say which values of a column of languages are none, and so left out."""
    odd = [value for value in column.counts if not (_tag_of(value) or is_language_tag(value))]
    count = sum(column.counts[value] for value in odd)
    rows = f"({count:,} rows) is no language; they are left out."
    return [f"{_listed(odd, 3)} in {column.name} {rows}"] if odd else []


def _not_used(column: _Column) -> str:
    """Say why a column that is called a language is not taken for one."""
    others = [value for value in column.counts if not _tag_of(value)]
    if not others or len(others) == len(column.counts):
        return f"{column.name} names no languages, and is not used as such."
    rows = sum(column.counts[value] for value in others)
    return (
        f"{column.name} is not used as the language: {_listed(others, 3)} ({rows:,} rows) is none. "
        "Correct the column, or write `values` for it."
    )


def _detected(languages: Languages) -> tuple[str | tuple[str, ...], str]:
    """Return the language of a mapping whose table does not name it, and what was assumed."""
    tags, way = languages.tags, "Write it into the mapping, or give --language."
    if len(tags) == 0:
        return TEXT, f"No language is certain: each row has that of its own prompt, or none. {way}"
    if not languages.is_certain:
        names = " and ".join(tags)
        return tags, f"The texts do not tell {names} apart: a row is one of them, or none. {way}"
    if len(tags) > 1:
        return tags, f"Rows are in {', '.join(tags)}: each has the language of its prompt, or none."
    return tags[0], f"All rows are taken for {tags[0]}, as their prompts read. Else: --language."


def _check_separators(
    answers: _Column, tags: str | tuple[str, ...], remarks: Sequence[str]
) -> None:
    """Refuse numbers of no known language, and decimals that it does not write: 0,5 in English.

    Raises:
        DataError: names the column and a value.
    """
    numbers = [re.sub(rf"^{_SIGN}\s?|\s?{_SIGN}$", "", value) for value in answers.values]
    odd = [value for value in numbers if re.search(r"[.,]|\d{4}", value)]
    if odd and (tags == TEXT or (isinstance(tags, tuple) and {*tags} == {"id", "ms"})):
        raise DataError(
            f"{answers.name} has numbers as {odd[0]}, which languages read differently. "
            f"{remarks[-1]}"
        )
    if answers.is_typed or not isinstance(tags, str) or tags == TEXT or "{" in tags:
        return
    odd, fault = _fault_of_numbers(answers.values, numbers, tags, is_assumed=bool(remarks))
    if odd:
        raise DataError(f"{len(odd):,} of {len(answers.values):,} values of {answers.name} {fault}")


def _fault_of_numbers(
    values: Sequence[str], numbers: Sequence[str], tag: str, *, is_assumed: bool
) -> tuple[Sequence[str], str]:
    """Return numbers that a language reads otherwise than they seem to be meant, and why."""
    pairs = [pair for pair in zip(values, numbers, strict=True) if pair[0]]
    signed = [number for _, number in pairs if re.search(r"[.,]", number)]
    decimal, other = ",." if writes_comma(tag) else ".,"
    grouped = [
        value
        for value, number in pairs
        if _GROUPED[decimal].fullmatch(number) and _is_below(value, number, tag)
    ]
    if is_assumed and len(grouped) > _HALF * len(signed):
        return grouped, (
            f"are as {grouped[0]}, in which {tag} reads {decimal!r} as the sign "
            f"of decimals. If it is one, give --language {tag}; else write thousands without a sign"
        )
    odd = [number for number in numbers if _DECIMALS[other].fullmatch(number)]
    name = "comma" if other == "," else "point"
    if decimal == "." and len(odd) > _HALF * len(signed):
        return odd, (
            f"have a decimal {name}, as {odd[0]}, which {tag} does not write: 1.299 "
            "would be read wrongly. Give the language of the numbers: --language, for example pt-BR"
        )
    taken = [value for value, number in pairs if _GROUPED[other].fullmatch(number)]
    if taken and len(odd) > (1 - _MOSTLY) * len(signed):
        return odd, (
            f"have a decimal {name}, as {odd[0]}, and {tag} reads {taken[0]} as "
            f"thousands. Write decimals with {decimal!r}, or numbers in a file with types (Parquet)"
        )
    unread = [value for value, _ in pairs if not _is_one(value, tag)]
    if len(unread) > _HALF * len(pairs):
        return unread, (
            f"are as {unread[0]}, which is not read as one number in {tag}. Write them without "
            "separators, and a currency as its sign or code (₱, PHP)"
        )
    return (), ""


def _is_below(value: str, number: str, tag: str) -> bool:
    """True if a number with separators is read as less than its digits say."""
    term = parse(value, tag).term
    return term is None or term.value != int(re.sub(r"\D", "", number))


def _is_one(value: str, tag: str) -> bool:
    answer = parse(value, tag)
    return answer.readable and answer.kind != "list"


def _columns(rows: Sequence[Row]) -> list[_Column]:
    """List the columns of scalars, and the scalars within objects and lists, by their path."""
    flat = [dict(_scalars(row)) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    columns: list[_Column] = []
    for name in names:
        cells = [row.get(name, "") for row in flat]
        values = tuple(map(_present, cells))
        counts = Counter(value for value in values if value)
        is_typed = all(
            isinstance(cell, int | float | Digits)
            for cell, value in zip(cells, values, strict=True)
            if value
        )
        if counts and not _NAMELESS.fullmatch(name) and not set(name) & set("{}"):
            columns.append(_Column(name, values, counts, is_typed=is_typed))
    return columns


def _scalars(
    row: Row, prefix: str = "", depth: int = 0
) -> list[tuple[str, str | bool | int | float]]:
    """List the scalars of a row with their paths: title, left.price, prompts.0.question."""
    found: list[tuple[str, str | bool | int | float]] = []
    for name, value in row.items():
        path = f"{prefix}{name}"
        if not str(name).strip():
            continue
        if isinstance(value, str | bool | int | float):
            found.append((path, value))
        elif isinstance(value, Mapping) and depth < _DEEP:
            found += _scalars(cast("Row", value), f"{path}.", depth + 1)
        elif isinstance(value, list) and value and depth < _DEEP:
            items = cast("list[object]", value)
            # Of a chat the question is second, behind a system message.
            is_chat = isinstance(items[0], Mapping) and {"role", "from"} & items[0].keys()
            within = {str(n): item for n, item in enumerate(items[: 2 if is_chat else 1])}
            found += _scalars(within, f"{path}.", depth + 1)
    return found


def _present(value: str | bool | int | float) -> str:
    text = json.dumps(value) if isinstance(value, bool) else str(value).strip()
    return "" if is_missing(text) else text


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _listed(names: Sequence[str], most: int = 8) -> str:
    """List names; of many, the first and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
