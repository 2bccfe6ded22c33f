"""Score whether the response picks the right option, in any of twelve languages.

Gold: {"correct": [aliases], "others": [[aliases of a competing option], ...]}.
Markers of a final answer are built by a grammar: noun x verb x language, in both orders ("the
best choice is B", "B is the correct answer", 故选B, 【答案】B, JSON). The last marker counts, all
markers must agree, and nothing before them is an assertion but an option that the text begins
with, so that a second answer cannot repair a wrong first one. Without a marker the whole text
counts. An option that is denied ("not X", "X is wrong") is not asserted. A right option of one
letter counts at the beginning of a clause, after words like "I choose option"; the clauses before
may only deny other options. The right option must not be denied anywhere and must not be a guess
("maybe X", "X or something else").
"""

# ruff: noqa: RUF001 - other scripts
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice, pairwise
from string import ascii_lowercase, punctuation, whitespace
from typing import Annotated

from pydantic import AfterValidator, Field

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, abstain, response_fault, scored
from tasks.algorithms.folding import unified
from tasks.algorithms.language_tags import primary
from tasks.gym.denials import (
    DENIED_WITH,
    EVERY_LANGUAGE,
    HEDGED_AFTER,
    HEDGED_BEFORE,
    LEAD,
    OR_BEFORE,
    WINDOW,
    clauses,
    fold,
    plain,
)
from tasks.gym.json_answer import without_container
from tasks.gym.protocol import Gold, verify_answer

MAX_MARKERS = 50
"""The last so many announcements are read."""
MAX_CLAUSES = 1000
"""Clauses of an explanation; a longer text is read as an answer in whole, which is stricter."""
MAX_MENTIONS = 500
"""Mentions of options; a response with more counts as flooded."""


@dataclass(frozen=True, slots=True)
class _Language:
    """How a language announces an option; sources of patterns, on text of `plain`."""

    answer: str
    """A noun that announces by itself: `the answer is`."""
    option: str
    """A noun that announces with an adjective: `the best option is`."""
    good: str
    """The adjectives, before or after the noun."""
    verb: str
    is_good: str
    """After the option: `is the correct answer`."""
    fill: str = "(?!)"
    """Other words beside the nouns."""
    choose: str = "(?!)"
    """Announces without a noun: `I choose`."""
    owner: str = "(?!)"
    """Before the second noun, in place of an adjective: `my choice is`."""

    def announces(self) -> str:
        """Return the pattern of what stands before an option."""
        good, fill, space = (rf"(?:{part})" for part in (self.good, self.fill, r"[\s,*_]*"))
        beside = rf"(?:{space}(?:{good}|{fill}))*"
        subject = (
            rf"(?:{self.answer}){beside}|(?:{good}|(?<!\w)(?:{self.owner})){space}(?:{self.option})"
            rf"{beside}|(?:{self.option})(?:{space}{fill})*{space}{good}{beside}"
        )
        return rf"(?:(?:{subject})[\s*_]*(?:{self.verb})|{self.choose})"


_LETTER = r"(?=[\s(*_]{0,4}[a-z](?!\w))"
_LANGUAGES = (
    _Language(  # English
        answer=r"(?<!\w)(?:answer|(?<!of )(?<!of a )(?<!of the )(?<!in )(?<!in the )solution)"
        r"(?!\w)",
        option=r"(?<!\w)(?:option|choice|one|letter|selection)(?!\w)",
        good="correct|right|true|best|suitable|appropriate|likely|accurate|fitting|final",
        owner="my|our|the(?= choice)",
        fill=r"to this question|here|therefore|thus|then|clearly|most|is|and",
        verb=r"is(?!\w|')|must be|should be|would be|will be|:|=",
        is_good=r"(?:(?<!\w)(?:is|must be|would be)|'s) (?:the )?"
        r"(?:only |single |most |clearly |therefore |thus )*(?:"
        r"(?:correct|right|best|true|suitable|appropriate|accurate|likely)"
        r"(?: one| answer| option| choice)?(?! (?:if|when|in the sense|that))|"
        r"answer"
        r")(?![\w'])|"
        r"(?<!\w)fits best(?!\w)|"
        r"(?<=[\w)*}]) the (?:only )?(?:right|correct|best) (?:answer|option|choice|one)"
        r"(?!\w)(?! (?:if|when))",
        choose=r"(?<!\w)choice:|"
        r"(?<!\w)(?:i|we)(?:'ll|'d| will| would| therefore| thus)* "
        r"(?:choose|select|pick|opt for|go with)(?: the)?"
        r"(?: option| choice| answer| letter)?(?= )|"
        r"(?:\A|(?<=\n)|(?<=[.:,] ))(?:choose|select|pick)(?: option| answer)?"
        r"(?=\W{1,4}[a-z] ?[|).*_,!])",
    ),
    _Language(  # Indonesian and Malay
        answer=r"(?<!\w)jawa[bp]an(?:nya)?(?!\w)",
        option=r"(?<!\w)(?:pilihan|opsi)(?:nya)?(?!\w)",
        good="(?:yang )?(?:paling )?(?:benar|tepat|betul|sesuai)|terbaik",
        fill="akhir",
        verb=rf"adalah|ialah|:|(?<=nya){_LETTER}",
        is_good=r"(?<!\w)(?:"
        r"(?:adalah|ialah|merupakan) (?:jawa[bp]an|pilihan|opsi)(?: yang)?(?: paling)?"
        r"(?: benar| tepat| betul| terbaik)?|"
        r"(?:adalah |ialah )?(?:yang )?(?:paling )?(?:benar|tepat|betul)"
        r")(?!\w)(?! (?:jika|kalau|bila))",
        choose=r"(?<!\w)(?:saya|kami|kita)(?: akan)? (?:memilih|pilih)"
        r"(?: opsi| pilihan| jawa[bp]an)?",
    ),
    _Language(  # Portuguese
        answer=r"(?<!\w)(?:a )?(?:resposta|gabarito)(?!\w)",
        option=r"(?<!\w)(?:opção|alternativa|escolha|letra)(?!\w)",
        good=r"cert[ao]|corret[ao]|adequad[ao]|melhor",
        fill="a|final|mais",
        verb=r"é(?!\w)|:",
        is_good=r"(?<!\w)(?:é|está) (?:a )?(?:única )?(?:melhor )?"
        r"(?:resposta|opção|alternativa|corret[ao]|cert[ao])(?!\w)(?! (?:se|quando))",
        choose=r"(?<!\w)(?:eu )?(?:escolho|seleciono|escolhemos|marco)(?: a)?"
        r"(?: opção| alternativa| letra)?",
    ),
    _Language(  # Spanish
        answer=r"(?<!\w)respuesta(?!\w)",
        option=r"(?<!\w)(?:opción|alternativa|elección|letra)(?!\w)",
        good="correcta|adecuada|mejor|verdadera",
        fill="la|el|final|más",
        verb=r"es(?!\w)|:",
        is_good=r"(?<!\w)(?:es|está) (?:la )?(?:única )?(?:mejor )?"
        r"(?:respuesta|opción|alternativa|correct[ao]|adecuada)(?!\w)(?! (?:si|cuando))",
        choose=r"(?<!\w)(?:yo )?(?:elijo|escojo|selecciono|elegimos|escogemos)(?: la)?"
        r"(?: opción| letra)?",
    ),
    _Language(  # French
        answer=r"(?<!\w)réponse(?!\w)",
        option=r"(?<!\w)(?:option|choix)(?!\w)",
        good="correcte?|bon(?:ne)?|meilleure?|juste",
        fill="la|le|finale",
        verb=r"est(?!\w)|:",
        is_good=r"(?<!\w)est (?:la |le |l')?(?:seule )?(?:bonne |meilleure )?"
        r"(?:réponse|option|correcte?|juste)(?!\w)(?! (?:si|quand))",
        choose=r"(?<!\w)(?:je|nous) (?:choisis|choisissons|sélectionne|retiens)"
        r"(?: la réponse| l'option)?",
    ),
    _Language(  # German
        answer=r"(?<!\w)antwort(?!\w)",
        option=r"(?<!\w)(?:option|wahl|auswahl|möglichkeit)(?!\w)",
        good="richtige|korrekte|beste|passende",
        fill="die|endgültige|finale",
        verb=r"ist(?!\w)|lautet|:",
        is_good=r"(?<!\w)(?:ist )?(?:die )?(?:richtige |korrekte |beste )(?:antwort|option|wahl)"
        r"(?!\w)|"
        r"(?<!\w)ist (?:die antwort|richtig|korrekt)(?!\w)(?! (?:wenn|falls))",
        choose=r"(?<!\w)(?:ich|wir) (?:wähle|wählen|nehme|nehmen)(?: die)?(?: option| antwort)?",
    ),
    _Language(  # Italian
        answer=r"(?<!\w)risposta(?!\w)",
        option=r"(?<!\w)(?:opzione|scelta|alternativa)(?!\w)",
        good="giusta|corretta|esatta|migliore",
        fill="la|finale",
        verb=r"è(?!\w)|:",
        is_good=r"(?<!\w)è (?:la |l')?(?:unica )?(?:migliore )?"
        r"(?:risposta|opzione|scelta|corretta|giusta|esatta)(?!\w)(?! (?:se|quando))",
        choose=r"(?<!\w)(?:io )?(?:scelgo|seleziono|scegliamo)(?: la)?"
        r"(?: l'opzione| risposta| opzione)?",
    ),
    _Language(  # Vietnamese
        answer=r"(?<!\w)(?:đáp án|câu trả lời)(?!\w)",
        option=r"(?<!\w)(?:lựa chọn|phương án)(?!\w)",
        good="đúng|chính xác|phù hợp|tốt nhất",
        fill="cuối cùng|nhất",
        verb=r"là(?!\w)|:",
        is_good=r"(?<!\w)là (?:"
        r"(?:đáp án|câu trả lời|lựa chọn|phương án)(?: đúng| chính xác| tốt nhất)*|đúng|"
        r"chính xác"
        r")(?!\w)(?! (?:nếu|khi))",
        choose=rf"(?<!\w)(?<!lựa )(?<!không )(?:chọn)(?: đáp án| phương án| câu)?{_LETTER}",
    ),
    _Language(  # Thai
        answer="(?:คำตอบ|เฉลย|ข้อ(?=ที่))",
        option="(?:ตัวเลือก|ข้อ)",
        good="(?:ที่)?(?:ถูกต้อง|ถูก|ดี)(?:ที่สุด)?",
        fill="สุดท้าย|ของข้อนี้",
        verb="คือ|:",
        is_good="(?:คือ|เป็น)คำตอบ(?:ที่ถูก(?:ต้อง)?)?|(?<=[a-z)*_]) ?(?:เป็นข้อที่)?ถูกต้อง(?:ที่สุด)?",
        choose=rf"(?:ฉัน|ผม|เรา|ดิฉัน)?(?:ขอ)?(?<!ตัว)(?<!ไม่)(?:เลือก|ตอบ|เฉลย)(?:ข้อ|ตัวเลือก)?{_LETTER}",
    ),
    _Language(  # Filipino
        answer=r"(?<!\w)(?:sagot|kasagutan)(?!\w)",
        option=r"(?<!\w)(?:opsyon|pagpipilian|letra)(?!\w)",
        good="tama(?:ng)?|wasto(?:ng)?|pinakaangkop|pinakamainam",
        fill="ang|na|ay",
        verb=r"ay(?!\w)|:",
        is_good=r"(?<!\w)ang (?:tama(?:ng)?|wasto(?:ng)?)(?: na)? (?:sagot|kasagutan|opsyon)(?!\w)",
        choose=r"(?<!\w)(?:pinipili|pipiliin) (?:ko|namin)(?: ang)?(?: letra| opsyon)?",
    ),
    _Language(  # Chinese
        answer="答案",
        option="[選选](?:[項项]|[擇择])|(?<=正[确確])的(?=是|為|为|:)",
        good="正[確确]|最[終终佳好]|最合[適适]|最[優优]|的",
        verb=r"(?:應該?|应该?|应当|就)?(?:是|為|为|:|選擇?|选择?)(?:[選选][項项])?",
        is_good="(?:[項项]|[選选][項项])?(?:(?:是|為|为)?(?:唯一)?正[確确]的?|是最(?:合[適适]|[適适]合|好|佳|恰[當当]|"
        "優|优)的)(?:[選选][項项]|答案)?(?!的?[嗎吗])",
    ),
)
_PHRASES = (
    r"####|\\boxed",
    r"【(?:正[確确])?答案】",  # 【答案】B
    r"(?<![不未非没沒])(?:故答案[為为]?:?|故|因此|所以|应该?|應該?|本[題题]|只能|可)"  # 故选:B
    r"(?:應|应)?[選选]择?擇?:?",
    r"(?<![不未非没沒能])[選选][择擇]?:?(?= ?[(（*_]{0,3}[a-z](?![a-z]))",  # 选B
)
_KEY = (
    r"[\"'](?:final[_ ])?(?:answer|choice|option|selection|答案|選項|选项|选择|jawaban|jawapan|"
    r"respuesta|réponse|resposta|antwort|risposta|đáp án|คำตอบ)[\"']\s*:"
)
"""The key in front of the answer: `{"answer": "B"}`."""


def _folded(*patterns: str) -> re.Pattern[str]:
    return re.compile(unicodedata.normalize("NFKC", unified("|".join(patterns))))


_ANNOUNCES = "|".join((*_PHRASES, *(language.announces() for language in _LANGUAGES)))
# How announcements begin. Tried at every place of a text, and the branches of all languages only
# where it matches: `re` passes over an alternative that begins with another letter at once.
_BEGINS_MARKER = (
    r"####|\\box|a(?:ccu|dec|deq|lte|nsw|ntw|ppr|usw| gaba| resp)|b(?:ena|est|etu|on)|"
    r"c(?:ert|ho[io]|hín|họn|orr|âu)|e(?:le|li|sat|sco|u )|f(?:ina|itt)|g(?:aba|ius)|"
    r"i(?:[ ']|ch |o )|j(?:awa|e |ust)|k(?:ami|asa|ita|orr)|l(?:et[rt]|ike|ựa)|"
    r"m(?:arc|eil|ejo|elh|igl|y|ögl)|nous|o(?:ne|ps[iy]|pt|pç|pz|pc|ur)|"
    r"p(?:agp|ali|ass|hù|hươ|ic|il|in|ip)|r(?:esp|ich|igh|isp|épo)|"
    r"s(?:ago|aya|ce|el|esu|olu|uit)|t(?:ama|epa|erb|he cho|rue|ốt)|verd|"
    r"w(?:e[ ']|ahl|ast|ir )|y(?:ang|o )|đ(?:áp|úng)|[คเขตถทดฉผร]|[答選选正最的應应故因所本只可【]"
)
_MARKER = _folded(rf"(?={_BEGINS_MARKER})(?:{_ANNOUNCES})", _KEY)
"""Announces the answer. An article belongs to it: "A resposta" does not name option A."""
# "A no" behind "Answer: ", "{A} 0" behind "\\boxed"; no "A's"
_BEHIND_MARKER = re.compile(
    r"[\s(*_{\[\"]{0,6}(?P<letter>[aeiouyAEIOUY])(?![a-zA-Z0-9_\u00c0-\u024f\u1e00-\u1eff'\u2019])"
)
# "**B** the answer is A", but "**B** is blue"
_SIGNED = re.compile(
    r"\W{0,9}(?P<letter>[a-z])[*_)\]}\"|]{1,9}\s{1,9}(?!(?:is|are|was|seems?)(?!\w)|[-:=])"
)
_MAY_BE_LETTER = re.compile(r"(?<![a-zA-Z0-9])(?:[aeiouyAEIOUY](?![a-zA-Z0-9_'\u2019])|[a-zA-Z]\d)")
"""Without one of these no announcement is before a letter that is a word, or glued to a digit."""
_GLUED = re.compile(r"[\s(*_{\[\"]{0,6}(?P<word>(?P<letter>[a-zA-Z])\d\w*)")  # "Answer: C0"
_ARTICLES = frozenset("ao")
"""Words of one letter behind a verb, in English and Portuguese: `is a`, `é o`."""
# "Resposta: A alternativa B"; "Resposta: A Resposta: B" announces twice
_ARTICLE_OF_OPTION = re.compile(
    r"\s(?:resposta|gabarito|opção|alternativa|escolha|letra|melhor|única|mais|corret[ao]|cert[ao])"
    r"(?!\w)(?!(?: \w+)?\s*:)"
)
# "a number", "é a C"
_WORD_BEHIND = re.compile(r"[ \t]+[(*_]{0,4}[^\W\d_\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
# "Answer: A close reading shows B"
_NOUN_BEHIND = re.compile(
    r"[ \t]+(?!(?:the|it|this|that|its|they|we|you|these|no|not|nor|so|then|thus|ok|yes|for|of|to|"
    r"oh)(?!\w))[a-z]{2}"
)
_LETTER_BEHIND = re.compile(r"[ \t]+[(*_]{0,4}[a-zA-Z](?!\w)")
# "### final answer\n\n", "**jawaban**\n": a line of its own that announces what is below it.
_HEADING = _folded(
    r"(?m:^)[ \t#>*_]{0,9}((?:(?:final|correct) |正[確确]|最[終终佳])?(?:"
    + "|".join(language.answer for language in _LANGUAGES)
    + r")(?: (?:akhir|final|finale|cuối cùng|đúng|corret[ao]|correcta?|correcte|"
    r"yang (?:paling )?(?:benar|tepat|betul)|na tama)|สุดท้าย|ที่ถูกต้อง)?)"
    r"[ \t*_]{0,5}\n[ \t\n]{0,9}(?=\S)"
)
_LETTER_LIST = r"\(?[a-z]\)?(?:(?:,| and| e| y| dan| và| &|&)+ ?\(?[a-z]\)?)*"
# "eliminating a and c leaves b", "eliminando a e c, resta b": the last letter ends its clause
_REMAINDER = _folded(
    r"(?:\A|(?<=[.!,:;\n]))[ \t]{0,3}(?:(?:so|then|by|after|dengan|sau khi|al|ao),? )?"
    r"(?:eliminating|excluding|discarding|ruling out|eliminando|descartando|excluindo|excluyendo|"
    r"mengeliminasi|menyingkirkan|mencoret|loại(?: trừ| bỏ)?) "
    r"(?:(?:both|options?|as|las|los|opsi|pilihan|opções|opciones|alternativas|đáp án|"
    r"phương án) )*"
    rf"(?P<eliminated>{_LETTER_LIST}),? "
    r"(?:we are left with|we have|this leaves|that leaves|leaves|leaving|only|"
    r"(?:só |solo |sólo )?(?:resta|sobra|fica|queda)|"
    r"(?:maka |yang )?(?:tersisa|tinggal|sisanya)|(?:thì |ta )?(?:chỉ )?còn(?: lại)?)"
    r"(?: (?:us with|only|just|option|apenas|só|solo|sólo|a|la|hanya|adalah|opsi|pilihan|opção|"
    r"opción|alternativa|đáp án|phương án|là))*"
    r" \(?(?P<left>[a-z])\)?(?=\s*(?:[.!;\n]|\Z))"
)
# "a would be right if the box were red, but": what would hold elsewhere asserts nothing
_COUNTERFACTUAL = re.compile(
    r"(?:(?<=[.!\n])|(?<=[.!] )|\A)(?:option |choice )?\(?[a-z]\)? would (?:only |indeed )?"
    r"(?:be|have been) (?:right|correct|true|the (?:right |correct )?answer)(?: only)? if "
    r"[^.,;!?\n]{1,80}?(?<!\w)(?:were|was|had)(?!\w)[^.,;!?\n]{0,80}, but "
    r"(?:(?:(?!(?<!\w)[b-hj-z](?!\w))[^.,;!?\n]){1,80}, (?=(?:so|hence|thus|therefore) ))?(?=\w)"
)
# "# conclusion\n\nb": a heading above the letter that ends the text
_CONCLUSION = _folded(
    r"(?m:^)[ \t#>*_]{0,9}(?:(?:in )?conclusion|result|verdict|conclusión|conclusão|"
    r"conclusione|fazit|kesimpulan|kết luận|konklusyon|สรุป|结论|結論)[ \t*_:]{0,5}\n[ \t\n]{0,9}"
    r"(?=[(*_]{0,4}[a-z][)*_.]{0,4}\s*\Z)"
)
# "not A but B", "bukan A melainkan B", "不是A而是B", of options of one letter.
_NOT_BUT = _folded(
    r"(?:"
    r"(?<!\w)(?:not|bukan(?:lah)?|không phải(?: là)?|não é|no es|nicht|pas|hindi)\s|ไม่ใช่|不是"
    r")\s?(?:option )?\(?[a-z]\)?,?\s?(?:"
    r"(?<!\w)(?:but|melainkan|tetapi|mà là|mas|sino|sondern|mais|kundi)\s|แต่(?:เป็น|คือ)?|而是"
    r")\s?(?:(?:rather|sim|sí) )?(?=(?:option )?\(?[a-z]\)?(?![a-z]))"
)
_CONCESSIONS = (
    "even though|even if|although|though|while|whilst|whereas|sedangkan|sementara|manakala|"
    "walaupun|meskipun|meski|walau|padahal|trong khi|mặc dù|dù|tuy|còn|embora|enquanto|"
    "ao passo que|se bem que|ainda que|mesmo que|aunque|mientras|si bien|bien que|quoique|"
    "tandis que|alors que|während|obwohl|wobei|obgleich|mentre|anche se|sebbene|benché|habang|"
    "samantalang|bagaman|kahit"
)
_CONCESSIONS_SPACELESS = "ในขณะที่|ขณะที่|แม้ว่า|แม้|ส่วน|ทั้งที่|[虽雖]然|尽管|儘管"
# "because a is red", "while a is red", behind the option in its clause
_REASON = _folded(
    r"(?<!\w)(?:because|since|as|given|over|unlike|rather than|instead of|karena|kerana|sebab|vì|"
    rf"bởi|porque|pois|parce|car|weil|denn|perché|dahil|sapagkat|{_CONCESSIONS})(?!\w)|"
    rf"เพราะ|เนื่องจาก|因[为為]|由于|由於|{_CONCESSIONS_SPACELESS}"
)
# "unlike a", "why not a": no second answer
_CONTRASTED = _folded(
    r"(?<!\w)(?:unlike|instead of|rather than|over|than|compared (?:to|with)|contrary to|why not|"
    r"(?:many|most|some)(?: people| students| readers)? (?:pick|choose|select)|"
    r"(?:i|we) (?:have )?(?:rejected|excluded|eliminated|ruled out)|"
    r"the (?:problem|trouble|issue) with|if (?:it|this|that) were|"
    r"not|neither|nor|except|besides|for|regarding|about|beda dengan|khác với|bukan|não|không|"
    r"nicht|pas)(?!\w)|ไม่|不|非"
)
# "while a might seem plausible"
_SEEMS = re.compile(
    r"(?<!\w)(?:(?:may|might|could|can) (?:\w+ )?(?:seem|look|appear|sound)|at first|initially)"
    r"(?!\w)"
)
# "but a could be right", "although a is red"
_CONNECTIVE = _folded(
    r"^(?:(?:but|and|or|however|yet|still|then again|since|as|because|tetapi|tapi|namun|dan|mas|"
    rf"pero|mais|aber|ma|e|nhưng|ngunit|que|{_CONCESSIONS}) )+|"
    rf"^(?:(?:แต่|但是?|不[过過]|而|{_CONCESSIONS_SPACELESS}) ?)+"
)
# "b while a could be right", "b mientras que a podría": before such a verb "a" is no article.
# After "i", "o" and "y" one may stand that is a word: "i could", Spanish "y podría".
_POSSIBLE = (
    r"(?<=(?<!\w)[aeu]) (?:could|might|may|would|should|can(?= (?:also|be|work|fit|apply|equally))|"
    r"must(?= be)|will(?= (?:be|do|work|also))|also|works|fits|seems|applies)(?!\w)"
    r"(?! (?:\w+ )?(?:seem|look|appear|sound)(?!\w))|"
    r"(?<=(?<!\w)a) (?:bisa|boleh|dapat|mungkin|barangkali|có (?:thể|lẽ)|pode(?:ria)?|poss[ao]|"
    r"talvez|podría|puede|pueda|quizás?|peut|pourrait|puisse|könnte|kann|auch|può|potrebbe|"
    r"ay (?:maaari|pwede)|(?:maaari|pwede)(?:ng)?)(?!\w)|"
    r" ?(?:อาจ|可能|也[许許]|或[许許]|大概)"
)
_MAY_BE = _folded(
    r" (?:(?:could|might|may)(?: \w+)? be|(?:bisa|boleh) jadi|mungkin|barangkali|có (?:thể|lẽ)|"
    r"pode(?:ria)? (?:ser|estar)|talvez|podría (?:ser|estar)|puede (?:ser|estar)|pourrait être|"
    r"könnte|potrebbe essere|ay (?:maaari|pwede))(?!\w)|"
    r" ?(?:อาจ|可能|也[许許]|或[许許]|大概)"
)
"""Behind an option: it is a guess, `b may be right`."""
# "tetapi a juga benar", "a salah", "a不对": there "a" is no article; "e também" is "and also"
_ALSO = (
    r"(?<=(?<!\w)[aeiouy]) (?:também|instead|too|as well)(?= ?[|?]| ?$)|"
    r"(?<=(?<!\w)a) também(?!\w)|(?<=(?<!\w)mas [eo]) também(?!\w)|"
    r"(?<=(?<!\w)[ai]) está(?!\w)|(?<=(?<!\w)[aeiou]) también(?!\w)|"
    r" (?:juga|cũng|ay|è|benar|betul|tepat|salah|keliru|đúng|sai|richtig|falsch)(?!\w)|"
    r" [\u0e00-\u0e7f\u3400-\u9fff]"
)
# "b dan a benar", "b e a estão corretas"; in "b e a resposta" it is one.
_BOTH = "|".join(
    rf"(?<=(?<!\w)[a-z] {and_} [aeiouy]){verbs}(?!\w)"
    for and_, verbs in (
        ("and", " (?:both|are|fit|work|seem|apply)"),
        ("dan", ""),
        ("và", ""),
        ("e", " (?:estão|são|sono)"),
        ("y", " son"),
        ("et", " sont"),
        ("und", " sind"),
    )
)
_TURN = _folded(
    r"(?<!\w)(?:wait|actually|sorry|correction|on (?:second thought|reflection)|hmm|maybe|perhaps|"
    r"alternatively|then again|change (?:my|the) (?:answer|mind|choice)|torn between|"
    r"unsure|uncertain|not (?:\w+ )?(?:sure|certain)|ragu|tidak yakin|"
    r"không chắc|não tenho certeza|no estoy segur[oa]|"
    r"mungkin|maaf|sebenarnya|na verdade|desculpe?|en realidad|perdón|thực ra|xin lỗi|en fait|"
    r"eigentlich|entschuldigung|in realtà|scusa|có lẽ|talvez|quizás?|peut être|vielleicht|forse)"
    r"(?!\w)|"
    r"อาจ|ไม่แน่ใจ|也[许許]|可能|或[许許]|不[确確]定|其[实實]|抱歉|更正|等等|จริงๆ|ที่จริง|ขอโทษ"
)
"""In an explanation: it may take the answer back, so that it is read like the answer."""
_AFFIRMED = _folded(
    r"(?<!\w)(?:also|too(?! \w)|as well|equally|either|both|could|might|may|possible|plausible|"
    r"valid|acceptable|correct|right|true|fits?|works?|as good|instead(?! of)|"
    r"better (?:answer|option|choice)|is it$|juga|benar|tepat|betul|bisa|boleh|cũng|đúng|"
    r"có thể|também|también|puede|pueda|podría|pode|poderia|possa|correct[ao]s?|corret[ao]s?|"
    r"correctes?|cert[ao]s?|aussi|peut|pourrait|puisse|justes?|auch|kann|könnte|richtig|anche|può|"
    r"potrebbe|giust[aoie]|corrett[aoie]|rin|din|tama|maaari(?:ng)?|pwede(?:ng)?)(?!\w)|"
    r"ก็|ได้|ถูก|也|正[确確]|[对對]|可以"
)
"""In a clause about another option that denies nothing: it is offered beside the answer."""
# "a and c are right"
_IS_RIGHT = _folded(
    r"(?<!\w)(?:right|correct|true|valid|benar|tepat|betul|đúng|cert[ao]s|corret[ao]s|correct[ao]s|"
    r"correctes|justes|richtig|korrekt|giust[ei]|corrett[ei]|tama)(?!\w)|[对對]|正[确確]|ถูก"
)
_FALSE = (
    r"wrong|incorrect|false|invalid|impossible|unsuitable|salah|keliru|sai|errad[ao]s?|incorret[ao]s?|"
    r"incorrect[ao]s?|faux|fausses?|falsch|sbagliat[aoie]|errat[aoie]|fals[aoie]s?|mali"
)
_NEGATED = _folded(
    r"(?<!\w)(?:not|n t|never|neither|nor|no|cannot|can t|isn t|doesn t|wouldn t|tidak|bukan|não|"
    rf"nem|không|chẳng|nicht|kein\w*|ni|pas|non|hindi|{_FALSE})(?!\w)|n't|ไม่|ผิด|[不非没沒错錯]"
)
# "that is wrong" directly behind the answer
_DENIAL = re.compile(
    rf"(?:(?:this|that|it|which)(?: answer| option| choice)? (?:is|was) |(?:is|was) )?"
    rf"(?:not|n t) (?:correct|right|true)|(?:this|that|it|which) (?:is|was) (?:{_FALSE})"
)
_IS_FALSE = re.compile(rf"(?<!\w)(?:{_FALSE})(?!\w)")
# "a is not wrong"
_NOT_FALSE = re.compile(
    rf"(?:(?<!\w)(?:not|never|cannot)|n't|n t) (?:\w+ )?(?:{_FALSE}|rule|exclude|eliminate|dismiss|"
    r"discard)(?!\w)"
)
_OR = "or|nor|atau|ataupun|ou|o|oder|hoặc"
# "or a if it is dusk"
_OR_ELSE = _folded(rf"^(?:(?!nor)(?:{_OR}) |หรือ ?|或者? ?|[还還]是 ?)")
# "although a looks right", unless it looks right too
_LOOKS = _folded(
    rf"^(?:{_CONCESSIONS}|{_CONCESSIONS_SPACELESS})(?=.*?(?:(?<!\w)(?:seems?|looks?|appears?|sounds?|"
    r"terlihat|tampak|kelihatan|nampak|parece|parecer|có vẻ|trông|scheint|aussieht|semble|paraît|"
    r"sembra|mukhang)(?!\w)|ดูเหมือน|看似|看起[来來]))"
    r"(?!.*(?<!\w)(?:too|also|equally|as well|just as|juga|também|también|cũng|auch|aussi|anche|"
    r"rin)(?!\w))(?!.*(?:也|ก็|ด้วย))"
)
# "(a) The mean is 0. (b) The variance ...": parts of a problem, of which none is an option
_FIRST_PART = re.compile(r"\s*\(a\) (?!(?:is|because|since|as|for)(?!\w))\w")
_SECOND_PART = re.compile(r"[.;:\n]\s*\(b\) (?!(?:is|because|since|as|for)(?!\w))\w")
# "it is 25 c"
_UNIT = re.compile(r"\d [a-z]$")
_GOES_ON = re.compile(r"\s?\| (?:but|so|and|which|because|while|whereas|since)(?!\w)")
MAX_SHORT = 4
"""Words of a clause that names an option and says nothing of it: `it is a`, `so option c`."""
_READ = frozenset(
    (
        *("en", "zh", "yue", "id", "ms", "pt", "es", "fr", "de", "it", "vi", "th", "tl"),
        *("und", "mul", "zxx"),
    )
)
"""Languages whose words are read, and the tags of texts without one."""
_OTHER_SCRIPTS = frozenset(
    (
        *("ja", "ko"),
        *("ru", "uk", "be", "bg", "sr", "mk", "kk", "ky", "mn"),
        *("el", "hy", "ka", "he", "ar", "fa", "ur", "ps", "hi"),
        *("mr", "ne", "bn", "ta", "te", "kn", "ml", "gu", "pa", "si", "lo"),
        *("km", "my", "am"),
    )
)
"""Unread languages of a script of their own, which shows whether a response is in them."""
_LATIN_WORD = re.compile(r"(?<!\w)(?!the(?!\w))[^\W\d_]{2}")
_OWN_SCRIPT = re.compile(
    r"[\u0370-\u0dff\u0e80-\u0eff\u1000-\u13ff\u1780-\u17ff\u3041-\u30ff\uac00-\ud7a3]"
)
"""Their letters; of Chinese characters the words of Chinese are read."""
_FOREIGN_LETTER = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
"""A letter that is not Latin: a refusal of `A` alone needs none of them to be read."""
_BEGINS_REVERSED = (
    r"'s| the|a(?:dal|ng )|b(?:ena|est|etu)|die |e(?:s |st)|fits|i(?:s |st |ala)|korr|là |"
    r"m(?:eru|ust)|pali|rich|tepa|would|yang|[éè] | ?[คเถ]|[項项選选是為为唯正]"
)
_REVERSED = _folded(
    rf"(?=\s?(?:{_BEGINS_REVERSED}))\s?"
    rf"(?:{'|'.join(language.is_good for language in _LANGUAGES)})"
)
"""Follows the option: "B is the correct answer", B是正确的选项."""
_CONDITION = re.compile(r"(?:but |even )?(?:if|were|had)(?!\w)")
"""Before "b would be right": what would hold elsewhere asserts nothing."""
_IS_TRUE = re.compile(r"(?<!\w)true(?!\w)(?! (?:answer|option|choice|one))")
_HYPOTHESIS = re.compile(
    r"(?<!\w)(?:if|whether|suppose|assum\w+|unless|which|what|jika|kalau|andai\w*|bila|apakah|qual|cuál|"
    r"quelle|welche|quale|si (?:la|el)|se (?:a|la)|wenn|falls|ob|nếu|giả sử)(?!\w)|如果|"
    r"假[設设]|若|是否|哪|"
    r"ถ้า|หาก|สมมติ"
)
"""Before a marker in its clause: nothing is announced."""
# "so option", "therefore (", "选项", "所以"
_BEFORE_LETTER = re.compile(
    r"(?:(?:so|thus|hence|therefore|then|and|the|only|options?|choices?|answers?|letter|that|means|"
    r"opção|opción|"
    r"pilihan|opsi|jawa[bp]an|lựa chọn|phương án|đáp án|antwort|réponse|respuesta|resposta|"
    r"risposta|alternativa|"
    r"letra|l option|opzione|l opzione|also|daher|ist|jadi|maka|logo|portanto|donc|quindi|vậy|"
    r"la|a|die|huruf|ข้อ|"
    r"ตัวเลือก|ดังนั้น|"
    r"[選选][項项]|因此|所以|故|只有|makes|making|leaves) ?)*"
)
_HENCE = re.compile(
    r"(?<!\w)(?:thus|hence|therefore|portanto|logo|donc|quindi|daher|jadi|maka|vậy|boxed) |"
    r"因此|所以"
)
"""Begins a clause without a sign before it."""
_CLAUSE_END = re.compile(r"[.,;:!?\n。，；]")
_SENTENCE = re.compile(r"[.!?](?=\s|$)|。|\n")
_STYLE = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:bf|rm))\s*(?=\{)")
_AND = "and|dan|e|y|et|und|và|และ|กับ|和|與|与|及|跟|暨"
"""Words that may replace `&` in the name of an option."""
_SPACELESS_AND = re.compile(r"(?<=\S)(?:และ|[和與与及])(?=\S)")
_JOINING = re.compile(rf"(?<!\w)(?:&|{_AND}|{_OR})(?!\w)")
_JOINERS = ("&", *_AND.split("|"), *_OR.split("|"), "หรือ", "或", "或者")
_DASHED = re.compile(r"(?<!\w)([a-z]\)?)\s+[-\u2013\u2014]\s(?=\s*[^\W\d_]{2})")
"""A dash behind an option ends its clause, `B - not A`; in `a - b` it is a minus sign."""
_COMMAS = re.compile(
    rf"(?<!\w)([a-z]\)?),(?= ?(?:(?:{_AND}|{_OR}) )?[a-z]\)?"
    rf"(?:,| (?:{_AND}|{_OR}|are|aren't|do|don't|can|can't|cannot|salah|đều|são|"
    r"estão|son|sont|sind)(?!\w)|[都均皆]))"
)
"""Commas of a list of letters, which end no clause: `A, C and D are wrong`."""
_DOTS = re.compile(r"(?<![a-z0-9])([a-z])、(?=[a-z](?![a-z0-9]))")
"""So do those of Chinese: `A、C都不对`."""
_LISTED = re.compile(
    rf" (?:\| )?(?:(?:{_AND}|&|{_OR}) )+"
    r"(?:(?:the )?(?:option|choice|answer|opsi|pilihan|opção|opción) )?"
)
"""Between two options of a list."""
_WORD_LETTERS = frozenset("aeiouy")
"""Options of one letter that are also words: "a" is an article."""
_LETTER_ALONE = re.compile(
    rf"(?<!\w)([{''.join(sorted(_WORD_LETTERS))}])(?=[*_\"”`]|\s+[-\u2013\u2014]\s)"
)
"""Such a letter with a sign after it, which no word has."""
_COPULA = r"(?:(?:is|é|es|est|ist|è|adalah|ialah|là|ay)(?!\w)|คือ|เป็น|是)"
_SUBJECT = re.compile(rf"\(([a-z])\) ?(?={_COPULA})")
"""A letter in brackets whose clause goes on: `(A) is red`."""
_AFTER_LETTER = (
    "is|are|or|because|since|as|é|es|est|ist|adalah|ialah|karena|kerana|vì|porque|parce|weil|"
    "but|sondern|sino|mais|mas|melainkan|tetapi|mà|แต่เป็น|แต่|项|項"
)
_CONTRAST = r"แต่|(?<!\w)(?:but|sondern|melainkan|tetapi|sino|mais|mas|mà) "
_SPACELESS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_BORDER = re.compile(
    r"(?<=[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff])(?=[0-9a-z])|"
    r"(?<=[0-9a-z])(?=[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff])"
)
"""Between scripts with and without spaces: `选B` is two words."""
_NO_WORD = rf"(?= ?[|?]| ?$| (?:{_AFTER_LETTER}|&|{_AND})(?!\w)|{_ALSO}|{_BOTH}|{_POSSIBLE})"
_LETTERS = "".join(sorted(_WORD_LETTERS))
_NAMING = re.compile(
    rf"(?:\A|(?<=\| )|(?={_CONTRAST})){LEAD}"
    rf"(?<!\w)(?P<name>[{_LETTERS}]{_NO_WORD}|[0-9a-z](?<![{_LETTERS}]))(?!\w)"
)
"""A clause that begins with a letter, or with words that announce it."""
_Span = tuple[int, int]


def _visible(text: str) -> str:
    if not fold(text):
        raise ValueError(f"{text!r} has no visible characters to search for")
    return text


Alias = Annotated[str, AfterValidator(_visible)]


class MultipleChoice(Gold):
    """Names of the right option and of every competing option."""

    correct: tuple[Alias, ...] = Field(min_length=1, strict=False)
    others: tuple[tuple[Alias, ...], ...] = Field(default=(), strict=False)


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if the right option is asserted and no competing one is, else 0."""
    is_read = primary(problem.language) in _READ
    return verify_answer(
        problem,
        response,
        MultipleChoice,
        _check if is_read else partial(_check_unread, primary(problem.language)),
    )


def _check_unread(language: str, gold: MultipleChoice, answer: str) -> Verdict:
    """Decide in a language that is not read: abstain where its own words stand beside an option.

    In a Latin script they are all words but those of announcements in languages that are read.
    """
    verdict = _check(gold, answer)
    text = plain(without_container(answer))
    names = [plain(name) for option in (gold.correct, *gold.others) for name in option]
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text)
    refused = verdict.reason in ("wrong", "hedged", "several_answers")
    if language in _OTHER_SCRIPTS:
        unread = (_FOREIGN_LETTER if refused else _OWN_SCRIPT).search(text)
    else:
        unread = _LATIN_WORD.search(_REVERSED.sub(" ", _MARKER.sub(" ", _HEADING.sub(" ", text))))
    return abstain("language_unread", verdict.detail) if unread else verdict


def _check(gold: MultipleChoice, answer: str) -> Verdict:
    options = [frozenset(map(fold, option)) for option in (gold.correct, *gold.others)]
    text, unclear = _divided(without_container(answer), options)
    regions, announced = _regions(text, options)
    *earlier, last = (_BORDER.sub(" ", region) for region in regions)
    verdict = _decide(gold, last, announced=announced)
    for region in earlier if verdict.solved else ():
        other = _decide(gold, region, announced=announced)
        if other.detail.startswith("asserts") or _denied(
            region, _mentions(gold.correct, region, right=False)
        ):
            return scored(0.0, "several_answers", f"{region[:60]!r} before {last[:60]!r}")
    if unclear and (verdict.solved or (verdict.reason == "wrong" and unclear & options[0])):
        return abstain("letter_or_word", f"{sorted(unclear)} in {last[:80]!r}")
    if verdict.solved and _affirms_several(gold, answer):
        return abstain("others_affirmed", last[:80])
    return verdict


def _affirms_several(gold: MultipleChoice, answer: str) -> bool:
    """Say whether a text begins by calling a list of competing options right: `A、C都对`.

    Only a question for the false option makes its answer the one that is left.
    """
    text = _COMMAS.sub(r"\1 and ", _DOTS.sub(r"\1&", plain(without_container(answer)[:WINDOW])))
    clause, _, following = clauses(text).partition("|")
    clause = _BORDER.sub(" ", clause)
    spans = [span for option in gold.others for span in _mentions(option, clause, right=False)]
    first = next(iter(_lists(clause, spans)), [])
    if len(first) < 2 or not _BEFORE_LETTER.fullmatch(clause[: first[0][0]]):
        return False
    after = clause[first[-1][1] :]
    is_question = "?" in after or following.lstrip().startswith("?")
    return bool(_IS_RIGHT.search(after)) and not _NEGATED.search(after) and not is_question


def _decide(gold: MultipleChoice, asserted: str, *, announced: bool) -> Verdict:
    """Decide on the clauses of one announcement, or of a text that announces nothing."""
    mentions = _mentions(gold.correct, asserted, right=True)
    others = [(option[0], _mentions(option, asserted, right=False)) for option in gold.others]
    if len(mentions) + sum(len(spans) for _, spans in others) > MAX_MENTIONS:
        return response_fault("flooded", f"more than {MAX_MENTIONS} mentions of options")
    # "Shoes" inside the right answer "Running Shoes" is not a second answer, nor the reverse.
    rivals = [
        (name, span)
        for name, spans in others
        for span in spans
        if span not in mentions and not _inside(span, mentions)
    ]
    spans = [span for _, span in rivals]
    until = _names_until(asserted, spans)
    named = [span for span in mentions if not _inside(span, spans)]
    right = [span for span in named if span[0] < until or not _is_letter(asserted, span)]
    denied = _denied(asserted, [*spans, *right]) | _explained_away(asserted, spans, right)
    # What was announced is not taken back: "Answer: A is wrong. B" asserts A.
    denied |= set[_Span]() if announced else _refuted(asserted, spans)
    denied |= _beside_denied(asserted, rivals, denied)
    for name, span in rivals:
        if span not in denied:
            return scored(0.0, "several_answers" if right else "wrong", f"asserts {name!r}")
    if not right:
        return scored(0.0, "wrong", f"none of {list(gold.correct)[:4]!r} in {asserted[:80]!r}")
    anywhere = (*mentions, *_mentions(gold.correct, asserted, right=False))
    named = [span for span in anywhere if not _inside(span, spans)]
    if any(span in denied or _is_denied(asserted, span, mentions) for span in named):
        return scored(0.0, "wrong", f"denied in {asserted[:80]!r}")
    asking = [alias for alias in gold.correct if plain(alias).rstrip().endswith("?")]
    questions = _mentions(asking, asserted, right=True)
    if any(_is_hedged(asserted, span, asks=span in questions) for span in right):
        return scored(0.0, "hedged", asserted[:80])
    return scored(1.0, "correct", asserted[:80])


def _regions(text: str, options: Sequence[frozenset[str]]) -> tuple[list[str], bool]:
    """Return the clauses of each announcement, the last one up to the end of the text.

    Without a marker that announces an option it is the whole text. Also return whether one does.
    """
    text = plain(text)
    text = _STYLE.sub("", _COMMAS.sub(r"\1 and ", _DOTS.sub(r"\1&", text)))
    text = _REMAINDER.sub(_remaining, _COUNTERFACTUAL.sub("", text.replace("c'est", "est")))
    text = _CONCLUSION.sub("answer: ", text)
    text = _DASHED.sub(r"\1. ", _SUBJECT.sub(r" \1 ", text))
    text = _LETTER_ALONE.sub(r"\1 | ", _HEADING.sub(r"\1: ", _NOT_BUT.sub("", text)))
    names, text = set[str]().union(*options), _without_labels(text, options)
    result = sorted((*_announced(text), *_announced_backwards(text, names)))[-MAX_MARKERS:]
    heads = clauses(text[: result[-1][0]] if result else "").split("|")
    goes_through = {_option_of(head.strip(), options) for head in heads} >= {*range(len(options))}
    head = text[: result[0][0]] if result else ""
    signed = _SIGNED.match(head)
    opening = signed["letter"] if signed else ""
    others = names - {opening, *(result[0][2].split() if result else ())}  # "**D** x. E is right"
    if opening and any(_pattern(name).search(clauses(head)) for name in others):
        opening = ""
    opening = opening if opening in names else _opening(_with_copula(text, options), names)
    regions = ["" if goes_through else clauses(opening)]
    for place, (start, end, option) in enumerate(result):
        # With a word behind it the lead keeps its border: in "A is not, choose B" B is not denied.
        lead = clauses(f"{_SENTENCE.split(text[max(0, start - WINDOW) : start])[-1]} 0")[:-1]
        withdrawal = EVERY_LANGUAGE.before.search(lead) or HEDGED_BEFORE.search(lead)
        last = place + 1 == len(result)
        following = (
            _with_copula(f"{option}{text[end:]}", options)
            if last
            else option + _sentence(text, end, result[place + 1][0])
        )
        region = clauses(f"{lead if withdrawal else ''} {following}")
        region = region if withdrawal else _unexplained(region, options)
        if option or any(_pattern(name).search(_BORDER.sub(" ", region)) for name in names):
            regions.append(region)
    if len(regions) > 1:
        return [region for region in regions if region], True
    if regions[0]:
        return [_unexplained(clauses(_with_copula(text, options)), options)], False
    return [clauses(text)], False


def _divided(text: str, options: Sequence[Collection[str]]) -> tuple[str, set[str]]:
    """Divide announcements behind a competing letter that is also a word: `Answer: A no` is A.

    A capital is the option, as is any letter behind a colon; in `the answer is a number` it is an
    article, as it is before the wording of an option: `Answer: A blue box`. Also return the letters
    of which that cannot be said: `the answer is a ok`, `Answer: A close reading shows B`.
    """
    names = set[str]().union(*options)
    letters = _WORD_LETTERS.intersection(names)
    competing = letters.intersection(set[str]().union(*options[1:]))
    text = unicodedata.normalize("NFKC", unified(text))
    if not _MAY_BE_LETTER.search(text) or all(len(name) > 1 for name in names):
        return text, set()
    places = list[int]()
    lowered = _lowered(text)
    markers = (*_MARKER.finditer(lowered), *_HEADING.finditer(lowered))
    unclear = _glued_letters(text, markers, names)
    starts = sorted(marker.start() for marker in markers)
    for marker in markers:
        found = _BEHIND_MARKER.match(text, marker.end())
        if found is None or (letter := found["letter"].casefold()) not in letters:
            continue
        following = text[found.end() : found.end() + WINDOW]
        sentence = _SENTENCE.split(following.lstrip("\n"), maxsplit=1)[0]
        clause = fold(_CLAUSE_END.split(sentence, maxsplit=1)[0])
        if _ARTICLE_OF_OPTION.match(following) or _names_wording(clause, names):
            continue
        is_article, is_unclear = _is_article(marker[0], found["letter"], following)
        if is_unclear or (is_article and text.islower() and not _LETTER_BEHIND.match(following)):
            unclear.add(letter)
        if is_article:
            continue
        if _pattern(letter).match(f"{letter} {clause}"):
            continue
        if letter in competing:
            places.append(found.end())
        next_marker = bisect_left(starts, found.end())
        end = (*starts[next_marker : next_marker + 1], len(text))[0]
        unclear |= _conclusions(letter, sentence[: end - found.end()], names)
    for place in sorted(places, reverse=True):
        text = f"{text[:place]} | {text[place:]}"
    return text, unclear


def _lowered(text: str) -> str:
    """Return a text in lower case with every place kept: the Turkish capital of i would be two."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(char if len(char.lower()) > 1 else char.lower() for char in text)


def _names_wording(clause: str, names: Collection[str]) -> bool:
    return any(len(name) > 1 and _pattern(name).search(clause) for name in names)


def _glued_letters(text: str, markers: Sequence[re.Match[str]], names: Collection[str]) -> set[str]:
    """Return the letters of options that begin an announced word that is none: `Answer: C0`."""
    words = [_GLUED.match(text, marker.end()) for marker in markers]
    glued = {fold(word["word"]) for word in words if word}
    return {word[0] for word in glued if word[0] in names and word not in names}


def _is_article(marker: str, letter: str, following: str) -> tuple[bool, bool]:
    """Say whether a letter behind a marker is an article, and whether it may as well be an option.

    Behind a verb a letter before a word is, `is a number`, `é a C`; behind a colon one before a
    letter may be, `Resposta: A C`.
    """
    verb = marker.rstrip(" *_")[-1]
    is_followed = _LETTER_BEHIND.match(following) is not None
    if verb.isalpha() and verb < "\u0250":
        return letter in _ARTICLES and _WORD_BEHIND.match(following) is not None, False
    return letter in _ARTICLES and is_followed, is_followed


def _conclusions(letter: str, behind: str, names: Collection[str]) -> set[str]:
    """Return the options between which `a close reading shows b` leaves the choice; at least two.

    "A red box. B is right" is no such sentence but a second announcement.
    """
    if letter != "a" or _NOUN_BEHIND.match(behind) is None:
        return set()
    folded = fold(behind)
    named = {name for name in names if name != "a" and _pattern(name).search(folded)}
    return {"a", *named} if named and not _REVERSED.search(folded) else set()


def _unexplained(region: str, options: Sequence[frozenset[str]]) -> str:
    """Return the option that a text begins with, without the explanation behind it.

    The explanation may name other options, if no clause of it offers one or takes the answer back;
    else the whole text is the answer.
    """
    parts = [part.strip(" ?") for part in region.split("|")]
    leading, chosen, head = list[str](), -1, ""
    for part in parts:
        clause = _REASON.split(part, maxsplit=1)[0].strip()
        place = _option_of(clause, options)
        if place < 0 or (leading and place != chosen):
            break
        chosen = place
        head = clause
        leading.append(_named_in(clause, options[place]))
        if clause != part:
            break
    if not leading or "?" in region[: region.find("|") + 1 or len(region)]:
        return region
    rest = (parts[len(leading) - 1].removeprefix(head), *parts[len(leading) :])
    if len(rest) > MAX_CLAUSES:
        return region
    others = [name for place, option in enumerate(options) if place != chosen for name in option]
    if _goes_through_all(rest, options):
        return " | ".join(leading)
    explanation = [part.strip() for part in rest if part.strip()]
    wordings = [wording for option in options if (wording := _wordings(option))]
    withdrawals = [
        not _states_wording(part, wordings)
        and not any(_restates(before, part, option) for option in options)
        and _takes_back(part, options[chosen], others)
        and not (_CONDITION.match(before) and " would " in part)
        for before, part in pairwise(("", *explanation))
    ]
    if not any(withdrawals):
        return " | ".join(leading)
    letters = _WORD_LETTERS.intersection(others)
    if withdrawals[0] and _DENIAL.fullmatch(explanation[0]):
        return f"not {leading[0]}"
    pairs = zip(explanation, withdrawals, strict=True)
    clauses_behind = (
        (
            f"not {letter}"
            if (letter := _denied_letter(_BORDER.sub(" ", part), options[chosen], others))
            else _lettered(part, letters)
        )
        if withdrawal
        else part
        for part, withdrawal in pairs
    )
    return " | ".join((*leading, *clauses_behind))


def _restates(before: str, clause: str, names: Collection[str]) -> bool:
    """Say whether a clause is the wording of what was just denied: `A is incorrect: red`."""
    first, _, rest = before.partition(" ")
    return clause in names and first in names and _is_denied_by(f" {rest}|")


def _states_wording(clause: str, wordings: Sequence[re.Pattern[str]]) -> bool:
    """Say whether a clause only says what an option is: `a is red` of an option (A) red."""
    stated = _CONNECTIVE.sub("", clause).strip()
    return any(wording.fullmatch(stated) for wording in wordings)


@lru_cache(maxsize=1024)
def _wordings(names: frozenset[str]) -> re.Pattern[str] | None:
    """Match the letter of an option beside its words, in either order; None without both."""
    letters = "|".join(re.escape(name) for name in names if len(name) == 1)
    words = "|".join(re.escape(name) for name in names if len(name) > 1)
    if not (letters and words):
        return None
    both = (
        rf"(?:{first}) ?{_COPULA} ?(?:{last})"
        for first, last in ((letters, words), (words, letters))
    )
    return re.compile("|".join(both))


def _lettered(clause: str, letters: Collection[str]) -> str:
    """Divide a clause behind the letter that it begins with: there "a" is an option, no article."""
    stated = _CONNECTIVE.sub("", clause).strip()
    first, _, rest = stated.partition(" ")
    return f"{first} | {rest}" if first in letters and rest else clause


def _without_labels(text: str, options: Sequence[Collection[str]]) -> str:
    """Leave out the letter of an option behind its words: `red (A) is seen at dusk`."""
    for names in options:
        words = "|".join(re.escape(name) for name in names if len(name) > 1)
        letters = "|".join(re.escape(name) for name in names if len(name) == 1)
        if words and letters:
            text = re.sub(rf"(?<!\w)({words}) ?\((?:{letters})\)", r"\1", text)
    return text


def _with_copula(text: str, options: Sequence[Collection[str]]) -> str:
    """Read `B. A: red. C: green` as `B. A is red. C is green`: each says what an option is."""
    letters = "|".join(re.escape(name) for names in options for name in names if len(name) == 1)
    if not letters or ":" not in text:
        return text
    return re.sub(
        rf"([\w)}}\]*\"|][.,;:!\s]*[.;\n][-*_(\s]{{0,9}})({letters})[)*_|\s]{{0,9}}:[*_\s]{{0,9}}(?=\w)",
        r"\1\2 is ",
        text,
    )


def _remaining(match: re.Match[str]) -> str:
    """Announce the option that is left; one that is also eliminated is no answer."""
    eliminated, left = match["eliminated"], match["left"]
    is_both = re.search(rf"(?<!\w){left}(?!\w)", eliminated) is not None
    return f"\nanswer: {'not ' if is_both else ''}{left}"


def _option_of(clause: str, options: Sequence[Collection[str]]) -> int:
    """Return the place of the option that a clause consists of, as `option b` does; else -1."""
    clause = clause.rstrip("项項 ")  # 选B项
    for place, names in enumerate(options):
        if clause in names or any(_ends_with(clause, name) for name in names if len(name) == 1):
            return place
    return -1


def _takes_back(clause: str, names: Collection[str], others: Sequence[str]) -> bool:
    """Say whether a clause behind an answer denies it, doubts it or offers another option."""
    bordered = _BORDER.sub(" ", clause)
    words = sum(_num_words(word) for word in bordered.split())
    stated = _CONNECTIVE.sub("", bordered).strip()  # 不过 denies nothing
    first = stated.partition(" ")[0]  # "a" may be an article: there it offers nothing
    named = [name for name in others if name == first or _pattern(name).search(bordered)]
    is_no = not named and 0 < words < MAX_SHORT - 1 and _NEGATED.search(stated)
    if _TURN.search(clause) or is_no or _DENIAL.fullmatch(clause):
        return True
    own = (match.span() for name in names for match in _pattern(name).finditer(bordered))
    if any(_is_denied(bordered, span, ()) for span in own) or _denied_letter(
        bordered, names, others
    ):
        return True
    if not named or _CONTRASTED.match(stated) or _SEEMS.search(stated) or _LOOKS.match(bordered):
        return False
    is_list = {*bordered.split()} <= {*named, *_JOINERS, *ascii_lowercase}  # "a, c and d"
    is_name = any(_ends_with(clause, name) for name in named if len(name) == 1)
    if is_list or is_name or clause in named or _offers_alternative(bordered, (*names, *others)):
        return True
    if _NOT_FALSE.search(clause) or (_AFFIRMED.search(stated) and not _NEGATED.search(stated)):
        return True
    wordings = (name for name in names if len(name) > 1)  # "a is blue" of an answer that is blue
    ends = any(
        re.search(rf"(?<![a-z0-9]){re.escape(name)}\Z", clause) for name in (*named, *wordings)
    )
    is_last = ends and not _REASON.match(clause)
    is_last = is_last and not _UNIT.search(bordered)
    return is_last and words <= MAX_SHORT and not _NEGATED.search(stated)


def _named_in(clause: str, names: Collection[str]) -> str:
    """Return the name in a clause that consists of an option: of `a e` in Portuguese, E."""
    if clause in names:
        return clause
    *before, letter = clause.rstrip("项項 ").split()
    return letter if not before or before[-1] in _ARTICLES else clause


def _denied_letter(clause: str, names: Collection[str], others: Collection[str]) -> str:
    """Return the letter of the answer that a clause begins with and denies: `e está errada`.

    Of a letter that is also a word it may be another sense, "and is wrong", which denies the same.
    """
    for text in (clause, _CONNECTIVE.sub("", clause).strip()):
        head, _, rest = text.partition(" ")
        denial = EVERY_LANGUAGE.after.match(f" {rest}|") if head in names else None
        if denial and denial[0][1] != "|" and not {*denial[0].split()}.intersection(others):
            return head
    return ""


def _offers_alternative(clause: str, names: Collection[str]) -> bool:
    """Say whether a clause begins with "or": "o" is one before an option if O is an option too."""
    conjunction = _OR_ELSE.match(clause)
    if conjunction is None or conjunction[0] != "o " or "o" not in names:
        return conjunction is not None
    return clause.split()[1] in names and not _NEGATED.search(clause)


def _num_words(word: str) -> int:
    """Count the words of a text without spaces, which have two characters in scripts with none."""
    return max(1, len(word) // 2) if _spaceless(word[0]) else 1


def _goes_through_all(parts: Sequence[str], options: Sequence[Collection[str]]) -> bool:
    """Say whether an explanation goes through all options, `A: it is red. B: it is blue`.

    None of them is offered then, unless a clause says so.
    """
    places = [_option_of(part, options) for part in parts]
    heads = [place for place in places if place >= 0]
    return sorted(heads) == list(range(len(options))) and not any(
        _AFFIRMED.search(part) or _TURN.search(part) for part in parts
    )


def _opening(text: str, names: Collection[str]) -> str:
    """Return the option that a text begins with, unless it begins with a list of options."""
    first = clauses(text[:WINDOW]).partition("|")[0].strip()
    first = _REASON.split(first, maxsplit=1)[0].strip() or first
    if first.count(" ") >= MAX_SHORT and _GOES_ON.match(clauses(text[:WINDOW]).removeprefix(first)):
        return ""  # the wording of an option in a sentence about it
    if _FIRST_PART.match(text) and _SECOND_PART.search(text):
        return ""
    rest = (line for line in text.splitlines()[1:] if not _MARKER.search(line))
    lines = (clauses(line).partition("|")[0].strip() for line in rest)
    return (
        first
        if first in names and not any(line in names and line != first for line in lines)
        else ""
    )


def _announced(text: str) -> Iterator[tuple[int, int, str]]:
    """Find markers before an option: start, end and ''."""
    end = len(text.rstrip(punctuation + whitespace))
    last = next((place for place in reversed(range(end)) if fold(text[place])), -1)
    for marker in _MARKER.finditer(text):
        if marker.end() <= last and not _HYPOTHESIS.search(_clause(text, marker.start())):
            yield *marker.span(), ""


def _announced_backwards(text: str, names: Collection[str]) -> Iterator[tuple[int, int, str]]:
    """Find options before a marker: start and end of the marker, and the option."""
    for marker in _REVERSED.finditer(text):
        clause = _clause(text, marker.start())
        words = _HENCE.split(fold(clause))[-1]
        head, _, rest = words.partition(" ")  # "C A is the answer" behind "Answer:"
        beside = ""
        if len(head) == 1 and rest and head in names and not _JOINING.search(rest[:-1]):
            words, beside = rest, "" if rest == head or head in _ARTICLES else f"{head} | "
        name = max((name for name in names if _ends_with(words, name)), key=len, default="")
        proves = len(name) == 1 and words == name and _IS_TRUE.search(marker[0])  # "g is true"
        if "would" in marker[0]:
            clause = _SENTENCE.split(text[max(0, marker.start() - WINDOW) : marker.start()])[-1]
        if name and not proves and not _HYPOTHESIS.search(clause):
            yield *marker.span(), f"{beside}{name} |"


def _clause(text: str, end: int) -> str:
    """Return what stands before a place in its clause."""
    return _CLAUSE_END.split(text[max(0, end - WINDOW) : end])[-1]


def _ends_with(words: str, name: str) -> bool:
    """Say whether a clause ends with a name; one of a letter needs "option" or nothing before."""
    before = words.removesuffix(name)
    if before == words or (before and before[-1].isascii() and before[-1].isalnum()):
        return False
    if len(name) > 1 or not name.isascii():
        return True
    return _BEFORE_LETTER.fullmatch(before) is not None


def _sentence(text: str, start: int, end: int) -> str:
    """Return the sentence that a marker begins, or the next line if nothing follows the marker."""
    part = text[start:end]
    first = next((place for place, char in enumerate(part) if fold(char)), len(part))
    for sentence in _SENTENCE.finditer(part):
        if sentence.start() > first:
            return part[: sentence.start()]
    return part


def _mentions(aliases: Sequence[str], text: str, *, right: bool) -> list[_Span]:
    """Find an option. A single letter that is right counts only where a clause names it."""
    results: list[_Span] = []
    for alias in aliases:
        folded = fold(alias)
        if right and len(folded) == 1 and folded.isascii():
            names = (match.span("name") for match in _NAMING.finditer(text))
            spans = (span for span in names if text[slice(*span)] == folded)
            results += islice(spans, MAX_MENTIONS + 1)
            continue
        results += [
            match.span() for match in islice(_pattern(alias).finditer(text), MAX_MENTIONS + 1)
        ]
    return results


def _is_letter(text: str, span: _Span) -> bool:
    return span[1] - span[0] == 1 and text[span[0]].isascii()


def _names_until(text: str, others: Sequence[_Span]) -> int:
    """Return where the first clause ends that names no other option."""
    start = 0
    for end in re.finditer(rf"\||{_CONTRAST}", text):
        says = text[start : end.start()].strip(" |?")
        if says and not any(start <= span[0] < end.start() for span in others):
            return end.start()
        start = end.end()
    return len(text)


def _denied(text: str, spans: Sequence[_Span]) -> set[_Span]:
    """Return the options that the words before them deny, also `C` in `not A or C`.

    Later text cannot withdraw a wrong answer.
    """
    denied: set[_Span] = set()
    last = 0
    for span in sorted(spans):
        with_last = denied and DENIED_WITH.match(text[last : span[0]][:WINDOW])
        if with_last or EVERY_LANGUAGE.before.search(_around(text, span)[0]):
            denied.add(span)
            last = max(last, span[1])
    return denied


def _explained_away(text: str, others: Sequence[_Span], right: Sequence[_Span]) -> set[_Span]:
    """Return the options that are denied in clauses behind the one that names the right option.

    There a denial may follow them, and holds for all of a list: `B. A, C and D are incorrect`.
    """
    end = text.find("|", min(right)[1]) if right else -1
    return {
        span
        for spans in _lists(text, [span for span in others if span[0] > end >= 0])
        if EVERY_LANGUAGE.before.search(_around(text, spans[0])[0])
        or _is_denied_by(_around(text, spans[-1])[1])
        for span in spans
    }


def _lists(text: str, spans: Sequence[_Span]) -> list[list[_Span]]:
    """Return the options in lists, as in `A, C and D`; one that stands alone is a list too."""
    lists: list[list[_Span]] = []
    for span in sorted(spans):
        if lists and _LISTED.fullmatch(text[lists[-1][-1][1] : span[0]]):
            lists[-1].append(span)
        else:
            lists.append([span])
    return lists


def _refuted(text: str, spans: Sequence[_Span]) -> set[_Span]:
    """Return the options of clauses that say no more of them than that they are wrong.

    So begins "A and C are wrong, so B"; a question, "A is wrong?", says nothing.
    """
    refuted: set[_Span] = set()
    for options in _lists(text, spans):
        lead = _REASON.split(text[: options[0][0]].rpartition("|")[2])[-1].strip()
        after, _, following = text[options[-1][1] :].partition("|")
        is_question = "?" in after or following.lstrip().startswith("?")
        is_predicate = " " in after.strip() or not after.isascii() or _IS_FALSE.search(after)
        if not is_predicate or is_question or not _BEFORE_LETTER.fullmatch(lead):
            continue
        if _is_denied_by(f"{after}|"):
            refuted |= {*options}
    return refuted


def _beside_denied(
    text: str, rivals: Sequence[tuple[str, _Span]], denied: set[_Span]
) -> set[_Span]:
    """Return the names of an option that stand beside one that is denied: `not (A) red`."""
    ordered = sorted(rivals, key=lambda rival: rival[1])
    beside: set[_Span] = set()
    for (name, span), (other, following) in pairwise(ordered):
        if text[slice(*span)] == text[slice(*following)]:  # "I | I is wrong": said twice
            continue
        if name == other and not text[span[1] : following[0]].strip(" |"):
            beside |= {span, following} if denied & {span, following} else set()
    return beside


def _is_denied_by(after: str) -> bool:
    """Say whether an option is denied in its own clause: `A | no` may be said of something else."""
    denial = EVERY_LANGUAGE.after.match(after)
    return denial is not None and not denial[0].startswith(" |")


def _inside(span: _Span, longer: Sequence[_Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in longer if span != (start, end))


def _is_denied(text: str, span: _Span, spans: Sequence[_Span]) -> bool:
    """Say whether an option is denied; the "no" of `B) no` is its name if the option is no."""
    before, after = _around(text, span)
    denial = EVERY_LANGUAGE.after.match(after)
    word = denial and (span[1] + denial.end() - len(denial[0].lstrip(" |")), span[1] + denial.end())
    return bool(EVERY_LANGUAGE.before.search(before)) or (word is not None and word not in spans)


def _is_hedged(text: str, span: _Span, *, asks: bool) -> bool:
    """Say whether an option is a guess; one that is a question itself keeps its mark."""
    before, after = _around(text, span)
    if asks:
        after = after.lstrip(" ?|")
    hedged = HEDGED_BEFORE.search(before) or HEDGED_AFTER.match(after) or OR_BEFORE.search(before)
    return bool(hedged or _MAY_BE.match(after))


def _around(text: str, span: _Span) -> tuple[str, str]:
    start, end = span
    return text[max(0, start - WINDOW) : start], text[end : end + WINDOW]


@lru_cache(maxsize=4096)
def _pattern(alias: str) -> re.Pattern[str]:
    """Match an alias: as a substring in scripts without spaces, else between word boundaries.

    Its `&` may be written as a word or left out, its "and" as `&`.
    """
    words = [
        word
        for word in _BORDER.sub(" ", _SPACELESS_AND.sub(" & ", clauses(alias))).split()
        if word not in "|?"
    ]
    words = words or fold(alias).split()
    pattern, last = "", ""
    for place, word in enumerate(words):
        joins = 0 < place < len(words) - 1 and (word == "&" or word in _AND.split("|"))
        gap = "[ |?]*" if last and (_spaceless(last[-1]) or _spaceless(word[0])) else "[ |?]+"
        if joins:
            pattern += rf"(?:[ |?]*(?:&|{_AND}))" + ("?" if "&" in alias else "")
        else:
            pattern += (gap if last else "") + re.escape(word)
            last = word
    left = "" if _spaceless(words[0][0]) else r"(?<!\w)"
    right = "" if _spaceless(last[-1]) else r"(?!\w)"
    return re.compile(left + pattern + right + (_NO_WORD if fold(alias) in _WORD_LETTERS else ""))


def _spaceless(char: str) -> bool:
    return unicodedata.name(char, "").startswith(_SPACELESS)
