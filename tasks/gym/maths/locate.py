r"""Where a response states its final answer: in a box, on a marked line, in a sentence.

A box is the answer; the text before it in its sentence is working, `600 + 120 = \boxed{720}`.
Another value stated elsewhere (a second box, `#### 27`, "the answer is 27") is a second answer.
Every pattern takes time linear in the text.
"""

# ruff: noqa: RUF001 - signs that people type

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.algorithms.language_tags import primary
from tasks.gym.denials import WINDOW, denied_before
from tasks.gym.maths.amounts import plain_amounts
from tasks.gym.maths.numerals import spelled_beside_digits, typed_minus
from tasks.gym.maths.offers import offered
from tasks.gym.maths.parse import EMPTY, MAX_CHARACTERS, parse
from tasks.gym.maths.prose import is_number, stated
from tasks.gym.maths.surroundings import MAX_BESIDE, clause_after, expression, is_stated, withdrawn
from tasks.gym.maths.words import (
    ANY_OR,
    COUNTERFACTUAL,
    JOINT,
    NO_ANSWER,
    POLITE,
    TURN,
    UNCOMMITTED,
)

MAX_GAP = 40
"""Most characters between two boxes that state one list."""
MAX_WORDS_BEFORE = 4
"""Most words between "the answer is" and a number that is another answer than a box."""
MAX_GAPS = 2
"""Most spaces in a sentence that consists of another answer; a longer one tells something."""
MAX_LINE = 100
"""Most characters of a line that consists of an answer."""
MAX_MARKS = 100
"""A response that announces an answer more often states none."""

# "\boxed", "\fbox"
_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])")
# "\boxed{" opens a box, "\boxed 5" is one without braces; "\}" is no brace, "}" is.
_BRACES = re.compile(
    r"(?P<box>\\{1,2}(?:boxed|fbox)[ \t]{0,9}\{)|"
    r"(?P<bare>\\{1,2}boxed[ \t]{0,9}(?=[\w\\]))|\\.|[{}]",
    re.DOTALL,
)
# Of "\boxed\frac12" and "\boxed 42": "\frac12", "42".
_BARE = re.compile(r"\\frac\s?\d\d|\\frac\{[^{}]{1,99}\}\{[^{}]{1,99}\}|-?[\d.,]{0,99}\d|\w")
# Between the boxes of one list: ", ", " \text{ and } ", ", y = ".
_JOINT = re.compile(
    r"(?:[\s,;$]|\\text\s*\{\s*,?\s*(?:and|or)\s*\}|\\q?quad\b|\\[,;()\[\] ]|\b(?:and|or)\b|"
    r"\\?[A-Za-z](?:_\{?\w\}?)?\s*=)*"
)
# "1,200", "3/4"
_RUN = re.compile(r"[\d.,/]*\d")
# "\phantom{2}"
_INVISIBLE = re.compile(r"\\phantom\s*\{[^{}]*\}|[\s\\]")
# "$-1,200$", "3/4", "\frac{1}{2}".
_NUMBER_BESIDE = r"\$?(?P<value>[-+]?[\d.,/]{1,40}\d|\d|\\d?frac\{\d{1,20}\}\{\d{1,20}\})\$?"
# "}$", ")**", "".
_CLOSING = r"[\s$}*_)\]\\]{0,6}"
# Before ". " and before "$.".
_END = rf"(?={_CLOSING}(?:[.;!?。](?:\s|$)|\n|$))"
_OR_AFTER = re.compile(
    rf"{_CLOSING}(?:{ANY_OR}\s{{0,3}}(?:is\s|perhaps\s|maybe\s)?{_NUMBER_BESIDE}(?![\w\\])|"
    rf"(?:{JOINT}|[-–—~])\s?{_NUMBER_BESIDE.replace('value', 'end')}{_END})",
    re.IGNORECASE,
)
"""An alternative after a box, or the end of a range or list that begins with it."""
_OR_BEFORE = re.compile(
    rf"(?:(?<!\w)(?:either|entweder|soit|antara)\s{{1,3}}|(?<![\w.,\\=+\-*/^×÷·])"
    r"(?<!\bin\s)(?<![=+*/×÷·]\s)(?<![\w)}]\s-\s)(?<!times\s)(?<!cdot\s)(?<!div\s)(?=[^,]*$))"
    rf"{_NUMBER_BESIDE},?\s{{0,3}}{ANY_OR}(?P<end>)\s{{0,3}}\$?$",
    re.IGNORECASE,
)
"""An alternative before a box; `x = 1/5, or` and `2 + 3 or` say the same in other words."""
_AFTERTHOUGHT = re.compile(
    rf"[.;!?。\n…]{_CLOSING}{TURN}(?P<value>(?:[^.;!?。\n]|[.,](?=\d)){{1,40}}){_END}",
    re.IGNORECASE,
)
"""A sentence after an answer that consists of another one: `Or 6.`, `No, six.`"""
_CALCULATION = re.compile(r"<<[^<>\n]*>>")  # GSM8K's calculator notes
# "final answer", "ans", "jawaban akhir", "đáp án", "答案".
_LABEL = (
    r"(?:final[ \t]{1,3})?answers?|ans|"
    r"jawaban(?:nya)?(?:[ \t]{1,3}akhir)?|jawapan(?:nya)?|"
    r"đáp[ \t]{1,3}(?:án|số)|kết[ \t]{1,3}quả|trả[ \t]{1,3}lời|"
    r"คำตอบ|ตอบ|"
    r"答案|答|"
    r"respuesta(?:[ \t]{1,3}final)?|"
    r"réponse(?:[ \t]{1,3}finale)?|"
    r"resposta(?:[ \t]{1,3}final)?|"
    r"(?:die[ \t]{1,3})?antwort|"
    r"答え|정답|"
    r"(?:ang[ \t]{1,3})?(?:ka)?sagot(?:an)?"
)
# "is", "turns out to be", "must be", "adalah", "是".
_COPULA = (
    r"(?:"
    r"(?:comes?|came|works?|worked|turns?|turned)\s+out\s+(?:to\s+be|to|as)|"
    r"happens\s+to\s+be|(?:must|should|has\s+to)\s+be|amounts\s+to|is|are|equals|"
    r"ialah|adalah|là|es|est|é|ist|lautet|ay|คือ|是|为|為|は|은|는"
    r")"
)
_TITLES = ("Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Mt", "Sr", "Jr", "vs")
_ABBREVIATED = "".join(rf"(?<!\b{word})" for word in _TITLES)
"""Before a full stop that ends no sentence."""
# "#### 27", "Answer: 27", "**A:** 27".
_LINE = re.compile(
    rf"####+[ \t]*(?P<hash>[^\n]+)|"
    rf"^[ \t>*_#]{{0,9}}(?:A|{_LABEL})[ \t*_]{{0,5}}[:：][ \t*_]{{0,5}}"
    r"(?P<line>[^\n]+)$",
    re.IGNORECASE | re.MULTILINE,
)
# ":", "=>", "->"
_ARROW = "[-=]{1,2}>|[→⇒⟹]"
# "####", "A:", "The answer is", "Final answer:", "the answer to Mr. Lee's question is", "答案是".
_MARK = re.compile(
    rf"####+|^[ \t>*_#]{{0,9}}A[ \t*_]{{0,5}}[:：]|"
    rf"(?<![\w/])(?:{_LABEL})[ \t*_]{{0,5}}(?:{_ARROW}|[:：=]|{_COPULA}(?![a-z'’]))|"
    rf"^[ \t>*_#]{{0,9}}final[ \t]{{1,3}}answer[ \t*_]{{0,5}}\.(?=\s)|"
    rf"(?<!\w)answer\s{{1,3}}(?:to|for|of)\s(?:[^.\n]|\b(?:{'|'.join(_TITLES)})\.){{1,80}}?\sis(?!\w)|"
    rf"(?:答案|คำตอบ)(?:{_COPULA}|[:：])",
    re.IGNORECASE | re.MULTILINE,
)
_HINT = re.compile(
    r"####|a[ \t*_]{0,5}[:：]|answer|ans|jawa[bp]an|đáp|kết|trả|ตอบ|答|resp|réponse|antwort|정답|"
    r"sagot"
)
"""Occurs in every mark, in lower case; a search for it takes a tenth of the time."""
# "answer to the first", "answer to part", "answer to (b)".
_OF_A_PART = re.compile(
    r"answer\s+to\s+(?:the\s+)?(?:part|first|second|third|step|sub|\([a-d]\))", re.IGNORECASE
)
_LEAD = re.compile(r"[^\d\\]*")
"""The words before the first number."""
# ". T" of "It is 5. Then"; not that of "Mr. Lee" or "5. then".
_SENTENCE_END = re.compile(rf"\n|(?:{_ABBREVIATED}\.|!|(?<=\?))\s+(?=[A-ZÀ-Þ])|。")
# ", " of "5, as expected", " " of "5 because it is odd".
_CLAUSE_END = re.compile(r"[,;]\s|\s(?=so|thus|hence|which|because)", re.IGNORECASE)
# ",", ":", "?".
_CLAUSE = re.compile(r"[.,;:!?\n]")
_ANNOUNCED = re.compile(
    r"(?:the\s+)?(?:\w+\s+)?answer\s+(?:is|was|were|be|would\s+be|to\s+be)[\s:$({\[\\]*$",
    re.IGNORECASE,
)
"""The words right before a box that its sentence may take back: `Suppose the answer is`."""
# "not 7 but 16", "bukan 7 melainkan 16", "不是7而是16"
_NOT_BUT = re.compile(
    r"(?:(?<!\w)(?:not|bukan(?:lah)?|không phải(?: là)?|nicht|hindi)\s|ไม่ใช่\s?|不是\s?)"
    r"\$?-?[\d.,]{0,20}\d\$?,?\s?(?:(?<!\w)(?:but|melainkan|tetapi|mà là|sondern|kundi)\s|"
    r"แต่(?:เป็น|คือ)?|而是)\s?(?:rather\s)?(?=[$\\\d-])",
    re.IGNORECASE,
)
_BUT = ("but", "melainkan", "tetapi", "mà là", "sondern", "kundi", "แต่", "而是")
_EVENT = re.compile(
    r"(?<![A-Za-z\\])[A-Z]\s?\([^()$\n]{1,30}[=<>][^()$\n]{1,30}\)\s*=(?=[\s$({\[\\]*$)"
)
"""The event whose probability a box is: `P(X=4) =`."""
# ": \[ x = 5 \]", "$$5$$".
_DISPLAYED = re.compile(r"\s{0,9}[:*]{0,4}\s{0,9}(?:\\\[(.*?)\\\]|\$\$(.*?)\$\$)", re.DOTALL)


# "\begin{align*} x &= 40 + 2 \\\\ &= 42 \end{align*}"
_ENVIRONMENT = re.compile(
    r"(?:\$\$|\\\[)?\s*\\begin\{(?P<name>(?:align|equation|gather|multline)(?:ed)?|split)\*?\}"
    r"(?P<rows>(?:(?!\\begin).)*?)\\end\{(?P=name)\*?\}\s*(?:\$\$|\\\])?",
    re.DOTALL,
)
# "```json"
_FENCE = re.compile(r"\s*(?:```|~~~)\w*\s*$")
# "\n- " behind "Answer:"
_BULLET = re.compile(r"[ \t*_]*\n\s*[-•*]\s+(?=\S)")
# "If x = 42, " of "If x = 42, then it fails": no number of it is stated.
_CONDITION = re.compile(
    r"^\W{0,3}(?:if|suppose|assum\w+|jika|kalau|nếu|se|si|wenn|kung)\s[^,]*,|^(?:如果|若|ถ้า)[^,，]*[,，]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """A text that states an answer, and how it was found."""

    text: str
    how: str
    sentence: str = ""
    """The whole sentence, if the text is only a part of it."""
    bare: str = ""
    """The content of a box in a statement about it: of `x \\ge \\boxed{4}`, which may ask for 4."""
    after: str = ""
    """What follows a box in its clause: its unit, if it has one, and more words."""


def strict(text: str, language: str) -> list[Place]:
    """Find the boxes; without any the marked lines, or the text if it is one short line."""
    text = plain_amounts(typed_minus(_CALCULATION.sub("", text)), language)
    if _BOX.search(text):
        return _distinct(boxes(text, language))
    lines = [
        Place((m["hash"] or m["line"]).strip("* \t"), "marked line") for m in _LINE.finditer(text)
    ]
    if not lines and len(text) <= MAX_LINE and "\n" not in text.strip():
        lines = [Place(text.strip(), "whole text")]
    return _distinct([place for place in lines if place.text])


def lenient(text: str, language: str) -> list[Place]:
    """Find boxes, marked lines and sentences; else lines that are numbers, and the last line.

    If there is a box, other places count only if they are a number. An unclosed box states nothing.
    """
    text = plain_amounts(typed_minus(_CALCULATION.sub("", text)), language)
    text = _without_contrast(text)
    in_boxes, first_mark = boxes(text, language), len(text)
    boxed = _BOX.search(text)
    phrases: list[Place] = []
    denials: list[Place] = []
    marks = _MARK.finditer(text) if _HINT.search(text.lower()) else ()
    for place, mark in enumerate(marks):
        if place == MAX_MARKS:
            return []
        first_mark = min(first_mark, mark.start())
        phrase, how = _phrase(text, mark), "marked line" if mark[0][0] == "#" else "sentence"
        nested = _MARK.search(phrase)
        if (
            nested
            and not re.search(r"[\d\\]", phrase[: nested.start()])
            and nested.start() < MAX_GAP
        ):
            continue  # "Final Answer: The final answer is 5"
        by_colon = mark[0].rstrip(" *_")[-1:] in ":：=#>→⇒⟹."
        lead = text[max(0, mark.start() - WINDOW) : mark.start()]
        if how == "sentence" and (
            denied_before(lead + mark[0], language)
            or (primary(language) == "en" and _is_uncommitted(lead, mark))
        ):
            denials.append(Place(f"\\ne {phrase}", "denial"))
        elif boxed and not _OF_A_PART.match(mark[0]):
            phrases += _beside_box(phrase, how, language)
        elif not boxed and re.search(r"[\w∞]", phrase):
            stating = _stated(phrase, how, language, leading=True, by_colon=by_colon)
            (denials if stating[0].how == "denial" else phrases).extend(stating)
    if boxed and not in_boxes:
        return []
    if boxed:
        first_mark = min(first_mark, boxed.start())
    if not in_boxes and not phrases:
        return denials or _distinct(_unmarked(text, language))
    head = text[: min(first_mark, MAX_CHARACTERS)].strip().partition("\n")[0]
    heads = [Place(head, "first line")] if is_number(head, language) else []
    later = _afterthoughts(text, first_mark, language, boxed, phrases)
    return _distinct(heads + in_boxes + phrases + later)


def _without_contrast(text: str) -> str:
    """Return 16 for `not 7 but 16`; most texts have no such word, and one search tells."""
    lower = text.lower()
    return _NOT_BUT.sub("", text) if any(word in lower for word in _BUT) else text


def _is_uncommitted(lead: str, mark: re.Match[str]) -> bool:
    """Say whether the clause that announces an answer claims nothing: `If the answer is 5, ...`."""
    clause = _CLAUSE.split(lead)[-1]
    opens = re.match(r"\s*(?:the\s+)?", mark[0], re.IGNORECASE)
    return bool(
        COUNTERFACTUAL.search(lead) or UNCOMMITTED.search(f"{clause} {opens[0] if opens else ''}")
    )


def _is_supposed(before: str) -> bool:
    """Say whether the words that announce a box claim nothing: `It is false that the answer is`."""
    announced = _ANNOUNCED.search(before) if "answer" in before.lower() else None
    if announced is None:
        return False
    mark = re.search(r"answer\s", announced[0], re.IGNORECASE)
    lead = before[: announced.start()] + (announced[0][: mark.start()] if mark else "")
    return bool(COUNTERFACTUAL.search(lead) or UNCOMMITTED.search(_CLAUSE.split(lead)[-1]))


def _afterthoughts(
    text: str,
    start: int,
    language: str,
    box: re.Match[str] | None,
    phrases: Sequence[Place],
) -> list[Place]:
    """Find the sentences after an answer that consist of another one, or offer one.

    So do clauses behind a box, or of a sentence that was not read as a whole: `7, and also 16`.
    """
    results = [m["value"].strip(" \t$*_") for m in _AFTERTHOUGHT.finditer(text, start)]
    results += [value.strip(" \t$*_") for value in offered(text, start, language)]
    clauses = offered(text, box.end() if box else start, language, in_clauses=True)
    # What a sentence was read to state is compared already.
    read = {run for place in phrases if not box for run in _RUN.findall(place.text)}
    results += [value.strip(" \t$*_") for value in clauses if not read & {*_RUN.findall(value)}]
    return [
        Place(value, "afterthought")
        for value in results
        if value.count(" ") <= MAX_GAPS and is_number(value, language)
    ]


def boxes(text: str, language: str = "en") -> list[Place]:
    r"""Return the contents of every outermost \boxed{...} with balanced braces, in order.

    A number stated as an alternative to a box counts like a box. A denied box states a denial.
    """
    places: list[Place] = []
    for place, (start, end, box) in enumerate(_box_spans(text)):
        content = text[start:end]
        if place >= MAX_MARKS:  # states none: only counted
            places.append(Place(content, "box"))
            continue
        gap = text[max(0, box - MAX_GAP) : box + 1]
        before = spelled_beside_digits(gap, language)[:-1]
        after = spelled_beside_digits(text[end : end + 1 + MAX_GAP], language)[1:]
        following = text[end + 1 : end + 1 + MAX_BESIDE]
        denied = (
            denied_before(before, language)
            or _is_supposed(text[max(0, box - WINDOW) : box])
            or re.search(r"(?:\\neq?|≠|\\not\s?=)[\s$]*$", before)
            or withdrawn(following)
        )
        applied = expression(text, box, start, end)
        clause = clause_after(following)
        event = _EVENT.search(before)
        places.append(
            Place(
                f"\\ne {content}" if denied else applied,
                "box",
                sentence=f"{event[0]} {applied}" if event else "",
                # What is not applied to is its own statement, and need not be searched again.
                bare=""
                if denied or applied == content or not is_stated(text, box, start, end)
                else content,
                after=clause,
            )
        )
        for beside in (_OR_AFTER.match(after), _OR_BEFORE.search(before)):
            if beside:
                value = beside["value"] or beside["end"]
                places.append(Place(value, "beside a box"))
    return places


def joint(text: str) -> str:
    r"""Return `a, b` for \boxed{a} and \boxed{b}: one list with a box for each part; else ''."""
    spans = _box_spans(text)
    between = [text[end + 1 : box] for (_, end, _), (_, _, box) in itertools.pairwise(spans)]
    if not between or any(len(gap) > MAX_GAP or not _JOINT.fullmatch(gap) for gap in between):
        return ""
    return ", ".join(text[start:end] for start, end, _ in spans)


def _distinct(places: list[Place]) -> list[Place]:
    return list({place.text: place for place in reversed(places)}.values())[::-1]


def _box_spans(text: str) -> list[tuple[int, int, int]]:
    """Return the start and end of each box's content, and the start of the box."""
    spans: list[tuple[int, int, int]] = []
    depth, start, box = 0, 0, 0
    first = _BOX.search(text)
    for token in _BRACES.finditer(text, max(0, first.start() - 1)) if first else ():
        if token["bare"] is not None:
            content = _BARE.match(text, token.end())
            if depth == 0 and content:
                spans.append((token.end(), content.end(), token.start()))
            continue
        opens = token["box"] is not None or (depth > 0 and token[0] == "{")
        if opens and depth == 0:
            start, box = token.end(), token.start()
        depth += 1 if opens else -1 if depth and token[0] == "}" else 0
        if depth == 0 and token[0] == "}" and start:
            spans.append((start, token.start(), box))
            start = 0
    if depth and start:  # what is cut off inside of a box states nothing, nor do those before it
        return []
    # \boxed{\phantom{2}} draws a box to be filled in.
    return [span for span in spans if _INVISIBLE.sub("", text[span[0] : span[1]])]


def _phrase(text: str, mark: re.Match[str]) -> str:
    """Return the text after a mark: a displayed formula, or the rest of the sentence."""
    after = text[mark.end() : mark.end() + MAX_CHARACTERS]
    bullet = _BULLET.match(after)
    after = after[bullet.end() :] if bullet else after
    displayed = _DISPLAYED.match(after)
    if displayed and "boxed" not in displayed[0]:
        return (displayed[1] or displayed[2] or "").strip()
    return _SENTENCE_END.split(after.lstrip(" \t\n:：*_"), maxsplit=1)[0].strip()


def _beside_box(phrase: str, how: str, language: str) -> list[Place]:
    """Return the number that a phrase itself states, before a box or without one."""
    box = _BOX.search(phrase)
    working = (phrase[: box.start()] if box else phrase).strip(" \t$*")
    if box and working.endswith(("=", "\\approx", "≈")):
        return []
    own = _CLAUSE_END.split(working, maxsplit=1)[0]
    texts = (own,) if is_number(own, language) else ()
    if not box and not texts:
        result = stated(phrase, language, leading=True)
        texts = tuple(text for text in result if _is_near(phrase, text))
    return [Place(text, how) for text in texts if is_number(text, language)]


def _is_near(phrase: str, text: str) -> bool:
    """Say whether a value follows the words that announce it: not `the remainder by 1000`."""
    before, value, _ = phrase.partition(text.strip("$ "))
    return not value or len(before.split()) <= MAX_WORDS_BEFORE


def _stated(
    sentence: str, how: str, language: str, *, leading: bool, by_colon: bool = False
) -> list[Place]:
    parts = stated(sentence, language, leading=leading, by_colon=by_colon)
    if parts:
        return [Place(part, how, sentence) for part in parts]
    lead = _LEAD.match(sentence)
    if lead and denied_before(lead[0], language):
        return [Place(f"\\ne {sentence}", "denial")]
    return [Place(sentence, how)]


def _unmarked(text: str, language: str) -> list[Place]:
    text = _without_closing(text)
    stripped = text.strip()
    if not stripped:
        return []
    if is_number(stripped, language):
        return [Place(stripped, "whole text")]
    text = _ENVIRONMENT.sub(_last_row, text)
    head, tail = text[:-MAX_CHARACTERS], _on_one_line(text[-MAX_CHARACTERS:])
    lines = [line for line in (head + tail).split("\n") if line.strip() and not _FENCE.match(line)]
    if not lines:
        return []
    numbers = [
        Place(line, "line") for line in lines if len(line) <= MAX_LINE and is_number(line, language)
    ]
    sentences = _SENTENCE_END.split(lines[-1][-MAX_CHARACTERS:].strip())
    last = next((s for s in reversed(sentences) if re.search(r"\d", s)), sentences[-1])
    last = _CONDITION.sub("", last)
    if parse(last, language).text == EMPTY:
        return [*numbers, Place(last, "last line", last)]
    if NO_ANSWER.search(last.rpartition(":")[2]):
        return numbers
    return numbers + _stated(last, "last line", language, leading=False)


def _last_row(environment: re.Match[str]) -> str:
    """Return the last row of an aligned formula, which has its result."""
    rows = [row.replace("&", "").strip() for row in environment["rows"].split("\\\\")]
    return f"\n$${next((row for row in reversed(rows) if row), '')}$$"


def _without_closing(text: str) -> str:
    """Drop polite lines at the end of a text that has others: `I hope this helps!`"""
    while True:
        before, _, last = text.rstrip().rpartition("\n")
        if not before.strip() or not POLITE.match(last) or re.search(r"\d", last):
            return text
        text = before


def _on_one_line(text: str) -> str:
    """Join the lines of the last displayed formula."""
    for opening, closing in (("$$", "$$"), ("\\[", "\\]")):
        inside, end_mark, after = text.rpartition(closing)
        before, start_mark, formula = inside.rpartition(opening)
        if end_mark and start_mark:
            text = before + start_mark + formula.replace("\n", " ") + end_mark + after
    return text
