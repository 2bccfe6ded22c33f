"""Announcements with explanations behind them, drawn from parts, in the languages that are read.

A wrong answer must never be paid, whatever stands behind it.
"""

# ruff: noqa: RUF001 - texts as people type them
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tasks.gym.choice import verify
from tests.gym.test_choice import ANNOUNCEMENTS
from tests.tables import for_each

ANNOUNCING = {
    **ANNOUNCEMENTS,
    "tl": (
        "Ang tamang sagot ay {x}.",
        "Sagot: {x}",
        "Ang sagot ay {x}.",
        "Pinipili ko ang {x}.",
        "Ang tamang opsyon ay {x}.",
        "{x} ang tamang sagot.",
    ),
}
SHORT = (
    "{x}.",
    "({x})",
    "**{x}**",
    "{x})",
    "\\boxed{{{x}}}",
    "#### {x}",
    '{{"answer": "{x}"}}',
    "**Answer:** {x}",
    "### Answer\n{x}",
)
DISMISSED = {
    "de": [
        "{o} ist falsch.",
        "Option {o} ist falsch.",
        "{o} und {p} sind falsch.",
        "Es ist nicht {o}.",
        "Option {o} beschreibt den Abend.",
        "Weil {o} rot ist.",
    ],
    "en": [
        "{o} is wrong.",
        "({o}) is wrong.",
        "Option {o} is incorrect.",
        "{o} and {p} are incorrect.",
        "{o} is wrong because it is red.",
        "Why not {o}? It is red.",
        "{o} is red, {p} is green.",
        "{o} describes dusk.",
        "Unlike {o}, it is blue.",
        "It is not {o}.",
        "Neither {o} nor {p} fits.",
        "{o}: red. {p}: green.",
        "{o} does not fit.",
        "{o} can be ruled out.",
        "Option {o} is too small and {p} is the wrong colour.",
        "{o}, {p} are wrong.",
        "While {o} is tempting, it is red.",
        "It cannot be {o}.",
        "A common mistake is {o}.",
        "Many pick {o}, which is red.",
        "{o} was tempting.",
        "The problem with {o} is its colour.",
        "We ruled out {o}.",
        "I considered {o} but it is red.",
        "At first {o} looked right, but it is red.",
        "If it were red, {o} would be right.",
        "{o} has the wrong colour.",
        "Only {x} is blue.",
        "{x} is blue.",
        "{x} is the only blue one.",
        "{o} is the opposite.",
        "Compared with {o}, it is blue.",
        "{o} refers to dusk; {p} refers to grass.",
        "This rules out {o} and {p}.",
        "{o} would be dusk.",
    ],
    "es": [
        "{o} es incorrecta.",
        "La opción {o} es incorrecta.",
        "{o} y {p} son incorrectas.",
        "No es {o}.",
        "La opción {o} describe el atardecer.",
        "Porque {o} es roja.",
        "La {o} es falsa.",
    ],
    "fr": [
        "{o} est fausse.",
        "L'option {o} est incorrecte.",
        "{o} et {p} sont fausses.",
        "Ce n'est pas {o}.",
        "L'option {o} décrit le soir.",
        "Car {o} est rouge.",
    ],
    "id": [
        "{o} salah.",
        "Pilihan {o} salah.",
        "{o} dan {p} salah.",
        "Bukan {o}.",
        "Karena {o} merah.",
        "{o} menggambarkan senja, sedangkan {p} hijau.",
        "Opsi {o} tidak tepat.",
        "{o} terlalu kecil.",
    ],
    "it": [
        "{o} è sbagliata.",
        "L'opzione {o} è sbagliata.",
        "{o} e {p} sono sbagliate.",
        "Non è {o}.",
        "L'opzione {o} descrive il tramonto.",
        "Perché {o} è rossa.",
    ],
    "ms": [
        "{o} salah.",
        "Pilihan {o} salah.",
        "{o} dan {p} salah.",
        "Bukan {o}.",
        "Kerana {o} merah.",
        "{o} menggambarkan senja manakala {p} hijau.",
    ],
    "pt": [
        "{o} está errada.",
        "A opção {o} está errada.",
        "{o} e {p} estão erradas.",
        "Não é {o}.",
        "A alternativa {o} descreve o pôr do sol.",
        "Porque {o} é vermelha.",
        "A {o} é incorreta.",
    ],
    "th": [
        "{o} ผิด",
        "ข้อ {o} ผิด",
        "ข้อ {o} และ {p} ผิด",
        "ไม่ใช่ {o}",
        "เพราะ {o} เป็นสีแดง",
        "ข้อ {o} ไม่ถูกต้อง",
    ],
    "tl": [
        "Mali ang {o}.",
        "Hindi {o}.",
        "Inilalarawan ng {o} ang dapithapon.",
        "Dahil pula ang {o}.",
    ],
    "vi": [
        "{o} sai.",
        "Phương án {o} sai.",
        "{o} và {p} đều sai.",
        "Không phải {o}.",
        "Vì {o} màu đỏ.",
        "Phương án {o} mô tả hoàng hôn.",
    ],
    "zh": [
        "{o}错误。",
        "{o}不正确。",
        "{o}、{p}都不对。",
        "因为{o}是红色的。",
        "{o}项描述的是日落。",
        "不是{o}。",
        "选项{o}错误，选项{p}也错误。",
        "而{o}是错的。",
    ],
}
"""Clauses that offer none of the other options o and p, and affirm the answer x."""
NEUTRAL = {
    "de": [
        "Das ist klar.",
    ],
    "en": [
        "ok",
        "This is a shoe.",
        "It is a good one.",
        "I am sure.",
        "A close reading shows this.",
        "a careful look shows it.",
        "See above.",
        "So it is.",
        "Its mass is 2 kg.",
        "The others do not fit.",
    ],
    "es": [
        "Y es todo.",
        "O sea, es azul.",
        "Véase el texto.",
        "A ver el texto.",
    ],
    "fr": [
        "Il y a un texte.",
        "À mon avis c'est clair.",
    ],
    "id": [
        "Ini jelas.",
    ],
    "it": [
        "E basta.",
        "O meglio, è blu.",
        "A mio parere è chiaro.",
    ],
    "ms": [
        "Ini jelas.",
    ],
    "pt": [
        "É a segunda.",
        "O resto não serve.",
        "E é só isso.",
        "Veja o texto.",
    ],
    "th": [
        "ชัดเจน",
    ],
    "tl": [
        "Malinaw ito.",
    ],
    "vi": [
        "Điều này rõ ràng.",
    ],
    "zh": [
        "很清楚。",
    ],
}
"""Clauses that name no option; in some a word is spelled like one."""
TAKEN_BACK = {
    "de": [
        "Aber {o} ist auch richtig.",
        "Oder {o}.",
        "Vielleicht {o}.",
        "{x} ist falsch.",
        "Eigentlich {o}.",
        "Nein, {o}.",
        "Entschuldigung, {o}.",
        "{x} ist nicht richtig.",
        "Und {o}.",
        "Nicht {x}.",
    ],
    "en": [
        "{o} is also right.",
        "Wait, {o}.",
        "Or {o}.",
        "Actually, {o} is correct.",
        "But {o} is possible.",
        "No, {o}.",
        "Maybe {o}.",
        "{o} could be right too.",
        "I mean {o}.",
        "Then again it is {o}.",
        "{x} is wrong.",
        "Both {x} and {o} are right.",
        "Not {x}.",
        "{o} is right as well.",
        "On second thought {o} is better.",
        "I change my answer to {o}.",
        "Sorry, {o}.",
        "{x} or {o}.",
        "{x} is incorrect, {o} is correct.",
        "Although {o} is just as good.",
        "{o} is the better answer.",
        "I prefer {o}.",
        "{o} would also work.",
        "Alternatively, {o}.",
        "{o} seems right as well.",
        "It should be {o}.",
        "The real answer is {o}.",
        "{o}!",
        "...or {o}?",
        "Scratch that: {o}.",
        "{o} also fits.",
        "{x} cannot be right.",
        "{x} is not correct.",
        "{x} does not fit.",
        "That is wrong.",
        "This is incorrect.",
        "Not correct.",
        "No.",
        "So {o}.",
        "Rather {o}.",
        "{o} is it.",
        "Or perhaps {o}.",
        "Hmm, {o}.",
        "{o} instead.",
        "Correction: {o}.",
        "And {o}.",
        "{o} too.",
        "Both {o} and {p} are right.",
        "{o} and {p} are right too.",
        "{x} and {o}.",
    ],
    "es": [
        "Pero {o} también es correcta.",
        "O {o}.",
        "Quizás {o}.",
        "{x} es incorrecta.",
        "{x} y {o} son correctas.",
        "En realidad, {o}.",
        "No, {o}.",
        "Perdón, {o}.",
        "{x} no es correcta.",
        "Y {o}.",
        "No es {x}.",
        "Mejor {o}.",
    ],
    "fr": [
        "Mais {o} est aussi correcte.",
        "Ou {o}.",
        "Peut-être {o}.",
        "{x} est fausse.",
        "En fait, {o}.",
        "Non, {o}.",
        "Pardon, {o}.",
        "Ce n'est pas {x}.",
        "Et {o}.",
    ],
    "id": [
        "Tetapi {o} juga benar.",
        "Atau {o}.",
        "Mungkin {o}.",
        "{x} salah.",
        "{x} dan {o} benar.",
        "{o} juga bisa.",
        "{x} tidak benar.",
        "Sebenarnya {o}.",
        "Bukan {x}.",
        "{o} juga.",
        "Maaf, {o}.",
    ],
    "it": [
        "Ma anche {o} è corretta.",
        "O {o}.",
        "Forse {o}.",
        "{x} è sbagliata.",
        "In realtà {o}.",
        "No, {o}.",
        "Scusa, {o}.",
        "Non è {x}.",
        "E {o}.",
    ],
    "ms": [
        "Tetapi {o} juga betul.",
        "Atau {o}.",
        "Mungkin {o}.",
        "{x} salah.",
        "{x} dan {o} betul.",
    ],
    "pt": [
        "Mas {o} também está correta.",
        "Ou {o}.",
        "Talvez {o}.",
        "{x} está errada.",
        "{x} e {o} estão corretas.",
        "Na verdade, {o}.",
        "Não, {o}.",
        "Desculpe, {o}.",
        "{x} não é correta.",
        "{o} também.",
        "E {o}.",
        "Não é {x}.",
    ],
    "th": [
        "แต่ {o} ก็ถูก",
        "หรือ {o}",
        "อาจเป็น {o}",
        "{x} ผิด",
        "จริงๆ แล้วคือ {o}",
        "ไม่ใช่ {x}",
        "ขอโทษ {o}",
        "และ {o}",
    ],
    "tl": [
        "Pero {o} ay tama rin.",
        "O {o}.",
        "Siguro {o}.",
        "Mali ang {x}.",
    ],
    "vi": [
        "Nhưng {o} cũng đúng.",
        "Hoặc {o}.",
        "Có lẽ {o}.",
        "{x} sai.",
        "{x} và {o} đều đúng.",
        "Thực ra là {o}.",
        "Không, {o}.",
        "Xin lỗi, {o}.",
        "Không phải {x}.",
    ],
    "zh": [
        "但{o}也对。",
        "或{o}。",
        "不，是{o}。",
        "可能是{o}。",
        "{x}不对。",
        "{x}和{o}都对。",
        "等等，应该是{o}。",
        "其实是{o}。",
        "抱歉,{o}。",
        "不是{x}。",
        "更正:{o}。",
    ],
}
"""Clauses that deny the answer x, doubt it or offer another one."""
OPTIONS = ("ABC", "ABCD", "ABCDE", "AEIOU", "ABO", "ABCDEFGHIJ", "EIOY")
"""Most vowels are a word in one of the languages."""
COLOURS = {
    "A": "red",
    "B": "blue",
    "C": "green",
    "D": "black",
    "E": "white",
    "F": "pink",
    "G": "brown",
    "H": "grey",
    "I": "cyan",
    "J": "gold",
    "O": "orange",
    "U": "teal",
    "Y": "tan",
}


@dataclass(frozen=True, slots=True)
class Explained:
    """A response, the option that it announces, the options, and whether it keeps to it."""

    text: str
    option: str
    options: str
    is_worded: bool
    is_kept: bool
    language: str

    def gold(self, right: str) -> dict[str, object]:
        """Return the gold of the row whose right option has this letter."""
        names = {
            one: [one, f"a {COLOURS[one]} box"] if self.is_worded else [one] for one in self.options
        }
        return {
            "correct": names[right],
            "others": [names[one] for one in self.options if one != right],
        }


def _behind(source: random.Random, answer: str, clauses: list[str]) -> str:
    gap = source.choice((" ", "\n", "\n\n", "\n- "))
    if answer.startswith("{") or "\n" in answer:
        return f"{answer}\n\n{gap.join(clauses)}"
    end = "" if answer.endswith((".", "。")) else "."
    return f"{answer}{end}{gap}{gap.join(clauses)}"


def draw(source: random.Random, clauses: dict[str, list[str]], *, is_kept: bool) -> Explained:
    """Draw a response that announces an option and explains it in one or two clauses."""
    language, options = source.choice(sorted(ANNOUNCING)), source.choice(OPTIONS)
    x, o, p = source.sample(options, 3)
    form = source.choice(ANNOUNCING[language] if source.random() < 0.8 else SHORT)
    is_bare = "{{" in form
    answer = form.format(x=x if is_bare else source.choice((x, x, f"({x})", f"**{x}**")))
    count = source.randint(1, 2)
    behind = [source.choice(clauses[language]).format(x=x, o=o, p=p) for _ in range(count)]
    text = _behind(source, answer, behind)
    text = text.lower() if source.random() < 0.08 else text
    return Explained(text, x, options, source.random() < 0.3, is_kept, language)


def draw_two(source: random.Random) -> Explained:
    """Draw a response that announces two options."""
    language, options = source.choice(sorted(ANNOUNCING)), source.choice(OPTIONS)
    x, o = source.sample(options, 2)
    first = source.choice((*ANNOUNCING[language], *SHORT)).format(x=source.choice((x, f"**{x}**")))
    last = source.choice(ANNOUNCING[language]).format(x=o)
    between = source.choice(("", "", source.choice(NEUTRAL[language]) + " "))
    gap = source.choice((" ", "\n", "\n\n"))
    return Explained(
        f"{first}{gap}{between}{last}", x, options, source.random() < 0.3, False, language
    )


def draws(seed: int, count: int) -> Iterator[Explained]:
    source = random.Random(seed)
    drawers: tuple[Callable[[], Explained], ...] = (
        lambda: draw(source, DISMISSED, is_kept=True),
        lambda: draw(source, NEUTRAL, is_kept=True),
        lambda: draw(source, TAKEN_BACK, is_kept=False),
        lambda: draw_two(source),
    )
    for _ in range(count):
        yield source.choice(drawers)()


@pytest.mark.parametrize(
    ("seed", "count"),
    [(0, 700), *(pytest.param(seed, 10_000, marks=pytest.mark.slow) for seed in (1, 2))],
)
def test_an_explanation_pays_no_wrong_answer_and_refuses_few_right_ones(
    problem, seed: int, count: int
) -> None:
    paid, refused, kept = [], [], 0
    for one in draws(seed, count):
        for right in one.options:
            row = problem("choice", one.gold(right)).model_copy(update={"language": one.language})
            verdict = verify(row, one.text)
            is_right = one.is_kept and right == one.option
            kept += is_right
            if verdict.solved and not is_right:
                paid.append((right, one))
            if is_right and not verdict.solved:
                refused.append((verdict.reason, one))

    assert [] == paid
    assert len(refused) <= kept / 500, refused


LETTERS = {"correct": ["B"], "others": [["A"], ["C"], ["D"]]}
VOWELS = {"correct": ["E"], "others": [["A"], ["I"], ["O"]]}


@for_each(
    ("gold", "response", "score"),
    [
        (VOWELS, "Answer: E. O is wrong.", 1.0),
        (VOWELS, "E. (O) is wrong", 1.0),
        (VOWELS, "Respuesta: E. O es incorrecta.", 1.0),
        (VOWELS, "A resposta é E. O resto não serve.", 1.0),
        (VOWELS, "Answer: E. O A.", 0.0),
        (VOWELS, "A opção correta é a E. E está errada.", 0.0),
        (VOWELS, "Answer: E. O instead.", 0.0),
        (LETTERS, "the answer is a ok answer: b", None),
        (LETTERS, "Answer: A close reading shows B", None),
        (LETTERS, "### Answer\nA close look shows B", None),
        (LETTERS, "Answer: A close reading shows C", 0.0),
        (LETTERS, "Answer: A because it is red. B is blue.", 0.0),
        (VOWELS, "Richtige Antwort: A E ist die richtige Antwort.", None),
        (LETTERS, "Answer: C0 Answer: B", None),
        (LETTERS, "Answer: A0 Answer: C", 0.0),
        (LETTERS, "Loại B, còn lại B", 0.0),
        (LETTERS, "Eliminando B, resta B", 0.0),
        (LETTERS, "Dengan mengeliminasi B, tersisa B", 0.0),
        (LETTERS, "The answer is B. Not B.", 0.0),
        (LETTERS, "The answer is B. That is wrong.", 0.0),
        (LETTERS, "A.\n- A is wrong.\n- But B is right too.", 0.0),
        (LETTERS, "**A** Correct option: B", 0.0),
        (LETTERS, "Choose A.\nSo the correct one is B.", 0.0),
        (LETTERS, "答案：B。A不对，B也不对", 0.0),
    ],
)
def test_a_letter_that_may_be_a_word_is_never_paid_for_a_wrong_option(
    problem, gold, response: str, score: float | None
) -> None:
    assert score == verify(problem("choice", gold), response).score


def test_an_answer_that_cannot_be_told_from_an_article_abstains_for_either_option(problem) -> None:
    gold = {"correct": ["A"], "others": [["B"], ["C"], ["D"]]}

    verdict = verify(problem("choice", gold), "Answer: A close reading shows B")

    assert (None, "letter_or_word") == (verdict.score, verdict.reason)


@for_each(
    ("language", "response", "score"),
    [
        ("tr", "Doğru cevap B'dir.", None),
        ("tr", "B değil.", None),
        ("nl", "Het antwoord is A", None),
        ("pl", "Odpowiedź: B", None),
        ("tr", "B", 1.0),
        ("tr", "A", 0.0),
        ("tr", "**Answer:** B", 1.0),
        ("tr", "The answer is B.", 1.0),
        ("tr", "Answer: A", 0.0),
        ("und", "The answer is B because it is blue.", 1.0),
    ],
)
def test_a_language_in_latin_script_that_is_not_read_is_an_abstention(
    problem, language: str, response: str, score: float | None
) -> None:
    row = problem("choice", LETTERS).model_copy(update={"language": language})

    verdict = verify(row, response)

    assert score == verdict.score
    assert (score is None) == (verdict.reason == "language_unread")
