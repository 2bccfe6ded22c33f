"""Integers in words, in the languages of the problems."""

from tasks.gym.maths.number_words import value_of
from tasks.gym.maths.numerals import spelled_out
from tests.tables import for_each


@for_each(
    ("language", "words", "value"),
    [
        ("id", "sembilan belas", 19),
        ("id", "seribu dua ratus tiga puluh empat", 1234),
        ("ms", "lapan puluh lapan", 88),
        ("ms", "negatif tujuh", -7),
        ("vi", "mười lăm", 15),
        ("vi", "hai mươi mốt", 21),
        ("vi", "một trăm linh năm", 105),
        ("vi", "ba nghìn không trăm bốn mươi", 3040),
        ("th", "สิบเอ็ด", 11),
        ("th", "หนึ่งพัน สองร้อย สามสิบสี่", 1234),
        ("es", "Veintidós", 22),
        ("es", "ciento uno", 101),
        ("es", "quinientos mil", 500_000),
        ("pt", "trezentos e quarenta e dois", 342),
        ("pt-BR", "mil, cento e um", 1101),
        ("fr", "soixante et onze", 71),
        ("fr", "quatre-vingts", 80),
        ("fr", "deux mille quatre-vingt-dix-neuf", 2099),
        ("de", "einundzwanzig", 21),
        ("de", "fünfhundertdreiunddreißig", 533),
        ("de", "neunhundertneunundneunzigtausendneunhundertneunundneunzig", 999_999),
        ("de", "minus zwölf", -12),
        ("tl", "dalawampu't anim", 26),
        ("fil", "isang daan at limampu", 150),
        ("tl", "apat na raan at labing-isa", 411),
        ("fil", "dalawang libo", 2000),
    ],
)
def test_words_in_the_order_of_their_language_are_a_number(language, words, value) -> None:
    assert value == value_of(words, language)


@for_each(
    ("language", "words"),
    [
        ("es", "tres cuatro"),
        ("es", "tres cuartos"),
        ("fr", "vingt vingt"),
        ("fr", "mille mille"),
        ("de", "und"),
        ("id", "puluh"),
        ("id", "satu ribu ribu"),
        ("vi", "mươi"),
        ("th", "สิบสิบ"),
        ("pt", "dois e três"),
        ("en", "five"),
        ("xx", "five"),
        ("id", ""),
        ("id", "minus"),
        ("id", "dua " * 50_000),
    ],
)
def test_other_words_are_none(language: str, words: str) -> None:
    assert value_of(words, language) is None


@for_each(
    ("language", "words", "number"),
    [
        ("th", "ยี่สิบหกบาท", "26 บาท"),
        ("vi", "hai mươi sáu quả táo", "26 quả táo"),
        ("id", "dua puluh enam apel", "26 apel"),
        ("pt-BR", "vinte e seis maçãs", "26 macas"),
        ("fil", "dalawampu't anim na mansanas", "26 na mansanas"),
        ("id", "dua atau tiga", "dua atau tiga"),
        ("id", "dua juta", "2000000"),
        ("id", "satu juta dua ratus ribu rupiah", "1200000 rupiah"),
        ("id", "sejuta", "1000000"),
        ("vi", "một triệu hai trăm nghìn đồng", "1200000 đồng"),
        ("th", "หนึ่งแสนสองหมื่นสามพันบาท", "123000 บาท"),
        ("th", "สองล้านห้าแสนบาท", "2500000 บาท"),
        ("pt-BR", "um milhão e duzentos mil reais", "1200000 reais"),
        ("fil", "dalawang milyong piso", "2000000 piso"),
        ("id", "dua juta atau tiga", "dua juta atau tiga"),
        ("th", "สองหมื่นสามแสน", "สองหมื่นสามแสน"),
        ("id", "dua setengah", "5/2"),
        ("th", "สามี", "สามี"),
        ("vi", "ba phần tư", "3/4"),
        ("pt", "dois terços de sete", "dois terços de sete"),
    ],
)
def test_a_number_keeps_its_noun_and_loses_no_second_number(language, words, number) -> None:
    assert number.split(" ")[0] == spelled_out(words, language).split(" ")[0]
