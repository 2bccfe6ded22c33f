"""Find the value that a sentence states.

A sentence that hedges (`either 5 or 3`), gives a range (`between 2 and 3`), compares
(`more than 8`) or denies (`not 8`) states no value, or several, which must then all be right.
"""

# ruff: noqa: RUF001 - signs that people type
import re

from tasks.algorithms.language_tags import primary
from tasks.gym.denials import denied_after, denied_before
from tasks.gym.maths import units
from tasks.gym.maths.compare import same
from tasks.gym.maths.dates import cut_dates
from tasks.gym.maths.latex_terms import symbols
from tasks.gym.maths.numerals import spelled_beside_digits, spelled_out
from tasks.gym.maths.parse import Answer, parse
from tasks.gym.maths.words import (
    ALTERED_AFTER,
    ALTERED_BEFORE,
    ALTERNATIVE_FOLLOWS,
    ANY_OR,
    BETWEEN_LAST,
    COMPARED_LAST,
    FOLLOWS,
    HEDGES,
    JOINED,
    LEAD_WORDS,
    MORE_FOLLOWS,
    NEGATION,
    OPENS_RANGE,
    OR,
    OR_LAST,
    PERHAPS,
)

MAX_UNIT_WORDS = 3
"""A number followed by more words is a sentence."""

# "(", "[" and their closings, of which an interval may have one of each.
_OPENERS, _CLOSERS = re.compile(r"[(\[]"), re.compile(r"[)\]]")
# "$x^2$", "\(5\)", "$$5$$".
_FORMULA = r"\$\$[^$]+\$\$|\$[^$]+\$|\\\(.+?\\\)|\\\[.+?\\\]"
# "Rp ", "\$", "€".
_MONEY = rf"(?:(?:R\$|\\?\$|{units.CURRENCY})\s{{0,2}})?"
# "1,200", "-3", "$5", "2 + 3", "√2", "3:2", "3 x 2".
_NUMBER = (
    rf"(?<![A-Za-z0-9_.\\])(?<!\d,)[-+−]?\s?{_MONEY}(?<![A-Za-z0-9_.^])(?<!\d,)(?<!\^\{{)[-+−(\[⌊⌈]*(?:\d|\.\d|[√∛])"
    r"(?:(?<=\d)(?:[:∶xX]|\s[:∶xX]\s)(?=\d)|"
    r"(?<=\d)\s?;\s?(?=[-−]?\d[\d.,/]{0,20}\s?[)\]])|"
    r"[\d.,'’ +\-−*/×·⋅∗•∙÷^!%‰()\]⌋⌉²³√∛π½])*"
)
_MEASURE = "km|cm|mm|m|kg|mg|g|ft|in|yd|mi|lbs?|oz|ml|l|h|hrs?|min|sec|s|jam|menit|giờ|phút"
_AND = "(?:and|dan|và|e|y|et|und|at)"
# "h30", "m 20 cm", "+ y", "+", "∠30°", "-> 5", "| 5", "* x" behind a number; not "**", or the cells
# of a table.
_SIGN_AFTER = re.compile(
    r"h[0-5]\d(?:m|min)?(?!\w)|\s(?:less|plus|minus)\s\d|"
    rf"\s?(?:{_MEASURE})\s(?:{_AND}\s)?\d[\d.,]*\s?(?:{_MEASURE})(?![^\W_])|"
    r"[\s$]*(?:[+×÷·⋅∙•±∓√∠∨∧∪∩∈⊕⊗∘∥∣∤⊥‰‱]|\*\s?(?:[\d(\\]|[A-Za-z](?![A-Za-z]))|"
    r"[-−]\s?[b-df-hj-np-tv-xz](?![^\W\d_])|(?:[→⟶⇒↔⇔↦⟹]|[-=]+>|\|(?!.*\|))[\s$]*[-+]?\d)"
)
# "y " before "+ 3", "C(" before "5,2)"
_SIGN_BEFORE = re.compile(
    r"(?<![^\W\d_])[b-df-hj-np-tv-xz]\s?[-+−]\s?$|[∠±∓×÷·⋅∙•]\s?$|(?<![^\W\d_])[A-Z]\($"
)
# "$x = 5$" is a formula, "5.50" a number.
_RUN = re.compile(rf"(?P<formula>{_FORMULA})|(?P<number>{_NUMBER})", re.DOTALL)
# "apples"; not "ab", and no part of "\frac".
_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z][a-z]{2,}")
# "\text{ cm}", "\pi".
_COMMAND = re.compile(r"\\[A-Za-z]+(?:\s*\{[^{}]*\})?")
# "none other than", "nothing but", "no number but".
_NOTHING_BUT = re.compile(
    r"(?:none|nothing|no\s\w+)\s+(?:other\s+than|else\s+(?:than|but)|but)", re.IGNORECASE
)
# "\pi"
_COMMAND_NAME = re.compile(r"\\[A-Za-z]+")
# "x " of "either 1 or x ".
_NAME_LAST = re.compile(r"\S{1,20}\s*$")
# "\mathbf{5}"
_STYLE = re.compile(r"\\(?:mathbf|textbf|boldsymbol|mathrm)\{([^{}\\]*)\}")
# "=" of "x = 5"; not of "x <= 5", "x == 5" or "\\sum_{k=1}".
_EQUALS = re.compile(r"(?<![<>!:=\\])=(?!=|[^{}]{0,60}\})")
_COMPARED_WITH = re.compile(r"(=\s*[\\$]{0,2}\d[\d.,]*)\s(?:more|less|fewer)\s+than\s(?!\s*\d).*")
"""The result of a calculation with what it is compared with: `20 - 7 = 13 more than Tommy`."""
# " apples", "%", "km".
_AFTER = re.compile(rf"\s?((?:[^\W\d_]|[{units.MARKS}])+|[%°])")
# "5 (the smallest)"
_NOTE = re.compile(r"([^()]+?)\s+\(([^()]*)\)")
# "or", "o", "hay"
_EITHER = re.compile(ANY_OR, re.IGNORECASE)
# ": ", "exactly ", "".
_OPENING = re.compile(
    r"[\s:*_(]*(?:(?:exactly|simply|just|approximately|about|roughly|equal to)\s+)?"
)


# "The values are 1, 2, and 3."
_LISTED = re.compile(
    r"[^\d\\$?!;,()]{1,80}?(?<!\w)(?:are|were|adalah|ialah|là|são|son|sont|sind|ay)(?::|\s(?:the\s)?)\s?"
    r"(?P<list>(?:-?\d[\d./]*,\s){1,20}(?:-?\d[\d./]*,?\s)?"
    rf"{_AND}\s-?\d[\d./]*)[.*\s]*"
)


def stated(phrase: str, language: str, *, leading: bool, by_colon: bool = False) -> tuple[str, ...]:
    """Return the values that a sentence states; none if it states no value.

    Args:
        leading: use the number at the beginning of the sentence; otherwise the last one.
        by_colon: a whole sentence may follow the mark, `Answer: Jane began 3 hours ago`; after "the
            answer is" only known words may stand before the number.
    """
    phrase = _STYLE.sub(r"\1", phrase.replace("\\$", f"{units.DOLLARS} ")).strip().strip("*_ ")
    if not phrase or phrase[-1] == "?":
        return ()
    phrase, dates = cut_dates(phrase, language)
    if len(dates) == 1 and not re.search(r"\d", phrase):
        return () if HEDGES.search(phrase) else (dates[0][0],)
    return _stated(spelled_beside_digits(phrase, language), language, leading, by_colon)


def _stated(phrase: str, language: str, leading: bool, by_colon: bool) -> tuple[str, ...]:
    """Return the values that a sentence without dates states."""
    if not leading:
        phrase = _COMPARED_WITH.sub(r"\1", phrase)
    strict = leading and not by_colon and primary(language) == "en"
    if _alters(phrase, language, strict=strict, last=not leading):
        return ()
    phrase = _without_note(_without_repetition(phrase, language), language)
    formula = re.fullmatch(_FORMULA, phrase.rstrip(" .。"), re.DOTALL) or _is_formula(phrase)
    if formula or _whole(parse(phrase, language)):
        return (phrase,)
    listed = _LISTED.fullmatch(phrase)
    if (
        listed
        and not HEDGES.search(phrase)
        and not OPENS_RANGE.search(phrase[: listed.start("list")])
    ):
        return (listed["list"],)
    phrase = _with_money(phrase)
    *sides, right = _EQUALS.split(phrase)
    left = "=".join(sides)
    if sides and right.strip(" $.") and not is_number(left, language):
        if _is_uncertain(left, language):
            return ()
        own_words = by_colon or not leading
        return stated(_undelimited(left, right), language, leading=True, by_colon=own_words)
    return _numbers(phrase, language, leading)


def _alters(phrase: str, language: str, *, strict: bool, last: bool) -> bool:
    """Say whether words beside the number make it another value, or are not known to keep it.

    Args:
        strict: the number must follow words that keep it (`exactly`, `a total of`): a sentence
            with any other word between is not read.
        last: only the words beside the last number count.
    """
    runs = list(re.finditer(r"\d[\d.,]*", phrase))
    start = 0
    for place, run in enumerate(runs[-1:] if last else runs):
        before = _NOTHING_BUT.sub(" ", phrase[start : run.start()])
        start = run.end()
        after = phrase[run.start() + len(run[0].rstrip(".,")) :]
        if ALTERED_AFTER.match(after) or ALTERED_BEFORE.search(before):
            return True
        if not strict or (place + 1 < len(runs) and denied_before(before, language)):
            continue  # "not 8 but rather 9"
        keeps = LEAD_WORDS.fullmatch(before) or _is_mathematical(before)
        one = run[0].strip(".,") == "1"  # whose noun is no plural
        return not keeps or (not one and FOLLOWS.match(after) is None)
    return False


def _is_mathematical(text: str) -> bool:
    """Say whether a text has no word of a sentence: `\\sqrt{`, `x = \\frac{`, `f(`."""
    return not _WORD.search(_COMMAND_NAME.sub("", text.rpartition("=")[2] or text))


def _without_repetition(phrase: str, language: str) -> str:
    """Return 5 for `5 or five`, 3/4 for `3/4, or 0.75`."""
    pieces = [piece.strip(" .,，") for piece in _EITHER.split(phrase)]
    if len(pieces) == 1 or not all(is_number(piece, language) for piece in pieces):
        return phrase
    first, *others = (parse(piece, language) for piece in pieces)
    return pieces[0] if all(same(first, one) for one in others) else phrase


def _without_note(phrase: str, language: str) -> str:
    """Return 3 for `3 (2 + 1)` and `3 (two of A, one of B)`; `3 (4 + 5)` is a product."""
    note = _NOTE.fullmatch(phrase.rstrip(" .。"))
    if note is None or not is_number(note[1], language) or HEDGES.search(note[2]):
        return phrase
    number, inner = parse(note[1], language), parse(note[2], language)
    in_words = inner.term is None and "\\" not in note[2] and _WORD.search(note[2])
    return note[1] if in_words or same(number, inner) else phrase


def _is_uncertain(left: str, language: str) -> bool:
    """Say whether a name is denied or one of several: `not x =`, `either 1 or x =`."""
    before = _NAME_LAST.sub("", left)
    return bool(
        denied_before(before, language)
        or COMPARED_LAST.search(before)
        or OR_LAST.search(before)
        or BETWEEN_LAST.search(before)
    )


def _numbers(phrase: str, language: str, leading: bool) -> tuple[str, ...]:
    """Return the number or formula that a sentence with several of them states."""
    runs = [run for run in _RUN.finditer(phrase) if _separate(phrase, run)]
    values: list[str] = []
    for place, run in enumerate(runs):
        before = phrase[runs[place - 1].end() if place else 0 : run.start()]
        after = phrase[run.end() : runs[place + 1].start() if place + 1 < len(runs) else None]
        last = place + 1 == len(runs)
        is_joined = place > 0 and JOINED.fullmatch(before) and not OR.search(before)
        if is_joined or (not last and OPENS_RANGE.search(before) and JOINED.search(after)):
            return ()  # 2 to 3, between 2 and 3, 2 and 3
        value = _text(phrase, run)
        if values and (OR.search(before) or PERHAPS.fullmatch(before)):
            return (values[-1], value)
        rest = phrase[run.start() + len(run[0].rstrip(" ,(")) :]
        opens = leading and place == 0 and _OPENING.fullmatch(before) is not None
        if (
            denied_before(before, language)
            or denied_after(rest, language)
            or COMPARED_LAST.search(before)
            or MORE_FOLLOWS.match(after)
            or (not opens and _is_denied_later(after, language, last))
        ):
            continue
        if OR_LAST.search(before) or (last and ALTERNATIVE_FOLLOWS.match(rest)):
            return ()  # 5 or none, six or 5
        if _is_operand(phrase, run, value):
            return ()
        values.append(value)
        if opens and (last or not _adds(after)):
            break
    return tuple(values[-1:])


def _is_operand(phrase: str, run: re.Match[str], value: str) -> bool:
    """Say whether a sign beside a number makes another value of it: 3 of `3 + y`, `3∠30°`."""
    start = run.start() + len(run[0]) - len(run[0].lstrip("+-− "))
    return bool(
        _SIGN_AFTER.match(phrase, run.start() + len(value)) or _SIGN_BEFORE.search(phrase[:start])
    )


def _adds(between: str) -> bool:
    """Say whether the words between two numbers make the second one an answer too."""
    added = OR.search(between) or JOINED.fullmatch(between) or PERHAPS.fullmatch(between)
    return added is not None


def _is_denied_later(after: str, language: str, last: bool) -> bool:
    """Say whether a negation follows that does not belong to a later number."""
    return NEGATION.search(after) is not None and (last or not denied_before(after, language))


def is_number(text: str, language: str) -> bool:
    """Say whether the text is one number, with at most a short unit."""
    if (
        len(text) > 100
        or re.search(r"[=?:]", text)
        or not re.search(r"\d", spelled_out(text, language))
    ):
        return False
    answer = parse(text, language)
    value = answer.kind == "based" or (answer.term is not None and not symbols(answer.term))
    return value and len(answer.unit) <= MAX_UNIT_WORDS


def _whole(answer: Answer) -> bool:
    """Say whether a sentence consists of an answer."""
    kinds = {part.kind for part in answer.parts}
    if "words" in kinds and kinds != {"words"}:
        return False  # 18, which is the total
    if answer.kind == "equation" and _WORD.search(_COMMAND.sub("", answer.text)):
        return False  # the total: 20 apples - 2 apples = 18 apples
    return answer.readable and len(answer.unit) <= MAX_UNIT_WORDS


def _is_formula(phrase: str) -> bool:
    """Say whether a phrase consists of LaTeX without delimiters."""
    return "$" not in phrase and "\\" in phrase and not _WORD.search(_COMMAND.sub("", phrase))


def _with_money(phrase: str) -> str:
    """Rewrite dollar signs as a currency where they cannot delimit formulas."""
    formulas = phrase.split("$")[1::2]
    if phrase.count("$") % 2 == 0 and not any(
        _WORD.search(_COMMAND.sub("", formula)) for formula in formulas
    ):
        return phrase
    return re.sub(r"\\?\$(?=[\d.])", f"{units.DOLLARS} ", re.sub(r"\$(?![\d.])", " ", phrase))


def _undelimited(left: str, right: str) -> str:
    """Restore the delimiter of a formula that was split at its equals sign."""
    return f"${right}" if left.count("$") % 2 else right


def _separate(phrase: str, run: re.Match[str]) -> bool:
    """Say whether a number is a separate token: not 2A, 2x, 2M or 5th."""
    if run["formula"]:
        return re.search(r"\w", run[0]) is not None
    after = re.match(r"[A-Za-z_]+", phrase[run.end() :])
    if after is None or run[0][-1] in " /(":
        return True
    return after[0].casefold() in units.KNOWN and after[0] not in ("M", "G", "S", "H")


def _text(phrase: str, run: re.Match[str]) -> str:
    """Return the run, including a following word for million or per cent sign."""
    text = run[0].rstrip(" ,.+-−*/×·⋅∗÷^([")
    if run["formula"]:
        return text
    while text.endswith((")", "]")) and len(_CLOSERS.findall(text)) > len(_OPENERS.findall(text)):
        text = text[:-1].rstrip()
    after = _AFTER.match(phrase, run.start() + len(text))
    belongs = after is not None and (after[1] in "%°" or units.scale(after[1]) != 1)
    return text + after[0] if after and belongs else text
