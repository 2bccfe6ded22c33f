"""Identify the language of a text by its script, else by frequent words and letters."""

import re
import unicodedata
from collections import Counter

from tasks.algorithms.language_tags import primary

# Frequent words of the languages that share a script with others, for `languages`.
#
# Function words, most of them closed-class, chosen so that related languages differ; for the
# languages of our markets also frequent verbs and nouns.

# ruff: noqa: RUF001 - other scripts are the point
WORDS: dict[str, dict[str, str]] = {
    "LATIN": {
        "en": (
            "the of and to a in is that it for was on are with as be this at by have you not from "
            "or but we my your i an will can if they their which has were he she what there our "
            "more when would do all one about who no so up out some like me him her its been had "
            "them then than just into only other could these how also very any because most "
            "should may such where after before his us over am did get make know see new good "
            "time here need let i'm it's don't many much way day people please answer every each "
            "still never always while too being said went got made take came found first last "
            "long little old own same another again off down work water man woman children house "
            "friend school write days hours minutes per bought sold price buy shoes red small "
            "using use between since until both few without under why does doing gave two three "
            "four five six seven eight nine ten week month year years gets takes makes needs "
            "wants loves sells runs costs gives says buys plays works total dollars bags book "
            "books dog dogs car food home night money best love better next left right morning "
            "today blue green black white big large cheap soft light strong fresh bag shirt"
        ),
        "de": (
            "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als "
            "auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem "
            "über einen so zum war haben nur oder aber vor zur bis mehr durch man sein wurde ich "
            "wir ihr mich mir dein deine mein meine kann wenn hier diese dieser"
        ),
        "fr": (
            "le la les de des et un une en du que est pour qui dans par plus pas au sur se ne ce "
            "il elle sont avec son ses aux ou mais comme nous vous leur était cette été tout fait "
            "être je mon ma mes votre vos très bien ces c'est j'ai qu'il n'est d'un d'une l'on "
            "toute tous toutes faire peut peuvent doit ainsi encore maintenant ici là mieux fois "
            "jour jours année ans homme femme enfants maison eau temps alors chaque autre autres "
            "quels quelle quelles quel comment pourquoi où quand deux trois sous entre sans avant "
            "après depuis leurs cet celui quatre cinq six sept huit neuf dix semaine mois "
            "aujourd'hui argent livre voiture"
        ),
        "es": (
            "el la los las de que y en un una por con para del se no lo al como más su sus es "
            "pero este esta entre cuando muy sin sobre también hasta hay donde quien desde todo "
            "nos durante uno ni contra ese eso mi yo tu él ella son está fue ser tiene porque "
            "gracias usted puede mucho mucha muchos muchas todos todas toda hacer pueden debe así "
            "aún ahora aquí allí bien mejor mayor vez días año años hombre mujer niños casa agua "
            "tiempo entonces cada otro otra otros tienen están fueron había esto aquel cómo qué "
            "cuál cuáles dónde respuesta palabras describe explica dos tres cuatro cinco seis "
            "siete ocho nueve diez semana mes hoy dinero libro coche"
        ),
        "pt": (
            "o a os as de que e do da em um uma para com não por mais dos das como mas foi ao ele "
            "ela seu sua ou ser quando muito nos já está eu também só pelo pela até isso entre "
            "era depois sem mesmo aos ter seus quem nas me esse eles você essa são é produto meu "
            "minha nosso às muitas muitos todos todas todo toda fazer pode podem deve onde porque "
            "então assim ainda agora aqui ali lá bem melhor maior menor vez vezes dia dias ano "
            "anos homem mulher crianças casa água tempo obrigado obrigada preço loja comprar "
            "produtos entrega qualidade tamanho ótimo bom boa bons vem tem temos têm estão foram "
            "havia isto aquele aquela num numa nessa nesse desta deste dessa desse pelos pelas "
            "dois duas três quatro cinco seis sete oito nove dez semana mês hoje amanhã dinheiro "
            "livro carro"
        ),
        "it": (
            "il lo la i gli le di che e un una in per con non del della dei delle è sono si da al "
            "alla come più ma anche nel nella se ci questo questa mi suo sua o ed essere ha ho "
            "hanno molto loro quando dal sul tutto noi voi io tu lui lei perché così cosa ogni "
            "dopo fare questi queste quello quella degli agli negli dagli sugli nelle sulla molti "
            "molte tutti tutte fatto"
        ),
        "nl": (
            "de het een en van in is dat op te zijn met voor niet aan er om ook als dan maar bij "
            "uit nog naar wordt door over ze zich hij je ik wij we heeft had was kan deze dit "
            "meer of geen jullie hun haar toen veel alleen omdat waar worden heb hebben mijn jouw"
        ),
        "fi": (
            "ja on ei että se oli hän mutta ovat kun niin myös kuin joka tai sen olla vain jos "
            "nyt mitä minä sinä me te he ole olen hänen minun sitä jotka voi sekä koska tämä "
            "tämän siitä mukaan kanssa joten olisi hyvä sinun ne siinä"
        ),
        "vi": (
            "và của là có cho không được trong các những một với người này đã để khi từ đến như "
            "tôi bạn cũng thì ra sẽ nhiều về phải làm đó trên sau theo rất nhưng vào hơn nếu lại "
            "bị chúng ta ở nó anh em chị tại sao gì nào đâu ấy vì nên bởi cô ông bà mình họ tất "
            "cả mọi mỗi vẫn đang còn chỉ hết mua bán giá hàng sản phẩm giày đẹp tốt nhà nước ngày "
            "năm giờ việc điều cái con chiếc quá mới cùng thấy biết đi bằng qua lên xuống tới "
            "giữa trước thể học sinh viên đàn phụ nữ trẻ mẹ cha đứa"
        ),
        "id": (
            "yang dan di dengan untuk tidak ini itu dari dalam akan pada juga ke karena tersebut "
            "bisa ada mereka lebih kata telah saya kami kita dapat oleh atau sudah seperti "
            "sebagai adalah bahwa anda saat hanya namun bukan barang banget aku kamu apa jadi "
            "kalau secara beberapa antara sangat masih harus produk warna mau orang anak hari "
            "waktu rumah baik besar kecil baru lama sekali lagi lalu sambil agar supaya tanpa "
            "sampai hingga setelah sebelum ketika selama setiap semua banyak sedikit membuat "
            "memberi melihat pria wanita perempuan gadis seorang sebuah ia dia nya harga beli "
            "jual toko cepat bagus bagi menjadi belum pernah sedang maupun serta yaitu sepatu "
            "pembeli penjual pengiriman kirim sesuai maka tetapi dua tiga empat lima enam tujuh "
            "sepuluh minggu bulan tahun uang buku air makan nama"
        ),
        "ms": (
            "yang dan di dengan untuk tidak ini itu dari dalam akan pada juga ke kerana tersebut "
            "boleh ada mereka lebih kata telah saya kami kita dapat oleh atau sudah seperti "
            "sebagai adalah bahawa anda ketika hanya tetapi bukan barangan awak apa jadi jika "
            "antara sangat masih perlu produk warna ialah daripada kepada beliau wang mahu orang "
            "anak hari waktu rumah baik besar kecil baru lama sekali lagi lalu sambil agar supaya "
            "tanpa sampai hingga selepas sebelum semasa setiap semua banyak sedikit membuat "
            "memberi melihat lelaki perempuan wanita seorang sebuah ia dia nya harga beli jual "
            "kedai cepat bagus bagi menjadi belum pernah sedang mahupun serta iaitu kasut pembeli "
            "penjual penghantaran hantar sesuai maka sahaja dua tiga empat lima enam tujuh "
            "sepuluh minggu bulan tahun buku air makan nama"
        ),
        "sw": (
            "na ya wa kwa ni katika za la kuwa hii cha kama yake pia au lakini hiyo ambayo watu "
            "huu sana mimi wewe yeye sisi kila tu baada kutoka huo hili kwamba yangu yako wetu si "
            "ili zaidi mtu hapa bila vya ina alikuwa bado wote moja"
        ),
        "tl": (
            "ang ng sa na mga at ay si ko mo niya kung para hindi ito siya ka ako namin natin "
            "sila may kay po rin din lang pero dahil isang nang kayo nila ni upang kanyang iyon"
        ),
        "tr": (
            "ve bir bu da de için ile çok daha gibi ne o ben sen en var olarak olan kadar sonra "
            "ama mi değil her şey ya ki biz siz onu bana"
        ),
        "sv": (
            "och att det i en på är som för av med den till inte har de ett om var jag men så vi "
            "han från du kan när nu hon eller man mig dig ska"
        ),
        "pl": (
            "i w na z do się nie to że jest o jak ale po co tak za od dla już przez czy tylko są "
            "ma być może był jego bardzo ja ty my ich"
        ),
    },
    "DEVANAGARI": {
        "hi": (
            "है हैं के का की में और से को पर नहीं यह कि एक लिए था हो करने साथ भी ने या जो वह तो "
            "अपने हम आप मैं इस कर रहा होता थे किया ही"
        ),
        "mr": (
            "आहे आहेत आणि च्या मध्ये हे ही हा तो ती ते नाही एक होते करण्यासाठी मी आपण तुम्ही "
            "आम्ही केले साठी असे पण होता या व त्या काही झाली त्यांच्या"
        ),
        "ne": (
            "छ छन् र को का मा लाई हो पनि यो त्यो भने गर्न गर्ने छैन हुन्छ म तपाईं हामी थियो लागि "
            "गरेको तर हुन् एक भएको गर्छ एउटा यस"
        ),
    },
    "ARABIC": {
        "ar": (
            "في من على إلى أن هذا هذه التي الذي كان لا ما هو هي مع عن لم قد كل بعد أو ثم كما أنا "
            "نحن إن ذلك بين يكون و"
        ),
        "fa": (
            "در از به که این را با است برای آن یک خود تا بر هم نیز می ها شده شود باید من شما ما "
            "او هستند بود کرد اما یا و"
        ),
        "ur": (
            "کے کی میں ہے اور سے کا کو ہیں نے پر اس یہ ایک کہ بھی نہیں لیے تھا وہ ہم آپ کر گیا تو "
            "ہو جو یا اپنے رہا ساتھ"
        ),
    },
    "CYRILLIC": {
        "ru": (
            "и в не на что с по это как он я из к но у за от так для вы же мы бы все его она был "
            "они или если только мой ваш есть когда меня очень была чтобы при"
        ),
        "bg": (
            "и на да се не в за от с е по ще че са като ли това който но има със те той го ми ни "
            "много или съм сме вие аз ние до как при може тази беше една"
        ),
        "uk": (
            "і в на не що з у та як до це за він я але для від є ви ми так його вона були чи або "
            "якщо тільки мій ваш коли дуже при бути й"
        ),
    },
}

APART: dict[str, str] = {
    "id": (
        "karena bisa bahwa mobil uang coba mencoba berbeda namun kue sepeda polisi inggris gratis "
        "ukuran pengiriman toko kualitas layanan perusahaan televisi universitas telepon pria "
        "yaitu mau gadis nggak gak banget kalian merasa butuh membutuhkan kemarin sepatu celana "
        "kirim mengirim kacamata kulkas dokter apotek rusak sedangkan senin rabu jumat maret "
        "agustus desember tim tes proyek aktivitas informasi produksi bilang kantor kamar gedung "
        "bocah siswa wisatawan apartemen manajer publik wastafel pengadilan istri karyawan "
        "pemerintah tetangga lelah obat laki cewek cowok ponsel koran juli oktober tas es macet "
        "berbicara nyalakan menyalakan aja udah sih dong deh kok bgt yg dgn tdk krn jg knp "
        "kebakaran menginginkan bungkus sampah listrik ganti usai para sang"
    ),
    "ms": (
        "kerana bahawa cuba mencuba berbeza kuih basikal inggeris saiz penghantaran kualiti "
        "perkhidmatan syarikat televisyen universiti telefon iaitu mahu kasut seluar hantar "
        "menghantar doktor rosak manakala isnin jumaat mac ogos disember pasukan projek aktiviti "
        "maklumat sahaja selepas mahupun ianya menerusi bagaimanapun cikgu isteri bilik mahkamah "
        "jiran kerajaan ubat tayar stesen bercakap tingkap julai makmal motosikal teksi beg "
        "stokin emel diskaun baucar setem rakan terutamanya bayaran pulangan jualan pejabat wang "
        "lelaki percuma esok beliau awak takde jugak"
    ),
}
"""Words that distinguish Indonesian from Malay by spelling or choice."""


# Identify the language of a text by its script, else by frequent words and letters.
#
# Made for checking an instruction ("answer in Thai"), not for general identification: it knows a
# few dozen languages and returns None if undecided. Indonesian and Malay are distinguished by
# words that differ between the two standards, Traditional and Simplified Chinese by characters
# that only one of two national encodings (Big5, GB 2312) has.

MIN_SHARE = 0.5
"""Share of the letters that makes a script the text's script."""

MIN_LEAD = 2
"""Lead in frequent words with which another language excludes this one."""

MIN_COVERAGE = 0.1
"""Share of the words that must be frequent words of a language to confirm it."""

LONG = 30
"""Words of a text that is always decided: among 2,400 pieces of public text of this length in five
languages, the frequent words of another language led in one, and none had fewer than 10 %."""

CLEAR = 3
"""Ratio of words or characters that decides between two close standards."""

_SCRIPT_LANGUAGE = {
    "THAI": "th",
    "HANGUL": "ko",
    "KANNADA": "kn",
    "GURMUKHI": "pa",
    "GUJARATI": "gu",
    "TELUGU": "te",
    "TAMIL": "ta",
    "BENGALI": "bn",
    "MALAYALAM": "ml",
    "GREEK": "el",
    "HEBREW": "he",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh",
}
_PROFILES = {
    script: {language: frozenset(words.split()) for language, words in profiles.items()}
    for script, profiles in WORDS.items()
}
_LETTERS = {
    "vi": re.compile(r"[\u0103\u0111\u01a1\u01b0\u1ea0-\u1ef9]"),
    "es": re.compile(r"[\u00f1\u00bf\u00a1]"),
    "de": re.compile(r"\u00df"),
    "tr": re.compile(r"[\u011f\u0131\u015f]"),
    "pl": re.compile(r"[\u0142\u0105\u0119\u015b\u017a\u017c\u0107\u0144]"),
    "fr": re.compile(r"\u0153|^[cdjlmnst]'(?:[aeiou\u00e9\u00ea\u00e8\u00e0]|h[aeo])"),
    "pt": re.compile(r"\u00e7\u00e3o$|\u00e7\u00f5es$|\u00f5es$|\u00e3es$|\u00e3o$"),
}
"""Letters and endings rarely found in other languages, by language in Latin script."""
_STANDARDS = {"id": "ms", "ms": "id"}
LETTERS_OF = {"CJK": 3, "HANGUL": 2, "HIRAGANA": 2, "KATAKANA": 2}
"""Latin letters that say as much as one of these: the 250 problems of MGSM have 2.8 times as many
letters in English as in Chinese."""
_BESIDE_NAMES = frozenset({"zh", "ja", "ko", "th"})
# "shoe"; not "Nike", "iPhone", "256gb"
LOWER_CASE_WORD = re.compile(r"(?<![^\W_])[a-z]{2,}(?![^\W_])", re.ASCII)
_APART = {language: frozenset(words.split()) for language, words in APART.items()}
_TRADITIONAL_TAGS = frozenset({"tw", "hk", "mo", "hant"})
_SIMPLIFIED_TAGS = frozenset({"cn", "sg", "hans"})

KNOWN = frozenset(
    {
        *_SCRIPT_LANGUAGE.values(),
        *(tag for group in _PROFILES.values() for tag in group),
    }
)


def _encoded(codec: str) -> frozenset[str]:
    results = (chr(point) for point in range(0x4E00, 0xA000))
    return frozenset(char for char in results if char.encode(codec, "ignore"))


_BIG5, _GB2312 = _encoded("big5"), _encoded("gb2312")


def is_known(language: str) -> bool:
    """True if texts in a language can be recognised, by its tag."""
    return _subtags(language)[0] in KNOWN


def is_language(text: str, language: str) -> bool | None:
    """Say whether a text is in a language; None if undecided.

    Of the tag the language counts, and for Chinese the region or script as well. A text without
    letters, or without one script for most of them, is in no language.
    """
    own, *subtags = _subtags(language)
    if own not in KNOWN:
        return None
    script = dominant_script(text)
    if script == "LATIN" and own in _BESIDE_NAMES and _are_names(text, own):
        return None
    if script not in _PROFILES:
        if own != _SCRIPT_LANGUAGE.get(script or ""):
            return False
        return _chinese(text, frozenset(subtags)) if own == "zh" else True
    return _by_words(text, script, own) if own in _PROFILES[script] else False


def _subtags(language: str) -> list[str]:
    return [primary(language), *language.replace("_", "-").casefold().split("-")[1:]]


def _are_names(text: str, language: str) -> bool:
    """Say whether all Latin words are names beside the language's own: `iPhone 15 Pro 手機殼`."""
    own = any(_SCRIPT_LANGUAGE.get(_script(char)) == language for char in text if char.isalpha())
    return own and not LOWER_CASE_WORD.search(text)


def _script(char: str) -> str:
    return unicodedata.name(char, "OTHER").split(" ")[0].split("-")[0]


def dominant_script(text: str) -> str | None:
    """Return the Unicode name of the script of most letters; None if there is no clear one.

    A letter counts as what it says beside a Latin one: a character of Chinese is half a word.
    """
    letters: Counter[str] = Counter()
    for char, count in Counter(text).items():
        if char.isalpha():
            script = _script(char)
            letters[script] += count * LETTERS_OF.get(script, 1)
    if not letters:
        return None
    japanese = letters["HIRAGANA"] + letters["KATAKANA"]
    if japanese * 10 >= letters["CJK"] + japanese > 0 and japanese:
        letters["HIRAGANA"] = japanese + letters.pop("CJK", 0)
        letters.pop("KATAKANA", None)
    script, count = letters.most_common(1)[0]
    return script if count >= MIN_SHARE * letters.total() else None


def traditional(text: str) -> int:
    """Count the characters used only in traditional Chinese."""
    return sum(char in _BIG5 and char not in _GB2312 for char in text)


def simplified(text: str) -> int:
    """Count the characters used only in simplified Chinese."""
    return sum(char in _GB2312 and char not in _BIG5 for char in text)


def _by_words(text: str, script: str, language: str) -> bool | None:
    words = _words(text)
    hits = _hits(words, script)
    close = _STANDARDS.get(language, language)
    mine = max(hits[language], hits[close])
    other = max(count for tag, count in hits.items() if tag not in (language, close))
    undecided = False if len(words) >= LONG else None
    if mine <= other:
        return False if other - mine >= MIN_LEAD else undecided
    if mine < MIN_COVERAGE * len(words):
        return undecided
    return _standard(words, language) if language in _STANDARDS else True


def _chinese(text: str, subtags: frozenset[str]) -> bool | None:
    if subtags & _TRADITIONAL_TAGS:
        return _clear(traditional(text), simplified(text))
    if subtags & _SIMPLIFIED_TAGS:
        return _clear(simplified(text), traditional(text))
    return True


def _standard(words: list[str], language: str) -> bool | None:
    mine, its = _APART[language], _APART[_STANDARDS[language]]
    return _clear(sum(word in mine for word in words), sum(word in its for word in words))


def _clear(mine: int, its: int) -> bool | None:
    if mine + its == 0:
        return None
    if mine >= CLEAR * its:
        return True
    return False if its >= max(CLEAR * mine, MIN_LEAD) else None


def _words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFC", text).casefold().replace("\u2019", "'")
    return re.findall(r"[^\W\d_][\w\u0900-\u097f\u200c']*|[\u00bf\u00a1]", folded)


def _hits(words: list[str], script: str) -> dict[str, int]:
    hits = {
        language: sum(word in profile for word in words)
        for language, profile in _PROFILES[script].items()
    }
    for language, letters in _LETTERS.items() if script == "LATIN" else ():
        profile = _PROFILES[script][language]
        hits[language] += sum(word not in profile and bool(letters.search(word)) for word in words)
    return hits
