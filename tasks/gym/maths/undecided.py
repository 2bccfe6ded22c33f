r"""Golds that leave open whether an answer is right: nothing compares them by value.

Each is an abstention and no refusal: a sentence, which other words say as well; an identity, of
which the task wants one of several (`insert signs so that ... holds`); things that neither problem
nor answer calls as the gold does; conditions in words on parameters that the answer calls by other
letters; 3/4/2024 for March 4; April 15, 1912 for 1912; "The answer is 5!" for 5; 3.1622... for √10;
6 for `xy = 6`, which may be the equation of a curve; a form that is not read and has the gold as
one of its numbers, `3 -> 5`; `$7m$` for 7; 3 pairs for 3 or 6; 42:1 and `42...` for 42; 5.12 for
`5,12` where several are asked; yes for true. Of all but the first, what has another value is wrong.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

from tasks.gym.maths import units
from tasks.gym.maths.compare import is_curve, rational, same
from tasks.gym.maths.dates import dates_in_digits
from tasks.gym.maths.latex_terms import LatexTerm, parse_term, renamed, symbols
from tasks.gym.maths.parse import Answer, parse

MAX_PARAMETERS = 3
MAX_PARTS = 3
"""Most numbers of a form that is not read; one with more names what it likes."""
SENTENCE_WORDS, SHORT_SENTENCE_WORDS = 6, 4
"""Least words of a sentence, and of one that has a verb of `_VERB`."""
_VERB = re.compile(
    r"(?<!\w)(?:is|are|was|were|will|would|must|can|cannot|could|has|have|does|do|any|every)(?!\w)"
)
# "3", "1/2"; a word of a sentence is none of "\\to" and "y".
_NUMBER = re.compile(r"\d+(?:[./]\d+)*")
_BETWEEN = re.compile(
    r"[→⟶⟹⇒↔⇔↦∠∥|]|[-=]>|\+\s*$|\\(?:to|mid|angle|(?:long)?(?:left)?(?:Right|right)arrow)(?![A-Za-z])"
)
"""Signs of such a form."""
_IN_BRACES = re.compile(r"\{[^{}]*\}")
_A_WORD = re.compile(r"(?<![\\A-Za-z])[^\W\d_]{2}")
_BEFORE_UNIT = re.compile(r"(\d+(?:[.,]\d+)*)([gmshlLJNWVK])")
_MAY_COUNT = {
    word: (name, Fraction(number))
    for name, (number, words) in {
        "pair": (
            "2",
            "pair couple pasang pasangan đôi cặp คู่ par pare pareja dupla paire paar 对 對 双 雙",
        ),
        "score": ("20", "score kodi"),
        "quarter": ("1/4", "quarter"),
        "ream": ("500", "ream rim resma"),
        "permille": ("1/1000", "promille permille"),
        "hundred": ("100", "trăm daan centena"),
        "ten": ("10", "puluh ten chục dezena decena dizaine"),
        "thousand": ("1000", "grand milhare millare"),
        "jiao": ("1/10", "角 毛"),
        "cent": ("1/100", "cent ¢ sen satang สตางค์ centavo sentimo céntimo cêntimo pence xu paise"),
        "basis point": ("1/10000", "bps bp basi"),
        "million": ("1/1000000", "ppm"),
        "billion": ("1/1000000000", "ppb"),
    }.items()
    for word in words.split()
}
"""Nouns that make another number of the one before them, or name what is counted: 3 pairs of
socks are 6 socks, 3 pairs that solve an equation are 3. In the singular of `units`: basi."""
# "42..."; 0.333... is a fraction, and 0.1428... has the digits of a gold of four places
_UNFINISHED = re.compile(r"(?<![\d.,])\d+\s?(?:\.{3,}|…|\\[lc]?dots(?![A-Za-z]))[\s$*)}.]*$")
# "find all solutions", "what are the values"; not "how much in all"
_SEVERAL = re.compile(
    r"(?<!\w)(?:(?<!in )all|both|list|two|values|solutions|roots|zeros|pairs|coordinates|"
    r"respectively)(?!\w)",
    re.IGNORECASE,
)
_ALSO_TRUE = {("true", "yes"), ("yes", "true"), ("false", "no"), ("no", "false")}
SENTENCE = "the gold is a sentence"
DIGITS = "the answer has the first digits of the gold, and dots"
YEAR = "the gold is the year of the date"
DATE = "day and month of a date in digits may be changed"
PRODUCT = "the gold is an equation, or what the problem calls a product"
EXCLAMATION = "the answer ends in !, which is a factorial or ends its sentence"
COUNTED = "the answer counts things of which each may be several, or a part"
INVERSE = "a function has the name of its inverse"
RATIO = "the answer is a ratio, and the problem speaks of none"
COMMA = "the gold has a decimal comma, or is two numbers, and the problem asks for several"
TRUTH = "one of gold and answer is true or false, the other yes or no"
UNFINISHED = "the answer ends in dots, behind which it may go on"
PART = "the gold is one number of a form that is not read"
LETTER = "the gold is the number before a letter, which is a factor or a unit"
IDENTITY = "the gold is an identity, of which a task has several"
THINGS = "the gold calls things otherwise than the problem"
CONDITIONS = "the gold has conditions in words on its parameters"


def undecided(gold: Answer, other: Answer, question: str) -> str:
    """Say why the gold does not decide on an answer that is not the same; '' if it does.

    Args:
        gold: the right answer.
        other: the answer, which differs from it.
        question: the text of the problem; '' if it is not known.
    """
    if _is_sentence(gold):
        return SENTENCE
    if _is_identity(gold, other):
        return IDENTITY
    if named := _open_truth(gold, other) or _open_date(gold, other):
        return named
    if (
        gold.kind == "value"
        and rational(gold.term) is not None
        and (_is_part(gold, other) or _is_coefficient(gold, other))
    ):
        return LETTER if other.kind == "value" else PART
    if question and _calls_things_otherwise(gold, other, question.casefold()):
        return THINGS
    return CONDITIONS if _has_other_parameters(gold, other) else ""


def is_open_product(gold: Answer, other: Answer, question: str) -> bool:
    """Say whether 6 is stated for `xy = 6` where the problem does not speak of that product."""
    if not is_curve(gold) or other.name or other.term is None or symbols(other.term):
        return False
    factors = r"\s*(?:\*|\\cdot|\\times)?\s*".join(gold.name)
    spoken_of = rf"(?<![A-Za-z\\]){factors}(?![A-Za-z])|(?i:product|area)"
    return re.search(spoken_of, question) is None


def is_exclaimed(gold: Answer, other: Answer) -> bool:
    """Say whether the gold is 5 and the answer 5!, whose sign may end its sentence."""
    text = other.text.removesuffix("!")
    if other.term is None or text == other.text:
        return False
    return same(gold, replace(other, text=text, term=parse_term(text))) is True


def is_open_count(gold: Answer, other: Answer, question: str) -> bool:
    """Say whether the gold is 3 and the answer 3 pairs, of which the problem does not speak, or 6.

    A word that the gold has, too, means in the answer what it means in the gold.
    """
    nouns = [_MAY_COUNT[word] for word in other.unit - gold.unit if word in _MAY_COUNT]
    if other.kind != "value" or other.term is None or len(nouns) != 1:
        return False
    ((name, number),) = nouns
    bare = replace(other, unit=frozenset[str](), text="answer")
    words = [word for word, (meant, _) in _MAY_COUNT.items() if meant == name]
    if same(gold, bare):
        spoken_of = "|".join(
            rf"(?<![a-z]){word}s?(?![a-z])" if word.isascii() else word for word in words
        )
        return re.search(spoken_of, question.casefold()) is None
    factor = LatexTerm("num", value=number)
    return same(gold, replace(bare, term=LatexTerm("*", (other.term, factor)))) is True


def is_inverse_of(gold: Answer, other: Answer) -> bool:
    """Say whether one answer is f(x) and the other one its inverse by name."""
    names = [re.sub(r"\s|[{}]", "", answer.name) for answer in (gold, other)]
    bare = [name.replace("^-1", "") for name in names]
    return bool(bare[0]) and bare[0] == bare[1] and names[0] != names[1]


def is_open_ratio(gold: Answer, other: Answer) -> bool:
    """Say whether the gold is 42 and the answer 42:1, a ratio that is as large."""
    value = rational(gold.term) if gold.kind == "value" else None
    return other.kind == "ratio" and value is not None and value.denominator == 1


def is_open_comma(gold: Answer, other: Answer, question: str) -> bool:
    """Say whether 5.12 is stated for `5,12` where the problem asks for several values."""
    return gold.kind == "list" and other.kind == "value" and _SEVERAL.search(question) is not None


def is_unfinished(text: str) -> bool:
    """Say whether a text ends in an integer and dots: `42...`."""
    return _UNFINISHED.search(text) is not None


def _is_sentence(gold: Answer) -> bool:
    """Say whether a gold, or an item of its list, is a sentence and no name."""
    if gold.kind != "words":
        return gold.kind == "list" and any(map(_is_sentence, gold.parts))
    words = gold.text.split()
    least = SHORT_SENTENCE_WORDS if _VERB.search(gold.text) else SENTENCE_WORDS
    return len(words) >= least


def _is_part(gold: Answer, other: Answer) -> bool:
    """Say whether the gold is a number of an answer of signs, `3 -> 5`, which is not read."""
    outside = _IN_BRACES.sub("", other.text)  # not the sign of \\lim_{n \\to \\infty}
    if other.kind != "remainder" and (
        other.readable or _A_WORD.search(outside) or not _BETWEEN.search(outside)
    ):
        return False
    numbers = _NUMBER.findall(other.text)
    return len(numbers) <= MAX_PARTS and any(same(gold, parse(number)) for number in numbers)


def _is_coefficient(gold: Answer, other: Answer) -> bool:
    """Say whether the gold is 7 and the answer `$7m$`, if m is no unit of the problem."""
    match = _BEFORE_UNIT.fullmatch(other.text)
    return match is not None and other.kind == "value" and same(gold, parse(match[1])) is True


def _open_truth(gold: Answer, other: Answer) -> str:
    return TRUTH if (gold.text.casefold(), other.text.casefold()) in _ALSO_TRUE else ""


def _open_date(gold: Answer, other: Answer) -> str:
    if gold.kind == "date":
        return DATE if gold.text in dates_in_digits(other.text) else ""
    is_year = other.kind == "date" and gold.kind == "value"
    return YEAR if is_year and other.text.startswith(f"{gold.text}-") else ""


def _is_identity(gold: Answer, other: Answer) -> bool:
    """Say whether the gold is an identity in unknowns and the answer has the value of its sides."""
    if gold.kind != "equation" or len(gold.parts) != 2 or other.kind not in ("value", "equation"):
        return False
    sides = [_term(part) for part in gold.parts]
    theirs = [_term(part) for part in other.parts] or [_term(other)]
    terms = [term for term in (*sides, *theirs) if term is not None]
    if len(terms) < len(sides) + len(theirs) or not all(map(symbols, terms)):
        return False
    first, *rest = (Answer("value", str(place), term=term) for place, term in enumerate(terms))
    return all(same(first, one) is True for one in rest)


def _term(answer: Answer) -> LatexTerm | None:
    """Return the term of a side, of which `a : b` is a quotient."""
    return answer.term or parse_term(answer.text.replace("\\div", "/").replace(":", "/"))


def _calls_things_otherwise(gold: Answer, other: Answer, question: str) -> bool:
    """Say whether all values agree, but for nouns of the gold that are not in the problem."""
    ours, theirs = gold.parts or (gold,), other.parts or (other,)
    if gold.kind != other.kind or len(ours) != len(theirs):
        return False
    foreign = False
    for a, b in zip(ours, theirs, strict=True):
        bare = replace(a, unit=frozenset[str](), text="gold")
        if same(bare, replace(b, unit=frozenset[str](), text="answer")) is not True:
            return False
        only_gold, only_other = a.unit - b.unit, b.unit - a.unit
        if units.agree(a.unit, b.unit):
            continue
        if not only_gold or units.measures(only_gold | only_other):
            return False  # hours are no minutes
        if any(word in question for word in only_gold) or not all(
            word in question for word in only_other
        ):
            return False
        foreign = True
    return foreign


def _has_other_parameters(gold: Answer, other: Answer) -> bool:
    """Say whether the formulas are one but for the letters that their conditions are about."""
    ours, theirs = _formula(gold), _formula(other)
    if ours is None or theirs is None:
        return False
    (mine, my_condition), (yours, your_condition) = ours, theirs
    first, second = _about(mine, my_condition), _about(yours, your_condition)
    if not 0 < len(first) == len(second) <= MAX_PARAMETERS or first == second:
        return False
    marks = [f"\\theta_{place}" for place in range(len(first))]
    gold_term = _with_names(mine, first, marks)
    return any(
        _are_one(gold, gold_term, other, _with_names(yours, order, marks))
        for order in permutations(second)
    )


def _formula(answer: Answer) -> tuple[LatexTerm, str] | None:
    """Return a formula and what is said in words of its letters; None without words."""
    main, *rest = answer.parts if answer.kind == "list" else (answer,)
    words = " ".join((main.condition, *(part.text for part in rest)))
    plain = main.term is not None and all(not part.term and not part.name for part in rest)
    says = re.search(r"[A-Za-z]{3}", re.sub(r"\\(?!text)[A-Za-z]+", "", words))
    return (main.term, words) if plain and main.term and says else None


def _about(term: LatexTerm, condition: str) -> list[str]:
    """Return the letters of a formula of which the words behind it say something."""
    return sorted(
        name
        for name in symbols(term)
        if re.search(rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z])", condition)
    )


def _with_names(term: LatexTerm, old: Sequence[str], new: Sequence[str]) -> LatexTerm:
    for before, after in zip(old, new, strict=True):
        term = renamed(term, before, after)
    return term


def _are_one(gold: Answer, ours: LatexTerm, other: Answer, theirs: LatexTerm) -> bool:
    """Compare formulas, `f(x)` and `f(n)` by their own arguments."""
    names = [
        (answer.parts[0] if answer.kind == "list" else answer).name for answer in (gold, other)
    ]
    a, b = (
        Answer("value", name, term=term, name=name)
        for name, term in zip(names, (ours, theirs), strict=True)
    )
    return same(replace(a, text="gold"), replace(b, text="answer")) is True
