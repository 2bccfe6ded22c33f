"""How people write values and answers: numerals by language, number words, sentences, boxes."""

# ruff: noqa: RUF001 - signs that people type
import random
from fractions import Fraction

from data_schemas.rows import Message, Problem, Role

SENTENCES = {
    "en": ("The answer is {}.", "Answer: {}", "So the final answer is {}."),
    "zh": ("答案是{}。", "所以答案是 {}。", "答案：{}"),
    "id": ("Jawabannya adalah {}.", "Jadi, jawaban: {}"),
    "ms": ("Jawapannya ialah {}.", "Jawapan: {}"),
    "pt": ("A resposta é {}.", "Portanto, a resposta é {}."),
    "vi": ("Đáp án là {}.", "Vậy đáp án: {}"),
    "th": ("คำตอบคือ {}", "ดังนั้น คำตอบ: {}"),
}
DECIMAL_COMMA = ("id", "pt", "vi")
"""The other languages write 1,234.5."""
NOT = {
    "en": ("The answer is not {}.", "The answer isn't {}."),
    "zh": ("答案不是{}。",),
    "id": ("Jawabannya bukan {}.",),
    "ms": ("Jawapannya bukan {}.",),
    "pt": ("A resposta não é {}.",),
    "vi": ("Đáp án không phải là {}.",),
    "th": ("คำตอบไม่ใช่ {}",),
}
MINUS = {"en": "minus", "zh": "负", "id": "minus", "pt": "menos", "vi": "âm", "th": "ลบ"}
EITHER = {
    "en": ("either {} or {}", "{} or {}", "maybe {}, maybe {}"),
    "zh": ("{}或{}", "{}或者{}"),
    "id": ("{} atau {}",),
    "ms": ("{} atau {}",),
    "pt": ("{} ou {}", "ou {} ou {}"),
    "vi": ("{} hoặc {}",),
    "th": ("{} หรือ {}",),
}
BETWEEN = {
    "en": ("between {} and {}", "from {} to {}", "somewhere between {} and {}"),
    "zh": ("{}到{}之间",),
    "id": ("antara {} dan {}",),
    "ms": ("antara {} dan {}",),
    "pt": ("entre {} e {}",),
    "vi": ("từ {} đến {}",),
    "th": ("ระหว่าง {} ถึง {}",),
}
OR = {
    "en": ("Or {}.", "Or maybe {}.", "Alternatively, {}.", "No, {}."),
    "zh": ("或者{}。", "不，{}。"),
    "id": ("Atau {}.", "Bukan, {}."),
    "ms": ("Atau {}.",),
    "pt": ("Ou {}.", "Não, {}."),
    "vi": ("Hoặc {}.", "Không, {}."),
    "th": ("หรือ {}",),
}
"""A sentence after an answer that states another one."""
TO = {
    "en": ("{} to {}", "{} and {}", "{} - {}", "{} or {}"),
    "zh": ("{} 到 {}", "{} 或 {}"),
    "id": ("{} sampai {}", "{} atau {}"),
    "ms": ("{} hingga {}", "{} atau {}"),
    "pt": ("{} a {}", "{} ou {}"),
    "vi": ("{} đến {}", "{} hoặc {}"),
    "th": ("{} ถึง {}", "{} หรือ {}"),
}
SMALL = {
    "zh": "二 三 四 五 六 七 八 九 十 十一 十二",
    "id": "dua tiga empat lima enam tujuh delapan sembilan sepuluh sebelas dua_belas",
    "ms": "dua tiga empat lima enam tujuh lapan sembilan sepuluh sebelas dua_belas",
    "pt": "dois três quatro cinco seis sete oito nove dez onze doze",
    "vi": "hai ba bốn năm sáu bảy tám chín mười mười_một mười_hai",
    "th": "สอง สาม สี่ ห้า หก เจ็ด แปด เก้า สิบ สิบเอ็ด สิบสอง",
}
"""The words for 2 to 12; English has `words`."""
OPTION = {
    "en": ("Option {}", "It is {}.", "I choose {}.", "The correct option is {}."),
    "zh": ("选{}", "选项{}", "是{}。"),
    "id": ("Pilihan {}", "Saya memilih {}."),
    "ms": ("Pilihan {}", "Saya pilih {}."),
    "pt": ("Opção {}", "A opção correta é {}."),
    "vi": ("Chọn {}", "Tôi chọn {}."),
    "th": ("ข้อ {}", "ตอบ {}"),
}
_IN_LANGUAGE = {
    "zh": "请用中文回答。",
    "id": "Jawab dalam bahasa Indonesia.",
    "ms": "Jawab dalam bahasa Melayu.",
    "pt": "Responda em português.",
    "vi": "Hãy trả lời bằng tiếng Việt.",
    "th": "โปรดตอบเป็นภาษาไทย",
}
BOXES = (
    "Therefore, the answer is $\\boxed{{{}}}$.",
    "We get\n\\[\\boxed{{{}}}\\]",
    "So the final answer is \\(\\boxed{{{}}}\\).",
    "Thus\n$$\\boxed{{{}}}$$",
    "\\boxed{{{}}}",
    "### Answer\n\n\\[\n\\boxed{{{}}}\n\\]\n",
    "The final answer is: $\\boxed{{{}}}$",
    "Hence, our answer is $\\boxed {{{}}}$.",
)
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def box(text: str, source: random.Random | None = None) -> str:
    """Put a value into a box, in a plain sentence or in one of many."""
    return (source.choice(BOXES) if source else BOXES[0]).format(text)


def state_answer(text: str, source: random.Random, language: str = "en") -> str:
    """State a value in a sentence without a box."""
    return source.choice(SENTENCES[language]).format(text)


def with_language(problem: Problem, language: str) -> Problem:
    """Ask for the answer in a language."""
    base = problem.language.partition("-")[0]
    if base == language or (base not in SENTENCES and language == "en"):
        return problem
    request = Message(role=Role.USER, content=_IN_LANGUAGE.get(language, "Answer in English."))
    return problem.model_copy(
        update={
            "id": f"{problem.id}/{language}",
            "language": language,
            "messages": (*problem.messages, request),
        }
    )


def decimal(value: Fraction, most_places: int = 6) -> str | None:
    """Write a rational as a decimal; None if it does not end within so many places."""
    for places in range(most_places + 1):
        scaled = value * 10**places
        if scaled.denominator == 1:
            digits = str(abs(scaled.numerator)).rjust(places + 1, "0")
            shown = f"{digits[:-places]}.{digits[-places:]}" if places else digits
            return f"-{shown}" if value < 0 else shown
    return None


def local(value: Fraction, language: str) -> str | None:
    """Write a number with the separators of a language; None if it is no short decimal."""
    plain = decimal(value)
    if plain is None:
        return None
    whole, _, places = plain.partition(".")
    grouped = f"{int(whole):,}" if abs(value) >= 1 else whole
    text = f"{grouped}.{places}" if places else grouped
    if language in DECIMAL_COMMA:
        return text.translate(str.maketrans(",.", ".,"))
    return text


def small_words(value: int, language: str) -> str | None:
    """Write an integer in the words of a language; None if it has none here."""
    if language == "en":
        return words(value) if 0 <= value < 1000 else None
    names = SMALL[language].split()
    return names[value - 2].replace("_", " ") if 2 <= value <= 12 else None


def words(value: int) -> str:
    """Write an integer from 0 to 999 999 in English words."""
    if value < 20:
        return _ONES[value]
    if value < 100:
        rest = value % 10
        return _TENS[value // 10] + (f"-{_ONES[rest]}" if rest else "")
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if value >= size:
            rest = f" {words(value % size)}" if value % size else ""
            return f"{words(value // size)} {name}{rest}"
    raise AssertionError(value)
