r"""Parse a written answer into a tree: a value, words, or a tuple, set or equation of parts.

A text is LaTeX or plain, with numbers in the problem's language. Its normal form is cut: the
outermost signs decide its kind; its parts are parsed in the same way. A text that cannot be parsed
is `unread`.
"""

# ruff: noqa: RUF001 - signs that people type
import functools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tasks.gym.maths import units
from tasks.gym.maths.dates import date_of
from tasks.gym.maths.latex_terms import LatexTerm, integer, parse_term
from tasks.gym.maths.normal_form import letters, normalised
from tasks.gym.maths.vectors import components
from tasks.gym.maths.words import ALTERED_AFTER, HEDGES

MAX_CHARACTERS = 1000
"""A longer text is not a final answer."""
MAX_LEVELS = 3
"""Most roots within each other that have signs of their own; more values are no answer."""
MAX_DEPTH = 5
"""Most levels of nesting: tuples in sets in unions."""
# "\text{ cm}", "\mathrm{kg}".
_TEXT = re.compile(r"\\(?:text(?:bf|it|rm|normal)?|mathrm|mbox|operatorname)\s*\{([^{}]*)\}")
# "\text{ cm}^2" of "5\text{ cm}^2", "\text{km}/\text{h}" of "5 \text{km}/\text{h}".
_WRITTEN_UNIT = re.compile(
    r"(?<=[\d})\]a-zA-Z!%° ])((?:\\(?:text(?:bf|it|rm|normal)?|mathrm|mbox)\s*"
    r"\{[^{}\d]*(?:\^[23][^{}\d]*)?\}(?:\s*\^\s*\{?[23]\}?)?[\s/.]?)+)$"
)
_UNIT_FOLLOWS = "\ue000"
_SIGN = units.CURRENCY_SIGNS
# "m", "°", "%".
_LETTER = rf"(?:[^\W\d_]|[°%{_SIGN}{units.MARKS}])"
# " km/h" of "5 km/h", " cm^2" of "5 cm^2", "%" of "5%".
_PLAIN_UNIT = re.compile(
    r"(?<=[\d)}!])(?P<space>\s*(?:/(?=[a-z]{3}))?)"
    rf"(?P<unit>{_LETTER}(?:{_LETTER}|[ ./'’-])*(?:\^\{{?[23]\}}?|(?<=[a-z])[23])?)$"
)
# "RM 5", "-€5", "Rp 1.000".
_CURRENCY = re.compile(
    rf"([-+]?)\s*({units.CURRENCY})\s*([-+]?(?:[\d.(]|\\frac).*)",
    re.DOTALL,
)
# "\pm"; not the sign of \pmod.
_PLUS_MINUS = re.compile(r"\\(?:pm|mp)(?![A-Za-z])")
# "sqrt", "log".
_FUNCTION = re.compile(r"(?:sqrt|pi|sin|cos|tan|sec|log|ln|exp|mod|choose)(?![A-Za-z])")
# "sin" of "sin 30°".
_ANGLE = re.compile(r"(?:sin|cos|tan|sec|csc|cot)(?![A-Za-z])")
# "1 1/2"
_MIXED = re.compile(r"(?<![\d.])(\d+) (\d+)/(\d+)(?![\d.])")
# "x_1", "f(x)", "f^{-1}(x)", "P(A|B)", "(P(x), Q(x))".
_NAME = re.compile(
    r"\(?(?:\\(?:angle|triangle))?\\?[^\W\d_]+(?:_(?:\{[^{}]*\}|\w)|\^\{-1\})?'*"
    r"(?:[(,:|]\\?\w+(?:_(?:\{[^{}]*\}|\w))?)*\)?|"
    r"\((?:[A-Za-z]\([a-z]\),){1,3}[A-Za-z]\([a-z]\)\)|"
    r"\\(?:overline|bar)\{?[A-Za-z]\}?"
)
# "\begin{pmatrix} 1 \\ 2 \end{pmatrix}"
_MATRIX = re.compile(
    r"\\begin\{[pbvV]?matrix\}((?:(?!\\begin).)*)\\end\{[pbvV]?matrix\}", re.DOTALL
)
# "[[1, 2], [3, 4]]"
_ROWS = re.compile(r"\[\s*(\[[^\[\]]*\]\s*(?:,\s*\[[^\[\]]*\]\s*)*)\]")
MAX_ORDER = 3
"""Most rows of a determinant that is worked out."""
# "="; not that of "<=".
_EQUALS = re.compile(r"(?<![<>])=")
# "<=", ">", "\ne ".
_RELATION = re.compile(r"(<=|>=|<|>|\\ne )")
_DOMAIN = r"(?:\\math(?:bb|bf|rm)\s*)?\{?\s*\\?([RZ])\s*\}?"
# "\{x | 2 < x < 3\}", "\{x \in \mathbb{R} : x > 1\}", "\{x \in \mathbb{Z} : 0 < x < 4\}".
_SET_BUILDER = re.compile(
    rf"\\\{{\s*(?P<name>\\?[A-Za-z]+)\s*(?:\\in\s*(?P<domain>{_DOMAIN})\s*)?"
    r"(?:\||\\mid|\\vert|:)\s*(?P<condition>(?:\\\{[^{}]*\\\}|(?!\\\}).)*)\\\}"
)
# "\mathbb{R}", "\text{all real numbers}".
_REALS = re.compile(
    r"\\mathbb\s*\{?\s*R\s*\}?|\\R|"
    r"(?:\\text\s*\{\s*)?(?:(?:the set of )?(?:all )?real (?:numbers?|values)|all reals)"
    r"(?:\s*\})?",
    re.IGNORECASE,
)
_EVERY_NUMBER = "(-\\infty,\\infty)"
EMPTY = "\\emptyset"
"""What the empty set, and "no solution", is written as."""
_NO_SOLUTION = re.compile(
    "no solutions?|there is no solution|there are no solutions|(?:the )?empty set|"
    "tidak ada solusi|tidak ada penyelesaian|himpunan kosong|tiada penyelesaian|set kosong|"
    "vô nghiệm|tập rỗng|tập hợp rỗng|เซตว่าง|无解|無解|空集|sem solução|não há solução|"
    "conjunto vazio|sin solución|no hay solución|conjunto vacío|walang solusyon|aucune solution|"
    "ensemble vide|keine lösung|leere menge"
)
"""States the empty set, in words."""
INTERVALS = frozenset({"()", "[)", "(]", "[]"})
# What conditions on an unknown can be, and what they can be joined to.
_SETS = INTERVALS | {"set", "union", "intersection", "difference", "complement", "integers"}
_BETWEEN_SETS = (
    ("difference", "\\setminus"),
    ("difference", "\\backslash"),
    ("union", "\\cup"),
    ("intersection", "\\cap"),
)
"""Signs between sets, in the order in which they are read."""
_JUNCTION = re.compile(r"\s*\\l(?:or|and)(?![A-Za-z])")
# "\lor" between two conditions; "\land" and, in a set's braces, "," between two that both hold.
_JUNCTIONS = (("union", "\\lor"), ("intersection", "\\land"), ("intersection", ","))
# "(a) 1", "ii) 5"
_ENUMERATED = re.compile(r"\(?(?P<label>[a-j]|[ivx]{1,4}|\d)\)\s*(?P<value>[^\s,)].*)")
# "i) 5, ii) 6" has no opening brackets, "(a) 1 (b) 2" no comma.
_UNOPENED = re.compile(r"(?:^|(?<=[,;\d]\s))([a-j]|[ivx]{1,4}|\d)\)(?=\s)")
_UNSEPARATED = re.compile(r"(?<=[^,;\s])\s+(?=\((?:[b-j]|[iv]{2,4}|v|[2-9])\)\s+\S)")
# "Sequence 1: " of "Sequence 1: 2, 3 and Sequence 2: 5, 6"
_GROUP = re.compile(r"(?:(?<=\d)\s?,?\s?and\s|,\s?)?\b[A-Z][a-z]{2,15}\s\d{1,2}:\s")
_LABELS = ("abcdefghij", "123456789", ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"))
# "A: 1", "\text{Alice: } 3", "\text{Alice}: 3"; a part of a ratio has no digit behind it.
_BY_COLON = re.compile(
    r"(?:\\text\s*\{\s*)?(?P<label>[^\W\d][^\W\d ]{0,15})(?:\s*:\s*\}|\s*\}?\s*:)\s*"
    r"(?P<value>.*\d.*)"
)
# "Minimum" of "Minimum: 1"; "A" of "A:B" is a part of a ratio.
_LABEL = re.compile(r"[A-Za-z]{3,}(?:\s[A-Za-z]+){0,3}")
# "x \equiv 3 \pmod 7", "1, 3 (mod 8)", "10 \bmod 7".
_CONGRUENCE = re.compile(
    r"(?:(?P<name>[^=]*?)\s*(?P<relation>\\equiv(?![A-Za-z])|≡|=)\s*)?(?P<residues>[^=]*?)\s*,?\s*"
    r"(?P<open>\(\s*)?(?:\\(?:text|mathrm|operatorname)\s*\{\s*mod\s*\}|\\?(?P<sign>[pb]?mod)(?![A-Za-z]))"
    r"\s*\{?\s*(?P<modulus>\d{1,9})\s*\}?\s*\)?"
)
# "123_7", "1A_{16}".
_BASED = re.compile(r"\(?(-?\d[0-9A-F]*)\)?_\{?(\d+)\}?")
# "3 R 2", "3 \text{ remainder } 2", "3 sisa 2", "3餘2": what a division leaves.
_REMAINDER = re.compile(
    r"(?P<quotient>-?\d+),?\s?(?:\\text\s?\{\s?)?(?:R\.?|(?<=\s)r\.?(?=\s)|(?i:"
    r"(?:(?:with|dengan|còn|com|con|avec|mit|at may)\s)?(?:an?\s|une?\s|uma?\s)?"
    r"(?:rem(?:ainder)?\.?|(?:ber)?sisa|baki|dư|resto|reste|rest|natitira(?:ng)?)"
    r"(?:\s(?:of|là|de|von|na))?)|เศษ|[余餘]|\.{6})\s?\}?\s?(?P<rest>\d+)"
)
_FOR_ALL = (
    r"untuk\s+(?:semua|setiap|sebarang|suatu)|bagi\s+(?:semua|setiap|sebarang)|di\s*mana|"
    r"với\s+m[ọỗ]i|trong đó|para\s+(?:tod[ao]s?|cada|qualquer|cualquier|algum|algún)|onde|donde|"
    r"para sa (?:lahat|bawat)|kung saan|pour\s+(?:tout\w*|chaque)|où|für\s+(?:alle|jede\w*)|wobei|"
    r"สําหรับ(?:ทุก|ทั้งหมด)?|โดยที่|对于?(?:所有|任意|每个)?|對於?(?:所有|任意|每個)?|其中"
)
"""Begins what holds for every value of an unknown, in the languages of the problems."""
# " \text{ for all } n >= 1", ", where n \in \mathbb{N}"; ", k\in\mathbb{Z}"; " (n >= 2)".
_CONDITIONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"[\s,;(]\s*(?:\\text(?:rm|it|bf)?\s*\{\s*)?[,(]?\s*"
        rf"(?:for\s+(?:(?:all|any|every|each)(?!\s+\d)|some|an?\s+(?:\w+\s+)?constant)|where(?!\s+as)|\\forall|{_FOR_ALL}|"
        r"(?:for|with|với|dengan|com|con|avec|mit|untuk|bagi|para|pour|für|เมื่อ)"
        r"(?=\s*\}?\s*[a-z]\s*(?:[<>]|\\in|\\ne)))(?:(?![A-Za-z])|(?<=[\u0e00-\u9fff]))"
        r"(?P<about>(?!)\b)?(?:[^=]|(?<=[<>])=)*$",
        r"[,;(]\s*(?P<about>[A-Za-z](?:\s*,\s*[A-Za-z])*)\s*\\in\s*(?:\\math(?:bb|bf|rm)\s*)?"
        r"\{?\s*[ZNRQC]\s*\}?(?:[\^_]\{?[+*\d>=<]+\}?)*\s*\)?$",
        r"(?:\(|,)\s*(?P<about>[a-z])\s*(?:[<>]=?|\\ne )\s*-?\d+\s*\)?$",
        # ", k \text{ is an integer}", "(k là số nguyên)", ", k为整数"
        r"[,;(]\s*(?:\\text\s*\{)?\s*\(?(?P<about>[a-z])(?![a-z])\s*(?:\\text\s*\{)?[^\d=<>+*/^\\,]{0,30}?"
        r"(?:integers?|constants?|整数|整數|số nguyên|bilangan bulat|integer|inteiros?|"
        r"enteros?|entiers?|ganze zahl|จํานวนเต็ม|buong numero)\s*\}?\s*\)?\s*$",
        # ", n = 1, 2, 3, \ldots", "(n = 0, 1, \dots)"
        r"[,(]\s*(?P<about>[a-z])\s*=\s*(?:-?\d{1,3}\s*,\s*){1,4}(?:\\[lc]?dots|\.{3}|…)\s*\)?\s*$",
        # "c \text{ is any constant}", where c is all that is stated
        r"(?:(?<=^[A-Za-z])|(?<==[A-Za-z])|(?<==\s[A-Za-z]))\s*(?:\\text\s*\{)?\s*is\s+"
        r"(?:any|an\s+arbitrary)\s+(?:real\s+)?constant(?P<about>(?!)\b)?\s*\}?\s*$",
    )
)
# ", x \in \mathbb{R}" takes nothing from x > 2; "x \in \mathbb{Z}" and "\mathbb{R}^+" do.
_OF_REALS = re.compile(
    r"[,;(]\s*[A-Za-z]\s*\\in\s*(?:\\math(?:bb|bf|rm)\s*)?\{?\s*\\?R\s*\}?\s*\)?\s*"
)
# "0.27 repeating" is 0.2777... or 0.2727...
_REPEATS = re.compile(r"repeating|recurring")
# A relation, or a word: "the rent for each room" is a sentence.
_NO_VALUE = re.compile(r"<=|>=|<|>|\\ne |(?<![\\A-Za-z{])[A-Za-z]{4,}")
# A word next to other text is not a product of letters.
_SENTENCE = re.compile(
    r"(?<![\\A-Za-z])[A-Za-z]{3,}\s+[\w\\(]|[\w)}]\s+[A-Za-z]{3,}|[^\W\d_a-zA-Zα-ωΑ-Ω]"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A kind (value, words, date, list, set, ratio, equation ..., or brackets) and its parts."""

    kind: str
    text: str
    """Normalised, so that equal texts are equal answers."""
    parts: tuple["Answer", ...] = ()
    term: LatexTerm | None = None
    name: str = ""
    """The left side of `x = 5`: x; the label of `Minimum: 5`."""
    condition: str = ""
    """What the answer says about its unknowns: n >= 1 of `2n+1 for n >= 1`."""
    unit: frozenset[str] = frozenset()

    @property
    def readable(self) -> bool:
        """True if no part is unread or hedged."""
        return self.kind not in ("unread", "hedged") and all(part.readable for part in self.parts)


@functools.lru_cache(maxsize=4096)
def parse(text: str, language: str = "en") -> Answer:
    """Read a written answer."""
    if len(text) > MAX_CHARACTERS:
        return Answer("unread", text)
    date = date_of(text, language)
    return Answer("date", date) if date else _answer(normalised(text, language), MAX_DEPTH)


def split(text: str, separator: str) -> list[str]:
    """Cut at a separator outside all brackets; half-open intervals close with either bracket."""
    parts, depth, start, place = list[str](), 0, 0, 0
    if separator not in text:
        return [text]
    while place < len(text):
        if text[place] in "([{":
            depth += 1
        elif text[place] in ")]}":
            depth -= 1
        elif depth == 0 and text.startswith(separator, place):
            after = text[place + len(separator) : place + len(separator) + 1]
            if not (separator[0] == "\\" and after.isalpha()):
                parts.append(text[start:place].strip())
                start = place = place + len(separator)
                continue
        place += 1
    return [*parts, text[start:].strip()]


def _answer(text: str, depth: int) -> Answer:
    if depth == 0 or not text:
        return Answer("unread", text)
    stated, condition = _unconditional(text)
    if condition:
        return replace(_answer(stated, depth), condition=condition)
    return (
        _constant(text, depth)
        or _congruence(text, depth)
        or _remainder(text)
        or _joined(text, depth)
        or _listed(text, depth)
        or _words(text)
        or _statement(_TEXT.sub(_inner, _marked_unit(text)), text, depth)
    )


def _constant(text: str, depth: int) -> Answer | None:
    """Read a matrix, or the set of all real numbers."""
    if text == EMPTY:
        return Answer("words", EMPTY)
    if _REALS.fullmatch(text):
        return _whole("()", _EVERY_NUMBER, ["-\\infty", "\\infty"], depth)
    along = components(text)
    if along is not None:
        return Answer("vector", text, tuple(Answer("value", text, term=term) for term in along))
    if nested := _ROWS.fullmatch(text):
        listed = re.findall(r"\[([^\[\]]*)\]", nested[1])
        table = [[cell.strip() for cell in split(row, ",")] for row in listed]
    elif matrix := _MATRIX.fullmatch(text):
        rows = [row for row in matrix[1].split("\\cr") if row.strip()]
        table = [[cell.strip() for cell in row.split("&")] for row in rows]
    else:
        return None
    if text.startswith("\\begin{v"):  # bars: a number
        is_square = len(table) <= MAX_ORDER and all(len(row) == len(table) for row in table)
        return _answer(_determinant(table), depth - 1) if is_square else Answer("unread", text)
    return _whole(f"matrix {len(table)}", text, [cell for row in table for cell in row], depth)


def _determinant(table: Sequence[Sequence[str]]) -> str:
    """Write a determinant out along its first row."""
    if len(table) == 1:
        return f"({table[0][0]})"
    minors = [
        [[*row[:place], *row[place + 1 :]] for row in table[1:]] for place in range(len(table))
    ]
    terms = (
        f"{'-' if place % 2 else '+'}({cell})*({_determinant(minor)})"
        for place, (cell, minor) in enumerate(zip(table[0], minors, strict=True))
    )
    return "".join(terms).lstrip("+")


def _congruence(text: str, depth: int) -> Answer | None:
    r"""Read residues by a modulus: 3 \pmod 7 is a class, 10 \bmod 7 the number 3."""
    match = _CONGRUENCE.fullmatch(text) if "mod" in text else None
    if match is None or not match["residues"]:
        return None
    residues = [_answer(part, depth - 1) for part in split(match["residues"], ",")]
    numbers = [integer(one.term) for one in residues if one.term and one.kind == "value"]
    modulus, name = int(match["modulus"]), (match["name"] or "").replace(" ", "")
    if not modulus or None in numbers or len(numbers) < len(residues):
        return None
    is_class = match["open"] or match["sign"] == "pmod" or match["relation"] in ("\\equiv", "≡")
    parts = tuple(
        replace(
            one,
            kind="congruence",
            text=f"{one.text} (mod {modulus})",
            name=name,
            parts=(_integer(modulus),),
        )
        if is_class
        else replace(_integer((number or 0) % modulus), name=name)
        for one, number in zip(residues, numbers, strict=True)
    )
    return parts[0] if len(parts) == 1 else Answer("list", text, parts)


def _remainder(text: str) -> Answer | None:
    match = _REMAINDER.fullmatch(text)
    if match is None:
        return None
    parts = tuple(_integer(int(match[name])) for name in ("quotient", "rest"))
    return Answer("remainder", text, parts)


def _integer(number: int) -> Answer:
    return Answer("value", str(number), term=LatexTerm("num", value=Fraction(number)))


def _joined(text: str, depth: int) -> Answer | None:
    """Read conditions with "or" or "and" between them; the parts of a list if they are none."""
    if "\\l" not in text or all(len(split(text, sign)) == 1 for sign in ("\\lor", "\\land")):
        return None
    return _condition(text, depth) or _answer(_JUNCTION.sub(", ", text), depth)


def _listed(text: str, depth: int) -> Answer | None:
    if any(_is_ambiguous(piece) for piece in split(text, ",")):
        return Answer("unread", text, _every_sign(text, depth))
    if _GROUP.match(text):
        flat, groups = _GROUP.subn(", ", text)
        text = flat.lstrip(", ") if flat.count(",") > groups else text
    text = _UNOPENED.sub(r"(\1)", text)
    text = _UNSEPARATED.sub(", ", text) if _ENUMERATED.match(text) else text
    for separator in ";,":
        pieces = [piece for piece in split(text, separator) if piece]
        if len(pieces) > 1:
            labelled = _labelled(pieces, depth)
            if labelled:
                return Answer("list", text, labelled)
            signed = [sign for piece in pieces for sign in _both_signs(piece)]
            parts = _whole("list", text, signed, depth).parts
            # x \in \mathbb{R} beside x = 1 is another unknown's, or says nothing of the value.
            return Answer(
                "list",
                text,
                tuple(
                    Answer("unread", part.text)
                    if part.text == _EVERY_NUMBER and part.name
                    else part
                    for part in parts
                ),
            )
    signs = _both_signs(text)
    return _whole("list", text, signs, depth) if len(signs) > 1 else None


def _condition(text: str, depth: int, *, in_braces: bool = False) -> Answer | None:
    r"""Read `x < 1 \lor x > 2` as a set; None if its parts are no sets of one unknown."""
    for kind, separator in _JUNCTIONS if in_braces else _JUNCTIONS[:2]:
        pieces = [piece.strip(" ,") for piece in split(text, separator)]
        if len(pieces) == 1 or not all(pieces):
            continue
        parts = [_condition(piece, depth - 1, in_braces=in_braces) for piece in pieces]
        members = tuple(part for part in parts if part is not None)
        if len(members) < len(parts) or len({part.name for part in members}) > 1:
            return None
        return Answer(kind, text, members, name=members[0].name)
    inner = _answer(text, depth - 1)
    return inner if inner.name and inner.kind in (*_SETS, "value") else None


def _labelled(pieces: Sequence[str], depth: int) -> tuple[Answer, ...]:
    """Read `(a) 1, (b) 2` and `A: 1, B: 2`, each part by its label; () if not all have one."""
    for pattern in (_ENUMERATED, _BY_COLON):
        matches = [match for piece in pieces if (match := pattern.fullmatch(piece))]
        names = [match["label"] for match in matches]
        order = _order(names) if pattern is _ENUMERATED else list(range(len(names)))
        if len(matches) < len(pieces) or not order:
            continue
        matches = [matches[place] for place in order]
        names = [matches[place]["label"] for place in range(len(order))]
        if pattern is _ENUMERATED:
            names = [f"({name})" for name in names]
        return tuple(
            replace(_answer(match["value"].strip(), depth - 1), name=name)
            for name, match in zip(names, matches, strict=True)
        )
    return ()


def _order(labels: Sequence[str]) -> list[int]:
    """Return the places of labels that are the first of a, b, c, i, ii, iii or 1, 2, 3; else []."""
    for first in _LABELS:
        if sorted(labels) == sorted(first[: len(labels)]):
            return [list(labels).index(label) for label in first[: len(labels)]]
    return []


def _unconditional(text: str) -> tuple[str, str]:
    r"""Divide `2n+1 \text{ for all } n \ge 1` into what it states and what it says of its unknowns.

    A statement about another unknown is a part of the answer: x = 1, y \in \mathbb{R}.
    """
    for pattern in _CONDITIONS:
        match = pattern.search(text)
        main = text[: match.start()].strip(" ,;") if match else ""
        if match is None or not re.search(r"[\w}]", main):
            continue
        values = _RELATION.sub(" ", main) if _OF_REALS.fullmatch(match[0]) else main
        if _NO_VALUE.search(values):
            continue
        names = re.findall(r"(?<![\\A-Za-z])[A-Za-z](?![A-Za-z])", match["about"] or "")
        if match["about"] is None or not letters(main).isdisjoint(names):
            return main, match[0].strip(" ,;()")
    return text, ""


def _marked_unit(text: str) -> str:
    r"""Take a final unit out of \text and mark where it begins."""
    match = _WRITTEN_UNIT.search(text)
    if not match:
        return text
    unit = _TEXT.sub(r" \1 ", match[1]).strip()
    return f"{text[: match.start()].rstrip()}{_UNIT_FOLLOWS}{unit}"


def _inner(match: re.Match[str]) -> str:
    return match[1] if len(match[1]) < 3 else f" {match[1].strip()} "


def _whole(kind: str, text: str, parts: list[str], depth: int) -> Answer:
    return Answer(kind, text, tuple(_answer(part, depth - 1) for part in parts))


def _both_signs(text: str) -> list[str]:
    r"""Return the values of a text with \pm and \mp: one for each sign.

    Signs of one level go together, a sign within the root of another one has its own. Each member
    of a set has its signs to itself.
    """
    levels = {depth for depth, _ in _signs(text)}
    if not levels or len(levels) > MAX_LEVELS or text.startswith("\\{"):
        return [text]
    texts = [text]
    for level in sorted(levels):
        texts = [_signed(one, level, sign) for one in texts for sign in "+-"]
    return texts


def _signs(text: str) -> list[tuple[int, re.Match[str]]]:
    r"""Return the depth in braces of every \pm and \mp."""
    return [
        (text.count("{", 0, match.start()) - text.count("}", 0, match.start()), match)
        for match in _PLUS_MINUS.finditer(text)
    ]


def _signed(text: str, level: int, sign: str) -> str:
    other = "-" if sign == "+" else "+"
    for depth, match in reversed(_signs(text)):
        if depth == level:
            by = sign if match[0] == "\\pm" else other
            text = f"{text[: match.start()]}{by}{text[match.end() :]}"
    return text


def _every_sign(text: str, depth: int) -> tuple[Answer, ...]:
    r"""Return the four points of (\pm 1, \pm 2), if its signs do not go together; () for others."""
    places = list(_PLUS_MINUS.finditer(text))
    if len(split(text, ",")) > 1 or len(places) > MAX_LEVELS or "{" in text.replace("\\sqrt{", ""):
        return ()
    texts = [text]
    for match in reversed(places):
        texts = [
            f"{one[: match.start()]}{sign}{one[match.end() :]}" for one in texts for sign in "+-"
        ]
    return tuple(_answer(one, depth - 1) for one in texts)


def _is_ambiguous(text: str) -> bool:
    """Say whether two coordinates have signs, which may go together or not."""
    if text[:1] not in ("(", "[") or "\\mp" in text:
        return False
    return sum(bool(_PLUS_MINUS.search(part)) for part in split(text[1:-1], ",")) > 1


def _words(text: str) -> Answer | None:
    words = _TEXT.sub(r"\1", text)
    whole = _TEXT.fullmatch(text) is not None and re.match(r"\W*[^\W\d_]", words) is not None
    plain = not re.search(r"[\d\\^=+*/<>|]", words) and (
        words != text or re.search(r"[^\W\d_]{3}|^[\s\"'.:()\[\]]*[A-Z][\s\".:()\[\]]*$", words)
    )
    if not whole and not plain:
        return None
    folded = " ".join("".join(_letter_or_blank(char) for char in words).casefold().split())
    if len(folded) == 1 or re.fullmatch(r"[A-Z]{3,6}", words):  # N is not n, ABC may be a product
        folded = re.sub(r"\W", "", words)
    if _NO_SOLUTION.fullmatch(folded):
        return Answer("words", EMPTY)
    term = parse_term(text) if re.fullmatch(r"[a-z]{3,4}", text) else None
    return Answer("words", folded or text, term=term)


def _statement(text: str, whole: str, depth: int) -> Answer:
    """Read one statement: x in a set, a relation, an equation, a ratio, a union or a value."""
    named = _named(text, depth)
    if named:
        return named
    sets = _parted(text, _BETWEEN_SETS, depth) if not _EQUALS.search(text) else None
    if sets:
        return sets
    relations = [part.strip() for part in _RELATION.split(text)]
    if len(relations) > 1:
        return _inequality(relations, text, depth)
    about = split(text, "\\approx")
    if len(about) > 1 and any(about):
        return _whole("approximation", text, [part for part in about if part], depth)
    sides = split(text, "=")
    if len(sides) > 1 and sides[-1]:
        return _equation(sides, text, depth)
    return (
        _parted(text, (("ratio", ":"), *_BETWEEN_SETS), depth)
        or _bracketed(text, depth)
        or _value(text, whole)
    )


def _parted(text: str, signs: Sequence[tuple[str, str]], depth: int) -> Answer | None:
    for kind, separator in signs:
        parts = split(text, separator)
        if len(parts) > 1 and all(parts):
            return _whole(kind, text, parts, depth)
    return None


def _named(text: str, depth: int) -> Answer | None:
    r"""Read what has a name: \{x | 2 < x < 3\}, x \in [0, 1], Minimum: 5."""
    builder = _SET_BUILDER.fullmatch(text)
    if builder:
        return _built(builder, depth)
    if re.fullmatch(r"\\\{[^{}]*[<>][^{}]*\\\}", text):  # \{1 < x < 2\}
        inner = _condition(text[2:-2], depth)
        return replace(inner, name="") if inner else None
    member = split(text, "\\in")
    if len(member) == 2 and _is_name(member[0]):
        return replace(_answer(member[1], depth - 1), name=member[0].replace(" ", ""))
    label, _, labelled = (part.strip() for part in text.partition(":"))
    if labelled and _LABEL.fullmatch(label):
        return replace(_answer(labelled, depth - 1), name=label.casefold())
    return None


def _built(builder: re.Match[str], depth: int) -> Answer | None:
    """Read a set by the conditions on its members; its unknown is bound and has no name."""
    inner = _condition(builder["condition"], depth, in_braces=True)
    if inner is None or inner.name != builder["name"].strip():
        return _solved_first(builder, depth)
    if inner.kind == "value":
        inner = Answer("set", builder[0], (inner,))
    if "Z" in (builder["domain"] or ""):
        return Answer("integers", builder[0], (inner,))
    return replace(inner, name="")


def _solved_first(builder: re.Match[str], depth: int) -> Answer | None:
    r"""Read real numbers by an inequality that has to be solved: \{x : |x| < 5\}."""
    relation = _answer(builder["condition"].strip(), depth - 1)
    is_real = "R" in (builder["domain"] or "R")
    one = letters(relation.text) == {builder["name"].strip()}
    return relation if is_real and one and relation.kind.startswith("relation") else None


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text.replace(" ", "")) is not None


def _equation(sides: list[str], text: str, depth: int) -> Answer:
    """Parse an equation: a name takes the last value, and `= 5` is 5."""
    if HEDGES.search(sides[0]):
        return Answer("hedged", text)
    if len(sides) == 2 and re.fullmatch("[A-Za-z]", sides[1]) and not letters(sides[0]):
        sides = sides[::-1]  # 5 = x
    if not sides[0] or _is_name(sides[0]):
        inner = _answer(sides[-1], depth - 1)
        return replace(inner, name=sides[0].replace(" ", "") or inner.name)
    return _whole("equation", text, sides, depth)


def _bracketed(text: str, depth: int) -> Answer | None:
    text = text.partition(_UNIT_FOLLOWS)[0]
    braces = re.fullmatch(r"\\\{(.*)\\\}", text) or re.fullmatch(r"\{(.*,.*)\}", text)
    if braces:
        kind = "set" if text[0] == "\\" else "list"
        members = split(braces[1], ";" if len(split(braces[1], ";")) > 1 else ",")
        parts = [sign for part in members if part for sign in _both_signs(part)]
        return _whole(kind, text, parts, depth)
    sign = re.match(r"[-+]\s*(?=[(\[])", text)
    if sign:
        inner = _bracketed(text[sign.end() :], depth)
        if inner is None or inner.kind not in INTERVALS:
            return None
        minus = "-" if sign[0][0] == "-" else ""
        parts = [f"{minus}({part.text})" if minus else part.text for part in inner.parts]
        return _whole(inner.kind, text, parts, depth)
    if len(text) > 1 and text[0] in "([" and text[-1] in ")]":
        inner = split(text[1:-1], ",") if "," in text else split(text[1:-1], ";")
        if len(inner) > 1:
            return _whole(text[0] + text[-1], text, inner, depth)
    return None


def _inequality(parts: list[str], text: str, depth: int) -> Answer:
    """Read a < x <= b, x > a and a > x as intervals."""
    if len(parts) == 5 and _is_name(parts[2]) and parts[1][0] == parts[3][0] != "\\":
        left, first, name, second, right = parts
        if first[0] == ">":
            left, first, second, right = right, second, first, left
    elif len(parts) == 3 and parts[1][0] != "\\" and (_is_name(parts[0]) or _is_name(parts[2])):
        left, sign, right = parts
        below = (sign[0] == "<") == _is_name(left)
        name, bound = (left, right) if _is_name(left) else (right, left)
        left, first = ("-\\infty", "<") if below else (bound, sign)
        second, right = (sign, bound) if below else ("<", "\\infty")
    else:
        signs = " ".join(parts[1::2])
        name = next((part for part in (parts[0], parts[2]) if _is_name(part)), "")
        if len(parts) == 3 and parts[1][0] == "\\" and name:  # x \ne 2
            value = parts[2] if name == parts[0] else parts[0]
            return replace(_whole("complement", text, [value], depth), name=name.replace(" ", ""))
        return Answer(f"relation {signs}", text, tuple(_answer(p, depth - 1) for p in parts[::2]))
    opening, closing = ("[" if "=" in first else "("), ("]" if "=" in second else ")")
    parts = [left, right]
    return replace(_whole(opening + closing, text, parts, depth), name=name.replace(" ", ""))


def _value(text: str, whole: str) -> Answer:
    """Read a number or an expression with its unit."""
    value, unit = _without_unit(text)
    if unit and (HEDGES.search(unit) or ALTERED_AFTER.match(unit) or _REPEATS.search(unit)):
        return Answer("hedged", whole)
    factor, names = units.scale(unit), units.unit(unit)
    based = _BASED.fullmatch(value)
    if based:
        return Answer("based", f"{based[1]}_{based[2]}", unit=names)
    expression = _MIXED.sub(r"(\1+\2/\3)", value)
    term = None if _SENTENCE.search(_FUNCTION.sub("", expression)) else parse_term(expression)
    if term is None:
        return Answer("unread", whole)
    if factor != 1:
        term = LatexTerm("*", (LatexTerm("num", value=Fraction(factor)), term))
    return Answer("value", value if factor == 1 and not names else whole, term=term, unit=names)


def _without_unit(text: str) -> tuple[str, str]:
    currency = _CURRENCY.fullmatch(text)
    before = ""
    if currency:
        text, before = currency[1] + currency[3], currency[2]
    value, marker, after = text.partition(_UNIT_FOLLOWS)
    if marker:
        return value.lstrip("+ ").rstrip(), f"{before} {after}".strip()
    match = _PLAIN_UNIT.search(text)
    angle = match and match["unit"][0] == "°" and _ANGLE.search(text)
    if not match or angle or _FUNCTION.match(match["unit"]) or not _may_be_unit(match):
        return text.lstrip("+ ").rstrip(), before
    return text[: match.start()].lstrip("+ ").rstrip(), f"{before} {match['unit']}".strip()


def _may_be_unit(match: re.Match[str]) -> bool:
    """Say whether letters after a number are a unit: 2x and 2 x are products, 2 m is a length."""
    unit = match["unit"]
    if "Ͱ" <= unit[0] <= "Ͽ":  # Greek: an unknown, or pi
        return False
    first = re.match(r"[^\W\d_]+", unit)
    if first is None or not first[0].isascii() or unit.startswith("°"):
        return True
    entry = units.KNOWN.get(first[0].casefold().removesuffix("s") or "s") or units.KNOWN.get(
        first[0].casefold()
    )
    if match["space"]:
        return bool(entry) or any(len(word) > 2 for word in re.findall(r"[^\W\d_]+", unit))
    return bool(entry) and len(first[0]) > 1


def _letter_or_blank(char: str) -> str:
    """Keep letters, digits and their marks: without its vowels one Thai word is another."""
    return char if re.match(r"[\w\s]", char) or unicodedata.category(char)[0] == "M" else " "
