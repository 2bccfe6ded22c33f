r"""One value for one gold: per cent, dozens, bases and named events are read in one way only.

The problem says what it asks for (`the percentage`, `in base 7`, `P(X=6)`); where it does not, the
gold decides. So `50\%` is never both 50 and 0.5, and `21_7` is 15 unless base 7 was asked for.
"""

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from tasks.gym.maths import units
from tasks.gym.maths.amounts import power_of
from tasks.gym.maths.compare import PERIOD, has_pi, is_share, rational
from tasks.gym.maths.dates import dates_in_digits
from tasks.gym.maths.described import points_of
from tasks.gym.maths.latex_terms import LatexTerm, renamed, symbols
from tasks.gym.maths.matrices import has_matrices
from tasks.gym.maths.parse import Answer, parse
from tasks.gym.maths.times import names_half, time_of

# "What percent of", "as a percentage", "百分之几"; not "a 20% discount" or "10 percent of it".
_PERCENT = re.compile(
    r"(?<![\d}])(?<![\d}]\s)(?<!\d\\)(?:per\s?cent\w*|\\?%|persen\w*|peratus\w*|phần trăm|"
    r"เปอร์เซ็นต์|ร้อยละ|百分[之比率数數]\w*|porcent\w*|por ciento|pourcent\w*|prozent\w*)",
    re.IGNORECASE,
)
_FRACTION_OF_ONE = re.compile(
    r"(?<![A-Za-z])(?:probabilit\w+|chances?|likelihood|fractions?|proportions?|peluang|pecahan|"
    r"kebarangkalian|probabilidades?|probabilité|wahrscheinlichkeit|fraç\w+|fracción)(?![A-Za-z])|"
    r"xác suất|phân số|ความน่าจะเป็น|เศษส่วน|[概機机]率|分[数數]",
    re.IGNORECASE,
)
"""Asks for a number between 0 and 1: there 25 % is 0.25."""
_ANGLE = re.compile(
    # "What is the measure of angle ABC", "find the smallest angle", "how large is $\\angle A$"
    r"(?:what(?:'s|\s+is)|find|determine|compute|calculate|evaluate|how\s+(?:large|big|wide)\s+is|"
    r"give|measures?\s+of|size\s+of|value\s+of)\s+(?:(?:the|an?|of|in|all|possible|measures?|size|"
    r"value|magnitude|smallest|largest|smaller|larger|acute|obtuse|interior|exterior|central|"
    r"unknown|degrees?|number|radians?)\s+){0,7}\$?\\?(?:angles?(?![A-Za-z])|∠)|"
    r"besar(?:nya)?\s+sudut|số đo (?:của )?(?:các )?góc|ขนาด(?:ของ)?มุม|มุม.{0,20}กี่องศา|"
    r"求(?:∠|\$?\\angle)|角.{0,12}(?:大小|[度][数數]|多少度)|(?:medida|valor) d[oe]l? [âá]ngulo|"
    r"mesure de l'angle|größe des winkels",
    re.IGNORECASE,
)
_DEGREES = re.compile(
    r"(?<![A-Za-z])(?:degrees?|derajat|darjah|graus|grados|degrés|grad)(?![A-Za-z])|"
    r"độ|องศา|度",
    re.IGNORECASE,
)
_RADIANS = re.compile(r"radian|เรเดียน|弧度", re.IGNORECASE)
_VECTOR = re.compile(r"(?<![A-Za-z])ve[ck]?tor|vecteur|véc-?tơ|vectơ|เวกเตอร์|向量", re.IGNORECASE)
# "2e+3" is a numeral, unless e is a number or an unknown; a machine writes 2e+03.
_SHORT_EXPONENT = re.compile(r"(?<=\d)e(?=[-+]\d(?!\d))")
# "e^x", "$e$", "3e -", "(e"
_LETTER_E = re.compile(
    r"(?<![A-Za-z\\])e\s?[\^*/=_)]|\$\s*e\s*\$|[-+*/=({]\s?\d*e(?![A-Za-z])|(?<![A-Za-z\\])e\s[-+]\s"
)
# "1.5k", "$50k", "2K followers", "1.5M"; 1.500k is none
_THOUSANDS = re.compile(
    r"(?P<before>[^\w.,]{0,4})(?P<whole>\d{1,6})(?:[.,](?P<decimals>\d{1,2}))?(?P<scale>[kKMB]|[mb]n)(?P<after>(?:[\s.].*)?)"
)
# "5P2", "P(5,2)"
_PERMUTATIONS = re.compile(
    r"(?<![\w.,\\])(?:P\((?P<of>\d{1,3}),\s?(?P<by>\d{1,3})\)|(?P<n>\d{1,3})P(?P<k>\d{1,3}))(?!\w)"
)
# "C(5,2)", "5C2", "C_5^2", "C^2_5", "3 and 1/2 cups"
_NUMBERS_ONLY = (
    (re.compile(r"(?<![A-Za-z\\])C\((\d{1,3}),\s?(\d{1,3})\)"), r"\\binom{\1}{\2}"),
    (re.compile(r"(?<![\w.,])(\d{1,3})C(\d{1,3})(?!\w)"), r"\\binom{\1}{\2}"),
    (re.compile(r"(?<![A-Za-z\\])C_\{?(\d{1,3})\}?\^\{?(\d{1,3})\}?"), r"\\binom{\1}{\2}"),
    (re.compile(r"(?<![A-Za-z\\])C\^\{?(\d{1,3})\}?_\{?(\d{1,3})\}?"), r"\\binom{\2}{\1}"),
    (
        re.compile(
            r"^([^\w=]*\d+)\s?(?:\\text\s?\{)?\s?(?:and|dan|và|y|e|et|und|at|กับ|又)\s?\}?\s?"
            r"(\d+/\d+)(?=\W*(?:[^\W\d_]+\W*)?$)"
        ),
        r"\1 \2",
    ),
)
# "3 x 2"; not "0x2"
_SIZE = re.compile(r"(?<=\d)(?<![A-Za-z\d.]0)(?<!^0)\s?[xX]\s?(?=\d)")
_IN_KELVIN = re.compile(r"(?<=\d)\s?K(?=\W*$)")
_KELVIN = re.compile(
    r"(?<![A-Za-z])(?:kelvins?|temperatures?|K)(?![A-Za-z])|\\(?:text|mathrm)\{\s?K\s?\}"
)
_OF_E = re.compile(r"\\(?:ln|log|exp|int)(?![A-Za-z])|integral|derivative", re.IGNORECASE)
_NUMBER_NAMES = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_BASE_WORDS = [str(name) for name in _NUMBER_NAMES.split("|")]
# "in base 7", "base $b$" is none, "7 进制", "123_{7}", "binary".
_BASE = re.compile(
    rf"\bbases?[\s$-]{{0,3}}(?P<number>\d{{1,2}}|{_NUMBER_NAMES}|sixteen)\b|"
    r"(?P<script>\d{1,2})\s?进制",
    re.IGNORECASE,
)
_NAMED_BASES = {"binary": 2, "octal": 8, "hexadecimal": 16}
# "P(X=4)", "f(3)", "f(-1/2)": a call with a number in it.
_CALL = re.compile(
    r"(?<![A-Za-z\\])(?P<name>[A-Za-z])\s?\((?P<inner>[^()$\n]{0,30}\d[^()$\n]{0,30})\)"
)
# "P(X=4)" anywhere; a call f(4) may be a step of f(f(3)) = f(4) = 5.
_EVENT = re.compile(
    r"(?<![A-Za-z\\])(?P<name>[A-Za-z])\s?\([^()$\n]{1,30}[=<>≤≥][^()$\n]{0,29}\d[^()$\n]{0,9}\)"
)


_LAYOUT = re.compile(r"\\(?:left|right|displaystyle|[,;:!> ])|(?<=\\)[dt](?=frac)|[\s${}()\[\]~]")
"""What two spellings of one formula may differ in."""
# "\cdot", "\times".
_TIMES = re.compile(r"\\(?:cdot|times)(?![A-Za-z])")
# "x=" of "x=5", "\theta=" of "\theta=5"; not of "x=y=5".
_NAMED = re.compile(r"^\\?[A-Za-z]+=(?=[^=]*$)")
_OPERATES = re.compile(
    r"[\w!|][-+*/^_<>=\u00d7\u00b7\u00f7]|\\(?!frac\d+$|pi$|infty$|text|circ|%)[a-z]+|[!|]"
)
"""Occurs in a formula that states work, in no number, tuple or name."""
_RATIO = re.compile(
    r"(?<![A-Za-z])(?:ratio|proportion|odds|scale|rasio|nisbah|perbandingan|nisbah|skala|razão|proporção|"
    r"razón|proporción|rapport|verhältnis)|t[ỉỷ] (?:số|lệ)|อัตราส่วน|比",
    re.IGNORECASE,
)
_STEMS = {
    _PERCENT: (
        "cent",
        "cient",
        "%",
        "persen",
        "peratus",
        "prozent",
        "phần",
        "เปอร์",
        "ร้อยละ",
        "百分",
    ),
    _FRACTION_OF_ONE: (
        *("probab", "chance", "likelihood", "fracti", "fracci", "fraç", "proportion", "peluang"),
        *("pecahan", "kebarangkalian", "wahrscheinlichkeit", "xác", "phân", "ความน่า", "เศษส่วน"),
        *("概", "機", "机", "分"),
    ),
    _ANGLE: ("angle", "∠", "sudut", "góc", "มุม", "角", "ngulo", "winkel"),
    _VECTOR: ("ctor", "ktor", "etor", "vecteur", "véc", "vectơ", "เวกเตอร์", "向量"),
    _RATIO: (
        *("ratio", "proportion", "odds", "scale", "skala", "rasio", "nisbah", "perbandingan"),
        *(
            "razão",
            "proporç",
            "proporc",
            "razón",
            "rapport",
            "verhältnis",
            "tỉ ",
            "tỷ ",
            "อัตรา",
            "比",
        ),
    ),
}
"""Parts of words of which each match of a pattern has one: to look for them costs a tenth."""
# "12:30", "9:05"; 1:4 is no time.
_TIME = re.compile(r"(?:[01]?\d|2[0-4]):[0-5]\d(?:\W?[ap]m)?", re.IGNORECASE)
# "1 to 4", "2 \text{ to } 3"
_RATIO_IN_WORDS = re.compile(r"([\d.]+) ?(?:\\text ?\{ ?to ?\}|to) ?([\d.]+)")
# "1 in 4", "3 out of 10"
_ONE_IN = re.compile(r"(?<![\w.,/$])(\d{1,6})\s(?:in|out\sof)\s(\d{1,6})(?![\w/%]|[.,]\d|\s?\\?%)")
# "2比3", "2 berbanding 3"
_COMPARED_BY = re.compile(r"(?<=\d)\s?(?:比|berbanding)\s?(?=\d)")
# "C(5,2)"
_NAMED_POINT = re.compile(r"[A-Z]\s?(\([^()]*\))")
_HALVES_OF_A_DAY = frozenset({"am", "pm"})
_LETTER = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")
# "5/8", "\frac{5}{8}"
_SHARE = re.compile(r"\d+/\d+|\\frac\{?\d+\}?\{?\d+\}?")
# "k = -0.7"
_ASSIGNED = re.compile(r"(?<![A-Za-z\\\d])([a-z])\s?=\s?(-?\d[\d.]*)(?=[$,.;]|\s[a-z])")
_ASCENDING = re.compile(
    r"(?:smallest|least|lowest|small) to (?:the )?(?:largest|greatest|biggest|highest|large)|"
    r"(?:ascending|increasing) order|从小到大|從小到大|từ (?:bé|nhỏ) đến lớn|"
    r"terkecil (?:ke|hingga) terbesar",
    re.IGNORECASE,
)
_DESCENDING = re.compile(
    r"(?:largest|greatest|biggest|highest|large) to (?:the )?(?:smallest|least|lowest|small)|"
    r"(?:descending|decreasing) order|从大到小|從大到小|từ lớn đến (?:bé|nhỏ)|"
    r"terbesar (?:ke|hingga) terkecil",
    re.IGNORECASE,
)
_WHEN = re.compile(r"(?<![A-Za-z])(?:when|(?:what|which) year)(?![A-Za-z])", re.IGNORECASE)
"""Asks for a year, if the gold is one: a full date states its year."""
_YEAR = re.compile(r"[12]\d{3}")
_NAMES_OF_PARTS = "abcdefgh"
_COUNTERS = frozenset("jklmnt")
"""Letters of parameters; x and y name what is asked for."""
_CONSTANTS = frozenset({"C", "c", "K", "k", "C_1", "c_1"})
"""Names of the constant of integration."""
_ORDINAL = re.compile(r"\\?(?:st|nd|rd|th)(?![A-Za-z])")
# "-1/2"
_FRACTION = re.compile(r"-?\d+/\d+")
# "all possible values of a . b", where [-77, 77] is an interval though the problem has vectors
_INTERVAL_WORDS = re.compile(r"\b(?:possible values|range|interval)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What a problem says about the form of its answer; nothing if its text is not known."""

    percent: bool = False
    hundredths: bool = False
    """Its text has a number of per cent, or asks for one."""
    counts: frozenset[str] = frozenset()
    """Names of `units.COUNTS` in which it counts."""
    bases: frozenset[int] = frozenset()
    fraction: bool = False
    """A number between 0 and 1 is asked for."""
    angle: str = ""
    """"radians", "degrees", or "any" where an angle is asked for."""
    vector: bool = False
    ratio: bool = False
    matrices: bool = False
    letters: frozenset[str] = frozenset()
    """Single letters of its text: its unknowns, and words."""
    calls: frozenset[str] = frozenset()
    """Calls with a number inside, without spaces: P(X=6)."""
    words: str = ""
    """The text of the problem."""
    text: str = ""
    """The same without layout."""

    @classmethod
    @lru_cache(maxsize=256)  # a group has one problem and many responses
    def of(cls, text: str) -> "AnswerForm":
        """Read the text of a problem."""
        bases = {_base(match["number"] or match["script"]) for match in _BASE.finditer(text)}
        folded = text.casefold()
        bases |= {base for word, base in _NAMED_BASES.items() if word in folded}
        return cls(
            percent=_asks(_PERCENT, text, folded),
            hundredths="%" in folded or "cent" in folded or _asks(_PERCENT, text, folded),
            counts=units.counts_in(folded),
            bases=frozenset(bases),
            fraction=_asks(_FRACTION_OF_ONE, text, folded),
            angle=_angle(text, folded),
            vector=_asks(_VECTOR, text, folded),
            ratio=_asks(_RATIO, text, folded),
            matrices=has_matrices(text),
            letters=_used_letters(text),
            calls=frozenset(_calls(text)),
            words=text,
            text=_without_layout(text),
        )

    def is_another_call(self, text: str) -> bool:
        """Say whether `P(X=4) = ...` stands where the problem names P(X=6) only."""
        text = text.strip(" $\\([*")
        calls = [call for call in (_CALL.match(text), *_EVENT.finditer(text)) if call]
        return any(re.match(r"\s*=", text[call.end() :]) and self._is_other(call) for call in calls)

    def _is_other(self, call: re.Match[str]) -> bool:
        calls = {one for one in self.calls if one[0] == call["name"]}
        return bool(calls) and _tight(call[0]) not in calls

    def is_echo(self, text: str, gold: str) -> bool:
        """Say whether an answer is a formula of the problem, which the gold is not written as.

        A gold with a name, x = \\sqrt{3}, is written as its value, and 12th as 12.
        """
        formula = _NAMED.sub("", _without_layout(text).strip(".,;:?="))
        works = _OPERATES.search(formula) and not _FRACTION.fullmatch(formula)
        return bool(works) and formula in self.text and formula not in self._forms(gold)

    def read(self, answer: Answer, gold: Answer) -> Answer:
        """Return an answer as the problem and the gold want it read."""
        if gold.kind == "()" and (named := _NAMED_POINT.fullmatch(answer.text)):
            answer = parse(named[1])
        points = points_of(f"{answer.text} {answer.condition}".strip())
        answer = parse(points) if points else answer
        if self.ratio or gold.kind == "ratio":
            answer = _to(answer)
        if gold.kind == "date" and (dates := dates_in_digits(answer.text)) == {gold.text}:
            answer = Answer("date", min(dates))
        if answer.kind == "date" and _WHEN.search(self.words) and _YEAR.fullmatch(gold.text):
            answer = value(answer.text.partition("-")[0], answer)
        answer = self._counted(self._ordered(answer, gold), gold)
        answer = _in_ones(answer, keep=self.counts | _units_of(gold))
        answer = self._clock(self._in_hundredths(self._free(answer, gold), gold), gold)
        answer = self._percent(self._base(answer, gold), self.in_percent(gold))
        answer = self._angle(answer, gold)
        may_be_vector = self.vector and not _INTERVAL_WORDS.search(self.words)
        if may_be_vector and answer.kind == "[]" and gold.kind in ("()", "[]"):
            return replace(answer, kind="()")
        return answer

    def in_full(self, text: str, gold: str, language: str) -> str:
        """Return `1500` for 1.5k, the answer where the gold is a number and k is no letter.

        So are `C(5,2)`, `3 x 2` and `3 and 1/2` numbers, which elsewhere are a point, a size and a
        list. Where something is measured in kelvin a large K is that unit.
        """
        if "K" in text and _KELVIN.search(f"{self.words} {gold}"):
            return _IN_KELVIN.sub(" kelvin", text)
        if not self.letters & {"x", "X"}:
            text = _SIZE.sub(" * ", text)
        for pattern, by in _NUMBERS_ONLY:
            text = pattern.sub(by, text)
        if "P" not in self.letters:
            text = _PERMUTATIONS.sub(_permutations, text)
        match = _THOUSANDS.fullmatch(text)
        if match is None or not self.letters.isdisjoint({match["scale"], match["scale"].lower()}):
            return text
        decimals = match["decimals"] or ""
        factor = 10 ** power_of(match["scale"], language)
        number = int(match["whole"] + decimals) * Fraction(factor, 10 ** len(decimals))
        if number.denominator != 1:
            return text
        return f"{match['before']}{number}{match['after']}"

    def measures(self, text: str) -> bool:
        """Say whether the letter behind the number of a text is a unit of the problem."""
        letter = re.search(r"(?<=\d)[A-Za-z]", text)
        if letter is None:
            return False
        name = letter[0]
        if re.search(
            rf"[-+*=]\s?{name}(?![A-Za-z])|\$\s?{name}\s?\$|(?<![A-Za-z]){name}\s?[-+*=]",
            self.words,
        ):
            return False  # an unknown
        names = {units.KNOWN.get(name.casefold())}
        behind = re.findall(r"\d\s?(?:\\text\s?\{\s?)?([^\W\d_]+)|([^\W\d_]{3,})", self.words)
        return any(units.unit(word) & names for pair in behind for word in pair if word)

    def plain(self, text: str, gold: str) -> str:
        """Return a text in which 2e-3 is 2e - 3 if e is a letter of the problem or the gold."""
        text = _COMPARED_BY.sub(":", text)
        if self.fraction or self.percent:
            text = _ONE_IN.sub(_share_of, text)
        if "‰" in self.words:  # it asks for a number of thousandths
            text = text.replace("‰", "")
        if ("e+" not in text and "e-" not in text) or not _SHORT_EXPONENT.search(text):
            return text
        rest = _SHORT_EXPONENT.sub("", gold)
        is_letter = (
            _LETTER_E.search(self.words)
            or re.search(r"(?<![A-Za-z\\])e(?![A-Za-z])", rest)
            or (rest != gold and _OF_E.search(self.words))
        )
        return _SHORT_EXPONENT.sub("e ", text) if is_letter else text

    def _angle(self, answer: Answer, gold: Answer) -> Answer:
        """Return an angle in the measure of the gold: pi/3 as 60, 60 as 60 degrees."""
        term = answer.term
        if not self.angle or term is None or gold.term is None:
            return answer
        ours, theirs = has_pi(gold.term), has_pi(term)
        says_radians = answer.unit == units.RADIAN
        if says_radians and not theirs and (gold.unit >= units.DEGREE or self.angle == "degrees"):
            return replace(answer, kind="hedged")  # 35 radians are no 35 degrees
        if says_radians and gold.unit != units.RADIAN:
            answer = replace(answer, unit=frozenset[str]())
        if ours is theirs or gold.unit or answer.unit:
            return answer
        if ours and self.angle != "radians":
            return replace(answer, unit=units.DEGREE, text=f"{answer.text} degrees")
        if theirs and (self.angle == "any" or says_radians):
            pi, half_turn = LatexTerm("sym", name="\\pi"), LatexTerm("num", value=Fraction(180))
            degrees = LatexTerm("/", (LatexTerm("*", (term, half_turn)), pi))
            return replace(answer, term=degrees, text=f"{answer.text} in degrees")
        return answer

    def _in_hundredths(self, answer: Answer, gold: Answer) -> Answer:
        """Return the fraction 5/8 as 62.5 where per cent are asked for and the gold is no fraction.

        A gold of 0.5 that is a half and not half a per cent keeps its own fraction. Where only the
        gold is in per cent, a share that is equal to it, exactly or rounded, is one: 0.625.
        """
        if not self.in_percent(gold) or has_unit(answer, units.PERCENT) or not answer.term:
            return answer
        in_fraction = re.search(r"/|\\frac", gold.text) and not PERIOD.match(gold.text)
        is_bare = not has_unit(gold, units.PERCENT)
        if is_bare and rational(answer.term) == rational(gold.term):
            return answer
        hundred = LatexTerm("num", value=Fraction(100))
        share = replace(
            answer, text=f"{answer.text} of 100", term=LatexTerm("*", (answer.term, hundred))
        )
        if _SHARE.fullmatch(answer.text) and not in_fraction:
            return share
        is_one = not self.hundredths and not answer.unit and is_share(gold, share)
        return replace(share, term=gold.term) if is_one else answer

    def _forms(self, gold: str) -> frozenset[str]:
        whole = _without_layout(gold)
        return frozenset({whole, _NAMED.sub("", whole), _without_layout(_ORDINAL.sub("", gold))})

    def _clock(self, answer: Answer, gold: Answer) -> Answer:
        """Return 12:30 as a time of the day, unless the problem or the gold, 3:5, wants a ratio.

        Beside a gold that is a time, 7 p.m. and 19h are times, too.
        """
        is_hour = bool(gold.unit & _HALVES_OF_A_DAY) and gold.kind == "value"
        if self.ratio or not (is_hour or _is_time(gold)):
            wants_ratio = self.ratio or gold.kind == "ratio"
            return answer if wants_ratio or not _is_time(answer) else replace(answer, kind="clock")
        time, half = time_of(answer.text, bare_hour=is_hour)
        if time and not half and not answer.text.isdecimal() and self._is_of_24_hours(gold):
            half = "am" if int(time.partition(":")[0]) < 12 else "pm"  # of the 24-hour clock
        return Answer("clock", time, unit=frozenset({half} - {""})) if time else answer

    def _is_of_24_hours(self, gold: Answer) -> bool:
        """Say whether 7:00 is in the morning, because only the gold has am or pm."""
        return bool(self.words and time_of(gold.text)[1]) and not names_half(self.words)

    def _free(self, answer: Answer, gold: Answer) -> Answer:
        """Name the one unknown of an answer as the gold does, if the problem names neither.

        x = k\\pi for every integer k is x = n\\pi; two such unknowns may be mixed up. A gold that
        is a letter and nothing else is that letter.
        """
        ours, theirs = _unknowns(gold), _unknowns(answer)
        only_gold, only_answer = ours - theirs, theirs - ours
        both = only_gold | only_answer
        if len(only_gold) != 1 or len(only_answer) != 1 or not self.text or both & self.letters:
            return answer
        if gold.term is not None and gold.term.kind == "sym":
            return answer
        # (k, l) = (3x, 5x) says that x is none of those that are asked for.
        is_parameter = gold.kind == "()" and gold.name.startswith("(")
        if not both <= _COUNTERS and not both <= _CONSTANTS and not is_parameter:
            return answer
        return _renamed(answer, *only_answer, *only_gold)

    def _ordered(self, answer: Answer, gold: Answer) -> Answer:
        """Return `a, b, c` as a < b < c where the problem asks from the smallest to the largest."""
        for sign, order in (("<", _ASCENDING), (">", _DESCENDING)) if answer.parts else ():
            names = [name.strip() for name in gold.text.split(sign)]
            if len(names) > 2 and names == [part.text for part in answer.parts]:
                return gold if order.search(self.words) else answer
        return answer

    def _counted(self, answer: Answer, gold: Answer) -> Answer:
        """Name numbers of things in the order in which the problem names the things.

        `4 helicopters and 7 goats` is 7, 4 where it asks for goats and helicopters.
        """
        if answer.kind != "list" or gold.kind != "list" or any(part.unit for part in gold.parts):
            return answer
        folded, places = self.words.casefold(), list[int]()
        for part in answer.parts:
            others = frozenset[str]().union(*(one.unit for one in answer.parts if one is not part))
            mentions = [folded.find(word) for word in part.unit - others if word in folded]
            places += [min(mentions)] if mentions and part.kind == "value" and not part.name else []
        if not len(answer.parts) == len(set(places)) <= len(_NAMES_OF_PARTS):
            return answer
        ordered = sorted(zip(places, answer.parts, strict=True), key=lambda pair: pair[0])
        parts = (part for _, part in ordered)
        named = (
            replace(part, name=f"({n})") for n, part in zip(_NAMES_OF_PARTS, parts, strict=False)
        )
        return replace(answer, parts=tuple(named), text=f"{answer.text} by name")

    def in_percent(self, gold: Answer) -> bool:
        """Say whether a bare number is a number of hundredths."""
        return self.percent or (has_unit(gold, units.PERCENT) and not self.fraction)

    def _base(self, answer: Answer, gold: Answer) -> Answer:
        if answer.kind != "based" or gold.kind == "based":
            return answer
        digits, _, base = answer.text.partition("_")
        if int(base) in self.bases:
            return value(digits, answer) if digits.lstrip("-").isdecimal() else answer
        try:
            return value(str(int(digits, int(base))), answer)
        except ValueError:  # 9_7, base 0
            return replace(answer, kind="hedged")

    def _percent(self, answer: Answer, in_percent: bool) -> Answer:
        parts = tuple(self._percent(part, in_percent) for part in answer.parts)
        answer = replace(answer, parts=parts) if parts != answer.parts else answer
        if not answer.unit >= units.PERCENT:
            return answer
        unit = answer.unit - units.PERCENT
        if in_percent or answer.term is None:
            text = answer.text.replace("\\%", "").replace("%", "").strip()
            return replace(answer, unit=unit, text=text)
        hundredth = LatexTerm("num", value=Fraction(1, 100))
        return replace(
            answer,
            unit=unit,
            text=f"{answer.text} per 100",
            term=LatexTerm("*", (answer.term, hundredth)),
        )


def _share_of(match: re.Match[str]) -> str:
    """Write 1 in 4 as 1/4; 5 in 2 is no share."""
    part, whole = int(match[1]), int(match[2])
    return f"{part}/{whole}" if part <= whole and whole else match[0]


def _permutations(match: re.Match[str]) -> str:
    """Write the number of arrangements as a quotient of factorials."""
    n, k = (int(number) for number in match.groups() if number)
    return f"\\frac{{{n}!}}{{{n - k}!}}" if k <= n else match[0]


def _is_time(answer: Answer) -> bool:
    return answer.kind == "ratio" and bool(_TIME.fullmatch(answer.text.replace(" ", "")))


def _unknowns(answer: Answer) -> frozenset[str]:
    own = symbols(answer.term) if answer.term else frozenset[str]()
    return own.union(*map(_unknowns, answer.parts))


def _renamed(answer: Answer, old: str, new: str) -> Answer:
    return replace(
        answer,
        term=renamed(answer.term, old, new) if answer.term else None,
        text=re.sub(rf"(?<![A-Za-z\\\\]){re.escape(old)}(?![A-Za-z])", new, answer.text),
        parts=tuple(_renamed(part, old, new) for part in answer.parts),
    )


def _used_letters(text: str) -> frozenset[str]:
    """Find single letters, but for those that a problem sets to one number: they are constants."""
    numbers: dict[str, set[str]] = {}
    for letter, number in _ASSIGNED.findall(text):
        numbers.setdefault(letter, set()).add(number.rstrip("."))
    constants = frozenset(letter for letter, values in numbers.items() if len(values) == 1)
    return frozenset(_LETTER.findall(text)) - constants


def _asks(pattern: re.Pattern[str], text: str, folded: str) -> bool:
    return any(stem in folded for stem in _STEMS[pattern]) and bool(pattern.search(text))


def _angle(text: str, folded: str) -> str:
    if not _asks(_ANGLE, text, folded):
        return ""
    return "radians" if _RADIANS.search(text) else "degrees" if _DEGREES.search(text) else "any"


def has_unit(answer: Answer, unit: frozenset[str]) -> bool:
    """Say whether an answer, or a part of it, has a unit."""
    return answer.unit >= unit or any(has_unit(part, unit) for part in answer.parts)


def _to(answer: Answer) -> Answer:
    """Return the ratio 1:4 for `1 to 4`, which elsewhere is a range."""
    match = _RATIO_IN_WORDS.fullmatch(answer.text) if not answer.readable else None
    return parse(f"{match[1]}:{match[2]}") if match else answer


def _units_of(answer: Answer) -> frozenset[str]:
    return answer.unit.union(*map(_units_of, answer.parts))


def _in_ones(answer: Answer, *, keep: frozenset[str]) -> Answer:
    """Return 36 for 3 dozen, where dozens are not to be kept."""
    counted = answer.unit & units.COUNTS.keys() - keep
    if units.measures(answer.unit):  # $500 gross
        counted -= {"gross"}
    if answer.term is None or not counted:
        return answer
    number = math.prod(units.COUNTS[name] for name in counted)
    factor = LatexTerm("num", value=Fraction(number))
    return replace(
        answer,
        unit=answer.unit - counted,
        text=f"{answer.text} times {number}",
        term=LatexTerm("*", (answer.term, factor)),
    )


def value(number: str, answer: Answer) -> Answer:
    """Return an answer that is this integer."""
    return Answer("value", number, term=LatexTerm("num", value=Fraction(number)), unit=answer.unit)


def _base(text: str) -> int:
    word = text.casefold()
    if word.isdecimal():
        return int(word)
    return 16 if word == "sixteen" else _BASE_WORDS.index(word) + 2


def _calls(text: str) -> set[str]:
    return {_tight(match[0]) for match in _CALL.finditer(text)}


def _without_layout(text: str) -> str:
    return _LAYOUT.sub("", _TIMES.sub("*", text))


def _tight(text: str) -> str:
    return re.sub(r"\s", "", text)
