r"""What stands beside a box: it is applied to the content, or it withdraws it.

`-\boxed{5}`, `\boxed{5}^2`, `\frac{1}{\boxed{5}}` and `\boxed{5}` million state another value
than 5; `\boxed{5}` is wrong" states none. Working before an equals sign is no part of the
answer.
"""

# ruff: noqa: RUF001 - signs that people type

import re

MAX_BESIDE = 120
"""Characters before and after a box that are read."""

# " ", "~", "\,", "\quad", "\left.".
_SPACE = r"(?:[\s~]|\\[,;:!> ]|\\q?quad(?![A-Za-z])|\\(?:left|right)\.|\\display\w*(?![A-Za-z]))"
# Ends what belongs to the box: "=", "$", "\implies", "\text{ cm}", a comma, a full stop.
_BORDER = re.compile(
    r"(?<![\\<>!])=|(?<=[\d)}\]]!)=|(?<!\\)\$|\\[()\[\]]|\\\\(?=[\s\[&]|$)|\n|&|[,;:!?。，；：*_]{1,3}(?=\s|$)|[,;:](?=\$)|\.(?!\d)|"
    r"\\[pb]?mod(?![A-Za-z])|"
    r"\\(?:implies|Rightarrow|Longrightarrow|rightarrow|to|therefore|because|iff|approx|equiv|sim|"
    r"cong|text\w*|mathrm|mbox|q?quad|begin|end|hspace|tag|ldots|dots)(?![A-Za-z])|"
    r"[≈≡∴→⇒、]|\s(?:and|or|so|is|are)\s|<<|>>"
)
# A command or brace that only styles the box: \mathbf{, \color{blue}{, {.
_STYLE = re.compile(
    r"(?:\\(?:mathbf|textbf|text|mathrm|underline|bm|boldsymbol|color\s*\{\w+\}|large|Large|huge|"
    r"bf|rm|displaystyle|underbrace|overbrace|fbox|colorbox\s*\{\w+\})\s*|(?<![\w}\]^]))\{\s*$"
)
# "$5 and"; "$5$" and "$5 + x$" are formulas.
_MONEY = re.compile(
    r"\$\d[\d,.]*(?=\s[A-Za-z]{2}|\s[-+*/=]\s\$\d|[.,;:!?)]*(?:\s*$|\n))(?!\$)", re.MULTILINE
)
# Declarations of style: "\color{blue}", "\bf".
_DECLARED = re.compile(r"\\color\s*\{\w+\}|\\(?:bf|rm|large|Large|huge|displaystyle)(?![A-Za-z])")
# "(", "\left[", "\{".
_OPENING = re.compile(r"(?:\\left)?(?:[(\[]|\\\{)")
# ")", "\right]", "\}".
_CLOSING_BRACKETS = re.compile(r"(?:\\right)?(?:[)\]]|\\\})")
# Signs that are applied also outside of a formula: "-\boxed{5}", "\boxed{5}^2", "\boxed{5} / 2".
_TIGHT_AFTER = re.compile(
    r"\s?(?:\^\s?\{?-?\w|/\s?[\d\\]|\\(?:times|cdot|div|pm)(?![A-Za-z])|[*+]\s?\d|-\s?\d|\\?%|×|·|÷)[^\s.,;]*"
)
# "x +", "-", "\frac{1}{", "\sqrt{", "2".
_TIGHT_BEFORE = re.compile(
    r"[\w)}\]]\s?[-+*/^×·÷<>≤≥≠]$|(?<!\S)[-−]$|\\frac\{[^{}]*\}\{$|\\sqrt\{$|\d$"
)
# " million", " \text{ thousand", "万", "k".
_SCALE = re.compile(
    r"[\s$*}\\,]{0,6}(?:\\(?:text|mathrm)\s*\{\s*)?(?P<word>hundred|thousand|million|billion|trillion|dozen|"
    r"ribu|juta|miliar|nghìn|ngàn|triệu|tỷ|mil|millones|milhões|millions|tausend|Millionen|"
    r"ล้าน|แสน|หมื่น|พัน|百万|[万亿萬億千]|k|per\s?cent)(?![A-Za-z])"
)
_APPLIED = {"hundred": "*100", "k": "*1000", "percent": "%", "per cent": "%"}
# " $", "\(".
_OPENED = r"[\s$(]*(?:\\[(\[]\s*)?"
# "-$\boxed{5}$", "minus \boxed{5}"; the minus of "- $\boxed{5}$" is the bullet of a list.
_MINUS_BEFORE = re.compile(
    rf"(?:(?:^|(?<=\s))[-−](?=[$\\])|(?<!\w)(?:minus|negative|menos|moins|negatif|negativo|âm|trừ)\s|负|負)"
    rf"{_OPENED}$",
    re.IGNORECASE | re.MULTILINE,
)
# "3", "a", "two".
_NUMERAL = r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_ALTERED_BEFORE = re.compile(
    rf"(?<!\w)(?:twice|thrice|half(?:\s+of)?|(?:an?|one|two)[\s-](?:third|quarter|fifth|tenth)s?\s+of|"
    r"the\s+(?:(?:square|cube)(?:\s+root)?|double|triple|reciprocal|opposite|negative|factorial|"
    r"successor|predecessor|(?:additive\s+|multiplicative\s+)?inverse|logarithm)\s+of|"
    rf"{_NUMERAL}\s+(?:more|less|fewer|greater|smaller|larger)\s+than|"
    r"(?<!no\s)(?<!not\s)(?:more|less|fewer|greater|smaller|larger|higher|lower)\s+than)"
    rf"\s{_OPENED}$",
    re.IGNORECASE,
)
"""Before a box: another value, or a bound. "At least" is the answer to "What is the least"."""
# " squared", "$ divided by 2", " times itself", " to the third power".
_ALTERED_AFTER = re.compile(
    r"[\s$)]*(?:\\[)\]])?\s?(?:squared|cubed|halved|doubled|tripled|quadrupled|plus|minus|modulo|aka|"
    rf"a\.k\.a|alias|factorial|(?:divided|multiplied|increased|decreased|reduced|raised)\s+(?:by|to)|"
    rf"times\s+(?:\w+self|{_NUMERAL})|to\s+the\s+(?:\w+\s+)?power|and\s+a\s+(?:half|third|quarter))(?!\w)",
    re.IGNORECASE,
)
# "x \\in", "x \\geq", "abc \\le"; not "x \\ne".
_STATES = re.compile(
    r"(?:\\in|\\l(?:e|eq|eqslant|t)|\\g(?:e|eq|eqslant|t)|[<>≤≥∈])(?![A-Za-z])\s*$"
)
# "one of" of "b is one of \\boxed{6, -2}".
_WORDS_ONLY = re.compile(r"[A-Za-z]{2,}(?:\s[A-Za-z]{2,}){1,9}")
# "x^3", "a^4b^2", "\\frac{\\text{miles}}{\\text{day}}"
_UNKNOWNS = re.compile(
    r"(?:[a-z](?:\^\{?\d{1,2}\}?)?\s?){1,9}|\\frac\s?\{?\s?(?:\\(?:text|mathrm)\s?\{[^{}]*\}\}?\{?)*"
)
_OPTION = re.compile(r"\s*(?:\\text(?:bf)?\s*\{)?\s*\(?[A-H]\)?\s*\}?\s*")
_MODULO = re.compile(r"[\s$)]*modulo(?![a-z])")
_IS_RIGHT = (
    r"(?:right|correct|true|valid|possible|it|what|our|my|acceptable|allowed|enough|attainable|"
    r"feasible|achievable|admissible)(?!\w)"
)
"""Behind "is not", which denies a box; "the point \\boxed{(9,11)} is not on the line" does not."""
_WITHDRAWN = re.compile(
    r"[\s$*}\\)\],]{0,6}(?:"
    r"(?:is|was|would be|seems|looks)\s+(?:clearly |certainly |obviously |the |an? )*(?:"
    rf"(?:not|n't)(?=\s*(?:[.,;!]|$|an?\s|the\s|{_IS_RIGHT}))|wrong|incorrect|false|impossible|"
    r"invalid|excluded|too (?:large|small|big)|"
    r"(?:only|just|merely)\s+(?:half|part|a (?:third|quarter|part|fraction))\s+of"
    r")(?!\w)(?!\s+(?:only|just|a prime|prime|an? integer|divisible|zero|negative|equal))|"
    r"\?\s{0,3}(?:no|nope|not|never)(?!\w)|isn['’]t (?:the|right|correct|it)|cannot be|"
    r"can['’]t be|could not be|doesn['’]t (?:work|fit)|does not (?:work|fit|satisfy)|fails"
    r")",
    re.IGNORECASE,
)
"""After a box: `is wrong`, `cannot be right`; `is not only ...` goes on."""


def expression(text: str, box: int, start: int, end: int) -> str:
    r"""Return the content of a box with the signs that are applied to it.

    Args:
        text: the whole text.
        box: place of `\boxed`.
        start: first character of the content.
        end: place after the content; the closing brace, if the box has one.
    """
    content = text[start:end]
    stop = end + 1 if text[end : end + 1] == "}" and text[start - 1 : start] == "{" else end
    before, after = text[max(0, box - MAX_BESIDE) : box], text[stop : stop + MAX_BESIDE]
    if (content[:1].isdigit() and before[-1:].isdigit()) or after[:1].isdigit():
        return f"\\ne {content}"  # digits of one number
    if _ALTERED_BEFORE.search(before) or _ALTERED_AFTER.match(after):
        return f"\\ne {content}"
    if _MINUS_BEFORE.search(before):
        content = f"-({content})"
    formula = _in_formula(text, box)
    left, right = (_left(before), _right(after)) if formula else (_signs_before(before), "")
    if not formula:
        tight = _TIGHT_AFTER.match(after)
        right = tight[0] if tight else ""
        right += "}" * (left.count("{") - left.count("}"))
    while left.endswith("{") and right.startswith("}") and (style := _STYLE.search(left)):
        left, right = left[: style.start()].rstrip(), right[1:].lstrip()
    left = _DECLARED.sub("", left).rstrip()
    if _is_member(left, right, after):
        return f"\\ne {content}"
    left, right = _without_list(left, right)
    if right and not left.count("{") - left.count("}"):
        right = right.rstrip("}") if right.count("}") > right.count("{") else right
    left = left.lstrip("}") if left.count("}") > left.count("{") else left
    scale = _SCALE.match(after)
    if scale:
        word = scale["word"]
        applied = _APPLIED.get(word)
        content = f"{content}{applied}" if applied else f"{content} {word}"
    if (not left and not right) or "boxed" in left + right:  # the next part of a list
        return content
    return f"{left}{content}{right}" if left.endswith("{") else f"{left}({content}){right}"


def is_stated(text: str, box: int, start: int, end: int) -> bool:
    r"""Say whether what stands beside a box makes a statement and no other value.

    Such are a relation (`x \in \boxed{[1, 4]}`), words, what follows the letter of an option, and
    the unknowns of a coefficient (`\boxed{5}x^3`); the box alone may be what was asked for.
    """
    stop = end + 1 if text[end : end + 1] == "}" and text[start - 1 : start] == "{" else end
    before, after = text[max(0, box - MAX_BESIDE) : box], text[stop : stop + MAX_BESIDE]
    if _ALTERED_AFTER.match(after):
        return bool(_MODULO.match(after) and re.search(r"\\equiv|≡", before))
    if not _in_formula(text, box) or _ALTERED_BEFORE.search(before) or _SCALE.match(after):
        return False
    left, right = _left(before), _right(after)
    if _OPTION.fullmatch(text[start:end]):
        return not left
    states = _STATES.search(left) or _WORDS_ONLY.fullmatch(left)
    return bool(states or (right and not left)) and (not right or bool(_UNKNOWNS.fullmatch(right)))


def withdrawn(after: str) -> bool:
    """Say whether the words after a box say that it is not the answer."""
    return _WITHDRAWN.match(after) is not None


def clause_after(text: str) -> str:
    """Return what follows a box up to the end of its clause: a unit and more words."""
    text = re.sub(rf"{_SPACE}+|^[\s$*)\]}}]*(?=\S)|\\[)\]]", " ", text[:MAX_BESIDE])
    return re.split(r"[,;:!?\n。，；]|\.(?!\d|\w)|\$|=", text.strip(), maxsplit=1)[0].strip(" $*")


def _is_member(left: str, right: str, after: str) -> bool:
    r"""Say whether a box is one end of a tuple or interval that states more: `(\boxed{5}, 7)`."""
    rest = after[len(right) :].lstrip("} ")
    closing = _CLOSING_BRACKETS.search(rest)
    return bool(
        _OPENING.fullmatch(left)
        and not right
        and rest[:1] in (",", ";")
        and closing
        and re.search(r"\w", rest[: closing.start()])
        and "boxed" not in rest[: closing.start()]
    )


def _without_list(left: str, right: str) -> tuple[str, str]:
    r"""Drop the bracket of a list whose first or last member the box is: `(\boxed{1}, 2)`."""
    if _OPENING.fullmatch(left) and not _CLOSING_BRACKETS.search(right):
        left = ""
    if _CLOSING_BRACKETS.fullmatch(right) and not _OPENING.search(left):
        right = ""
    return left, right


def _left(before: str) -> str:
    borders = list(_BORDER.finditer(before))
    tail = before[borders[-1].end() :] if borders else before
    if borders and borders[-1][0].startswith(
        ("\\text", "\\mathrm", "\\mbox", "\\begin", "\\hspace")
    ):
        tail = re.sub(r"^\s*\{[^{}]*\}(?:\{[^{}]*\})?", "", tail)
        if not borders[-1][0].startswith(("\\begin", "\\hspace")) and tail.startswith("{"):
            tail = ""
    return _spaceless(tail)


def _right(after: str) -> str:
    border = _BORDER.search(after)
    return _spaceless(after[: border.start()] if border else after)


def _spaceless(text: str) -> str:
    return re.sub(rf"^{_SPACE}+|{_SPACE}+$", "", text)


def _signs_before(before: str) -> str:
    """Return the signs before a box outside of a formula: those of its last word."""
    line = before.rpartition("\n")[2]
    if re.fullmatch(r"\s*[-+*>#]+\s+", line):  # the bullet of a list
        return ""
    if not _TIGHT_BEFORE.search(line.rstrip(" ")):
        return ""
    return line.split(" ")[-1] if line[-1:].strip() else line.rstrip().split(" ")[-1]


def _in_formula(text: str, place: int) -> bool:
    """Say whether a place is between the delimiters of a formula."""
    paragraph = text.rfind("\n\n", 0, place)
    part = _MONEY.sub("", text[max(0, paragraph, place - 2000) : place])
    opening = max((m.end() for m in re.finditer(r"(?<!\\)\\[(\[]|\\begin\{", part)), default=-1)
    closing = max((m.end() for m in re.finditer(r"(?<!\\)\\[)\]]|\\end\{", part)), default=-1)
    if opening > closing:
        return True
    line = re.findall(r"(?<!\\)\$\$?", part.rpartition("\n")[2])
    return len(line or re.findall(r"(?<!\\)\$\$?", part)) % 2 == 1
