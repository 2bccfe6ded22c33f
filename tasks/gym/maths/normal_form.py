r"""Bring a written text to one normal form, so that equal answers are equal texts.

Signs become those of LaTeX or a keyboard, commands of layout go, currencies stand before their
amounts, repeating decimals are fractions, bound unknowns have fixed names, and the words between
the items of a list are commas. What a text means is not decided here.
"""

# ruff: noqa: RUF001 - signs that people type
import functools
import re
from fractions import Fraction

from tasks.algorithms.language_tags import primary
from tasks.gym.maths import units
from tasks.gym.maths.amounts import plain_amounts
from tasks.gym.maths.numerals import machine_numbers, plain_signs, typed_minus, writes_comma
from tasks.gym.maths.vectors import plain_vectors
from tasks.gym.maths.words import MINUS

_SIGNS = str.maketrans(
    {
        "−": "-",
        "\u2044": "/",
        "\u2215": "/",
        "≤": "<=",
        "≥": ">=",
        "≠": "\\ne ",
        "≈": "\\approx ",
        "≃": "\\approx ",
        "≅": "\\approx ",
        "≒": "\\approx ",
        "∪": "\\cup ",
        "∈": "\\in ",
        "∞": "\\infty ",
        "±": "\\pm ",
        "⋅": "*",
        "∗": "*",
        "•": "*",
        "∙": "*",
        "⌊": "\\lfloor ",
        "⌋": "\\rfloor ",
        "⌈": "\\lceil ",
        "⌉": "\\rceil ",
        "∶": ":",
        "、": ", ",
        "。": "",
    }
)
_AND_OR = {
    "en": "and|or",
    "id": "dan|atau",
    "ms": "dan|atau",
    "vi": "và|hoặc",
    "es": "y|o",
    "fr": "et|ou",
    "pt": "e|ou",
    "de": "und|oder",
    "th": "และ|หรือ",
    "zh": "和|或",
}
"""Words that separate the items of a list; in other languages y and e are unknowns."""
# Each with one or two signs of which every match has one: to look for them costs a tenth.
# "\dfrac" is "\frac", "5 p.m." is "5 pm", "1,\!000" is "1000", "90^\circ" is "90°".
_REWRITES = tuple(
    (signs, re.compile(pattern), by)
    for signs, pattern, by in (
        ("$\\", r"\$|\\[()\[\]]", " "),
        ("\\", r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
        (
            "\\",
            r"\\(?:left|right|middle|displaystyle|textstyle|limits|[bB]igg?[lr]?|bf|rm|it|tt|sf|"
            r"small|large|Large|LARGE|huge|Huge|normalsize|bfseries)(?![A-Za-z])",
            "",
        ),
        # "\color{blue}{5}", "\textcolor{red}{5}", "\color[rgb]{0,0,1} 5", "\bbox[yellow]{5}"
        (
            "\\",
            r"\\phantom\s*\{[^{}]*\}|\\(?:text)?color\s*(?:\[\w+\])?\s*\{[\w#,.\s!]+\}|"
            r"\\colorbox\s*\{\w+\}|\\bbox\s*\[[^\]]*\]|\\text\{(?:red|blue|green)\}(?=\{)",
            "",
        ),
        ("\\", r"\\[ns]icefrac(?![A-Za-z])|\\[ns]frac(?![A-Za-z])|\\xfrac(?![A-Za-z])", r"\\frac"),
        ("^", r"\^\{?(\d+)\}?\s?/\s?_\{?(\d+)\}?", r"\\frac{\1}{\2}"),
        # "\text{½ cup}"
        ("\\", r"\\text\s*\{\s*(\d{0,9}\\frac\{\d{1,3}\}\{\d{1,3}\})\s*", r"\1\\text{ "),
        # "\text{about } 5", "\sim 5"
        (
            "\\",
            r"^\s*(?:\\(?:text|mathrm)\s?\{\s?(?:about|approximately|approx\.?|roughly|around)\s?\}|"
            r"\\sim(?![A-Za-z]))(?=[\s\\$]*[-\d])",
            "",
        ),
        ("‰", r"(?<=[\d}])\s?‰", "/10%"),
        ("{", r"\{:\}", ":"),
        ("m", r"(?<=\d)\s?([ap])\.\s?m\b\.?|(?<=\d)\s?\\text\{\s*([ap])\.\s?m\.?\s*\}", r" \1\2m"),
        ("\\", r"(?<=\d),\\!\s*|\\!\s*", ""),
        ("{", r"\{,\}", ","),
        # "1_000"; no base has three digits
        ("_", r"(?<=\d)_(?=\d{3}(?!\d))", ""),
        ("\\~", r"\\[,;:> ]|\\q?quad(?![A-Za-z])|\\hspace\{[^{}]*\}|~", " "),
        ("\\", r"\^\s*(?:\{\s*\\circ\s*\}|\\circ)|\\degree(?![A-Za-z])", "°"),
        ("\\", r"\{([^{}]*)\\over(?![A-Za-z])([^{}]*)\}", r"\\frac{\1}{\2}"),
        ("\\", r"^([^=]*)\\over(?![A-Za-z])(.*)$", r"\\frac{\1}{\2}"),
        ("\\", r"\\colon(?![A-Za-z])", ":"),
        # "\mathbb{R} - \{2\}"
        ("\\", r"(?<=[)\]}R])\s*-\s*(?=\\\{)", r"\\setminus "),
        ("\\", r"\\(?:lor|vee)(?![A-Za-z])", r"\\lor "),
        ("\\", r"\\(?:land|wedge)(?![A-Za-z])", r"\\land "),
        ("\\", r"\\lt(?![A-Za-z])", "<"),
        ("\\", r"\\gt(?![A-Za-z])", ">"),
        ("\\", r"\\[dt]binom(?![A-Za-z])", r"\\binom"),
        # "{}_5C_2", "^5C_2"
        (
            "C",
            r"(?:\{\}|(?<![\w)}]))[\^_]\{?(\d{1,3})\}?\s?C\s?_\{?(\d{1,3})\}?",
            r"\\binom{\1}{\2}",
        ),
        # "\operatorname{arctan}", "\text{sin}"; \text{sec} may be seconds
        (
            "\\",
            r"\\(?:text|mathrm|operatorname)\s?\{\s?((?:arc)?(?:sin|cos|tan)h?|arc(?:cot|sec|csc)|"
            r"log|ln|lg)\s?\}(?=\s?[\d\\({^_a-z])",
            r"\\\1 ",
        ),
        ("\\", r"\{([^{}]*)\\choose(?![A-Za-z])([^{}]*)\}", r"\\binom{\1}{\2}"),
        ("\\", r"^([^={}]*)\\choose(?![A-Za-z])([^={}]*)$", r"\\binom{\1}{\2}"),
        ("\\∅", r"\\varnothing(?![A-Za-z])|∅|^\s*\\\{\s*\\\}\s*$", r"\\emptyset "),
        ("\\", r"\\langle(?![A-Za-z])", "("),
        ("\\", r"\\rangle(?![A-Za-z])", ")"),
        # "\text{negative infinity}", "infinity"; "infinitely many" answers "how many".
        (
            "iI",
            r"(?i)^\s*+(?:\\(?:text|mathrm)\s*\{)?\s*+(?:-|negative\s|minus\s)\s*+infinity\s*\}?[.\s]*$",
            r"-\\infty",
        ),
        (
            "iI",
            r"(?i)^\s*+(?:\\(?:text|mathrm)\s*\{)?\s*+"
            r"(?:(?:\+|positive\s|plus\s)?\s*+infinity|infinitely\smany)\s*\}?[.\s]*$",
            r"\\infty",
        ),
        # "7 \text{ goats and } 4 \text{ helicopters}"
        ("\\", r"(?<=\d)(\s?\\text\s?\{[A-Za-z ]{1,40}?),?\sand\s?\}\s?(?=\d)", r"\1}, "),
        # "12^{\text{th}}", "12th"
        (
            "td",
            r"(?<=\d)\s?\^?\s?\{?\s?\\(?:text|mathrm)\s?\{\s?(?:st|nd|rd|th)\s?\}\}?|"
            r"(?<=\d)(?:st|nd|rd|th)(?![A-Za-z])",
            "",
        ),
        # "60°42'" is an angle of degrees and minutes.
        ("°", r"(\d+)\s?°\s?(\d{1,2})\s?(?:'|′|\^\s?\{?\\prime\}?)(?!')", r"(\1+\2/60)°"),
        ("\\", r"\\l(?:e|eq|eqslant)(?![A-Za-z])", "<="),
        ("\\", r"\\g(?:e|eq|eqslant)(?![A-Za-z])", ">="),
        ("\\!", r"\\(?:neq?|not\s*=)(?![A-Za-z])|(?<![\d)}\]])!=", r"\\ne "),
        (
            "\\",
            r"\\(?:approx(?:eq)?|thickapprox|simeq|cong|doteq(?:dot)?)(?![A-Za-z])",
            r"\\approx ",
        ),
        ("*", r"(?<=[\w)}])\*\*(?=[\w({\\-])", "^"),
        ("*", r"\*\*", ""),
        # "*5* apples"; "2*5*3" is a product
        ("*", r"(?:^|(?<=[A-Za-z]{2}\s))\*([^\s*]{1,40})\*(?=[.,;:]?$|\s[A-Za-z]{2})", r"\1"),
        # "* 5", "• 5": the mark of a list
        ("*", r"^\s*\*\s+(?=\S)", ""),
        # "+/-3", "x = +-3"; "2 + -3" is a sum
        ("+", r"\+\s?/\s?-|(?:^|(?<==)|(?<==\s))\+-(?=\s?[\d\\])", r"\\pm "),
        # "(2|5)", a point as in German
        ("|", r"\(\s*(-?\d[\d.,/]*)\s*\|\s*(-?\d[\d.,/]*)\s*\)", r"(\1;\2)"),
        # "A(2;3)", a point with its name
        (";", r"^\s*[A-Z]\s?(?=\([^();]+;[^()]+\)\s*\.?$)", ""),
        ("∛", r"∛\s?(?:\(([^()]*)\)|(\d+))", r"\\sqrt[3]{\1\2}"),
        ("\\", r"\\(?:cdot|times)(?![A-Za-z])", "*"),
        (
            "\\",
            r"\\(?:mathbf|mathit|mathcal|mathsf|mathtt|boldsymbol|bm|vec|overrightarrow|underline|"
            r"boxed|fbox)\s*\{([^{}]*)\}",
            r"\1",
        ),
        # "(1, 2)^T" is written for a column; "(AB)^T" is another matrix than AB
        (
            "^",
            r"(\([^()]*,[^()]*\))\s*\^\s*\{?\s*(?:\\top|\\intercal|\\mathsf\s*\{?T\}?|T)\s*\}?\s*$",
            r"\1",
        ),
        # The bar of a segment's name; that of a conjugate or a complement is kept.
        ("\\", r"\\(?:overline|bar)\s*\{\s*([A-Z]{2,}'*)\s*\}", r"\1"),
        ("{", r"^\{([^{},]*)\}$", r"\1"),
        # "]0, 1[" and "[0, 1[" are written for (0, 1) and [0, 1)
        (
            "]",
            r"(?<![\w)}\]\s])(?<![\w)}\]]\s)\]\s*([^\[\]()]+[,;][^\[\]()]+?)\s*"
            r"(?:\[|(?P<closed>\]))(?!\s?[\w(])",
            lambda match: f"({match[1]}{match['closed'] or ')'}",
        ),
        ("[", r"\[\s*([^\[\]()]+[,;][^\[\]()]+?)\s*\[(?=\s*(?:$|[,}]|\\c[au]p|\\\}))", r"[\1)"),
    )
)
_LIMIT = r"(?:\{[^{}]*\}|\\?\w)"
# "\int_0^1 f(x)\,dx": limits, and the letter behind d
_INTEGRAL = re.compile(
    rf"\\int\s*(?:\\limits\s*)?(_\s*{_LIMIT}\s*\^\s*{_LIMIT})(?:(?!\\int).)*?"
    r"(?<![A-Za-z\\])d\s?([a-z])(?![A-Za-z])"
)
# "\{(a, b) \mid a = b\}", "\{2n : n \in \mathbb{Z}\}"
_MEMBERS = re.compile(
    r"\\\{\s*\(\s*([a-z])\s*,\s*([a-z])\s*(?:,\s*([a-z])\s*)?\)[^|:]{0,40}?(?:\\mid|\||:)"
)
_PARAMETER = re.compile(r"\\\{[^{}|:=<>]*?(?:\\mid|\||:)\s*([a-z])\s*\\in")
_SUCH_THAT = re.compile(r"\s*(?:\\mid(?![A-Za-z])|\||:)\s*")
_WORD = re.compile(r"\\?[A-Za-z]+")
_NO_PRODUCT = re.compile(
    r"sqrt|pi|sin|cos|tan|sec|cot|csc|log|ln|exp|mod|max|min|gcd|lcm|det|lim|sup|inf|for|all|and|or|in|is"
)
MAX_FACTORS = 3
"""Most letters of a product without signs; more are a word."""
# "\sum_{i=1}"
_INDEX = re.compile(r"\\(?:sum|prod)\s*(?:\\limits\s*)?_\s*\{\s*([A-Za-z])\s*=")
_DECIMAL = r"(?<![\w.])(?:(?<!\d,)|(?!\d{3}[.,]))(?P<whole>\d{0,40})"
"""No part of 1,234.5; in (0,0.5) the second member."""


@functools.cache
def _repeating(comma: bool) -> tuple[re.Pattern[str], ...]:
    """Match repeating decimals, in a language with a decimal comma also `0,(3)`."""
    point = "[.,]" if comma else r"\."
    return tuple(
        re.compile(_DECIMAL + pattern)
        for pattern in (
            # "0.1\overline{6}", "0.\dot{1}4285\dot{7}"
            r"[.,](?P<once>\d{0,40})\{?\s?\\(?:overline|bar)\s?(?P<period>\{\d{1,40}\}|\d)\}?",
            r"[.,](?P<once>\d{0,40})"
            r"(?P<period>\\dot\s?(?:\{\d\}|\d)(?:\d{0,40}\\dot\s?(?:\{\d\}|\d))?)",
            r"[.,](?P<once>\d{0,40}?)(?P<period>(?:\d\u0305){1,40})",
            # "0.3\u0307", "0.1\u030742857\u0307"
            r"[.,](?P<once>\d{0,40}?)(?P<period>\d\u0307(?:\d{0,40}\u0307)?)(?![\d\u0307])",
            # "0.(3)"
            point + r"(?P<once>\d{0,40})\((?P<period>\d{1,40})\)(?![\w^])",
            # "0.333...", "0.0833...", "0.1818...": a digit or a group that is there twice goes on.
            point + r"(?P<once>\d{0,9}?)(?P<period>(?P<digit>\d)(?=(?P=digit))|\d{2,6}?)"
            r"(?P=period){1,40}(?:\.{3}|…|\\[lc]?dots(?![A-Za-z]))",
            # "0.1666 repeating", "0.3 \text{ recurring}": one digit, or a group written twice.
            point + r"(?P<once>\d{0,9}?)"
            r"(?P<period>(?<=[.,])\d|(?P<group>\d{1,6}?)(?P=group){1,40})"
            r"\s?(?:\\text(?:rm)?\s?\{\s?)?"
            r"(?:\((?:repeating|recurring)\)|(?:repeating|recurring)(?!\w))\}?",
        )
    )


# "\overset{\cdot}{3}"
_DOTTED = re.compile(r"\\overset\s?\{\s?(?:\\cdot|\\bullet|\.)\s?\}\s?\{?(\d)\}?")
# "R$", "\$", "US$".
_MONEY = re.compile(
    r"(?P<real>R)\\?\$(?=\s?[-+]?\s?[\d.(])|(?P<country>US|NT|HK|S|A|C)?\\\$|(?P<us>US)\$"
)
# "$" of "$5" and "5$"; where it is the only one of a text, that of "S$ 1,299" ends no formula.
_DOLLAR = re.compile(r"(?:(?<![A-Za-z\d_\\])(?P<country>[SAC]))?\$(?=\s?[-+]?\s?[\d.])|(?<=\d)\$")
# "\left[\begin{array}{cc} 1 & 2 \\ 3 & 4 \end{array}\right]"
_ARRAY = re.compile(
    r"(?:\\left\s*)?[\[(]\s*\\begin\{array\}\{[lcr|\s]*\}((?:(?!\\begin).)*)\\end\{array\}\s*"
    r"(?:\\right\s*)?[\])]",
    re.DOTALL,
)
_CONDITION = re.compile(r"[<>]|\\ne |[|:]|\\mid")
"""Occurs in conditions on an unknown, between which "or" is a union and "and" an intersection."""


def normalised(text: str, language: str = "en") -> str:
    """Normalise the spelling of a text; letters keep their case."""
    if text.isascii() and text.isdigit():  # as most answers are
        return text
    text = plain_amounts(repeating(typed_minus(text), language), language)
    if "array" in text:
        text = _ARRAY.sub(r"\\begin{pmatrix}\1\\end{pmatrix}", text)
    text = plain_signs(text).translate(_SIGNS).strip()
    # `\\` ends a row of a matrix; elsewhere a backslash was escaped twice.
    text = text.replace("\\\\", "\\cr " if "matrix}" in text else "\\").replace("\\%", "%")
    if "$" in text:
        text = _MONEY.sub(_currency_of, text)
    if text.count("$") == 1:  # no formula
        text = _DOLLAR.sub(_dollars_of, text)
    text = bound_names(plain_vectors(text))
    for signs, pattern, by in _REWRITES:
        if signs[0] in text or signs[-1] in text:
            text = pattern.sub(by, text)
    if _CONDITION.search(text):
        for word, sign in zip(("and", "or"), ("\\land ", "\\lor "), strict=True):
            text = _commas(primary(language), word).sub(lambda _, sign=sign: f" {sign}", text)
    text = _commas(primary(language)).sub(", ", text)
    text = machine_numbers(re.sub(r"\s+", " ", text).strip(), language)
    return MINUS.sub("-", text).strip(" ;,").rstrip(" .;,:\\").strip()


def _currency_of(match: re.Match[str]) -> str:
    if match["real"]:
        return " BRL "
    return _dollars(match["country"] or match["us"])


def _dollars_of(match: re.Match[str]) -> str:
    return _dollars(match["country"])


def _dollars(country: str | None) -> str:
    return f" {units.SIGNED_DOLLARS[country] if country else units.DOLLARS} "


def bound_names(text: str) -> str:
    r"""Name bound unknowns k, l, m, t or x, y, z: \sum_{i=1}^n i is \sum_{k=1}^n k.

    Bound are the indices of sums and products, what an integral is over, and the members of a set.
    A text in which the new name is another unknown stays as it is.
    """
    if "\\" not in text:
        return text
    integral = _INTEGRAL.search(text) if text.count("\\int") == 1 else None
    members, parameter = _MEMBERS.match(text), _PARAMETER.match(text)
    if indices := list(dict.fromkeys(_INDEX.findall(text))):
        names = dict(zip(indices, "klm", strict=False))
    elif integral and integral[2] not in letters(integral[1]):
        names = {integral[2]: "t"}
    elif members:
        names = dict(zip(filter(None, members.groups()), "xyz", strict=False))
    elif parameter:
        names = {parameter[1]: "k"}
    else:
        return text
    free = (set(names.values()) - names.keys()) & letters(text)
    if free or len(indices) > len(names) or (members and len(set(names)) < 2):
        return text
    text = _WORD.sub(
        lambda match: (
            match[0] if _is_word(match[0]) else "".join(names.get(c, c) for c in match[0])
        ),
        text,
    )
    return _SUCH_THAT.sub(r" \\mid ", text, count=1) if members or parameter else text


def letters(text: str) -> set[str]:
    """Return the unknowns of one letter, also those in a product: i and j of ij."""
    return {letter for word in _WORD.findall(text) if not _is_word(word) for letter in word}


def _is_word(text: str) -> bool:
    """Say whether letters are a command, a function or a word and no product of unknowns."""
    return text[0] == "\\" or len(text) > MAX_FACTORS or _NO_PRODUCT.fullmatch(text) is not None


def repeating(text: str, language: str = "en") -> str:
    r"""Write a repeating decimal as its fraction: `0.1\overline{6}`, `0.(3)`, `0.333...`."""
    if "." not in text and "," not in text:
        return text
    comma = writes_comma(language)
    text = _DOTTED.sub(r"\\dot{\1}", text.replace("{,}", ",") if comma else text)
    for pattern in _repeating(comma):
        text = pattern.sub(_fraction_of, text)
    return text


def _fraction_of(match: re.Match[str]) -> str:
    whole, once = match["whole"] or "0", match["once"] or ""
    period = re.sub(r"\D", "", match["period"])
    period = match.groupdict().get("group") or period
    nines = 10 ** len(once) * (10 ** len(period) - 1)
    value = Fraction(int(whole + once + period) - int(whole + once), nines)
    return f"(\\frac{{{value.numerator}}}{{{value.denominator}}})"


@functools.cache
def _commas(language: str, word: str = "") -> re.Pattern[str]:
    """Match the words that separate the items of a list, or only those for "and", or for "or"."""
    lists = {_AND_OR["en"], _AND_OR.get(language, _AND_OR["en"])}
    if word:
        lists = {words.split("|")[word == "or"] for words in lists}
    words = "|".join(sorted(lists))
    whole = words if language == "zh" else rf"\b(?:{words})\b"  # 1和2
    part = r"(?!\s\w+\s(?:half|third|quarter|fourth|fifth|sixth|eighth|tenth)s?\b)"
    part = part if language == "en" else ""  # 2 and a half
    return re.compile(
        rf"\\text\s*\{{\s*,?\s*(?:{words})\s*\}}|"
        rf"(?<=[\d)}}°]),?\s*(?:{whole})(?=\s*[\d(\\a-z-]){part}|"
        rf"(?<=,)\s*(?:{words})(?=\s)"
    )
