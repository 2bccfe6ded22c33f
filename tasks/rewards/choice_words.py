"""Words around an option that withdraw its assertion: not X, X is wrong, maybe X, X or Y.

Covers en, zh, id, ms, pt, th, vi, es, fr, de and it. Patterns run on text folded by `choice`: words
are separated by one space, `|` ends a clause, `?` ends a question, and an apostrophe is a space
(isn't = isn t). Only FILLERS may stand between a negation and the option it negates, so that
"not bags, shoes" and "not electronic, so it is shoes" assert shoes.
"""

import re
import unicodedata

AND_WORDS = [
    "and",
    "dan",
    "e",
    "y",
    "et",
    "und",
    "và",
    "และ",
    "กับ",
    "和",
    "與",
    "与",
    "及",
    "跟",
    "暨",
]
"""Words that may replace `&` in the name of an option."""

_NEGATIONS = (
    "not no never neither nor cannot without except excluding nothing bukan bukanlah tidak tak "
    "tiada jangan selain kecuali não nunca nem exceto jamais ni tampoco excepto salvo jamás pas "
    "non sauf nicht kein keine keinen weder niemals außer né mai tranne không chẳng chả chưa "
    "trừ hindi"
)
_NEGATING_PHRASES = (
    r"\w+n t|rather than|instead of|anything but|other than|far from|en lugar de|en vez de|"
    r"em vez de|au lieu d[eu]?|đâu phải"
)
_FILLERS = (
    "a an the this that it its is are was were be been being s re to of in as by for with i we "
    "you he they think believe say said call choose pick select consider considered mean means "
    "do does did would should could will can must am really actually my our final correct right "
    "true best answer option choice category class label one either any quite at all belong "
    "belongs belonging under into but adalah ialah itu ini yang jawaban jawabannya jawapan "
    "jawapannya pilihan kategori kategorinya termasuk benar tepat betul sebuah suatu merupakan "
    "saya kami kira pikir fikir rasa memilih pilih ke dalam di untuk akan bisa boleh tapi é são "
    "foi seria ser um uma o os de da na no em isso resposta opção categoria correta certa acho "
    "creio penso que eu seja pertence deve mas está estão están estan es son era sería un una "
    "el la los las lo del en eso esto respuesta opción correcta pienso sea debe pero c est le "
    "les une des du d l ce cela réponse bonne correcte je pense crois soit être mais der die "
    "das ein eine einen ist sind antwort richtige aber phải là cái một chiếc câu trả lời đáp án "
    "đúng tôi nghĩ rằng thuộc chọn loại nên được nhưng il uno"
)
_RIGHT = (
    "correct right true valid applicable suitable answer benar tepat betul sesuai jawaban "
    "jawapan correto correta certo certa resposta correcto correcta respuesta bonne réponse "
    "correcte juste richtig antwort đúng đáp corretto corretta it"
)
_WRONG = (
    "wrong incorrect false excluded eliminated rejected salah keliru errado errada errados "
    "erradas incorreto incorreta equivocado incorrecto incorrecta falso falsa faux fausse "
    "incorrecte falsch sai"
)
_HEDGES = (
    "maybe perhaps possibly might may could unsure uncertain either mungkin barangkali talvez "
    "possivelmente quizás quizá posiblemente podría pourrait vielleicht forse"
)
_HEDGING_PHRASES = (
    r"not (?:so )?sure|not certain|don t know|no idea|(?:boleh|bisa) jadi|tidak (?:yakin|tahu)|"
    r"pode ser|não (?:sei|tenho certeza)|tal vez|puede (?:que|ser)|no (?:sé|estoy seguro)|"
    r"peut être|je ne sais pas|có thể|có lẽ|không (?:chắc|biết)|weiß nicht"
)


def _any(words: str) -> str:
    return "|".join(map(re.escape, sorted(set(words.split()), key=len, reverse=True)))


def _folded(pattern: str) -> re.Pattern[str]:
    return re.compile(unicodedata.normalize("NFKC", pattern))


_NOT = rf"(?<!\w)(?:{_any(_NEGATIONS)}|{_NEGATING_PHRASES})"
_FILL = rf"(?: (?:{_any(_FILLERS)})){{0,8}}"
_MAYBE = rf"(?<!\w)(?:{_any(_HEDGES)}|{_HEDGING_PHRASES})"
_NOT_ZH = (
    r"[不非](?:是|會是|会是|屬於|属于|屬|属|選擇?|选择?|應該?|应该?|認為|认为|對|对|可能|為|为|算)+|[並并絕绝]?非|[没沒]有|"
    r"排除了?"
)
_FILL_ZH = (
    r"(?:答案|正確|正确|選項|选项|類別|类别|的|是|選擇?|选择?|属于|屬於|应该?|應該?|為|为|什么|"
    r"什麼|一[种種個个])*"
)
_NOT_TH = r"(?:ไม่|มิ|หา)ใช่|ไม่(?:ได้|เป็น|ควร|น่า|คิดว่า|เลือก|อยู่ใน|ใช่ว่า)+|ยกเว้น|นอกจาก"
_FILL_TH = r"(?:คำตอบ|ที่|ถูกต้อง|คือ|เป็น|หมวดหมู่?|ประเภท|ว่า|จะ|น่า|ใช่|ตัวเลือก|เลือก| )*"
_MAYBE_SPACELESS = (
    r"可能|也許|也许|或許|或许|大概|不確定|不确定|不知道|說不定|说不定|อาจ|ไม่แน่ใจ|บางที|ไม่รู้"
)

DENIED_BEFORE = _folded(
    rf"(?:{_NOT}{_FILL} ?|(?:{_NOT_ZH}) ?{_FILL_ZH} ?|(?:{_NOT_TH}) ?{_FILL_TH})$"
)
"""Applied to the text before an option: the option is denied."""
DENIED_AFTER = _folded(
    rf"{_FILL} (?:(?:{_any(_WRONG)})(?!\w)|(?:{_any(_NEGATIONS)}|{_NEGATING_PHRASES})"
    rf"(?:{_FILL} (?:{_any(_RIGHT)})(?!\w)| ?(?:$|[|?])))|"
    r" ?(?:選項|选项|這個|这个|是|的)*(?:不是(?:正|答|對|对|$| ?[|?])|不[對对正]|[錯错]|被?排除)|"
    r" ?(?:นั้น|เป็น|คือ)*(?:ไม่ใช่(?:คำตอบ|ครับ|ค่ะ|$| )|ไม่ถูก|ไม่ตรง|ผิด)"
)
"""Applied to the text after an option: the option is denied."""
HEDGED_BEFORE = _folded(
    rf"(?:{_MAYBE}{_FILL}(?: ?\|)?{_FILL} ?|(?:{_MAYBE_SPACELESS}) ?(?:{_FILL_ZH} ?|{_FILL_TH}))$"
)
"""Applied to the text before an option: the option is a guess."""
HEDGED_AFTER = _folded(
    rf" ?\?| ?\|? ?(?:{_any(_HEDGES)}|{_HEDGING_PHRASES})(?: ?$| ?[|?])|"
    r" (?:or|atau|ou|o|u|oder|hoặc|hay)(?!\w)| ?(?:หรือ|或|还是|還是)"
)
"""Applied to the text after an option: a question, a guess, or one alternative of several."""
