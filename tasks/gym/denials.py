"""Words around an answer that withdraw it: not X, X is wrong, maybe X, X or Y.

Covers en, zh, id, ms, pt, th, vi, es, fr, de and it: a text is denied by words of its language,
English, Chinese and Thai, whose signs no other text has. Patterns run on text folded by `clauses`:
words are separated by one space, `|` ends a clause, `?` ends a question, and an apostrophe is a
space (isn't = isn t). LaTeX is no word: `\\sin` is not the Spanish "without". Only FILLERS may
stand between a negation and the answer it negates, so that "not bags, shoes" and "not electronic,
so it is shoes" assert shoes.
"""

# ruff: noqa: RUF001 - signs that people type
import functools
import re
import unicodedata
from dataclasses import dataclass

from tasks.algorithms.folding import of_one_width, unified
from tasks.algorithms.language_tags import primary

WINDOW = 120
"""Characters before and after an answer that are searched for a denial."""

_ASCII = {
    code: " " if chr(code).isspace() or chr(code).isprintable() else None
    for code in range(128)
    if not chr(code).isalnum()
}
"""What `fold` does to ASCII signs: a space for each, none for a control character."""
_SIGNS = str.maketrans(dict.fromkeys(".!,;:…。、()\n", " | ") | {"?": " ? ", "&": " & "})
_KEPT = ("|", "?", "&")
_NO_CLAUSE = re.compile(
    r"(?<!\w)((?:(?:is|are|be) |^\s*)not|\w+n't(?: be)?|bukan(?:lah|nya)?|không phải(?: là)?|"
    r"não é|no es|n'est pas|ist nicht|non è)\s*:|(不是|ไม่ใช่)\s*[:：]|\((?=\s*[^()\s]{1,20}\s*\))"
)
"""A sign that separates no clause: the colon of `is not: X`, the bracket of `not (X)`."""

_MALAY = (
    "bukan bukanlah bukannya tidak tidaklah tak takkan tiada jangan janganlah selain kecuali gak "
    "ngga nggak enggak ga kagak ndak nda tanpa mustahil belum belumlah"
)
_NEGATIONS = {
    "en": "not no never neither nor cannot without except excluding hardly unlikely impossible",
    "id": _MALAY,
    "ms": _MALAY,
    "pt": "não nao nunca jamais nem exceto tampouco salvo sem",
    "es": "no nunca jamás ni tampoco excepto salvo sin",
    "fr": "pas non jamais sauf hormis excepté sans ni",
    "de": "nicht kein keine keinen keinem keiner keinesfalls keineswegs weder niemals nie außer "
    "ohne ungleich",
    "it": "non né mai tranne eccetto neanche neppure nemmeno senza",
    "vi": "không chẳng chả chưa trừ khác đừng chớ",
    "tl": "hindi",
}
_CONTRACTED = (
    "is|are|was|were|ca|wo|would|could|should|must|need|might|may|has|have|had|do|does|did|ai|sha|"
    "ought|dare"
)
_DIFFERENT = "berbe[dz]a (?:dari|daripada|dengan)"
_NEGATING_PHRASES = {
    "en": rf"\w+n t|(?:{_CONTRACTED})nt|rather than|instead of|anything but|everything but|"
    r"all but|nothing(?! but| other| else)|(?<!none )other than|far from|fails? to|"
    r"(?:false|untrue|wrong|incorrect) (?:that|to say)|(?<!no )(?<!without )doubt|"
    r"differ\w* (?:from|than|to)|unequal to|"
    "(?<!cannot )(?<!not )(?<!n t )(?:reject|exclude|eliminate|rule out)",
    "id": _DIFFERENT,
    "ms": _DIFFERENT,
    "pt": "em vez de|diferentes? d[aei]|distint[oa]s? d[aei]",
    "es": "en lugar de|en vez de|diferentes? d[aei]|distint[oa]s? d[aei]",
    "fr": "au lieu d[eu]?|différente?s? d[aei]|"
    "ne (?:peut|saurait|pourrait|peuvent) (?:pas )?être(?! que)",
    "de": "(?:verschieden|anders) (?:von|als)",
    "it": "divers[oa] d[aei]",
    "vi": "đâu phải|(?<!khác )ngoài|loại (?:bỏ|trừ)",
    "tl": "(?:mali|di tama) ang",
}
_FILLERS = (
    "a an the this that it its is are was were be been being s re to of in as by for with i we you "
    "he they think believe say said call choose pick select consider considered mean means do does "
    "did would should could will can must am really actually my our final correct right true best "
    "answer option choice category class label one either any quite at all belong belongs "
    "belonging under into but equal equals get got likely possible possibly necessarily going "
    "longer seem seems good value result adalah ialah itu ini yang jawaban jawabannya jawapan "
    "jawapannya pilihan kategori kategorinya termasuk benar tepat betul sebuah suatu merupakan "
    "saya kami kira pikir fikir rasa memilih pilih ke dalam di untuk akan bisa boleh tapi sama "
    "dengan setara bernilai mungkin tentu pasti dari daripada lagi é são foi seria ser um uma o os "
    "de da na no em isso resposta opção categoria correta certa acho creio penso que eu seja "
    "pertence deve mas pode poderia vale igual equivale escolho está estão están estas estos es "
    "son era sería un una el la los las lo del en eso esto respuesta opción correcta pienso sea "
    "debe pero puede podría elijo c est le les une des du d l n ce cela ne peut être égal égale à "
    "vaut fait réponse bonne correcte je pense crois soit mais der die das ein eine einen ist sind "
    "antwort richtige aber lautet gleich kann stimmt phải là cái một chiếc câu trả lời đáp án đúng "
    "đều "
    "tôi nghĩ rằng thuộc chọn loại nên được nhưng thể bằng với hề il uno è era sono sia sarebbe "
    "può essere uguale risposta giusta corretta"
)
_LEADS = (
    " so thus hence therefore then clearly definitely certainly indeed go went letter number ok "
    "okay jadi maka tetapi melainkan huruf "
    "nombor nomor opção opções alternativa portanto então letra logo opción opciones elegimos "
    "entonces escogemos sino donc lettre choix also sondern option möglichkeit buchstabe es "
    "ich wähle wir nehme ta vậy mà nhưng lựa phương scelgo opzione quindi ma opsi alternativa "
    "lettera escolha escolho elijo choisis"
)
"""Further words before an option."""
_RIGHT = (
    "correct right true valid applicable suitable answer fit fits work works one it likely "
    "possible do benar tepat betul sesuai jawaban jawabannya jawapan jawapannya correto correta "
    "certo certa resposta correcto correcta respuesta bonne réponse correcte juste richtig antwort "
    "đúng đáp corretto corretta giusto giusta risposta"
)
_WRONG = {
    "en": "wrong incorrect false excluded eliminated rejected impossible",
    "id": "salah keliru mustahil",
    "ms": "salah keliru mustahil",
    "pt": "errado errada errados erradas incorreto incorreta incorretos incorretas equivocado "
    "falso falsa falsos falsas",
    "es": "equivocado incorrecto incorrecta incorrectos incorrectas falso falsa falsos falsas",
    "fr": "faux fausse fausses incorrecte incorrectes",
    "de": "falsch",
    "it": "sbagliato sbagliata sbagliati sbagliate errato errata errati errate falso falsa falsi",
    "vi": "sai",
}
_WRONG_PHRASES = {
    "en": "ruled out|not as (?:good|likely|suitable|appropriate|accurate|plausible|strong) as|"
    "(?:worse|weaker|less (?:good|likely|suitable|appropriate|accurate|plausible)) than",
    "id": "kurang (?:tepat|benar|betul|sesuai)",
    "ms": "kurang (?:tepat|benar|betul|sesuai)",
    "es": "está(?:n)? mal",
    "de": "stimmt nicht",
}
_HEDGES = (
    "maybe perhaps possibly might may could unsure uncertain either mungkin barangkali talvez "
    "possivelmente quizás quizá posiblemente podría pourrait vielleicht möglicherweise forse"
)
_HEDGING_PHRASES = (
    r"not (?:so )?sure|not certain|don t know|no idea|(?:boleh|bisa) jadi|tidak (?:yakin|tahu)|"
    r"pode ser|não (?:sei|tenho certeza)|tal vez|puede (?:que|ser)|no (?:sé|estoy seguro)|"
    r"(?<!ne )peut être|je ne sais pas|có thể|có lẽ|không (?:chắc|biết)|weiss nicht"
)
_PREDICATES = (
    "correct right true valid possible benar tepat betul correta certa correcta correcte richtig"
)
_COPULAS = "is are was were adalah ialah é são es son est ist là"


def fold(text: str) -> str:
    """Normalise text for comparison: one spelling, NFKC, case folding, no invisible characters.

    Punctuation becomes a space. Combining marks stay, because Thai vowels are among them.
    """
    if text.isascii():
        return " ".join(text.lower().translate(_ASCII).split())
    text = unicodedata.normalize("NFKC", of_one_width(text).casefold())
    text = text.replace("`", "'")
    chars = (
        " " if unicodedata.category(char)[0] in "PSZ" or char.isspace() else char
        for char in text
        if unicodedata.category(char) not in ("Cf", "Cc") or char.isspace()
    )
    return " ".join("".join(chars).split())


def plain(text: str) -> str:
    """Normalise text for a search that still needs its signs: NFKC, case, one apostrophe."""
    if text.isascii():
        return text.lower().replace("`", "'")
    return of_one_width(text).casefold()


def clauses(text: str) -> str:
    """Fold a text but keep `&`; write `|` at the end of a clause and `?` at that of a question."""
    return _signed(text).lstrip("|? ").rstrip("| ")


def _signed(text: str) -> str:
    text = _NO_CLAUSE.sub(r"\1\2 ", plain(text).replace("&amp;", "&"))
    words = text.translate(_SIGNS).split()
    folded = {
        word: word if word in _KEPT or _is_folded(word) else fold(word) for word in set(words)
    }
    return " ".join(" ".join(map(folded.__getitem__, words)).split())


def _is_folded(word: str) -> bool:
    """Say whether a word of a plain text is what `fold` returns: most words are."""
    return word.isascii() and word.isalnum()


def denied_before(text: str, language: str = "en") -> bool:
    """Say whether the words before an answer deny it; "no value works except" states one."""
    last = text[-WINDOW:].rstrip(" \t$*_({[:\"'\\")[-1:]
    if last.isascii() and not last.isalpha():
        return False  # no word stands before the answer
    words = _signed(f"{_COMMAND.sub(' ', text[-WINDOW:])} 0")[:-1]
    match = denials(language).before.search(words)
    if match is None:
        return False
    clause = words[: match.start()].rpartition("|")[2]
    return not (_EXCEPTION.match(match[0]) and _NONE.search(clause))


def denied_after(text: str, language: str = "en") -> bool:
    """Say whether the words after an answer deny it."""
    words = _signed(f"0 {_COMMAND.sub(' ', text[:WINDOW])}")[1:]
    return denials(language).after.match(words) is not None


def _any(words: str) -> str:
    return "|".join(
        re.escape(word.casefold()) for word in sorted(set(words.split()), key=len, reverse=True)
    )


def _folded(pattern: str) -> re.Pattern[str]:
    return re.compile(unicodedata.normalize("NFKC", unified(pattern)))


_FILL = rf"(?: (?:{_any(_FILLERS)})){{0,8}}"
_MAYBE = rf"(?<!\w)(?:{_any(_HEDGES)}|{_HEDGING_PHRASES})"
_NOT_ZH = (
    r"[不非](?:"
    r"是|會是|会是|屬於|属于|屬|属|選擇?|选择?|應該?|应该?|認為|认为|對|对|可能|為|为|算|等於|等于|能|會|会|要|該|该|必|一定|再"
    r")+|"
    r"[並并絕绝決决]?非|[没沒]有|未必|[別别勿]|除了|排除了?"
)
_FILL_ZH = (
    r"(?:"
    r"答案|正確|正确|選項|选项|類別|类别|的|是|選擇?|选择?|属于|屬於|应该?|應該?|為|为|什么|什麼|等於|等于|一[种種個个]"
    r")*"
)
_NOT_TH = (
    r"(?:ไม่|มิ|หา)ใช่|"
    r"ไม่(?:ได้|เป็น|ควร|น่า|คิดว่า|เลือก|อยู่ใน|ใช่ว่า|เท่ากับ|เท่า|มีทาง|อาจ|สามารถ|จะ|มี|จัด)+|"
    r"ยกเว้น|นอกจาก|ต่างจาก|ห้าม"
)
_FILL_TH = r"(?:คำตอบ|ที่|ถูกต้อง|คือ|เป็น|หมวดหมู่?|ประเภท|ว่า|จะ|น่า|ใช่|ตัวเลือก|เลือก|เท่ากับ| )*"
_MAYBE_SPACELESS = (
    r"可能|也許|也许|或許|或许|大概|不確定|不确定|不知道|說不定|说不定|อาจ|ไม่แน่ใจ|บางที|ไม่รู้"
)

_PREDICATE = rf"{_FILL} (?:{_any(_PREDICATES)}) (?:{_any(_COPULAS)}) ?$"
_COMMAND = re.compile(r"\\[A-Za-z]+")
"""Is no word."""
_EXCEPTION = re.compile(
    r"(?:except|excluding|without|other than|excepto|exceto|salvo|sauf|hormis|tranne|eccetto|außer|"
    r"kecuali|selain|trừ|ngoài|khác|than|but)(?!\w)|除了|ยกเว้น|นอกจาก"
)
_NONE = re.compile(
    r"(?<!\w)(?:no|none|not|nothing|nobody|never|cannot|\w+n t|tidak|không|no hay|ningún|nenhum\w*|"
    r"aucun\w*|kein\w*|nessun\w*)(?!\w)|[没沒]有|[无無不]|ไม่"
)
"""Before an exception in its clause: "no value works except" states one."""

LEAD = (
    rf"(?:(?:{_any(_FILLERS + _LEADS)}) |"
    r"(?:選項|选项|選擇?|选择?|答案|应该?|應該?|我|是|就|而|所以) ?|"
    r"(?:ข้อ|ตอบ|ตัวเลือก|เลือก|คำตอบ|แต่|คือ|เป็น|ดังนั้น|จึง|ขอ) ?){0,8}"
)
"""Source of a pattern: the words before an option in a clause that names it."""
DENIED_WITH = _folded(
    r" (?:\| )?(?:or|nor|atau|ataupun|ou|nem|o|ni|oder|noch|hoặc|hay|né) $|"
    r" ?(?:หรือ|或|或者|还是|還是) ?$"
)
"""Applied to the text between two options: the second is denied if the first is."""
OR_BEFORE = _folded(r"(?<!\w)(?:or|atau|ou|oder|hoặc) $|(?:หรือ|或|或者|还是|還是) ?$")
"""Applied to the text before an answer: one alternative of several."""


@dataclass(frozen=True, slots=True)
class Denials:
    """Words that deny an answer."""

    before: re.Pattern[str]
    """Applied to the text before it; in "what is not true is X" it is not denied."""
    after: re.Pattern[str]
    """Applied to the text after it."""


@functools.cache
def denials(language: str) -> Denials:
    """Return the denials of a language and English; '': of every language."""
    own = ("en", primary(language)) if language else _NEGATIONS
    languages = dict.fromkeys(own)
    negations = _any(" ".join(_NEGATIONS.get(one, "") for one in languages))
    negations += "".join(
        f"|{_NEGATING_PHRASES[one]}" for one in languages if one in _NEGATING_PHRASES
    )
    wrong = _any(" ".join(_WRONG.get(one, "") for one in languages))
    wrong += "".join(f"|{_WRONG_PHRASES[one]}" for one in languages if one in _WRONG_PHRASES)
    before = (
        rf"(?<!\w)(?:{negations})(?!{_PREDICATE}){_FILL} ?",
        rf"(?:{_NOT_ZH}) ?{_FILL_ZH} ?",
        rf"(?:{_NOT_TH}) ?{_FILL_TH}",
    )
    after = (
        rf"{_FILL} "
        rf"(?:(?:{wrong})(?!\w)|(?:{negations})(?:{_FILL} (?:{_any(_RIGHT)})(?!\w)| ?(?:$|[|?])))"
        r"|"
        r"(?: \|)+ (?:no|nope|não|nein)(?: ?$| ?\|)|"
        r" ?(?:では(?:ありません|ない)|じゃない|[이가] ?(?:아닙니다|아니다))|"
        r" ?(?:選項|选项|這個|这个|是|的|也|都|均|皆)*"
        r"(?:不是(?:正|答|對|对|$| ?[|?])|不[對对正]|不符|[錯错]|被?排除)|"
        r" ?(?:นั้น|เป็น|คือ)*(?:ไม่ใช่(?:คำตอบ|ครับ|ค่ะ|$| (?!\(?[a-h]\)?(?![a-z])))|ไม่ถูก|ไม่ตรง|ผิด)"
    )
    return Denials(_folded(rf"(?:{'|'.join(before)})$"), _folded(after))


EVERY_LANGUAGE = denials("")
"""For answers that may be in any language."""


HEDGED_BEFORE = _folded(
    rf"(?:{_MAYBE}{_FILL}(?: ?\|)?{_FILL} ?|(?:{_MAYBE_SPACELESS}) ?(?:{_FILL_ZH} ?|{_FILL_TH}))$"
)
"""Applied to the text before an answer: the answer is a guess."""
HEDGED_AFTER = _folded(
    rf" ?\?| ?\|? ?(?:{_any(_HEDGES)}|{_HEDGING_PHRASES})(?: ?$| ?[|?])|"
    r" ?\|? (?:or|atau|ou|o|u|oder|hoặc|hay)(?!\w)| ?(?:หรือ|或|还是|還是)"
)
"""Applied to the text after an answer: a question, a guess, or one alternative of several."""
