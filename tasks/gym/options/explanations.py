"""The explanation behind an answer: left out unless it takes the answer back.

An explanation may name other options. It takes the answer back if a clause of it denies or doubts
the answer, or offers another option.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from string import ascii_lowercase

from tasks.gym.denials import EVERY_LANGUAGE
from tasks.gym.options.languages import (
    ALSO,
    ALSO_SPACELESS,
    CONCESSIONS,
    CONCESSIONS_SPACELESS,
    COPULA,
    FALSE,
    JOINERS,
    NEGATED,
    OR,
    REASON,
    compile_folded,
)
from tasks.gym.options.mentions import (
    ARTICLES,
    BORDER,
    WORD_LETTERS,
    ends_with,
    is_spaceless,
    pattern_of,
    place_of,
)
from tasks.gym.options.rejections import EXCEPTED, is_denied, is_denied_by

MAX_CLAUSES = 1000
"""Clauses of an explanation; a longer text is read as an answer in whole, which is stricter."""
# "unlike a", "why not a": no second answer
_CONTRASTED = compile_folded(
    r"(?<!\w)(?:unlike|instead of|rather than|over|than|compared (?:to|with)|contrary to|why not|"
    r"(?:many|most|some)(?: people| students| readers)? (?:pick|choose|select)|"
    r"(?:i|we) (?:have )?(?:rejected|excluded|eliminated|ruled out)|"
    r"the (?:problem|trouble|issue) with|if (?:it|this|that) were|"
    r"not|neither|nor|except|besides|for|regarding|about|beda dengan|khác với|bukan|não|không|"
    r"nicht|pas)(?!\w)|ไม่|不|非"
)
# "while a might seem plausible"
_SEEMS = re.compile(
    r"(?<!\w)(?:(?:may|might|could|can) (?:\w+ )?(?:seem|look|appear|sound)|at first|initially)"
    r"(?!\w)"
)
# "but a could be right", "although a is red"
_CONNECTIVE = compile_folded(
    r"^(?:(?:but|and|or|however|yet|still|then again|since|as|because|tetapi|tapi|namun|dan|mas|"
    rf"pero|mais|aber|ma|e|nhưng|ngunit|que|{CONCESSIONS}) )+|"
    rf"^(?:(?:แต่|但是?|不[过過]|而|{CONCESSIONS_SPACELESS}) ?)+"
)
_TURN = compile_folded(
    r"(?<!\w)(?:wait|actually|sorry|correction|on (?:second thought|reflection)|hmm|maybe|perhaps|"
    r"alternatively|then again|change (?:my|the) (?:answer|mind|choice)|torn between|"
    r"unsure|uncertain|or is it|not (?:\w+ )?(?:sure|certain)|ragu|tidak yakin|"
    r"không chắc|não tenho certeza|no estoy segur[oa]|"
    r"mungkin|maaf|sebenarnya|na verdade|desculpe?|en realidad|perdón|thực ra|xin lỗi|en fait|"
    r"eigentlich|entschuldigung|in realtà|scusa|có lẽ|talvez|quizás?|peut être|vielleicht|forse)"
    r"(?!\w)|"
    r"อาจ|ไม่แน่ใจ|也[许許]|可能|或[许許]|不[确確]定|其[实實]|抱歉|更正|等等|จริงๆ|ที่จริง|ขอโทษ"
)
"""In an explanation: it may take the answer back, so that it is read like the answer."""
_AFFIRMED = compile_folded(
    r"(?<!\w)(?:also|too(?! \w)|as well|equally|either|both|could|might|may|possible|plausible|"
    r"valid|acceptable|correct|right|true|fits?|works?|as good|instead(?! of)|"
    r"better (?:answer|option|choice)|is it$|juga|benar|tepat|betul|bisa|boleh|cũng|đúng|"
    r"có thể|também|también|puede|pueda|podría|pode|poderia|possa|correct[ao]s?|corret[ao]s?|"
    r"correctes?|cert[ao]s?|aussi|peut|pourrait|puisse|justes?|auch|kann|könnte|richtig|anche|può|"
    r"potrebbe|giust[aoie]|corrett[aoie]|rin|din|tama|maaari(?:ng)?|pwede(?:ng)?)(?!\w)|"
    r"ก็|ได้|ถูก|也|正[确確]|[对對]|可以"
)
"""In a clause about another option that denies nothing: it is offered beside the answer."""
# "that is wrong" directly behind the answer
_DENIAL = re.compile(
    rf"(?:(?:this|that|it|which)(?: answer| option| choice)? (?:is|was) |(?:is|was) )?"
    rf"(?:not|n t) (?:correct|right|true)|(?:this|that|it|which) (?:is|was) (?:{FALSE})"
)
# "a is not wrong"
NOT_FALSE = re.compile(
    rf"(?:(?<!\w)(?:not|never|cannot)|n't|n t) (?:\w+ )?(?:{FALSE}|ruled?|excluded?|"
    r"eliminated?|dismiss|discard)(?:ed)?(?!\w)"
)
# "or a if it is dusk"
_OR_ELSE = compile_folded(rf"^(?:(?!nor)(?:{OR}) |หรือ ?|或者? ?|[还還]是 ?)")
# "although a looks right", unless it looks right too
_LOOKS = compile_folded(
    rf"^(?:{CONCESSIONS}|{CONCESSIONS_SPACELESS})(?=.*?(?:(?<!\w)(?:seems?|looks?|appears?|sounds?|"
    r"terlihat|tampak|kelihatan|nampak|parece|parecer|có vẻ|trông|scheint|aussieht|semble|paraît|"
    r"sembra|mukhang)(?!\w)|ดูเหมือน|看似|看起[来來]))"
    rf"(?!.*(?<!\w)(?:{ALSO})(?!\w))(?!.*(?:{ALSO_SPACELESS}))"
)
# "it is 25 c"
_UNIT = re.compile(r"\d [a-z]$")
MAX_SHORT = 4
"""Words of a clause that names an option and says nothing of it: `it is a`, `so option c`."""
_CONDITION = re.compile(r"(?:but |even )?(?:if|were|had)(?!\w)")
"""Before "b would be right": what would hold elsewhere asserts nothing."""


def without_explanation(region: str, options: Sequence[frozenset[str]]) -> str:
    """Return the option that a text begins with, without the explanation behind it.

    The explanation may name other options, if no clause of it offers one or takes the answer back;
    else the whole text is the answer.
    """
    parts = [part.strip(" ?") for part in region.split("|")]
    leading, chosen, head = list[str](), -1, ""
    for part in parts:
        clause = REASON.split(part, maxsplit=1)[0].strip()
        place = place_of(clause, options)
        if place < 0 or (leading and place != chosen):
            break
        chosen = place
        head = clause
        leading.append(_named_in(clause, options[place]))
        if clause != part:
            break
    if not leading or "?" in region[: region.find("|") + 1 or len(region)]:
        return region
    rest = (parts[len(leading) - 1].removeprefix(head), *parts[len(leading) :])
    # "all of the above, except b"
    is_excepted = len(leading[-1]) > 1 and EXCEPTED.match(f" {' '.join(rest[:2]).lstrip()}")
    if len(rest) > MAX_CLAUSES or is_excepted:
        return region
    others = [name for place, option in enumerate(options) if place != chosen for name in option]
    if _goes_through_all(rest, options):
        return " | ".join(leading)
    explanation = [part.strip() for part in rest if part.strip()]
    wordings = [wording for option in options if (wording := _wordings(option))]
    withdrawals = [
        not _states_wording(part, wordings)
        and not any(_restates(before, part, option) for option in options)
        and _takes_back(part, options[chosen], others)
        and not (_CONDITION.match(before) and " would " in part)
        for before, part in pairwise(("", *explanation))
    ]
    if not any(withdrawals):
        return " | ".join(leading)
    letters = WORD_LETTERS.intersection(others)
    if withdrawals[0] and _DENIAL.fullmatch(explanation[0]):
        return f"not {leading[0]}"
    pairs = zip(explanation, withdrawals, strict=True)
    clauses_behind = (
        (
            f"not {letter}"
            if (letter := _denied_letter(BORDER.sub(" ", part), options[chosen], others))
            else _lettered(part, letters)
        )
        if withdrawal
        else part
        for part, withdrawal in pairs
    )
    return " | ".join((*leading, *clauses_behind))


def _restates(before: str, clause: str, names: Collection[str]) -> bool:
    """Say whether a clause is the wording of what was just denied: `A is incorrect: red`."""
    first, _, rest = before.partition(" ")
    return clause in names and first in names and is_denied_by(f" {rest}|")


def _states_wording(clause: str, wordings: Sequence[re.Pattern[str]]) -> bool:
    """Say whether a clause only says what an option is: `a is red` of an option (A) red."""
    stated = _CONNECTIVE.sub("", clause).strip()
    return any(wording.fullmatch(stated) for wording in wordings)


@lru_cache(maxsize=1024)
def _wordings(names: frozenset[str]) -> re.Pattern[str] | None:
    """Match the letter of an option beside its words, in either order; None without both."""
    letters = "|".join(re.escape(name) for name in names if len(name) == 1)
    words = "|".join(re.escape(name) for name in names if len(name) > 1)
    if not (letters and words):
        return None
    both = (
        rf"(?:{first}) ?{COPULA} ?(?:{last})"
        for first, last in ((letters, words), (words, letters))
    )
    return re.compile("|".join(both))


def _lettered(clause: str, letters: Collection[str]) -> str:
    """Divide a clause behind the letter that it begins with: there "a" is an option, no article."""
    stated = _CONNECTIVE.sub("", clause).strip()
    first, _, rest = stated.partition(" ")
    return f"{first} | {rest}" if first in letters and rest else clause


def _takes_back(clause: str, names: Collection[str], others: Sequence[str]) -> bool:
    """Say whether a clause behind an answer denies it, doubts it or offers another option."""
    bordered = BORDER.sub(" ", clause)
    words = sum(_num_words(word) for word in bordered.split())
    stated = _CONNECTIVE.sub("", bordered).strip()  # 不过 denies nothing
    first = stated.partition(" ")[0]  # "a" may be an article: there it offers nothing
    named = [name for name in others if name == first or pattern_of(name).search(bordered)]
    is_no = not named and 0 < words < MAX_SHORT - 1 and NEGATED.search(stated)
    if _TURN.search(clause) or is_no or _DENIAL.fullmatch(clause):
        return True
    own = (match.span() for name in names for match in pattern_of(name).finditer(bordered))
    if any(is_denied(bordered, span, ()) for span in own) or _denied_letter(
        bordered, names, others
    ):
        return True
    if not named or _CONTRASTED.match(stated) or _SEEMS.search(stated) or _LOOKS.match(bordered):
        return False
    is_list = {*bordered.split()} <= {*named, *JOINERS, *ascii_lowercase}  # "a, c and d"
    is_name = any(ends_with(clause, name) for name in named if len(name) == 1)
    if is_list or is_name or clause in named or _offers_alternative(bordered, (*names, *others)):
        return True
    if NOT_FALSE.search(clause) or (_AFFIRMED.search(stated) and not NEGATED.search(stated)):
        return True
    wordings = (name for name in names if len(name) > 1)  # "a is blue" of an answer that is blue
    ends = any(
        re.search(rf"(?<![a-z0-9]){re.escape(name)}\Z", clause) for name in (*named, *wordings)
    )
    is_last = ends and not REASON.match(clause)
    is_last = is_last and not _UNIT.search(bordered)
    return is_last and words <= MAX_SHORT and not NEGATED.search(stated)


def _named_in(clause: str, names: Collection[str]) -> str:
    """Return the name in a clause that consists of an option: of `a e` in Portuguese, E."""
    if clause in names:
        return clause
    *before, letter = clause.rstrip("项項 ").split()
    return letter if not before or before[-1] in ARTICLES else clause


def _denied_letter(clause: str, names: Collection[str], others: Collection[str]) -> str:
    """Return the letter of the answer that a clause begins with and denies: `e está errada`.

    Of a letter that is also a word it may be another sense, "and is wrong", which denies the same.
    """
    for text in (clause, _CONNECTIVE.sub("", clause).strip()):
        head, _, rest = text.partition(" ")
        denial = EVERY_LANGUAGE.after.match(f" {rest}|") if head in names else None
        if denial and denial[0][1] != "|" and not {*denial[0].split()}.intersection(others):
            return head
    return ""


def _offers_alternative(clause: str, names: Collection[str]) -> bool:
    """Say whether a clause begins with "or": "o" is one before an option if O is an option too."""
    conjunction = _OR_ELSE.match(clause)
    if conjunction is None or conjunction[0] != "o " or "o" not in names:
        return conjunction is not None
    return clause.split()[1] in names and not NEGATED.search(clause)


def _num_words(word: str) -> int:
    """Count the words of a text without spaces, which have two characters in scripts with none."""
    return max(1, len(word) // 2) if is_spaceless(word[0]) else 1


def _goes_through_all(parts: Sequence[str], options: Sequence[Collection[str]]) -> bool:
    """Say whether an explanation goes through all options, `A: it is red. B: it is blue`.

    None of them is offered then, unless a clause says so.
    """
    places = [place_of(part, options) for part in parts]
    heads = [place for place in places if place >= 0]
    return sorted(heads) == list(range(len(options))) and not any(
        _AFFIRMED.search(part) or _TURN.search(part) for part in parts
    )
