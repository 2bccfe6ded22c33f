"""Words around numbers that change what is stated, in the languages of the problems.

English, Indonesian, Malay, Vietnamese, Thai, Chinese, Spanish, French, Portuguese, German.
"""

# ruff: noqa: RUF001 - signs that people type
import re

_NOT = (
    r"anything but|other than|except|apart from|not|never|neither|nor|cannot|bukan|bukanlah|"
    r"tidak|tak|không phải|không|chẳng|nunca|no es|n'est pas|pas|jamais|não|nicht|kein|keine|"
    r"ไม่|ไม่ใช่|มิใช่|不|没|沒|非"
)
_ALTERNATIVE = "or|atau|hoặc|ou|oder|หรือ|或|或者|或是|还是|還是"
_OR = f"{_ALTERNATIVE}|either|entweder|soit"
_SHORT_OR = "o|u|hay"
"""Words with other meanings; they count only between two numbers."""
_COMPARED = (
    "more|less|fewer|greater|larger|smaller|bigger|above|below|over|under|at least|at most|"
    "up to|beyond|lebih|kurang|setidaknya|sekurang-kurangnya|paling sedikit|paling banyak|"
    "minimal|maksimal|hơn|ít nhất|nhiều nhất|tối đa|tối thiểu|dưới|trên|más|menos|al menos|"
    "mayor|menor|como máximo|plus|moins|au moins|au plus|mais|maior|pelo menos|no máximo|"
    "supérieur|supérieure|inférieur|inférieure|superior|inferior|"
    "mehr|weniger|mindestens|höchstens|größer|kleiner|มากกว่า|น้อยกว่า|อย่างน้อย|ไม่เกิน|大于|大於|"
    "小于|小於|至少|至多|超过|超過|不到|多于|多於|少于|少於"
)
_UNSURE = (
    "maybe|perhaps|possibly|might be|may be|could be|mungkin|barangkali|boleh jadi|bisa jadi|"
    "có thể|có lẽ|quizás|quizá|tal vez|puede ser|peut-être|peut être|talvez|possivelmente|"
    "pode ser|vielleicht|möglicherweise|อาจ|บางที|น่าจะ|也许|也許|或许|或許|可能|大概"
)
_WRONG = (
    "wrong|incorrect|false|salah|keliru|sai|incorrecto|incorrecta|incorreto|incorreta|errado|"
    "errada|faux|falso|falsa|falsch|está mal|ผิด|错|錯"
)
_BETWEEN = "between|from|either|antara|dari|giữa|từ|entre|desde|zwischen|von|ระหว่าง|จาก|介于"
_TO = "to|through|sampai|hingga|đến|a|à|até|bis|ถึง|到|至|–|—|~"
_AND = "and|dan|và|y|et|e|und|และ|和|&"
_BEYOND = "以上|以下|以内|以內|以外|trở lên|trở xuống|ขึ้นไป|ลงมา"
"""After a number: it is a bound."""
_OR_EQUAL = (
    r"(?:\s*(?:than|que|als|dari|daripada))?\s*(?:or|ou|o|oder|atau|hoặc|หรือ|或)?\s*"
    r"(?:equal|égale?|igual|gleich|sama|bằng|เท่ากับ|等于|等於)(?:\s*(?:to|à|a|que|dengan))?"
)
_TURNS = (
    "alternatively|or else|maybe|perhaps|no|nope|wait|actually|rather|sorry|correction|i mean|"
    "bukan|tidak|mungkin|maaf|eh|không|à không|có lẽ|ไม่|ไม่ใช่|不|不对|不對|不是|而是|não|aliás|"
    "talvez|digo|quizás|non|plutôt|peut-être|nein|vielmehr|vielleicht"
)
_FILLERS = (
    "it's|it|is|to|be|equal|the|answer|a|sama|dengan|là|phải|égal|à|igual|é|es|est|ist|"
    "adalah|ialah|been|really|actually|than|dari|daripada|que|de|als|:|是|เป็น|คือ"
)


def _pattern(*lists: str) -> str:
    """Build alternatives: whole words in scripts with spaces, substrings in Thai and Chinese."""
    entries = sorted({entry for words in lists for entry in words.split("|")}, key=len)[::-1]
    spaced = "|".join(re.escape(entry) for entry in entries if entry[0] < "\u0e00")
    dense = "|".join(re.escape(entry) for entry in entries if entry[0] >= "\u0e00") or "\uffff"
    return rf"(?:(?<!\w)(?:{spaced})(?!\w)|(?:{dense}))"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_CONTRACTED = r"\w+n['’‘ʼ´`]t(?!\w)"
JOINT = rf"(?:,?\s{{0,3}}{_pattern(_OR, _SHORT_OR, _TO, _AND)}\s{{0,3}})"
"""Source of a pattern: words between two numbers that are alternatives, a range or a list."""
ANY_OR = _pattern(_OR, _SHORT_OR)
TURN = rf"(?:{_pattern(_ALTERNATIVE, _SHORT_OR, _TURNS)}[\s,:，：、]{{0,3}}){{1,2}}"
"""Source of a pattern: begins a sentence that replaces an answer, or adds one: `Or maybe 6.`"""
PERHAPS = _compiled(
    rf"[\s,;$(]*(?:{_pattern(_OR)}\s*)?{_pattern(_UNSURE)}(?:\s*{_pattern(_FILLERS)})?[\s$:]*"
)
"""Between two numbers: the second is a guess in addition to the first."""
NEGATION = _compiled(rf"{_pattern(_NOT, _WRONG)}|{_CONTRACTED}")
HEDGES = _compiled(rf"{_pattern(_NOT, _WRONG, _OR, _COMPARED, _UNSURE, _BEYOND)}|{_CONTRACTED}")
"""Next to a number: it is not stated, or is not the only one."""
OR = _compiled(_pattern(_OR))
OR_LAST = _compiled(rf"{_pattern(_OR)}[\s$]*$")
JOINED = _compiled(rf"[\s$,]*(?:{_pattern(_OR, _SHORT_OR, _TO, _AND)}|-)[\s$]*")
"""Between two numbers: both are stated, or a range."""
OPENS_RANGE = _compiled(rf"{_pattern(_BETWEEN)}[\s$]*$")
BETWEEN_LAST = _compiled(rf"{_pattern(_BETWEEN)}[^.]{{0,40}}{_pattern(_AND, _OR, _TO)}[\s$]*$")
"""Before the second end of a range."""
MORE_FOLLOWS = _compiled(
    rf"\s*{_pattern(_BEYOND)}|"
    r"\s*(?:(?:and|dan|y|et|e|und)\s+(?:an?\s+|une?\s+|um\s+|ein\s+)?"
    r"(?:half|quarter|third|setengah|medi[oa]|demie?|mei[oa]|halb)|einhalb|setengah|rưỡi|ครึ่ง|半)(?!\w)"
)
"""After a number: the number continues, as in `27 and a half`, or is a bound."""
ALTERNATIVE_FOLLOWS = _compiled(
    rf"\s*(?:[^\W\d_]+\s+){{0,2}}?[$,(]?\s*(?:{_pattern(_ALTERNATIVE)}(?!\s+so(?!\w))|{_pattern(_UNSURE)})|"
    r"[^\w.!;]{0,9}\?"
)
"""After a number: it is one of several, a guess or a question."""
COMPARED_LAST = _compiled(
    rf"(?:{_pattern(_COMPARED, _UNSURE)}(?:\s*{_pattern(_FILLERS)}|{_OR_EQUAL})?|[<>≠≤≥])[\s$:]*$"
)
"""Before a number: it is a bound."""
MINUS = _compiled(
    r"(?<!\w)(?:minus|negative|menos|moins|negatif|negativo|âm|trừ)\s+(?=[\d.$\\])|(?:ลบ|负|負)\s*(?=\d)"
)
