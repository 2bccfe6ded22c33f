"""Words around an answer that withdraw it."""

# ruff: noqa: RUF001 - signs that people type
from hypothesis import given
from hypothesis import strategies as st

from tasks.gym.denials import HEDGED_BEFORE, clauses, denied_after, denied_before, fold
from tests.tables import for_each

DENIED = {
    "en": "not;it will not be;it does not equal;never;cannot be;can not be;hardly;by no means;"
    "unlikely;it fails to be;I doubt it is;I don't think it's;it is impossible that it is;"
    "far from;anything but;all but;everything but;any option except;rather than;instead of;"
    "different from;it is not at all;definitely not;no longer;it is not:;I reject;I rule out",
    "id": "bukan;bukanlah;bukannya;tidak;tidaklah;tidak sama dengan;tidak mungkin;takkan;gak;"
    "nggak;enggak;mustahil;jangan;selain;kecuali;tanpa;belum tentu;bukan termasuk",
    "ms": "bukan;bukanlah;bukannya;tidaklah;takkan;tak akan;tak mungkin;tiada;mustahil;selain",
    "pt": "não;não é;não são;nao é;nunca;jamais;nem;tampouco;não seria;não pode ser;não vale;"
    "não equivale a;não é igual a;diferente de;exceto;salvo;sem",
    "vi": "không phải;không phải là;không bằng;không thể là;chẳng phải;chả phải;chưa phải;"
    "đâu phải;khác;khác với;trừ;ngoại trừ;ngoài;đừng chọn",
    "th": "ไม่ใช่;มิใช่;หาใช่;ไม่เท่ากับ;ไม่ได้เป็น;ไม่ควรเป็น;ยกเว้น;นอกจาก",
    "zh": "不是;不等于;不等於;并非;並非;绝不是;不会是;不會是;不可能是;不应该是;不應該是;未必是;"
    "没有;沒有;除了;别选;別選;勿选;不选",
    "es": "no;no es;no son;nunca;jamás;tampoco;ni;no puede ser;no sería;no da;distinto de;"
    "diferente de;excepto;salvo;sin",
    "fr": "ce n'est pas;ce n’est pas;ce ne sont pas;jamais;ne vaut pas;pas égal à;sauf;sans;"
    "ce ne peut être;ce ne peut pas être;différent de;hormis",
    "de": "nicht;kein;keine;keinesfalls;keineswegs;niemals;nie;ungleich;nicht gleich;außer;ohne",
    "it": "non;non è;non sono;non può essere;non sarebbe;né;mai;tranne;eccetto;neanche;nemmeno;"
    "senza;diverso da",
}
WRONG = {
    "en": "is wrong;is not it;isn't it;isnt right;does not fit;can't be right;is ruled out;, no",
    "id": "salah;itu salah;keliru;bukan jawabannya;tidak benar;tidaklah benar",
    "ms": "tidak betul;tak betul;bukan jawapannya;bukanlah jawapan",
    "pt": "está errado;não é a resposta;está incorreto;é falso",
    "vi": "sai;là sai;không đúng;không phải là đáp án",
    "th": "ผิด;ไม่ใช่คำตอบ;ไม่ถูกต้อง",
    "zh": "不是答案;是错的;是錯的;不对;不對;不正确;错误;錯誤",
    "es": "es incorrecto;no es la respuesta;está mal",
    "fr": "est faux;n'est pas la réponse",
    "de": "ist falsch;ist nicht richtig;stimmt nicht",
    "it": "è sbagliato;è errato;non è la risposta;non è corretto",
}


def cases(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(language, words) for language, row in table.items() for words in row.split(";")]


@for_each(("language", "words"), cases(DENIED))
def test_a_negation_denies_what_follows_it(language: str, words: str) -> None:
    gap = "" if language in ("th", "zh") else " "

    assert denied_before(words + gap, language)
    assert denied_before(words[0].upper() + words[1:] + gap, language)
    assert not denied_before(f"{words}{gap}bags, ", language)


@for_each(("language", "words"), cases(WRONG))
def test_an_answer_that_is_called_wrong_is_denied(language: str, words: str) -> None:
    after = words if language in ("th", "zh") or words[0] == "," else f" {words}"

    assert denied_after(after, language)


VERBS = (
    "is was are were ca wo could would should must need might may does do did has have had ai sha "
    "ought dare"
)


@for_each("apostrophe", ["'", "’", "‘", "ʼ", "ʹ", "`", "´", "′", "＇", ""])
@for_each("verb", VERBS.split(" "))
def test_a_contraction_is_a_negation_with_any_apostrophe(verb: str, apostrophe: str) -> None:
    for rest in ("", "be ", "equal ", "it "):
        assert denied_before(f"It {verb}n{apostrophe}t {rest}")
    assert denied_after(f" {verb}n{apostrophe}t right")


@for_each(
    "words",
    [
        "",
        "The answer is ",
        "No, ",
        "No: ",
        "No. ",
        "nothing but ",
        "none other than ",
        "there is no doubt it is ",
        "without doubt it is ",
        "ce ne peut être que ",
        "không gì khác ngoài ",
        "The statement that is not true is ",
        "Pernyataan yang tidak benar adalah ",
        "毫无疑问是",
        "sans doute ",
        "sin duda ",
    ],
)
def test_other_words_deny_nothing(words: str) -> None:
    assert not denied_before(words)
    assert not HEDGED_BEFORE.search(clauses(f"{words} 0")[:-1])


def test_a_clause_ends_at_its_sign_but_not_at_the_colon_of_a_denial() -> None:
    assert "not bags | shoes" == clauses("Not bags, shoes.")
    assert "it is not shoes" == clauses("It is not: shoes")
    assert "no | shoes" == clauses("No: shoes")
    assert "not a | b" == clauses("Not (A) b")


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(text) == fold(fold(text))


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_folded_as_any_text(text: str) -> None:
    assert fold(text) == fold(f"{text} é").removesuffix("é").rstrip()


@for_each(
    ("words", "language"),
    [
        ("pas ", "fr"),
        ("sin ", "es"),
        ("non ", "it"),
        ("tak ", "id"),
        ("nie ", "de"),
        ("trừ ", "vi"),
    ],
)
def test_a_word_denies_in_its_own_language_only(words: str, language: str) -> None:
    assert denied_before(words, language)
    assert denied_before(words, f"{language}-XX")
    assert not denied_before(words, "en")


@for_each("formula", ["\\sin ", "\\ni ", "\\non ", "$\\sin$ ", "\\not\\sin "])
def test_latex_denies_nothing(formula: str) -> None:
    for language in ("es", "fr", "it", "en"):
        assert not denied_before(f"we use {formula}", language)
        assert not denied_after(f" {formula}", language)


def test_english_and_signs_of_other_scripts_deny_in_every_language() -> None:
    for language in DENIED:
        for words in ("it is not ", "不是", "ไม่ใช่ "):
            assert denied_before(words, language)
