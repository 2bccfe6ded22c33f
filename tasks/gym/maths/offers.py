"""Sentences that offer another value beside an answer: `But 16 is also possible`, `也可能是16`.

Such a sentence has a number and otherwise only words of a short list, one of which offers. A
sentence with any other word tells something else: `He also has 16 pens`.
"""

# ruff: noqa: RUF001 - signs that people type
import functools
import re
from collections.abc import Iterator

from tasks.algorithms.language_tags import primary
from tasks.gym.maths.units import KNOWN
from tasks.gym.maths.words import ANY_OR

MOST_WORDS = 9
"""Words before the number, or behind it."""
_OFFERS = {
    "en": "also|possible|possibly|plausible|might|may|could|perhaps|maybe|alternatively|"
    "alternative|another|others?|instead|equally|too|second|option|possibility|"
    "valid|acceptable|accept|argue|either|both|unless|if not|then again|some|"
    "as well|consider|guess|otherwise|depending|unsure|not sure|different|like|or|if",
    "id": "juga|mungkin|bisa|lain|atau|alternatif|barangkali|kemungkinan|selain itu|bisa jadi",
    "ms": "juga|mungkin|boleh|lain|atau|alternatif|barangkali|kemungkinan|selain itu|boleh jadi",
    "th": "ก็|อาจ|หรือ|อื่น|เป็นไปได้|เช่นกัน|ด้วย|บางที|น่าจะ",
    "vi": "cũng|có thể|có lẽ|khác|hoặc|hay|khả năng",
    "pt": "também|possível|possivelmente|pode|poderia|outr[ao]|ou|talvez|alternativa|igualmente",
    "es": "también|posible|posiblemente|puede|podría|otr[ao]|o|quizás?|tal vez|"
    "alternativa|igualmente",
    "fr": "aussi|également|possible|peut|pourrait|autre|ou|peut-être|alternative",
    "de": "auch|ebenfalls|möglich|möglicherweise|kann|könnte|andere|oder|vielleicht|alternative",
    "ja": "も|または|あるいは|かもしれない|かもしれません|可能|別の|他の",
    "ko": "도|또는|혹은|가능|다른",
    "tl": "ring?|ding?|posible|maaari|maaaring|puwede|pwede|iba|ibang|isa pang|o|siguro|baka|"
    "marahil",
    "zh": "也|可能|或|或者|或是|还可以|還可以|另一个|另一個|另外|其他|可以|也许|也許|或许|或許",
}
_OTHERS = {
    "en": "but|however|though|although|yet|and|or|it|it's|is|be|are|was|that|this|the|"
    "an?|answers?|solution|value|result|would|you|i|one|well|works?|correct|right|"
    "true|fine|okay|just|then|there|to|of|people|think|guess|so|still|says?|can|do|"
    "as|good|choice|again|for|my|in|on|if|wrong|gives?|interpretations?|readings?|backup|"
    "sure|wrong",
    "id": "tetapi|tapi|namun|dan|itu|ini|adalah|ialah|jawaban(?:nya)?|nilai(?:nya)?|"
    "hasil(?:nya)?|yang|benar|betul|tepat|jadi|diterima|dapat|sebuah|satu|saja",
    "ms": "tetapi|tapi|namun|dan|itu|ini|adalah|ialah|jawapan(?:nya)?|nilai(?:nya)?|"
    "hasil(?:nya)?|yang|benar|betul|tepat|jadi|diterima|dapat|sebuah|satu|sahaja",
    "th": "แต่|และ|คือ|เป็น|คำตอบ|ค่า|ได้|ถูกต้อง|ถูก|ว่า|จะ|ที่|นี้|นั้น|ครับ|ค่ะ",
    "vi": "nhưng|tuy nhiên|và|là|đáp án|đáp số|câu trả lời|kết quả|giá trị|đúng|được|một|"
    "nó|thì|có|chấp nhận",
    "pt": "mas|porém|e|é|a|o|ser|está|resposta|solução|valor|resultado|correta?|correto|"
    "certa|certo|válida?|válido|uma?|isso|aceitável|seria",
    "es": "pero|y|es|la|el|ser|respuesta|solución|valor|resultado|correct[ao]|válid[ao]|"
    "una?|eso|sería",
    "fr": "mais|et|est|la|le|être|réponse|solution|valeur|résultat|correcte?|juste|une?|"
    "cela|ce|serait",
    "de": "aber|und|ist|die|das|sein|antwort|lösung|wert|ergebnis|richtig|korrekt|eine?|es|wäre",
    "ja": "ただし|しかし|です|である|が|は|の|答え|値|あり得る|あり得ます|ある|あります|と|正解|で",
    "ko": "하지만|그러나|그리고|합니다|입니다|이다|할|수|있습니다|있다|답|정답|값|은|는|이|가|될",
    "tl": "pero|ngunit|at|ay|ang|sagot|tama|ito|iyon|maging|na|ng|pang|pa",
    "zh": "但|但是|不过|不過|和|与|與|是|为|為|答案|结果|結果|值|对|對|正确|正確|的|它|"
    "这|這|成立|有|行|同时|同時",
}
# "9 also satisfies it", of which no word offers.
_SUITS = {
    "en": "satisf(?:y|ies)|fits?|holds?|get|gets|obtain|we|they|conditions?|either",
    "id": "memenuhi|syarat|kita|kami|ada|mendapat",
    "ms": "memenuhi|syarat|kita|kami|ada|mendapat",
    "th": "สอดคล้อง|เป็นไปตาม|ตาม|เงื่อนไข|เรา|กับ",
    "vi": "thoả mãn|thỏa mãn|điều kiện|ta|chúng ta|ra",
    "pt": "satisfaz|serve|atende|condição|condições|se|podemos",
    "tl": "tumutugon|nakakatugon|sumasagot|kondisyon|natin|sa",
    "zh": "满足|滿足|符合|条件|條件|我们|我們",
}
_REJECTS = {
    "en": "rule out|ruled out|exclude|excluded|dismiss|dismissed|wrong|incorrect|impossible",
    "id": "mengesampingkan|dikesampingkan|menyingkirkan|disingkirkan|salah|keliru",
    "ms": "mengetepikan|diketepikan|menyingkirkan|disingkirkan|salah|keliru",
    "th": "ตัด|ทิ้ง|ผิด",
    "vi": "loại trừ|loại bỏ|sai",
    "pt": "descartar|descartad[oa]|excluir|excluíd[oa]|errad[oa]|incorret[oa]",
    "tl": "isantabi|maisasantabi|maalis|mali",
    "zh": "排除|错|錯|错误|錯誤",
}
"""What takes a value back, unless it is denied itself: `we cannot rule out 9`, `nor is 9 wrong`."""
_DENIES = {
    "en": "nor|not|cannot|can't|isn't|aren't|couldn't",
    "id": "tidak|tak|bukan|belum",
    "ms": "tidak|tak|bukan|belum",
    "th": "ไม่",
    "vi": "không|không thể|chẳng|chưa",
    "pt": "não|nem",
    "tl": "hindi|di",
    "zh": "不|无法|無法|不能|没有|沒有",
}
_NUMBER = r"\$?(?:[-+]?[\d.,/]{1,40}\d|\d|\\d?frac\{\d{1,20}\}\{\d{1,20}\})\$?"
_UNITS = "|".join(sorted(map(re.escape, KNOWN), key=len, reverse=True))
_GAP = r"[\s,，、:：*_]{0,3}"
_LABEL = re.compile(r"(?:option|choice)\s*\Z", re.IGNORECASE)
"""Before a number that names an option: `7, so option 2 is right`."""
_DENSE = "\u0e00"
"""From here on scripts have no spaces between words."""


@functools.cache
def _pattern(language: str, in_clauses: bool) -> tuple[re.Pattern[str], ...]:
    """Match an offering sentence, or clause, and words of it that offer, reject and deny."""
    names = sorted({"en", language} & _OFFERS.keys())
    offers, others, suits, rejects, denies = (
        [word for name in names for word in _words(table.get(name, ""))]
        for table in (_OFFERS, _OTHERS, _SUITS, _REJECTS, _DENIES)
    )

    def alternatives(words: list[str]) -> str:
        ordered = sorted(set(words), key=len, reverse=True)
        spaced = "|".join(word for word in ordered if word[0] < _DENSE)
        dense = "|".join(word for word in ordered if word[0] >= _DENSE)
        return rf"(?:(?<![^\W\d_])(?:{spaced})(?![^\W\d_])" + (rf"|{dense})" if dense else ")")

    word = alternatives(offers + others + suits + rejects + denies)
    # Two values as in "x is 5 or 1" are read where a sentence announces them.
    # A clause has words: without a look at them, each number of a long row of numbers is tried.
    behind = rf"(?<=\d)(?=\s+(?:{_NUMBER}\s{{0,2}})?[^\W\d_])(?!\s{ANY_OR})"
    # A point or comma within a number begins nothing; to try each takes seconds.
    clause = rf"|,(?!\d)|[(，（、]|\s[-–—]{{1,2}}(?=\s)|{behind}" if in_clauses else ""
    opens = rf"(?:\A|\.(?!\d)|[;!?。；！？\n…]|(?<=\d)\s(?=[\u0e00-\u0eff]){clause})"
    start = rf"{opens}[\s$}}*_)\]\\]{{0,6}}"
    sentence = (
        rf"{start}(?P<before>(?=(?P<words>(?:{word}{_GAP}){{0,{MOST_WORDS}}}))(?P=words)"
        rf"(?:{_NUMBER}(?:\s{{0,2}}{word}|,(?!\d))\s{{0,2}})?)"
        rf"(?P<value>{_NUMBER}(?:\s?(?:{_UNITS})(?![^\W_]))?)"
        rf"(?=(?P<behind>(?:{_GAP}{word}){{0,{MOST_WORDS}}}))(?P=behind)"
        r"(?=[\s$}*_)）\]\\]{0,6}(?:[.;!?。；！？](?:\s|$|[^\x00-\x7f])|\n|\Z))"
    )
    # "not sure" and "if not" offer
    parts = (
        alternatives(offers),
        alternatives(rejects),
        rf"(?<!if ){alternatives(denies)}(?! sure)",
    )
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in (sentence, *parts))


def _words(table: str) -> list[str]:
    """Split a table at the `|` that no bracket holds."""
    return [word for word in re.split(r"\|(?![^()]*\))", table) if word]


def offered(text: str, start: int, language: str, *, in_clauses: bool = False) -> Iterator[str]:
    """Find the values that sentences behind a place offer beside an answer.

    Args:
        text: the response.
        start: place of the answer.
        language: of the response.
        in_clauses: read clauses, too: `\\boxed{7}, though 16 works`, `7 and also 16`.
    """
    sentence, offer, rejects, denies = _pattern(primary(language), in_clauses)
    for match in sentence.finditer(text, start):
        if _LABEL.search(match["before"]):
            continue
        around = f"{match['before']}0{match['behind']}"
        if denies.search(around):  # nor is 9 wrong
            if rejects.search(around):
                yield match["value"]
        elif offer.search(around) and ("wrong" in match["before"] or not rejects.search(around)):
            yield match["value"]
