"""Integers below a billion in words: id, ms, vi, th, es, pt, fr and de (English: `numerals`).

Every language is a table of the words below 1000, built once from its rules, so that only words
in a valid order are a number: `tres cuatro` is none. Accents are optional where they distinguish
nothing.
"""

import functools
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from tasks.algorithms.language_tags import primary

MAX_WORDS = 16
"""A longer text is no number in words."""


@dataclass(frozen=True, slots=True)
class NumberWords:
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


_MALAY = NumberWords(
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
_LANGUAGES: Mapping[str, NumberWords] = {
    "id": _MALAY,
    "ms": _MALAY,
    "vi": NumberWords(
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
    "tl": NumberWords(
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
    "th": NumberWords(
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
    "es": NumberWords(
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
    "pt": NumberWords(
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
    "fr": NumberWords(
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
    "de": NumberWords(
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
_PAST_NINE = {"fr": (60, 80)}
"""Tens that continue to 19: soixante-dix."""


_LARGE: Mapping[str, tuple[tuple[str, int], ...]] = {
    "id": (("juta", 10**6),),
    "ms": (("juta", 10**6),),
    "vi": (("triệu", 10**6),),
    "tl": (("milyong", 10**6), ("milyon", 10**6)),
    "th": (("ล้าน", 10**6), ("แสน", 10**5), ("หมื่น", 10**4)),
    "es": (("millones", 10**6), ("millon", 10**6)),
    "pt": (("milhoes", 10**6), ("milhao", 10**6)),
    "fr": (("millions", 10**6), ("million", 10**6)),
    "de": (("millionen", 10**6), ("million", 10**6)),
}
"""Words above a thousand, as they are folded; at most one of two spellings is found."""


def thousands_of(language: str) -> list[str]:
    """Return the words for a thousand in a language; none for a language without a table."""
    rules = _LANGUAGES.get(primary(language))
    return rules.thousand.split("/") if rules else []


def value_of(words: str, language: str) -> int | None:
    """Return the integer that the words are in this language, or None."""
    language = primary(language)
    rules = None if re.search(r"\d", words) else _LANGUAGES.get(language)
    folded = _folded(words, language) if rules else ""
    if rules is None or not folded or folded.count(" ") >= MAX_WORDS:
        return None
    sign = re.match(rf"(?:{rules.minus.replace('/', '|')}) ?(?=.)", folded)
    if sign:
        folded = folded[sign.end() :]
    value = _below_billion(folded, language, rules)
    return -value if sign and value else value


def _below_billion(words: str, language: str, rules: NumberWords) -> int | None:
    """Read millions, and in Thai hundreds and tens of thousands, before what is below them."""
    total, table = 0, _below_1000_in_words(language)
    for word, factor in _LARGE.get(language, ()):
        head, divider, tail = words.partition(word)
        count = table.get(head.strip(), 1 if divider and head in ("se", "") else None)
        if divider and count and (factor == 10**6 or count < 10):
            total += count * factor
            words = tail.strip().removeprefix("e ").removeprefix("at ").removeprefix("et ")
    if total and not words:
        return total
    rest = _below_million(words, language, rules)
    return None if rest is None else total + rest


def _below_million(words: str, language: str, rules: NumberWords) -> int | None:
    table = _below_1000_in_words(language)
    if words in table:
        return table[words]
    wholes = {form.replace("_", " "): 1 for form in rules.one_thousand.split("/")}
    for thousand in rules.thousand.split("/"):
        head, divider, _ = words.partition(thousand)
        if divider and table.get(head.strip(), 0) > 1:
            wholes[head + divider] = table[head.strip()]
    for whole, thousands in wholes.items():
        if not words.startswith(whole):
            continue
        tail = words.removeprefix(whole)
        rest = _rest(whole, tail, table, rules) if tail else 0
        if rest is not None:
            return 1000 * thousands + rest
    return None


def _rest(whole: str, tail: str, table: Mapping[str, int], rules: NumberWords) -> int | None:
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
