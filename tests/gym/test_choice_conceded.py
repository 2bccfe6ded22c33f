"""Options that only tempt, that elimination leaves, and that other articles name.

Each text selects option {x}: it is paid for that one, and for none of the others.
"""

# ruff: noqa: RUF001 - texts as people type them
from itertools import permutations

import pytest

from tasks.gym.table import score_batch
from tests.tables import for_each

SELECTING = {
    "en": [
        "{o} is tempting but {x} is right",
        "{o} is tempting, but {x} is correct.",
        "{o} seems right but {x} is correct.",
        "{o} looks plausible, but {x} is the right one.",
        "Option {o} is plausible, but {x} is the answer.",
        "{o} is a distractor. The answer is {x}.",
        "None of {o}, {p}, {q} fit; {x} does",
        "None of {o}, {p} or {q} is correct, so {x}.",
        "Neither {o}, {p} nor {q}; {x}.",
        "We can eliminate {o}, {p}, and {q}. So {x}.",
        "We can rule out {o}, {p} and {q}, so {x}.",
        "Eliminating {o}, {p} and {q}, we get {x}.",
        "Eliminating {o}, {p}, and {q} leaves {x}.",
        "By process of elimination, {x}.",
        "That leaves {x}.",
        "This leaves option {x} as the correct answer.",
        "The only option that fits is {x}.",
        "The only one left is {x}.",
        "Conclusion: {x}",
        "Verdict: {x}",
        "{o}. False. {x}. True. {p}. False. {q}. False.",
        "{o} ✗\n{x} ✓\n{p} ✗\n{q} ✗",
        "In conclusion, {x}.",
        "Sure! {x}",
        "It is blue, so it must be {x}.",
        "I'd say {x}",
        "It is blue → {x}",
        "1. {x}",
        "Q1: {x}",
        "(1) {x}",
    ],
    "zh": [
        "{o}看似正确，但{x}正确",
        "{o}很有迷惑性，但{x}正确",
        "综上所述，{x}",
        "由此可知{x}正确",
        "排除{o}、{p}、{q}，所以是{x}",
    ],
    "id": [
        "{o} menarik tetapi {x} benar",
        "{o} tampak benar, tetapi {x} yang benar",
        "Eliminasi {o}, {p}, dan {q}. Jadi {x}.",
        "Oleh karena itu, {x}.",
        "Yang paling tepat adalah {x}",
    ],
    "ms": ["{o} menarik tetapi {x} betul", "{o} nampak betul, tetapi {x} yang betul"],
    "th": ["{o} ดูน่าสนใจ แต่ {x} ถูกต้อง", "{o} ดูเหมือนถูก แต่ {x} ถูกต้อง"],
    "vi": [
        "{o} có vẻ đúng nhưng {x} mới đúng",
        "{o} có vẻ hấp dẫn nhưng {x} đúng",
        "Loại {o}, {p} và {q}. Vậy {x}.",
        "Do đó, {x}.",
        "{o}, {p} và {q} đều sai. {x} đúng.",
    ],
    "pt": [
        "{o} é tentadora, mas {x} está correta",
        "{o} parece certa, mas {x} é a correta",
        "Eliminamos {o}, {p} e {q}. Então {x}.",
    ],
    "es": ["{o} es tentadora, pero {x} es correcta"],
    "fr": ["{o} semble juste, mais {x} est la bonne réponse"],
    "de": ["{o} ist verlockend, aber {x} ist richtig"],
    "it": ["{o} sembra giusta, ma {x} è corretta"],
    "tl": [
        "Nakakatukso ang {o} pero {x} ang tama",
        "Mukhang tama ang {o}, pero {x} ang tamang sagot",
        "Mali ang {o}, {p} at {q}, kaya {x}",
    ],
}
SELECTING_NONE = {
    "en": [
        "{x} is tempting.",
        "{x} is plausible.",
        "{x} is a distractor.",
        "{x} is tempting but {o} is tempting too.",
        "{x} looks right but {o} looks right too.",
        "{x} looks right but {o} looks right.",
        "{x} seems right but so does {o}.",
        "{x} is tempting but not {o}.",
        "{x} is tempting but perhaps {o} is right.",
        "{x} is tempting but {o} is right, or is it?",
        "{x} is not as good as {o}",
        "{x} or {o}",
        "Is {x} right?",
        "None of {x}, {p}, {q} fit; {x} does",
        "None of {o}, {p}, {q} fit; {x} does not either.",
        "We can eliminate {x}. So {x}.",
        "We cannot eliminate {o}, {p}, and {q}. So {x}.",
        "I am not sure, so {x}.",
        "If it were red, so {x}.",
        "By elimination, {x} or {o}.",
        "By elimination {x} is out.",
        "This leaves {x} out.",
        "I am not sure {x}",
        "{o} can't be excluded, so {x}",
        "If I had to guess, I'd say {x}",
        "{o} → {x}",
        "That leaves {x} and {o}.",
        "Conclusion: not {x}",
        "1. {x}\n2. {o}",
    ],
    "zh": ["{x}看似正确，但{o}也正确吗？", "{x}很有迷惑性。", "{x}不符合题意"],
    "id": ["{x} tampak benar, tetapi {o} juga tampak benar", "{x} menarik.", "{x} kurang tepat"],
    "vi": ["{x} có vẻ đúng nhưng {o} cũng có vẻ đúng"],
    "tl": ["{x} o {o}", "Nakakatukso ang {x}."],
    "es": ["{x} o {o}"],
}
LETTERS = "BACD"


def scores(problem, language: str, text: str) -> list[float | None]:
    """Scores of a text for each letter as the right one."""
    rows = [
        problem("choice", {"correct": [x], "others": [[o] for o in LETTERS if o != x]})
        for x in LETTERS
    ]
    rows = [row.model_copy(update={"language": language}) for row in rows]
    return [one.score for one in score_batch(rows, [text] * len(rows))]


@pytest.mark.parametrize("language", sorted(SELECTING))
def test_what_selects_an_option_is_paid_for_it_alone(problem, language: str) -> None:
    wrong = [
        filled
        for text in SELECTING[language]
        for x, o, p, q in list(permutations(LETTERS))[:12]
        for filled in [text.format(x=x, o=o, p=p, q=q)]
        if scores(problem, language, filled) != [float(letter == x) for letter in LETTERS]
    ]

    assert [] == wrong


@pytest.mark.parametrize("language", sorted(SELECTING_NONE))
def test_what_selects_none_is_paid_for_none(problem, language: str) -> None:
    paid = [
        filled
        for text in SELECTING_NONE[language]
        for x, o, p, q in list(permutations(LETTERS))[:12]
        for filled in [text.format(x=x, o=o, p=p, q=q)]
        if 1.0 in scores(problem, language, filled)
    ]

    assert [] == paid


BOXES = {
    "correct": ["B", "a blue box"],
    "others": [["A", "a red box"], ["C", "the green box"], ["D", "an old bag"]],
}


@for_each(
    ("response", "score"),
    [
        ("The blue box", 1.0),
        ("Blue box", 1.0),
        ("1. The blue box", 1.0),
        ("The answer is the blue box.", 1.0),
        ("Answer: a blue box", 1.0),
        ("Answer: A blue box", 1.0),
        ("Answer: blue box", 1.0),
        ('{"answer": "a blue box"}', 1.0),
        ("The blue box (B)", 1.0),
        ("B) The blue box", 1.0),
        ("B) The red box", 0.0),
        ("The red box", 0.0),
        ("A green box", 0.0),
        ("The blue box and the red box", 0.0),
        ("A blue box and red box", 0.0),
        ("The blue box or a green box", 0.0),
        ("Not the blue box", 0.0),
        ("The box", 0.0),
        ("The old bag", 0.0),
    ],
)
def test_another_article_names_the_same_option(problem, response: str, score: float) -> None:
    assert [score] == [one.score for one in score_batch([problem("choice", BOXES)], [response])]


@for_each(("response", "score"), [("the box", 0.0), ("a box", 1.0), ("The answer is the box", 0.0)])
def test_an_article_that_divides_two_options_is_read(problem, response: str, score: float) -> None:
    gold = {"correct": ["a box"], "others": [["the box"], ["a bag"]]}

    assert [score] == [one.score for one in score_batch([problem("choice", gold)], [response])]


@for_each(
    ("response", "score"),
    [
        ("None of the above", 1.0),
        ("None of the above except A", 0.0),
        ("None of the above, except A", 0.0),
        ("None of the above but not A", 0.0),
        ("A, B and C are all wrong, so D.", 1.0),
        ("A and B are wrong, so C.", 0.0),
    ],
)
def test_an_exception_takes_an_option_of_several_back(problem, response: str, score: float) -> None:
    gold = {"correct": ["D", "None of the above"], "others": [["A"], ["B"], ["C"]]}

    assert [score] == [one.score for one in score_batch([problem("choice", gold)], [response])]
