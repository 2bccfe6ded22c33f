"""Rewrite numbers as people write them, in digits or in words, to one form, `1234567.8`."""

import functools
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from tasks.gym.maths.words import HEDGES, JOINT

# Integers below a million in words: id, ms, vi, th, es, pt, fr and de (English: `numerals`).
#
# Every language is a table of the words below 1000, built once from its rules, so that only words
# in a valid order are a number: `tres cuatro` is none. Accents are optional where they distinguish
# nothing. Thai is read below 10,000.

MAX_WORDS = 16
"""A longer text is no number in words."""


@dataclass(frozen=True, slots=True)
class _Language:
    """Words of one language; `_` is a space inside an entry, `/` separates spellings."""

    small: str
    """0 to 19."""
    tens: str
    """20, 30, ..., 90; a part of them for French, where 70 to 79 and 90 to 99 continue tens."""
    hundreds: str
    """100 to 900."""
    thousand: str
    one_thousand: str
    joined: str = "{0} {1}"
    """A ten and a digit."""
    hundred_joined: str = "{0} {1}"
    thousand_joined: str = "{0} {1}"
    last: str = ""
    """Digits that differ after a ten, as `digit:word`."""
    minus: str = "minus"


_MALAY = _Language(
    small="nol/kosong/sifar satu dua tiga empat lima enam tujuh delapan/lapan sembilan sepuluh "
    "sebelas dua_belas tiga_belas empat_belas lima_belas enam_belas tujuh_belas "
    "delapan_belas/lapan_belas sembilan_belas",
    tens="dua_puluh tiga_puluh empat_puluh lima_puluh enam_puluh tujuh_puluh "
    "delapan_puluh/lapan_puluh sembilan_puluh",
    hundreds="seratus dua_ratus tiga_ratus empat_ratus lima_ratus enam_ratus tujuh_ratus "
    "delapan_ratus/lapan_ratus sembilan_ratus",
    thousand="ribu",
    one_thousand="seribu",
    minus="minus/negatif",
)
_LANGUAGES: Mapping[str, _Language] = {
    "id": _MALAY,
    "ms": _MALAY,
    "vi": _Language(
        small="không một hai ba bốn năm sáu bảy tám chín mười mười_một mười_hai mười_ba mười_bốn "
        "mười_lăm/mười_năm mười_sáu mười_bảy mười_tám mười_chín",
        tens="hai_mươi ba_mươi bốn_mươi năm_mươi sáu_mươi bảy_mươi tám_mươi chín_mươi",
        hundreds="một_trăm hai_trăm ba_trăm bốn_trăm năm_trăm sáu_trăm bảy_trăm tám_trăm chín_trăm",
        thousand="nghìn/ngàn",
        one_thousand="một_nghìn/một_ngàn",
        hundred_joined="{0} {1}/{0} linh {1}/{0} lẻ {1}",
        thousand_joined="{0} {1}/{0} linh {1}/{0} lẻ {1}/{0} không trăm {1}/"
        "{0} không trăm linh {1}/{0} không trăm lẻ {1}",
        last="1:mốt 4:bốn 4:tư 5:lăm 5:nhăm",
        minus="âm/trừ",
    ),
    "tl": _Language(
        small="sero/wala isa/isang dalawa/dalawang tatlo/tatlong apat/apat_na lima/limang anim/"
        "anim_na pito/pitong walo/walong siyam/siyam_na sampu/sampung labing_isa/labing_isang "
        "labindalawa/labindalawang labintatlo/labintatlong labing_apat/labing_apat_na "
        "labinlima/labinlimang labing_anim/labing_anim_na labimpito/labimpitong "
        "labingwalo/labing_walo/labingwalong labinsiyam/labinsiyam_na",
        tens="dalawampu/dalawampung tatlumpu/tatlumpung apatnapu/apatnapung limampu/limampung "
        "animnapu/animnapung pitumpu/pitumpung walumpu/walumpung siyamnapu/siyamnapung",
        hundreds="isang_daan/sandaan/isang_daang dalawang_daan/dalawang_daang "
        "tatlong_daan/tatlong_daang apat_na_raan/apat_na_raang limang_daan/limang_daang "
        "anim_na_raan/anim_na_raang pitong_daan/pitong_daang walong_daan/walong_daang "
        "siyam_na_raan/siyam_na_raang",
        thousand="libong/libo",
        one_thousand="isang_libo/sanlibo/isang_libong/sanlibong",
        joined="{0}'t {1}/{0} at {1}",
        hundred_joined="{0} at {1}/{0}'t {1}/{0} {1}",
        thousand_joined="{0} at {1}/{0}'t {1}/{0} {1}",
    ),
    "th": _Language(
        small="ศูนย์ หนึ่ง สอง สาม สี่ ห้า หก เจ็ด แปด เก้า สิบ สิบเอ็ด สิบสอง สิบสาม สิบสี่ สิบห้า สิบหก สิบเจ็ด สิบแปด "
        "สิบเก้า",
        tens="ยี่สิบ สามสิบ สี่สิบ ห้าสิบ หกสิบ เจ็ดสิบ แปดสิบ เก้าสิบ",
        hundreds="หนึ่งร้อย/ร้อย สองร้อย สามร้อย สี่ร้อย ห้าร้อย หกร้อย เจ็ดร้อย แปดร้อย เก้าร้อย",
        thousand="พัน",
        one_thousand="หนึ่งพัน/พัน",
        joined="{0}{1}",
        hundred_joined="{0}{1}",
        thousand_joined="{0}{1}",
        last="1:เอ็ด",
        minus="ลบ",
    ),
    "es": _Language(
        small="cero uno/un/una dos tres cuatro cinco seis siete ocho nueve diez once doce trece "
        "catorce quince dieciseis diecisiete dieciocho diecinueve",
        tens="veinte/veinti treinta cuarenta cincuenta sesenta setenta ochenta noventa",
        hundreds="cien/ciento doscientos/doscientas trescientos/trescientas "
        "cuatrocientos/cuatrocientas quinientos/quinientas seiscientos/seiscientas "
        "setecientos/setecientas ochocientos/ochocientas novecientos/novecientas",
        thousand="mil",
        one_thousand="mil",
        joined="{0} y {1}/{0}{1}",
        minus="menos",
    ),
    "pt": _Language(
        small="zero um/uma dois/duas tres quatro cinco seis sete oito nove dez onze doze treze "
        "catorze/quatorze quinze dezesseis/dezasseis dezessete/dezassete dezoito "
        "dezenove/dezanove",
        tens="vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
        hundreds="cem/cento duzentos/duzentas trezentos/trezentas quatrocentos/quatrocentas "
        "quinhentos/quinhentas seiscentos/seiscentas setecentos/setecentas "
        "oitocentos/oitocentas novecentos/novecentas",
        thousand="mil",
        one_thousand="mil",
        joined="{0} e {1}",
        hundred_joined="{0} e {1}",
        thousand_joined="{0} {1}/{0} e {1}",
        minus="menos",
    ),
    "fr": _Language(
        small="zero un/une deux trois quatre cinq six sept huit neuf dix onze douze treize "
        "quatorze quinze seize dix_sept dix_huit dix_neuf",
        tens="vingt trente quarante cinquante soixante septante quatre_vingts/quatre_vingt nonante",
        hundreds="cent deux_cents/deux_cent trois_cents/trois_cent quatre_cents/quatre_cent "
        "cinq_cents/cinq_cent six_cents/six_cent sept_cents/sept_cent huit_cents/huit_cent "
        "neuf_cents/neuf_cent",
        thousand="mille",
        one_thousand="mille",
        joined="{0} {1}/{0} et {1}",
        minus="moins",
    ),
    "de": _Language(
        small="null eins/ein/eine zwei drei vier funf/fuenf sechs sieben acht neun zehn elf zwolf/"
        "zwoelf dreizehn vierzehn funfzehn/fuenfzehn sechzehn siebzehn achtzehn neunzehn",
        tens="zwanzig dreissig vierzig funfzig/fuenfzig sechzig siebzig achtzig neunzig",
        hundreds="hundert/einhundert zweihundert dreihundert vierhundert funfhundert/fuenfhundert "
        "sechshundert siebenhundert achthundert neunhundert",
        thousand="tausend",
        one_thousand="tausend/eintausend",
        joined="{1}und{0}",
        hundred_joined="{0}{1}/{0}und{1}",
        thousand_joined="{0}{1}/{0}und{1}",
    ),
}
_TAG_OF = {"fil": "tl"}
"""Filipino is the standard of Tagalog (BCP 47)."""
_PAST_NINE = {"fr": (60, 80)}
"""Tens that continue to 19: soixante-dix."""


def value_of(words: str, language: str) -> int | None:
    """Return the integer that the words are in this language, or None."""
    language = _TAG_OF.get(language.partition("-")[0], language.partition("-")[0])
    rules = _LANGUAGES.get(language)
    folded = _folded(words, language)
    if rules is None or not folded or folded.count(" ") >= MAX_WORDS:
        return None
    sign = re.match(rf"(?:{rules.minus.replace('/', '|')}) ?(?=.)", folded)
    if sign:
        folded = folded[sign.end() :]
    value = _below_million(folded, language, rules)
    return -value if sign and value else value


def _below_million(words: str, language: str, rules: _Language) -> int | None:
    table = _below_1000_in_words(language)
    if words in table:
        return table[words]
    wholes = {form.replace("_", " "): 1 for form in rules.one_thousand.split("/")}
    for thousand in rules.thousand.split("/"):
        head, divider, _ = words.partition(thousand)
        if divider and table.get(head.strip(), 0) > 1:
            wholes[head + divider] = table[head.strip()]
    for whole, thousands in wholes.items():
        tail = words.removeprefix(whole)
        rest = 0 if not tail else _rest(whole, tail, table, rules)
        if words.startswith(whole) and rest is not None:
            return 1000 * thousands + rest
    return None


def _rest(whole: str, tail: str, table: Mapping[str, int], rules: _Language) -> int | None:
    """Read what follows the thousands, joined as the language joins it."""
    for form in rules.thousand_joined.split("/"):
        before, _, _ = form.partition("{1}")
        joint = before.format(whole).removeprefix(whole)
        if tail.startswith(joint) and table.get(tail[len(joint) :]):
            return table[tail[len(joint) :]]
    return None


@functools.cache
def _below_1000_in_words(language: str) -> Mapping[str, int]:
    """Return every spelling of 0 to 999."""
    rules = _LANGUAGES[language]
    small = list(map(_forms, rules.small.split()))
    last = {value: list(forms) for value, forms in enumerate(small)}
    for value in {int(entry[0]) for entry in rules.last.split()}:
        last[value] = [entry[2:] for entry in rules.last.split() if int(entry[0]) == value]
    table = {form: value for value, forms in enumerate(small) for form in forms}
    for place, tens in enumerate(map(_forms, rules.tens.split()), 2):
        most = 20 if 10 * place in _PAST_NINE.get(language, ()) else 10
        compounds = _join(tens, rules.joined, {value: last[value] for value in range(1, most)})
        table |= dict.fromkeys(tens, 10 * place)
        table |= {form: 10 * place + value for form, value in compounds.items()}
    below_100 = [[form for form in table if table[form] == value] for value in range(100)]
    for place, hundreds in enumerate(map(_forms, rules.hundreds.split()), 1):
        rests = dict(enumerate(below_100[1:], 1))
        compounds = _join(hundreds, rules.hundred_joined, rests)
        table |= dict.fromkeys(hundreds, 100 * place)
        table |= {form: 100 * place + value for form, value in compounds.items()}
    return table


def _join(heads: list[str], patterns: str, rests: Mapping[int, list[str]]) -> dict[str, int]:
    return {
        pattern.format(head, form): value
        for head in heads
        for value, forms in rests.items()
        for form in forms
        for pattern in patterns.split("/")
    }


def _forms(entry: str) -> list[str]:
    return entry.replace("_", " ").split("/")


def _folded(words: str, language: str) -> str:
    """Fold case, hyphens and, where they distinguish nothing, accents."""
    text = unicodedata.normalize("NFC", words).casefold()
    if language not in ("vi", "th"):
        text = unicodedata.normalize("NFD", text)
        text = "".join(char for char in text if not unicodedata.combining(char))
    if language == "th":
        return "".join(text.split())
    return " ".join(re.sub(r"[-,\u2010\u2011]", " ", text).split())


# Rewrite numbers as people write them to one form, `1234567.8`, whatever the language.
#
# Digits of any script, superscripts (`5²` is `5^{2}`), vulgar fractions, Chinese numerals,
# separators of thousands and decimals. A text that consists of an integer in words becomes that
# integer (`seventy-two` is `72`); an English noun is kept (`three apples` is `3 apples`). The
# problem's language decides between point and comma, unless the number itself is unambiguous
# (`1.234.567,8`).

# ruff: noqa: RUF001 - signs that people type


COMMA_LANGUAGES = frozenset(
    re.findall(
        r"\S+",
        "af az be bg br bs ca cs cv da de el eo es et eu ff fi fo fr fy gl hr ht hu hy ia id ie "
        "is it jv ka kk kl ku ky lb ln lo lt lu lv mk nb nl nn no pl pt rm rn ro ru rw sc se sg "
        "sk sl sq sr su sv tg tk tr tt uk uz vi wo",
    )
)
"""Languages that write 1.234,5 (CLDR 48, decimal separator)."""
_OTHER_REGIONS = frozenset(
    re.findall(
        r"\S+",
        "ar-dz ar-lb ar-ly ar-ma ar-mr ar-tn de-ch de-li en-at en-be en-cz en-de en-dk en-ee "
        "en-es en-fi en-fr en-ge en-hu en-id en-it en-lt en-lv en-nl en-no en-pl en-pt en-ro en-se "
        "en-si en-sk en-ua en-za es-419 es-br es-bz es-cu es-do es-gt es-hn es-mx es-ni es-pa "
        "es-pe es-pr es-sv es-us fr-rw it-ch ms-bn ms-id sw-cd",
    )
)
"""Regions that write the other separator than their language: `1,234.5` in es-MX (CLDR 48)."""

_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
_SUBSCRIPTS = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
# "²", "⁻¹".
_RAISED = re.compile(f"[{''.join(_SUPERSCRIPTS)}]+")
# "₁₀"
_LOWERED = re.compile(f"[{''.join(_SUBSCRIPTS)}]+")
# "m²" of "5 m²", "cm³" of "3cm³".
_MEASURE = re.compile(r"(?<=\d)\s?([ckm]?m|ft|in|yd)([²³])")
# The dash of "is -5", typed as an en dash; not those of "3-5" and "3 -5".
_DASH_MINUS = re.compile(
    r"(?<![\d)\]}$%]\s)(?<![\w)\]}$%])[\u2010\u2011\u2013\ufe63\uff0d](?=[\d.])"
)
_HAN_DIGITS = dict(zip("零一二三四五六七八九", range(10), strict=True)) | {
    **dict(zip("〇壹贰叁肆伍陆柒捌玖", range(10), strict=True)),
    "貳": 2,
    "弍": 2,
    "两": 2,
    "兩": 2,
    "參": 3,
    "陸": 6,
}
_HAN_PLACES = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_HAN_TENS = {"廿": 20, "卅": 30}
_HAN_SCALES = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
# "三百二十", "一万", "壹貳", "廿五", behind no digit (3千 is an amount).
_HAN_NUMBER = (
    f"[{''.join(_HAN_DIGITS | _HAN_PLACES | _HAN_TENS)}]"
    f"[{''.join(_HAN_DIGITS | _HAN_PLACES | _HAN_TENS | _HAN_SCALES)}]*"
)
# "三点五", "百分之五十", "三分之一", "一半", "负三".
_HAN = re.compile(
    rf"(?<![\d.])(?:百分之(?P<percent>{_HAN_NUMBER})|(?P<below>{_HAN_NUMBER})分之(?P<top>{_HAN_NUMBER})|"
    rf"(?P<half>一半|半(?=$|[个個]$))|(?P<whole>{_HAN_NUMBER})(?:[点點](?P<decimals>[{''.join(_HAN_DIGITS)}]+))?)"
)
_ONES = "one|two|three|four|five|six|seven|eight|nine"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_WORD_VALUES = {word: value for value, word in enumerate(f"zero|{_ONES}|{_TEENS}".split("|"))} | {
    word: 10 * place for place, word in enumerate(_TENS.split("|"), 2)
}
# " ", "-".
_GAP = r"[\s\u2010-]+"
# "seven", "fifteen", "forty-two".
_BELOW_100 = rf"(?:(?:{_TENS})(?:{_GAP}(?:{_ONES}))?|{_TEENS}|{_ONES})"
# "a hundred", "three hundred and five", "ninety".
_BELOW_1000 = rf"(?:(?:a|{_BELOW_100}){_GAP}hundred(?:{_GAP}(?:and\s+)?{_BELOW_100})?|{_BELOW_100})"
# " " of "two thousand five", ", " of "one thousand, two hundred", " and ".
_GROUP_GAP = rf"(?:,(?=[^,]*hundred))?{_GAP}(?:and\s+)?"
# "it is exactly minus two thousand and five", "a hundred apples", "zero".
_SPELLED = re.compile(
    r"(?:(?:it|that|this) (?:is|equals)\s+|(?:it|that)['’]s\s+|there (?:are|is)\s+)?"
    r"(?:(?:exactly|simply|just|equal to)\s+)?(?P<minus>(?:minus|negative)\s+)?(?:zero|"
    rf"(?:(?P<millions>a|{_BELOW_1000}){_GAP}million(?:{_GROUP_GAP}|\b))?"
    rf"(?:(?P<thousands>a|{_BELOW_1000}){_GAP}thousand(?:{_GROUP_GAP}|\b))?"
    rf"(?P<rest>{_BELOW_1000})?)"
    r"(?P<noun>(?<=\w)\s+(?!hal(?:f|ves)|quarter|thirds|\w+ths|hundred|thousand|million|plus|"
    r"minus|times|dozens)(?:percent|per cent|[a-z]{2,}s))?",
    re.IGNORECASE,
)
MAX_NOUN = 3
"""Most words of the noun behind a number in words."""
_THAI_NOUN = re.compile(
    "(?:บาท|คน|ชิ้น|ลูก|อัน|ตัว|เล่ม|ใบ|ผล|วัน|ปี|เดือน|ชั่วโมง|นาที|วินาที|กิโลกรัม|กรัม|เมตร|"
    "เซนติเมตร|กิโลเมตร|ลิตร|ขวด|กล่อง|ครั้ง|คู่|เปอร์เซ็นต์|ดอลลาร์|หน้า|แผ่น|ดอก|ต้น|คัน|หลัง|ห้อง|ข้อ|"
    "เท่า|แก้ว|ถุง|จาน|แท่ง|ด้าม|เม็ด|ฟอง|สัปดาห์|องศา)$"
)
# "seven", "hundred".
_NUMBER_WORD = rf"(?:{_TENS}|{_TEENS}|{_ONES}|hundred|thousand|million|dozen|zero)(?![A-Za-z])"
# "-two", " and five".
_NEXT_WORD = rf"[\s\u2010-]{{1,3}}(?:and\s)?{_NUMBER_WORD}"
# "minus forty-two", "a hundred and five".
_NUMBER_WORDS = rf"(?:(?:minus|negative|an?)\s)?{_NUMBER_WORD}(?:{_NEXT_WORD}){{0,8}}"
# "six" of "six or 5", of "between six and 8" and of "5 or six".
_BESIDE_DIGITS = re.compile(
    rf"(?<![\w-])(?P<first>{_NUMBER_WORDS})(?=(?:,?\s(?:or|to|through)\s|\s?[–—/]\s?)[\d$\\])|"
    rf"(?<=between\s)(?P<lower>{_NUMBER_WORDS})(?=\sand\s[\d$\\])|"
    rf"(?<=[\d$}})])(?P<joined>,?\s(?:or|to|through)\s(?:(?:else|maybe|perhaps|possibly)\s)?|"
    rf"\s?[–—/]\s?|\s-\s|(?:,|,?\sand)\s(?={_NUMBER_WORDS}[.!)\s]{{0,9}}$))"
    rf"(?P<second>{_NUMBER_WORDS})(?![\w-])",
    re.IGNORECASE,
)
MAX_BESIDE = 60
"""Most characters of a number in words next to digits."""
# No number in words has "5", ",", "$".
_NO_WORDS = r"[^\d.,;:!?$\\(){}\[\]]"
_WORDS_AFTER = re.compile(
    rf"(?<=[\d$}})])(?P<joint>{JOINT})(?P<words>{_NO_WORDS}{{1,{MAX_BESIDE}}})", re.IGNORECASE
)
_JOINT_BEFORE = re.compile(rf"{JOINT}(?=[\d$\\])", re.IGNORECASE)
MAX_SPELLED = 150
"""Most characters of a number in words."""
# A number ends: not "1,000" in "1,0000".
_END = r"(?!\d|[.,]\d)"
_START = r"(?<![\d.,])"
# "1 000 000", "1'000".
_SPACED = r"\d{1,3}(?:[ '’]\d{3})+"
# In English "1,234.5" and "1 000" have a point, "1.234,50" and "1.234.567" a comma.
_POINT = re.compile(
    rf"{_START}(?:(?P<point>(?:\d{{1,3}}(?:,\d{{3}})+|{_SPACED})(?:\.\d+)?)|"
    rf"(?P<comma>\d{{1,3}}(?:\.\d{{3}})+,\d{{1,2}}|\d{{1,3}}(?:\.\d{{3}}){{2,}}(?:,\d+)?)){_END}"
)
# In Indonesian "1.234" and "3,5" have a comma, "1,234.5" and "1,234,567" a point.
_COMMA = re.compile(
    rf"{_START}(?:(?P<point>\d{{1,3}}(?:,\d{{3}})+\.\d+|\d{{1,3}}(?:,\d{{3}}){{2,}})|"
    rf"(?P<comma>[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:,\d+)?|{_SPACED}(?:,\d+)?|\d+,\d+)){_END}"
)
# Money is never written with three decimals.
_MONEY = re.compile(
    rf"(?P<before>(?:Rp\.?|IDR|VND|R\\?\$|BRL|€)\s*)?(?<![\d.,])"
    rf"(?:(?P<comma>\d{{1,3}}(?:\.\d{{3}})+(?:,\d{{1,2}})?|\d+,\d{{1,2}})|"
    rf"(?P<point>\d{{1,3}}(?:,\d{{3}})+(?:\.\d{{1,2}})?)){_END}(?P<after>\s*(?:₫|đ|€|VND|VNĐ|đồng)(?!\w))?"
)
# ",89", as databases of Latin America and Europe export 0.89.
_NO_WHOLE = re.compile(r"[-+]?,\d+")
# "\{", "(", "]".
_BRACKETS = re.compile(r"\\\{|\\\}|[()\[\]]")


def typed_minus(text: str) -> str:
    """Rewrite a dash that stands for the sign of a number; a range keeps its dash."""
    return text if text.isascii() else _DASH_MINUS.sub("-", text)


def plain_signs(text: str) -> str:
    """Rewrite digits, superscripts, signs of other scripts and full-width letters."""
    if text.isascii():
        return text
    text = _MEASURE.sub(lambda m: f" {m[1]}^{_SUPERSCRIPTS[m[2]]}", text)
    text = _RAISED.sub(lambda m: f"^{{{''.join(_SUPERSCRIPTS[c] for c in m[0])}}}", text)
    text = _LOWERED.sub(lambda m: f"_{{{''.join(_SUBSCRIPTS[c] for c in m[0])}}}", text)
    return unicodedata.normalize("NFKC", "".join(map(_plain_sign, text)))


def _plain_sign(sign: str) -> str:
    if sign.isascii():
        return sign
    digit = unicodedata.decimal(sign, None)
    if digit is not None:
        return str(digit)
    if unicodedata.decomposition(sign).startswith("<fraction>"):
        top, _, below = unicodedata.normalize("NFKC", sign).partition("\u2044")
        return f"\\frac{{{top}}}{{{below}}}" if below else sign
    return sign


def writes_comma(language: str) -> bool:
    """True if 1.234,5 is how numbers are written in a language, or in the region of its tag."""
    primary, *others = language.lower().split("-")
    region = next((one for one in others if len(one) == 2 or one.isdecimal()), "")
    return (primary in COMMA_LANGUAGES) is not (f"{primary}-{region}" in _OTHER_REGIONS)


def machine_numbers(text: str, language: str) -> str:
    """Rewrite every number of a text; in brackets a comma without a space separates members."""
    text = spelled_out(spelled_beside_digits(text, language), language)
    if language.startswith(("zh", "ja")):
        text = _HAN.sub(_chinese, text)
    if "," not in text and "." not in text and " " not in text and "'" not in text:
        return text
    if _NO_WHOLE.fullmatch(text):  # no group begins with a separator, so that it is a decimal
        return text.replace(",", "0.")
    text = _MONEY.sub(_without_separators_of_money, text)
    pattern = _COMMA if writes_comma(language) else _POINT
    spans = _bracketed(text)

    def rewritten(match: re.Match[str]) -> str:
        inside = any(start < match.start() < end for start, end in spans)
        return match[0] if inside and "," in match[0] else _without_separators(match)

    return pattern.sub(rewritten, text)


def spelled_out(text: str, language: str = "en") -> str:
    """Rewrite a text that consists of an integer in words; leave any other unchanged."""
    if text.isdecimal():  # as most answers are
        return text
    words = re.sub(r"\\(?:text(?:bf|it|rm)?|mathrm|mbox)\s*\{([^{}]*)\}", r"\1", text[:MAX_SPELLED])
    words = words.strip(" .!*_\"'“”‘’$。")
    if not words or len(text) >= MAX_SPELLED:
        return text
    match = _SPELLED.fullmatch(words)
    han = _HAN.fullmatch(words) if language.startswith(("zh", "ja")) else None
    if match is None and han:
        return _chinese(han)
    if match is None:
        value = value_of(words, language)
        return _with_noun(words, language) or text if value is None else str(value)
    groups = [_below_1000(match[name] or "") for name in ("millions", "thousands", "rest")]
    value = groups[0] * 10**6 + groups[1] * 1000 + groups[2]
    return f"{'-' if match['minus'] else ''}{value}{match['noun'] or ''}"


def _with_noun(words: str, language: str) -> str:
    """Write `26 บาท` for a number in words with at most so many words of a noun; '' for others.

    The noun has no further number in it (dua atau tiga), and in Thai is one that is known.
    """
    if language.startswith("th"):
        noun = _THAI_NOUN.search(words)
        value = value_of(words[: noun.start()], language) if noun else None
        return "" if noun is None or value is None else f"{value} {noun[0]}"
    parts = words.split()
    for count in range(min(len(parts) - 1, MAX_WORDS), 0, -1):
        value = value_of(" ".join(parts[:count]), language)
        noun = parts[count:]
        if value is not None:
            is_noun = len(noun) <= MAX_NOUN and all(
                word.isalpha() and value_of(word, language) is None for word in noun
            )
            hedges = HEDGES.search(" ".join(noun)) or _scale_words(language) & set(noun)
            return f"{value} {' '.join(noun)}" if is_noun and not hedges else ""
    return ""


@functools.cache
def _scale_words(language: str) -> frozenset[str]:
    """Return the words that make another number of the one before them."""
    rules = _LANGUAGES.get(_TAG_OF.get(language.partition("-")[0], language.partition("-")[0]))
    own = rules.thousand.split("/") if rules else []
    more = "juta miliar triệu tỷ trăm mươi puluh ratus belas phần setengah rưỡi milhões milhão "
    more += "millones millón millions million meio media medio demi demie vírgula coma koma phẩy "
    more += "milyon milyong daan perseratus por mil nghìn bilhões lusin tá chục"
    return frozenset([*own, *more.split()])


def spelled_beside_digits(text: str, language: str = "en") -> str:
    """Rewrite a number in words next to digits: `5 or six`, `between two and 5`."""
    text = _BESIDE_DIGITS.sub(
        lambda m: f"{m['joined'] or ''}{spelled_out(m['first'] or m['lower'] or m['second'])}", text
    )
    if language.startswith("en"):
        return text
    text = _WORDS_AFTER.sub(lambda m: m["joint"] + _first_number(m["words"], language), text)
    for joint in reversed(list(_JOINT_BEFORE.finditer(text))):
        before, after = text[: joint.start()], text[joint.start() :]
        text = _last_number(before[-MAX_BESIDE:], language) + after
        text = before[:-MAX_BESIDE] + text
    return text


def _first_number(text: str, language: str) -> str:
    """Rewrite the longest number in words at the beginning of a text."""
    han = _HAN.match(text)
    if han and language.startswith(("zh", "ja")):
        return f"{_chinese(han)}{text[han.end() :]}"
    words = text.split(" ")
    for count in range(min(len(words), MAX_WORDS), 0, -1):
        value = value_of(" ".join(words[:count]), language)
        if value is not None:
            return " ".join([str(value), *words[count:]])
    return text


def _last_number(text: str, language: str) -> str:
    """Rewrite the longest number in words at the end of a text."""
    words = text.split(" ")
    for start in range(max(0, len(words) - MAX_WORDS), len(words)):
        value = value_of(" ".join(words[start:]), language)
        if value is not None:
            return " ".join([*words[:start], str(value)])
    return text


def _below_1000(words: str) -> int:
    total = 0
    for word in re.findall(r"[a-z]+", words.casefold()):
        if word == "hundred":
            total *= 100
        elif word != "and":
            total += _WORD_VALUES.get(word, 1)  # a
    return total


def _bracketed(text: str) -> list[tuple[int, int]]:
    """Find the outermost brackets whose members are separated by bare commas (no `, ` or `;`)."""
    spans: list[tuple[int, int]] = []
    depth, start = 0, 0
    for sign in _BRACKETS.finditer(text):
        opens = sign[0] in ("(", "[", "\\{")
        if opens and depth == 0:
            start = sign.start()
        depth = max(0, depth + (1 if opens else -1))
        if depth == 0 and not opens:
            content = text[start : sign.start()]
            if ", " not in content and ";" not in content:
                spans.append((start, sign.start()))
    return spans


def _without_separators(match: re.Match[str]) -> str:
    point = match["point"] is not None
    number = re.sub(r"[ '’]", "", match["point"] if point else match["comma"])
    return number.replace(",", "") if point else number.replace(".", "").replace(",", ".")


def _without_separators_of_money(match: re.Match[str]) -> str:
    if match["before"] is None and match["after"] is None:
        return match[0]
    return f"{match['before'] or ''}{_without_separators(match)}{match['after'] or ''}"


def _chinese(match: re.Match[str]) -> str:
    """Write a Chinese number in digits: a fraction as `1/3`, per cent with its sign."""
    if match["half"]:
        return "1/2"
    if match["percent"]:
        return f"{_han_integer(match['percent'])}%"
    if match["below"]:
        return f"{_han_integer(match['top'])}/{_han_integer(match['below'])}"
    decimals = "".join(str(_HAN_DIGITS[han]) for han in match["decimals"] or "")
    return f"{_han_integer(match['whole'])}{'.' if decimals else ''}{decimals}"


def _han_integer(text: str) -> int:
    """Return the value; a last digit right behind a place counts tenths of it: 一千二 is 1200."""
    total, section, digit, unit = 0, 0, 0, 0
    if not set(text) & (_HAN_PLACES.keys() | _HAN_TENS.keys() | _HAN_SCALES.keys()):
        return int("".join(str(_HAN_DIGITS[han]) for han in text))
    for han in text:
        if han in _HAN_DIGITS:
            digit, unit = _HAN_DIGITS[han], unit if _HAN_DIGITS[han] else 0
        elif han in _HAN_TENS:
            section, digit, unit = section + _HAN_TENS[han], 0, 0
        elif han in _HAN_PLACES:
            unit = _HAN_PLACES[han]
            section, digit = section + (digit or 1) * unit, 0
        else:
            unit = _HAN_SCALES[han]
            total, section, digit = (total + section + digit) * unit, 0, 0
    # Behind ten a digit counts ones; behind hundred and above, without a zero between, tenths.
    return total + section + digit * (unit // 10 if digit and unit > 10 else 1)
