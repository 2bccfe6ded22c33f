"""Words around numbers that change what is stated, in the languages of the problems.

English, Indonesian, Malay, Vietnamese, Thai, Chinese, Spanish, French, Portuguese, German.
"""

# ruff: noqa: RUF001 - signs that people type
import re

from tasks.gym.maths.units import KNOWN

_NOT = (
    r"anything but|other than|except|apart from|not|never|neither|nor|cannot|bukan|bukanlah|"
    r"tidak|tak|không phải|không|chẳng|nunca|no es|n'est pas|pas|jamais|não|nicht|kein|keine|"
    r"ไม่|ไม่ใช่|มิใช่|不|没|沒|非|ではありません|ではない|じゃない|아닙니다|아니다"
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
    "mehr|weniger|mindestens|höchstens|größer|kleiner|มากกว่า|น้อยกว่า|อย่างน้อย|ไม่เกิน|ต่ำกว่า|สูงกว่า|เกินกว่า|大于|大於|"
    "小于|小於|至少|至多|超过|超過|不到|多于|多於|少于|少於|低于|低於|高于|高於|不足|"
    "higit sa|mahigit|kulang sa|mas mababa sa|mas malaki sa|hindi bababa sa|"
    "hindi lalampas sa|hindi hihigit sa"
)
_UNSURE = (
    "maybe|perhaps|possibly|might be|may be|could be|mungkin|barangkali|boleh jadi|bisa jadi|"
    "có thể|có lẽ|quizás|quizá|tal vez|puede ser|peut-être|peut être|talvez|possivelmente|"
    "pode ser|vielleicht|möglicherweise|อาจ|บางที|น่าจะ|也许|也許|或许|或許|可能|大概"
)
_WRONG = (
    "❌|✗|✘|wrong|incorrect|false|salah|keliru|sai|incorrecto|incorrecta|incorreto|incorreta|errado|"
    "errada|faux|falso|falsa|falsch|está mal|ผิด|错|錯"
)
_BETWEEN = "between|from|either|antara|dari|giữa|từ|entre|desde|zwischen|von|ระหว่าง|จาก|介于"
_TO = "to|through|sampai|hingga|đến|a|à|até|bis|ถึง|到|至|–|—|~"
_AND = "and|dan|và|y|et|e|und|และ|和|&"
_BEYOND = (
    "以上|以下|以内|以內|以外|trở lên|trở xuống|ขึ้นไป|ลงมา|o higit pa|pataas|"
    "at most|at least|at the most|at the least|at the very least|at the very most"
)
"""After a number: it is a bound."""
# "than or equal to", "ou igual a", "或等于".
_OR_EQUAL = (
    r"(?:\s*(?:than|que|als|dari|daripada))?\s*(?:or|ou|o|oder|atau|hoặc|หรือ|或)?\s*"
    r"(?:equal|égale?|igual|gleich|sama|bằng|เท่ากับ|等于|等於)(?:\s*(?:to|à|a|que|dengan))?"
)
_TURNS = (
    "alternatively|or else|maybe|perhaps|no|nope|wait|actually|rather|sorry|correction|i mean|"
    "bukan|tidak|mungkin|maaf|eh|không|à không|có lẽ|ไม่|ไม่ใช่|不|不对|不對|不是|而是|não|aliás|"
    "talvez|digo|quizás|non|plutôt|peut-être|nein|vielmehr|vielleicht|on second thought|just "
    "kidding|"
    "scratch that|oops|hold on|make that|i meant|hmm"
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


# "isn't", also with the other apostrophes that people type.
_CONTRACTED = r"\w+n['’‘ʼ´`]t(?!\w)"
JOINT = rf"(?:,?\s{{0,3}}{_pattern(_OR, _SHORT_OR, _TO, _AND)}\s{{0,3}})"
"""Source of a pattern: words between two numbers that are alternatives, a range or a list."""
_RESTATED = "that's|that|this|should|must|comes|c'est|cela|das|eso|isso"
ANY_OR = _pattern(_OR, _SHORT_OR)
TURN = (
    rf"(?:{_pattern(_ALTERNATIVE, _SHORT_OR, _TURNS)}[\s,:，：、]{{0,3}}){{1,3}}"
    rf"(?:{_pattern(_FILLERS, _RESTATED)}\s{{0,3}}){{0,4}}"
)
"""Source of a pattern: begins a sentence that replaces an answer, or adds one: `No, it is 6.`"""
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
    rf"\s*(?:[^\s\d.,;:!?，。]{{1,12}}?\s?)?{_pattern(_BEYOND)}|"
    r"\s*(?:(?:and|dan|y|et|e|und)\s+(?:(?:an?|one|two|three|five|une?|um|ein)\s+)?"
    r"(?:half|quarters?|thirds?|fifths?|eighths?|setengah|medi[oa]|demie?|mei[oa]|halb)|einhalb|setengah|rưỡi|ครึ่ง|半)(?!\w)"
)
"""After a number: the number continues, as in `27 and a half`, or is a bound."""
ALTERNATIVE_FOLLOWS = _compiled(
    rf"\s*(?:[^\W\d_]+\s+){{0,2}}?[$,(]?\s*(?:{_pattern(_ALTERNATIVE)}(?!\s+so(?!\w))|{_pattern(_UNSURE)})|"
    r"[^\w.!;]{0,9}\?"
)
"""After a number: it is one of several, a guess or a question."""
COMPARED_LAST = _compiled(
    rf"(?:{_pattern(_COMPARED, _UNSURE)}(?:\s*{_pattern(_FILLERS)}|{_OR_EQUAL})?|"
    r"[<>]=?|[≠≤≥])[\s$:]*$"
)
"""Before a number: it is a bound."""
MINUS = _compiled(
    r"(?<!\w)(?:minus|negative|menos|moins|negatif|negativo|âm|trừ)\s+(?=[\d.$\\])|(?:ลบ|负|負)\s*(?=\d)"
)

ALTERED_BEFORE = _compiled(
    r"(?<!\w)(?:❌|✗|✘|twice|thrice|double|triple|half(?:\s+of)?|(?:third|quarter|fifth|tenth|square|cube|"
    r"root|reciprocal|inverse|opposite|negative|factorial|sum|product|difference|quotient|ratio|"
    r"remainder|digits?|divisors?|multiple|successor|predecessor|logarithm|vicinity|north|south|"
    r"short|shy|per\s?cent|%)\s+of|(?:more|less|fewer|greater|smaller|larger|other|rather|lower|higher)"
    r"\s+than|(?:plus|minus|times|over|under|near|close\s+to|except|but|below|above|within|"
    r"outside|between|beyond|against|versus|vs|aka|alias|upwards\s+of|modulo|mod|by|digit|any|all|"
    r"(?:complement|order|gap|logarithm|log|power|base|double|shade)\s+(?:of|to)|far\s+from|prime\s+after)"
    r"(?:\s+(?:of|one|all|any|integers?|numbers?))*|(?:start|beginn|end)ing\s+(?:at|with|from|in))\s*[$(]*$"
)
"""Before a number: `twice 12`, `the reciprocal of 7`, `one more than 3`: another value."""
ALTERED_AFTER = _compiled(
    r"\s*\$?\s*(?:"
    r"(?:"
    r"plus|minus|squared|cubed|halved|doubled|tripled|quadrupled|modulo|mod|factorial|aka|alias|"
    r"versus|vs|against|unless|respectively|divided|multiplied|increased|decreased|reduced|"
    r"raised|times(?=\s+(?:\w+self|\d|one|two|three|four|five|six|seven|eight|nine|ten))|if|"
    r"otherwise"
    r")(?!\w)|"
    r"กว่า|[个個]?(?:多(?![少项項边邊面数數])|[几幾])|ke\s+(?:atas|bawah)(?!\w)|lebih(?!\s+\w)|e\s+(?:um\s+)?pouco|y\s+pico|something(?!\w)|odd(?!\s+\w)|"
    r"a\.k\.a|(?:per\s?cent|\\?%)\s+(?:of(?!\s+(?:the|all|his|her|their|its|our|my|these|them)(?!\w))|"
    r"off|more|less)(?!\w)|to\s+the\s+(?:\w+\s+)?power|"
    r"in\s+base|as\s+opposed|with\s+(?:a\s+)?probability|"
    r"(?:on|at)\s+(?:some|(?:the\s+)?(?:earliest|latest|most|least))(?!\w)|choose\s+\d|"
    r"and\s+(?:counting|up|more|above|beyond|below|over|older|higher|change|some|something|then\s+some|a\s+(?:bit|little|fraction))(?!\w)|"
    r"dozen\s+and|is\s+what|said|point\s+\w+|"
    r"(?:"
    r"written|spelled|backwards|reversed|twice|thrice|apart|though|although|"
    r"only\s+(?:if|for|when|in)"
    r")(?!\w)|"
    r"in\s+(?:hexadecimal|binary|octal|reverse)|too\s+(?:many|few|much|little)|"
    r"less\s+(?:\d|one|two|three|four|five)|"
    r"(?:more|less|fewer|larger|smaller|higher|lower)\s+than|at\s+(?:best|worst)|but\s+not|"
    r",\s*(?:though|although|but\s+not)|-?ish(?!\w)|,\s*(?:said|unless|if|give\s+or\s+take)|"
    r"(?:halves|(?:third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|hundredth|thousandth)s)(?!\w)|"
    r"(?:by|in|of|per)\s+\$?\d{1,3}(?!\d)[^\w,]*$|h\s?\d\d?(?!\d)|_\d{3}(?!\d)|"
    r"(?:or|up)\s+(?:so|more|less)|\w+\s+or\s+so|(?:upwards|onwards)|fails?(?!\w)|"
    r"\S*,\s*which\s+(?:contradicts|is\s+(?:wrong|false|impossible))"
    r")"
)
"""After a number: `5 squared`, `7 per cent of 9`, `5 aka 9`, `5h 30m`, `1_000`, `5 unless ...`."""
LEAD_WORDS = _compiled(
    r"(?:[-\s:*_($\\=,\[\]{}'\"]|approx\.|(?:exactly|simply|just|only|precisely|approximately|about|roughly|"
    r"around|"
    r"nearly|almost|equal|equals|equivalent|to|be|is|are|an?|the|therefore|thus|hence|then|so|indeed|"
    r"actually|also|clearly|obviously|therefore|value|amount|total|number|result|figure|quantity|"
    r"currently|found|given|by|that|it|we|get|have|XXD|USD|RM|Rp|still|now|text|mathrm|mathbf|left|"
    r"displaystyle|quad|angle|in|of|course|rather|but|instead|and|one|two|three|four|five|six|seven|"
    r"eight|nine|ten|eleven|twelve|[a-z]+teen|[a-z]+ty|hundred|thousand|[a-zA-Z])(?![a-zA-Z]))*"
)
"""Between the words that announce an answer and its number, in English: `exactly`, `a total of`."""
# "apples", "people", "percent"; not "minus", "is".
_NOUNS = (
    r"(?!(?:minus|plus|times|less|versus|is|was|as|perhaps|unless|besides|this|its|his|has|does)(?!\w))"
    r"(?:[a-z]+s|people|children|men|women|feet|sheep|fish|mice|geese|per\s?cent|\w*teeth|dozen|hundred|"
    r"thousand|million|billion|trillion|money|water|milk|juice|time|food|candy|fruit|gallon|dong|baht|ringgit|"
    r"rupiah|yuan|won|yen|real|reais|each|mph|km/h|apiece)(?!\w)"
)
_UNITS = "|".join(sorted(map(re.escape, KNOWN), key=len, reverse=True))
FOLLOWS = _compiled(
    r"\s*\(|\s*/\s*[a-z]|\s*\$?\s*(?:\^\s?\{?\s?|\.)?\\[a-z]|[^A-Za-z]*[A-Za-z](?![A-Za-z])|"
    rf"[^A-Za-z]*(?:$|(?:{_UNITS})(?![a-z])|(?:[a-z]+[\s-]+){{0,2}}{_NOUNS}|(?:because|since|as|which|"
    r"so|per|total|altogether|overall|in\s+(?:all|total|the|each|this|his|her|their)|left|more|of|to|or|"
    r"and|than|when|where|by|from|after|on|at\s+the|is|was|are|were|not|i|we|she|he|they|it|the|this|"
    r"that|thus|hence|therefore|also|please|hope|let|thank\w*|respectively|remaining|extra|additional|"
    r"old|long|wide|tall|high|deep|away|square|cubic|sq|different|possible|such|year|month|week|day|pi|"
    r"sqrt)(?![a-z]))"
)
"""After a number that a sentence states, in English: nothing, a unit, or words that go on."""
UNCOMMITTED = _compiled(
    r"(?<!\w)(?:"
    r"if|suppose|supposing|assum\w+|imagine|pretend|tempted|doubt(?!less)|whether|nobody|wish|"
    r"contrary|nothing\s+to|"
    r"(?:some|many|most|others|people|they|he|she|friend\w*|everyone)\s+(?:\w+\s+)?"
    r"(?:says?|thinks?|claims?|believes?|insists?|swears?)|"
    r"no\s+one|might|could|would|told|mistak\w+|refuses?|hypothes\w+|"
    r"(?:claim|idea|notion|assumption|belief|guess|suggestion)\s+that|had\s+\w+|no\s+way"
    r")(?!\w)(?<!no\sdoubt)|"
    r"(?<!\w)(?:"
    r"(?:is|was|are|be|seems?)\s+(?:\w+\s+)?(?:"
    r"false|wrong|incorrect|untrue|impossible|unclear|unlikely|unknown|doubtful|dubious|"
    r"questionable"
    r")|"
    r"not|never|cannot|\w+n['’]t|neither|nor|is\s+it|does\s+it"
    r")(?!\w)[^.;!?\n]{0,60}?(?:that|whether|if|to\s+say)\s*"
    r"(?:(?:the|our|my|its|final|correct|right)\s+)*$"
)
"""Before the words that announce an answer, in their clause: nothing is claimed."""
POLITE = _compiled(
    r"[\W_]*(?:i\s+(?:really\s+)?hope|hope\s+(?:this|that|it)|(?:please\s+)?(?:let\s+me\s+know|feel\s+free)|"
    r"(?:just\s+)?ask\s+(?:me\s+)?if|if\s+you\s+(?:have|need|want|would)|thank(?:s|\s+you)|you['’]re\s+welcome|"
    r"have\s+a\s+(?:great|nice|good|lovely)|good\s+luck|best\s+(?:of\s+luck|regards|wishes)|happy\s+to\s+help|"
    r"glad\s+(?:to|i)|is\s+there\s+anything|this\s+(?:concludes|completes)|q\.?e\.?d|∎|■|semoga|terima\s+kasih|"
    r"hy\s+vọng|chúc|cảm\s+ơn|espero|gracias|j['’]espère|merci|obrigad[oa]|ich\s+hoffe|viel\s+erfolg|"
    r"spero|grazie|หวังว่า|ขอบคุณ|希望|祝你|谢谢|謝謝|如果你?您?(?:还|有|需))"
)
"""Begins a closing line that states nothing: `I hope this helps!`"""
COUNTERFACTUAL = _compiled(
    r"(?:^|[.;!?\n])\s*had\s+(?:we|i|it|he|she|they|you|one|the)(?!\w)[^.;!?\n]*$"
)
"""Before the words that announce an answer, in their sentence: `Had we added, the answer is 12`."""
NO_ANSWER = _compiled(
    r"(?<!\w)(?:impossible|cannot|can['’]t|unable|insufficient|unknown|undetermined|undefined|"
    r"not\s+(?:enough|known|possible|clear)|no\s+(?:way|solution|answer)|don['’]t\s+know|"
    r"mistaken?|nobody|no\s+one|wrong|ruled\s+out|answering|guess\w*|class\s+got|see\s+\w+\s+\d|"
    r"(?:the|an?|this|my|final)\s+answer)(?!\w)"
)
"""In a last sentence without a mark: it states no answer (`It is impossible to find f(0)`)."""
