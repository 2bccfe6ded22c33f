"""Words around numbers that change what is stated, in the languages of the problems.

English, Indonesian, Malay, Vietnamese, Thai, Chinese, Spanish, French, Portuguese, German.
"""

# ruff: noqa: RUF001 - signs that people type
import re

_NOT = (
    "anything but|other than|except|apart from|not|never|neither|nor|cannot|"
    "bukan|bukanlah|tidak|tak|"
    "không phải|không|chẳng|nunca|no es|n'est pas|pas|jamais|não|nicht|kein|keine|wrong|"
    "incorrect|false|salah|sai|incorrecto|incorrecta|faux|falso|falsch|ไม่|ไม่ใช่|มิใช่|ผิด|"
    "不|没|非|错|錯"
)
_NOT += "".join(
    f"|{verb}n{sign}t"
    for verb in re.findall(r"\w+", "is are was were ca wo would could should must does do did ai")
    for sign in ("'", "’", "ʼ", "")
    if sign or verb != "wo"
)
_OR = "or|either|atau|hoặc|ou|oder|entweder|soit|หรือ|或|还是"
_SHORT_OR = "o|u|hay"
"""Words that mean much else; only between two numbers."""
_COMPARED = (
    "more|less|fewer|greater|larger|smaller|bigger|above|below|over|under|at least|at most|"
    "up to|beyond|lebih|kurang|setidaknya|sekurang-kurangnya|paling sedikit|paling banyak|"
    "minimal|maksimal|hơn|ít nhất|nhiều nhất|tối đa|tối thiểu|dưới|trên|más|menos|al menos|"
    "mayor|menor|como máximo|plus|moins|au moins|au plus|mais|maior|pelo menos|no máximo|"
    "mehr|weniger|mindestens|höchstens|größer|kleiner|มากกว่า|น้อยกว่า|อย่างน้อย|ไม่เกิน|大于|"
    "小于|至少|至多|超过|不到|多于|少于"
)
_UNSURE = "maybe|perhaps|possibly|mungkin|có thể|quizás|peut-être|talvez|vielleicht|อาจ|也许|可能"
_BETWEEN = "between|from|either|antara|dari|giữa|từ|entre|desde|zwischen|von|ระหว่าง|จาก|介于"
_TO = "to|through|sampai|hingga|đến|a|à|até|bis|ถึง|到|至|–|—|~"
_AND = "and|dan|và|y|et|e|und|และ|和|&"
_FILLERS = (
    "it's|it|is|to|be|equal|the|answer|a|sama|dengan|là|phải|égal|à|igual|é|es|est|ist|"
    "adalah|ialah|been|really|actually|than|dari|que|de|als|:|是|เป็น|คือ"
)


def _pattern(*lists: str) -> str:
    """Build alternatives: whole words of alphabets with spaces, anything of Thai and Chinese."""
    entries = sorted({entry for words in lists for entry in words.split("|")}, key=len)[::-1]
    spaced = "|".join(re.escape(entry) for entry in entries if entry[0] < "\u0e00")
    dense = "|".join(re.escape(entry) for entry in entries if entry[0] >= "\u0e00") or "\uffff"
    return rf"(?:(?<!\w)(?:{spaced})(?!\w)|(?:{dense}))"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


NEGATION = _compiled(_pattern(_NOT))
HEDGES = _compiled(_pattern(_NOT, _OR, _COMPARED, _UNSURE))
"""Beside a number: it is not stated, or not alone."""
OR = _compiled(_pattern(_OR))
OR_LAST = _compiled(rf"{_pattern(_OR)}[\s$]*$")
JOINED = _compiled(rf"[\s$,]*(?:{_pattern(_OR, _SHORT_OR, _TO, _AND)}|-)[\s$]*")
"""Between two numbers: both are stated, or what lies between them."""
OPENS_RANGE = _compiled(rf"{_pattern(_BETWEEN)}[\s$]*$")
BETWEEN_LAST = _compiled(rf"{_pattern(_BETWEEN)}[^.]{{0,40}}{_pattern(_AND, _OR, _TO)}[\s$]*$")
"""Before the second end of a range."""
NEGATED_LAST = _compiled(rf"{_pattern(_NOT)}(?:\s*{_pattern(_FILLERS, _NOT)}){{0,4}}[\s$:]*$")
"""Before a number: it is denied."""
MORE_FOLLOWS = _compiled(
    r"\s*(?:(?:and|dan|y|et|e|und)\s+(?:an?\s+|une?\s+|um\s+|ein\s+)?"
    r"(?:half|quarter|third|setengah|medi[oa]|demie?|mei[oa]|halb)|einhalb|setengah|rưỡi|ครึ่ง|半)(?!\w)"
)
"""After a number: it is not all, as in `27 and a half`."""
DENIED_FIRST = _compiled(rf"^\s*(?:{_pattern('is|was|are|es|é|est|ist')}\s*)?{_pattern(_NOT)}")
"""After a number: it is denied."""
COMPARED_LAST = _compiled(
    rf"(?:{_pattern(_COMPARED, _UNSURE)}(?:\s*{_pattern(_FILLERS)})?|[<>≠≤≥])[\s$:]*$"
)
"""Before a number: it is a bound."""
MINUS = _compiled(
    r"(?<!\w)(?:minus|negative|menos|moins|negatif|negativo|âm|trừ)\s+(?=[\d.$\\])|(?:ลบ|负|負)\s*(?=\d)"
)
