"""Words of the languages that are read: how each announces an option, joins, concedes and negates.

Patterns of whole announcements are in `announcements`; the words that withdraw an answer of any
verifier are in `tasks.gym.denials`.
"""

# ruff: noqa: RUF001 - other scripts
import re
import unicodedata
from dataclasses import dataclass

from tasks.algorithms.folding import unified


def compile_folded(*patterns: str) -> re.Pattern[str]:
    """Compile alternatives whose letters are written as in the text that they are applied to."""
    return re.compile(unicodedata.normalize("NFKC", unified("|".join(patterns))))


@dataclass(frozen=True, slots=True)
class _Language:
    """How a language announces an option; sources of patterns, on text of `plain`."""

    answer: str
    """A noun that announces by itself: `the answer is`."""
    option: str
    """A noun that announces with an adjective: `the best option is`."""
    good: str
    """The adjectives, before or after the noun."""
    false: str
    """Adjectives of what is not the answer, before or after the noun: `the worst option is`."""
    verb: str
    is_good: str
    """After the option: `is the correct answer`."""
    fill: str = "(?!)"
    """Other words beside the nouns."""
    choose: str = "(?!)"
    """Announces without a noun: `I choose`."""
    owner: str = "(?!)"
    """Before the second noun, in place of an adjective: `my choice is`."""
    tempts: str = "(?!)"
    """A clause that says of option X that it misleads, and nothing else: `X is tempting`."""
    seems: str = "(?!)"
    """A clause that says of option X that it looks right: `X seems right`."""

    def announces(self) -> str:
        """Return the pattern of what stands before an option, also before one called false."""
        good, false, fill = (rf"(?:{part})" for part in (self.good, self.false, self.fill))
        space = r"[\s,*_]*"
        beside = rf"(?:{space}(?:{good}|{fill}|{false}))*"
        subject = (
            rf"(?:{false}{space})?(?:{self.answer}){beside}|"
            rf"(?:{good}|{false}|(?<!\w)(?:{self.owner})){space}(?:{self.option}){beside}|"
            rf"(?:{self.option})(?:{space}{fill})*{space}(?:{good}|{false}){beside}"
        )
        return rf"(?:(?:{subject})[\s*_]*(?:{self.verb})|{self.choose})"


_LAST_LETTER = (
    r"(?=[\s(*_]{0,4}[a-z][)*_]{0,3}(?:[.,;:!\n]|\s{0,9}\Z| (?:as|because|since|and|or)(?!\w)))"
)
"""No more than a reason follows it: "this leaves B out" is none."""
_LETTER = r"(?=[\s(*_]{0,4}[a-z](?!\w))"
LANGUAGES = (
    _Language(  # English
        answer=r"(?<!\w)(?:answer|(?<!of )(?<!of a )(?<!of the )(?<!in )(?<!in the )solution)"
        r"(?!\w)",
        option=r"(?<!\w)(?:option|choice|one|letter|selection)(?!\w)",
        good=r"(?<!\w)(?:correct|right|true|best|suitable|appropriate|likely|accurate|fitting|"
        r"final|left|remaining|(?:that|which) (?:best |most closely )?"
        r"(?:fits|works|matches|applies|remains|makes sense)(?: best)?)",
        false=r"(?<!\w)(?:wrong|incorrect|false|invalid|impossible|worst|poorest|weakest|"
        r"least \w+|second[- ]best|(?:un|in|im)(?:likely|suitable|fit|fitting|acceptable|accurate|"
        r"appropriate|proper|plausible)|excluded|eliminated|rejected|discarded|tempting|trap|"
        r"initial|previous|original|another|other|alternative|"
        r"(?:that|which) is (?:not \w+|wrong|incorrect|false))",
        owner="my|our|the(?= choice)",
        fill=r"(?:to|of|for) (?:this|the) (?:question|problem)|key|here|therefore|thus|then|"
        r"clearly|most|is|and",
        verb=r"is(?!\w|')|must be|should be|would be|will be|has to be|can only be|turns out to be|"
        r":|=",
        tempts=r"X (?:is|was|may be|might be) (?:\w+ )?(?:tempting|attractive|appealing|misleading|"
        r"plausible|distractor|decoy|trap|close)",
        seems=r"X (?:(?:may|might|could|can) )?(?:seem|look|appear|sound)s?(?: to be)?(?: \w+)? "
        r"(?:right|correct|plausible|tempting|good|attractive|reasonable)",
        is_good=r"(?:(?<!\w)(?:is|must be|would be)|'s) (?:the )?"
        r"(?:only |single |most |clearly |therefore |thus )*(?:"
        r"(?:correct|right|best|true|suitable|appropriate|accurate|likely)"
        r"(?: one| answer| option| choice)?(?! (?:if|when|in the sense|that))|"
        r"answer"
        r")(?![\w'])|"
        r"(?<!\w)fits best(?!\w)|"
        r"(?<=[\w)*}]) the (?:only )?(?:right|correct|best) (?:answer|option|choice|one)"
        r"(?!\w)(?! (?:if|when))",
        choose=rf"(?<!\w)choice:|(?<!\w)(?:ans\s?[.:=]|(?:final|correct|pick|conclusion|verdict|"
        rf"result|selected(?: option| answer| choice)?)\s?:){_LETTER}|"
        rf"(?<!\w)by (?:the )?(?:process of )?elimination[,:]?"
        rf"(?: it is| it's| we get| only)?{_LAST_LETTER}|"
        r"(?<!\w)(?:this|that|which) leaves(?: us)?(?: with)?(?: only| just)?"
        rf"(?: option| choice| answer)?{_LAST_LETTER}|"
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
        false=r"(?<!\w)(?:yang )?(?:paling )?(?:salah|keliru|terburuk|(?:tidak|kurang) \w+)",
        fill="akhir",
        tempts="X (?:(?:memang|sangat|cukup) )?(?:menarik|menggoda|menjebak|mengecoh|menyesatkan|"
        "menipu|mengelirukan|hampir (?:benar|tepat|betul))",
        seems="X (?:terlihat|tampak|kelihatan|nampak|sepertinya|kedengaran|terdengar) "
        "(?:benar|betul|tepat|menarik|masuk akal)",
        verb=rf"adalah|ialah|:|(?<=nya){_LETTER}",
        is_good=r"(?<!\w)(?:"
        r"(?:adalah|ialah|merupakan) (?:jawa[bp]an|pilihan|opsi)(?: yang)?(?: paling)?"
        r"(?: benar| tepat| betul| terbaik)?|"
        r"(?:adalah |ialah )?(?:yang )?(?:paling )?(?:benar|tepat|betul)"
        r")(?!\w)(?! (?:jika|kalau|bila))",
        choose=rf"(?<!\w)(?:jawab|jwb)\s?:{_LETTER}|"
        rf"(?<!\w)yang (?:paling )?(?:tepat|benar|betul) (?:adalah|ialah){_LETTER}|"
        r"(?<!\w)(?:saya|kami|kita)(?: akan)? (?:memilih|pilih)"
        r"(?: opsi| pilihan| jawa[bp]an)?",
    ),
    _Language(  # Portuguese
        answer=r"(?<!\w)(?:a )?(?:resposta|gabarito)(?!\w)",
        option=r"(?<!\w)(?:opção|alternativa|escolha|letra)(?!\w)",
        good=r"cert[ao]|corret[ao]|adequad[ao]|melhor",
        false=r"(?<!\w)(?:pior|errad[ao]|incorret[ao]|fals[ao]|inadequad[ao]|"
        r"não (?:cert|corret|adequad)[ao]|menos \w+)",
        fill="a|final|mais",
        tempts="X (?:é|está) (?:muito )?(?:tentador[ae]?|atraente|plausível|enganos[ao])",
        seems="X (?:parece|pode parecer|soa) (?:cert|corret|plausível|tentador|bo)[ao]?",
        verb=r"é(?!\w)|:",
        is_good=r"(?<!\w)(?:é|está) (?:a )?(?:única )?(?:melhor )?"
        r"(?:resposta|opção|alternativa|corret[ao]|cert[ao])(?!\w)(?! (?:se|quando))",
        choose=rf"(?<!\w)resp\.?\s?:{_LETTER}|"
        r"(?<!\w)(?:eu )?(?:escolho|escolheria|seleciono|escolhemos|marco)(?: a)?"
        r"(?: opção| alternativa| letra)?",
    ),
    _Language(  # Spanish
        answer=r"(?<!\w)respuesta(?!\w)",
        option=r"(?<!\w)(?:opción|alternativa|elección|letra)(?!\w)",
        good="correcta|adecuada|mejor|verdadera",
        false=r"(?<!\w)(?:peor|incorrecta|falsa|errónea|equivocada|inadecuada|"
        r"no (?:correcta|adecuada|verdadera)|menos \w+)",
        fill="la|el|final|más",
        tempts="X es (?:muy )?(?:tentador[a]?|atractiv[ao]|plausible|engaños[ao])",
        seems="X (?:parece|puede parecer) (?:correct[ao]|plausible|tentadora?|buen[ao])",
        verb=r"es(?!\w)|:",
        is_good=r"(?<!\w)(?:es|está) (?:la )?(?:única )?(?:mejor )?"
        r"(?:respuesta|opción|alternativa|correct[ao]|adecuada)(?!\w)(?! (?:si|cuando))",
        choose=rf"(?<!\w)rp?ta\.?\s?:{_LETTER}|"
        r"(?<!\w)(?:yo )?(?:elijo|escojo|selecciono|elegimos|escogemos)(?: la)?"
        r"(?: opción| letra)?",
    ),
    _Language(  # French
        answer=r"(?<!\w)réponse(?!\w)",
        option=r"(?<!\w)(?:option|choix)(?!\w)",
        good="correcte?|bon(?:ne)?|meilleure?|juste",
        false=r"(?<!\w)(?:mauvaise?|pire|incorrecte?|fausse|faux|inexacte?|"
        r"non correcte?|moins \w+)",
        fill="la|le|finale",
        tempts="X est (?:très )?(?:tentante?|plausible|attrayante?|trompeu(?:r|se))",
        seems="X (?:semble|paraît|peut sembler) (?:correcte?|juste|plausible|bonne)",
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
        false=r"(?<!\w)(?:falsche|schlechteste|unwahrscheinlichste|"
        r"(?:nicht |am wenigsten |un|in)(?:richtige|korrekte|passende))",
        fill="die|endgültige|finale",
        tempts="X ist (?:sehr )?(?:verlockend|plausibel|irreführend|verführerisch)",
        seems="X (?:scheint|wirkt|klingt|sieht) (?:richtig|korrekt|plausibel|verlockend)(?: aus)?",
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
        false=r"(?<!\w)(?:sbagliata|errata|falsa|scorretta|inesatta|peggiore|"
        r"non (?:giusta|corretta|esatta)|meno \w+)",
        fill="la|finale",
        tempts="X è (?:molto )?(?:allettante|plausibile|ingannevole)",
        seems="X (?:sembra|pare) (?:giusta|corretta|esatta|plausibile|allettante)",
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
        false=r"(?<!\w)(?:sai|kém|tệ nhất|ít phù hợp|không (?:đúng|chính xác|phù hợp))",
        fill="cuối cùng|nhất",
        tempts="X (?:rất |khá )?(?:hấp dẫn|dễ gây nhầm lẫn|dễ nhầm)|X là (?:một )?(?:cái )?bẫy",
        seems="X (?:có vẻ|trông|nghe)(?: có vẻ)?(?: rất)? (?:đúng|hợp lý|hấp dẫn|chính xác)",
        verb=r"là(?!\w)|:",
        is_good=r"(?<!\w)là (?:"
        r"(?:đáp án|câu trả lời|lựa chọn|phương án)(?: đúng| chính xác| tốt nhất)*|đúng|"
        r"chính xác"
        r")(?!\w)(?! (?:nếu|khi))|(?<!\w)mới (?:là )?(?:đáp án|đúng)(?!\w)",
        choose=rf"(?<!\w)đ/?a\s?:{_LETTER}|"
        rf"(?<!\w)(?<!lựa )(?<!không )(?:chọn)(?: đáp án| phương án| câu)?{_LETTER}",
    ),
    _Language(  # Thai
        answer="(?:คำตอบ|เฉลย|ข้อ(?=ที่))",
        option="(?:ตัวเลือก|ข้อ)",
        good="(?:ที่)?(?:ถูกต้อง|ถูก|ดี)(?:ที่สุด)?",
        false="(?:ที่)?(?:ผิด|ไม่(?:ถูกต้อง|ถูก|ดี)|แย่)(?:ที่สุด)?",
        fill="สุดท้าย|ของข้อนี้",
        tempts="X ?(?:ดู)?(?:น่าสนใจ|น่าดึงดูด|เป็นตัวลวง|ลวง)",
        seems="X ?(?:ดู(?:เหมือน)?|ฟังดู)(?:จะ)? ?(?:ถูก(?:ต้อง)?|น่าสนใจ|สมเหตุสมผล)",
        verb="คือ|:",
        is_good="(?:คือ|เป็น)คำตอบ(?:ที่ถูก(?:ต้อง)?)?|(?<=[a-z)*_]) ?(?:เป็นข้อที่)?ถูกต้อง(?:ที่สุด)?",
        choose=rf"(?:ฉัน|ผม|เรา|ดิฉัน)?(?:ขอ)?(?<!ตัว)(?<!ไม่)(?:เลือก|ตอบ|เฉลย)(?:ข้อ|ตัวเลือก)?{_LETTER}",
    ),
    _Language(  # Filipino
        answer=r"(?<!\w)(?:sagot|kasagutan)(?!\w)",
        option=r"(?<!\w)(?:opsyon|pagpipilian|letra)(?!\w)",
        good="tama(?:ng)?|wasto(?:ng)?|pinakaangkop|pinakamainam",
        false=r"(?<!\w)(?:(?:na )?mali(?:ng)?|(?:na )?hindi (?:tama|wasto)(?:ng)?|pinakamasama)",
        fill="ang|na|ay",
        tempts="(?:nakakatukso|nakakaakit|nakakalito) ang X",
        seems="(?:mukhang|parang) (?:tama|wasto) ang X",
        verb=r"ay(?!\w)|:",
        is_good=r"(?<!\w)ang (?:tama(?:ng)?|wasto(?:ng)?)"
        r"(?:(?: na)? (?:sagot|kasagutan|opsyon))?(?!\w)",
        choose=r"(?<!\w)(?:pinipili|pipiliin) (?:ko|namin)(?: ang)?(?: letra| opsyon)?",
    ),
    _Language(  # Chinese
        answer="答(?:案|(?=:))",
        option="[選选](?:[項项]|[擇择])|(?<=正[确確]|[错錯][误誤])的(?=是|為|为|:)",
        good="正[確确]|最[終终佳好]|最合[適适]|最[優优]|的",
        false="(?:[错錯][误誤]|不(?:正[確确]|恰[當当]|合[適适])|最[差坏壞])的?",
        tempts="X(?:选项|選項|项|項)?(?:很|颇|頗|有|具有?|最)*(?:迷惑性?|诱人|誘人|干扰项|干擾項)",
        seems="X(?:选项|選項|项|項)?(?:看似|看起[来來]|似乎|好像|乍看)(?:是|很)?(?:正[確确]|[对對]|合理)的?",
        verb=r"(?:應該?|应该?|应当|就)?(?:是|為|为|:|選擇?|选择?)(?:[選选][項项])?",
        is_good="(?:[項项]|[選选][項项])?(?:(?:是|為|为)?(?:唯一)?正[確确]的?|是最(?:合[適适]|[適适]合|好|佳|恰[當当]|"
        "優|优)的)(?:[選选][項项]|答案)?(?!的?[嗎吗])",
    ),
)
PHRASES = (
    r"####|\\boxed",
    r"【(?:正[確确])?答案】",  # 【答案】B
    r"(?<![不未非没沒])(?:故答案[為为]?:?|故|因此|所以|应该?|應該?|本[題题]|只能|可)"  # 故选:B
    r"(?:應|应)?[選选]择?擇?:?",
    r"(?<![不未非没沒能])[選选][择擇]?:?(?= ?[(（*_]{0,3}[a-z](?![a-z]))",  # 选B
)
KEY = (
    r"[\"'](?:final[_ ])?(?:answer|choice|option|selection|答案|選項|选项|选择|jawaban|jawapan|"
    r"respuesta|réponse|resposta|antwort|risposta|đáp án|คำตอบ)[\"']\s*:"
)
"""The key in front of the answer: `{"answer": "B"}`."""

CONCESSIONS = (
    "even though|even if|although|though|while|whilst|whereas|sedangkan|sementara|manakala|"
    "walaupun|meskipun|meski|walau|padahal|trong khi|mặc dù|dù|tuy|còn|embora|enquanto|"
    "ao passo que|se bem que|ainda que|mesmo que|aunque|mientras|si bien|bien que|quoique|"
    "tandis que|alors que|während|obwohl|wobei|obgleich|mentre|anche se|sebbene|benché|habang|"
    "samantalang|bagaman|kahit"
)
BUT = "but|yet|however|tetapi|tapi|namun|mas|porém|pero|mais|aber|ma|però|nhưng|ngunit"
BUT_SPACELESS = "แต่|但是?|不[过過]|而|然而|可是"
ALSO = "too|also|equally|as well|just as|juga|também|también|cũng|auch|aussi|anche|rin|din"
ALSO_SPACELESS = "也|ก็|ด้วย"
CONCESSIONS_SPACELESS = "ในขณะที่|ขณะที่|แม้ว่า|แม้|ส่วน|ทั้งที่|[虽雖]然|尽管|儘管"
# "because a is red", "while a is red", behind the option in its clause
REASON = compile_folded(
    r"(?<!\w)(?:because|since|as|given|over|unlike|rather than|instead of|karena|kerana|sebab|vì|"
    rf"bởi|porque|pois|parce|car|weil|denn|perché|dahil|sapagkat|{CONCESSIONS})(?!\w)|"
    rf"เพราะ|เนื่องจาก|因[为為]|由于|由於|{CONCESSIONS_SPACELESS}"
)
FALSE = (
    r"wrong|incorrect|false|invalid|impossible|unsuitable|salah|keliru|sai|errad[ao]s?|incorret[ao]s?|"
    r"incorrect[ao]s?|faux|fausses?|falsch|sbagliat[aoie]|errat[aoie]|fals[aoie]s?|mali"
)
NEGATED = compile_folded(
    r"(?<!\w)(?:not|n t|never|neither|nor|no|cannot|can t|isn t|doesn t|wouldn t|tidak|bukan|não|"
    rf"nem|không|chẳng|nicht|kein\w*|ni|pas|non|hindi|{FALSE})(?!\w)|n't|ไม่|ผิด|[不非没沒错錯]"
)
OR = "or|nor|atau|ataupun|ou|o|oder|hoặc"
AND = "and|dan|e|y|et|und|và|และ|กับ|和|與|与|及|跟|暨"
"""Words that may replace `&` in the name of an option."""
JOINERS = ("&", *AND.split("|"), *OR.split("|"), "หรือ", "或", "或者")
COPULA = r"(?:(?:is|é|es|est|ist|è|adalah|ialah|là|ay)(?!\w)|คือ|เป็น|是)"
