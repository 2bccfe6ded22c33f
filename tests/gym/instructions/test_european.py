"""The Spanish and French instructions of M-IFEval: each followed, each broken."""

from tasks.gym.instructions.european import EUROPEAN
from tasks.gym.instructions.rules import verify
from tests.tables import for_each

SHARED: list[tuple[str, dict[str, object], str, str]] = [
    ("keywords:existence", {"keywords": ["rojo"]}, "ROJOS", "azul"),
    ("keywords:forbidden_words", {"forbidden_words": ["été"]}, "étés", "un été chaud"),
    ("keywords:letter_frequency", None, "aXa", "axe"),
    ("language:response_language", {"language": "ko"}, "이 신발은 어린이용입니다.", "C'est bien."),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        "Uno\n***\nDos",
        "Uno\n\nDos",
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "En mi opinión"},
        "Hola.\n\n«En mi opinión, sí.»",
        "Hola.\n\nEn mi opiniónes.",
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "hola"},
        "Uno\n\n**Hola**, sí.",
        "Uno\n\n**Sí**, hola.",
    ),
    ("detectable_content:postscript", {"postscript_marker": "PS"}, "Fin.\nPS : bis", "Le temps"),
    ("detectable_content:postscript", {"postscript_marker": "P.-S."}, "p.-s. Bis", "P.S. Bis"),
    ("detectable_content:postscript", {"postscript_marker": "추신"}, "안녕. 추신: 곧", "안녕."),
    ("detectable_format:json_format", {}, '{"à": 1}', "à: 1"),
    ("combination:two_responses", {}, "Uno\n******\nDos", "Uno\n******\nUno"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "¿Qué?"}, "¿qué? Eso", "Eso ¿Qué?"),
    ("startend:end_checker", {"end_phrase": "Un saludo"}, 'Fin. un saludo"', "Un saludo. Fin"),
    ("startend:end_checker", {"end_phrase": "Un saludo"}, "Fin.\n\nUn saludo.\n", "Un saludos."),
    (
        "startend:end_checker",
        {"end_phrase": "D'autres questions ?"},
        "Fin. D\u2019autres questions\u202f?",
        "D'autres questions",
    ),
    ("punctuation:no_comma", {}, "Uno y dos", "Uno, dos"),
]
SPANISH: list[tuple[str, dict[str, object], str, str]] = [
    (
        "keywords:frequency",
        {"keyword": "éxito", "relation": "como máximo", "frequency": 1},
        "Un éxito",
        "Éxito y éxito",
    ),
    (
        "length_constraints:number_sentences",
        {"relation": "como máximo", "num_sentences": 2},
        "El Sr. Paz vino. Bien.",
        "Uno. Dos. Tres.",
    ),
    (
        "length_constraints:number_words",
        {"relation": "al menos", "num_words": 3},
        "más de dos",
        "dos más",
    ),
    (
        "change_case:capital_word_frequency",
        {"capital_relation": "como máximo", "capital_frequency": 1},
        "MÁS o menos",
        "MÁS O MENOS",
    ),
    (
        "detectable_content:number_placeholders",
        {"relation": "al menos", "num_placeholders": 2},
        "[a] [b]",
        "[a]",
    ),
    (
        "detectable_format:number_highlighted_sections",
        {"relation": "al menos", "num_highlights": 2},
        "*a* *b*",
        "*a*",
    ),
    (
        "detectable_format:multiple_sections",
        {"relation": "al menos", "section_spliter": "Sección", "num_sections": 2},
        "Sección 1\na\nSección 2\nb",
        "Sección 1\na",
    ),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n* b", "* a\n- b"),
    ("detectable_format:constrained_response", {}, "Sí. Ayuda mucho.", "Sí. No. Quizás."),
    ("detectable_format:constrained_response", {}, "«No.»", "Un casiNo."),
    ("detectable_format:title", {}, "<<Poema>>", "<< >> Poema"),
    ("startend:quotation", {}, '"Hola"', "«Hola»"),
    (
        "change_case:spanish_capital",
        {},
        "EL NIÑO Y LA CASA DE LOS MESES.",
        "El niño y la casa de los meses.",
    ),
    (
        "change_case:spanish_lowercase",
        {},
        "el niño y la casa de los meses.",
        "el niño y la casa de los Meses.",
    ),
    ("punctuation:question_marks", {}, "Dime: ¿qué?", "¿? Qué? ¿"),
    ("punctuation:exclamation_marks", {}, "¡Hola!", "Hola! ¡"),
    (
        "special_character:tildes",
        {"relation": "al menos", "num_words": 2},
        "Más allá",
        "Más niño",
    ),
    ("special_character:enie", {"let_frequency": 2}, "El nin\u0303o y la ÑANDÚ", "El niño"),
    ("special_character:dieresis", {"let_frequency": 1}, "Un pingüino", "Dos pingüinos y cigüeñas"),
]
FRENCH: list[tuple[str, dict[str, object], str, str]] = [
    (
        "keywords:frequency",
        {"keyword": "phrase", "relation": "moins de", "frequency": 2},
        "Une phrase",
        "Phrase et phrases",
    ),
    (
        "length_constraints:number_sentences",
        {"relation": "moins de", "num_sentences": 3},
        "M. Roy vient. Bien.",
        "Un. Deux. Trois.",
    ),
    (
        "length_constraints:number_words",
        {"relation": "au moins", "num_words": 3},
        "plus de deux",
        "deux fois",
    ),
    (
        "change_case:capital_word_frequency",
        {"capital_relation": "au moins", "capital_frequency": 2},
        "C'EST TRÈS bien",
        "TRÈS bien",
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] [b]", "[a]"),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* *b*", "*a*"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Partie", "num_sections": 2},
        "Partie 1\na\nPartie 2\nb",
        "Partie 1\na",
    ),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n- b", "* a"),
    ("detectable_format:constrained_response", {}, "Peut-être.", "Oui. Non."),
    ("detectable_format:constrained_response", {}, "peut-être.", "oui. non."),
    ("detectable_format:constrained_response", {}, "OUI.", "Je dis oui."),
    ("detectable_format:title", {}, "##Mon titre##\nTexte", "## Mon titre\n<<titre>>"),
    ("startend:quotation", {}, "« Bonjour »", "« Bonjour"),
    ("change_case:french_capital", {}, "BRAVO !", "BRAVo !"),
    ("change_case:french_lowercase", {}, "bravo !", "these are the shoes that you want."),
    ("change_case:french_capital", {}, "C'EST LA VIE ET ELLE EST BELLE.", "C'est la vie."),
    ("change_case:french_lowercase", {}, "c'est la vie et elle est belle.", "C'est la vie."),
    ("detectable_content:no_digits", {}, "trois", "3"),
    ("detectable_content:informal_address", {}, "Je t'aime", "Vous tenez bon, tante"),
    (
        "special_character:accents",
        {"word_to_accentuate": {"lecon": "leçon", "a": "à"}},
        "Tu as la LEÇON à lire",
        "La leçon à lire et a voir",
    ),
    (
        "special_character:accents",
        {"word_to_accentuate": {"lecon": "leçon", "leger": "léger"}},
        "Quelles leçons légères, et un vent léger",
        "Quelles lecons, une leçon et un vent léger",
    ),
    ("special_character:accents", {"word_to_accentuate": {"deja": "déjà"}}, "Déjà", "Voici."),
    ("special_character:ethel_or_cedilla", {"forbidden_char": "œ"}, "un coeur", "un CŒUR"),
    ("special_character:ethel_or_cedilla", {"forbidden_char": "ç"}, "un cœur", "c\u0327a"),
    ("special_character:no_accents", {}, "un cœur", "Ça va"),
]
LETTERS = {
    "es": {"letter": "a", "let_relation": "al menos", "let_frequency": 2},
    "fr": {"letter": "a", "let_relation": "au moins", "let_frequency": 2},
}
EXAMPLES = [
    (f"{language}:{name}", LETTERS[language] if arguments is None else arguments, yes, no)
    for language, own in (("es", SPANISH), ("fr", FRENCH))
    for name, arguments, yes, no in [*SHARED, *own]
]


@for_each(("name", "arguments", "followed", "broken"), EXAMPLES)
def test_each_instruction_can_be_followed_and_broken(
    problem, name: str, arguments: dict[str, object], followed: str, broken: str
) -> None:
    one = problem("instruction_rules", {"instruction_id_list": [name], "kwargs": [arguments]})

    assert (1.0, "correct") == (verify(one, followed).score, verify(one, followed).reason)
    assert (0.0, "wrong") == (verify(one, broken).score, verify(one, broken).reason)


def test_every_instruction_is_tested() -> None:
    assert EUROPEAN.keys() == {name for name, *_ in EXAMPLES}
