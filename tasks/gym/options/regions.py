"""What a text asserts: the clauses of each of its announcements, or the text as a whole.

Forms that only look like assertions are rewritten before: an option that is left when others are
eliminated, a condition contrary to fact, `not A but B`, labels and lists.
"""

import re
from collections.abc import Collection, Sequence

from tasks.gym.denials import EVERY_LANGUAGE, HEDGED_BEFORE, WINDOW, clauses, plain
from tasks.gym.options.announcements import (
    HEADING,
    MARKER,
    SENTENCE,
    find_announcements,
    find_announcements_behind,
    first_sentence,
)
from tasks.gym.options.explanations import MAX_SHORT, without_explanation
from tasks.gym.options.languages import AND, COPULA, OR, REASON, compile_folded
from tasks.gym.options.mentions import BORDER, WORD_LETTERS, pattern_of, place_of

MAX_MARKERS = 50
"""The last so many announcements are read."""
# "**B** the answer is A", but "**B** is blue"
_SIGNED = re.compile(
    r"\W{0,9}(?P<letter>[a-z])[*_)\]}\"|]{1,9}\s{1,9}(?!(?:is|are|was|seems?)(?!\w)|[-:=])"
)
_LETTER_LIST = r"\(?[a-z]\)?(?:(?:,| and| e| y| dan| và| at| ?และ| ?[和与與]| &|&)+ ?\(?[a-z]\)?)*"
# "eliminating a and c leaves b", "排除a&c,只剩b", "after eliminating a and c, b remains"
_REMAINDER = compile_folded(
    r"(?:\A|(?<=[.!,:;\n。]))[ \t]{0,3}(?:(?:so|then|by|after|dengan|setelah|selepas|sau khi|al|ao|"
    r"depois de|después de|matapos|pagkatapos),? )?"
    r"(?:(?:eliminating|excluding|discarding|ruling out|"
    r"(?:we|i) (?:can |may )?(?:eliminate|exclude|discard|rule out)|"
    r"elimina(?:ndo|r)|descarta(?:ndo|r)|exclui(?:ndo|r)|exclu(?:yendo|ir)|"
    r"mengeliminasi|menyingkirkan|mencoret|loại(?: trừ| bỏ)?|(?:maalis|alisin|tanggalin)(?: ang)?) "
    r"(?:(?:both|options?|as|las|los|opsi|pilihan|opções|opciones|alternativas|đáp án|"
    r"phương án) )*|(?:หลังจาก)?ตัด(?:ข้อ|ตัวเลือก)? ?|排除[了掉]? ?)"
    rf"(?P<eliminated>{_LETTER_LIST})(?: ?ออก(?:ไป)?)?[,.;]? ?(?:(?:"
    r"(?:so|hence|thus|therefore|"
    r"we are left with|we have|we get|this leaves|that leaves|leaves|leaving|only|"
    r"(?:só |solo |sólo )?(?:resta|sobra|fica|queda)|"
    r"(?:maka |yang )?(?:tersisa|tinggal|sisanya)|(?:thì |ta )?(?:chỉ )?còn(?: lại)?)"
    r"(?: (?:us with|only|just|option|apenas|só|solo|sólo|a|la|hanya|adalah|opsi|pilihan|opção|"
    r"opción|alternativa|đáp án|phương án|là))* |"
    r"(?:จึง|ก็|จะ){0,2}เหลือ(?:แค่|เพียง|แต่)?(?:ข้อ|ตัวเลือก)? ?|"
    r"[后後]?,?[就便]?[只仅僅]?[剩余餘][下余餘]?的?[是有]?(?:选项|選項)? ?)"
    r"\(?(?P<left>[a-z])\)?|\(?(?P<rest>[a-z])\)? (?:remains|is left|is the only one left|"
    r"(?:na lang )?ang (?:natitira|natira)))(?=\s*(?:[.!;\n。]|\Z))"
)
# "a would be right if the box were red, but": what would hold elsewhere asserts nothing
_COUNTERFACTUAL = re.compile(
    r"(?:(?<=[.!\n])|(?<=[.!] )|\A)(?:option |choice )?\(?[a-z]\)? would (?:only |indeed )?"
    r"(?:be|have been) (?:right|correct|true|the (?:right |correct )?answer)(?: only)? if "
    r"[^.,;!?\n]{1,80}?(?<!\w)(?:were|was|had)(?!\w)[^.,;!?\n]{0,80}, but "
    r"(?:(?:(?!(?<!\w)[b-hj-z](?!\w))[^.,;!?\n]){1,80}, (?=(?:so|hence|thus|therefore) ))?(?=\w)"
)
# "# conclusion\n\nb": a heading above the letter that ends the text
_CONCLUSION = compile_folded(
    r"(?m:^)[ \t#>*_]{0,9}(?:(?:in )?conclusion|result|verdict|conclusión|conclusão|"
    r"conclusione|fazit|kesimpulan|kết luận|konklusyon|สรุป|结论|結論)[ \t*_:]{0,5}\n[ \t\n]{0,9}"
    r"(?=[(*_]{0,4}[a-z][)*_.]{0,4}\s*\Z)"
)
# "not A but B", "neither A nor C but B", "bukan A melainkan B", of options of one letter.
_NOT = (
    r"(?:(?<!\w)(?:not|neither|bukan(?:lah)?|không phải(?: là)?|não é|nem|no es|ni|nicht|weder|pas|"
    r"non è|né|hindi)\s|ไม่ใช่|[既也]?不是)"
)
_NOR = (
    r"(?:,?\s{0,2}(?:(?<!\w)(?:and|or|nor|not|neither|maupun|mahupun|atau|dan|bukan|hoặc|hay|và|"
    r"cũng|không phải(?: là)?|nem|ni|noch|oder|né|ou|o|at|hindi)(?!\w)|และ|หรือ|ไม่ใช่|"
    r"[和或与與、&]|也?不是)\s{0,2}|,\s?){1,3}"
)
_NOT_BUT = compile_folded(
    rf"{_NOT}\s?(?:option )?\(?[a-z]\)?(?:{_NOR}(?:option )?\(?[a-z]\)?(?![a-z])){{0,4}},?\s?(?:"
    r"(?<!\w)(?:but|melainkan|tetapi|mà là|mas|sino|sondern|mais|ma|kundi)\s|แต่(?:เป็น|คือ)?|而是"
    r")\s?(?:(?:rather|sim|sí) )?(?=(?:option )?\(?[a-z]\)?(?![a-z]))"
)
# "(a) The mean is 0. (b) The variance ...": parts of a problem, of which none is an option
_FIRST_PART = re.compile(r"\s*\(a\) (?!(?:is|because|since|as|for)(?!\w))\w")
_SECOND_PART = re.compile(r"[.;:\n]\s*\(b\) (?!(?:is|because|since|as|for)(?!\w))\w")
_GOES_ON = re.compile(r"\s?\| (?:but|so|and|which|because|while|whereas|since)(?!\w)")
# "\textbf" of "\textbf{b}", and "no doubt", whose "no" is no answer
_SAYS_NOTHING = re.compile(
    r"\\(?:text(?:bf|it|rm)?|math(?:bf|rm))\s*(?=\{)|"
    r"(?<!\w)no (?:doubt|question)(?: about (?:it|that))?(?!\w)"
)
_DASHED = re.compile(r"(?<!\w)([a-z]\)?)\s+[-\u2013\u2014]\s(?=\s*[^\W\d_]{2})")
"""A dash behind an option ends its clause, `B - not A`; in `a - b` it is a minus sign."""
COMMAS = re.compile(
    rf"(?<!\w)([a-z]\)?), ?(?=(?:(?:{AND}|{OR}) )?[a-z]\)?"
    rf"(?:,| (?:{AND}|{OR}|are|aren't|do|don't|can|can't|cannot|salah|đều|são|"
    r"estão|son|sont|sind)(?!\w)|[都均皆]))"
)
"""Commas of a list of letters, which end no clause: `A, C and D are wrong`."""
DOTS = re.compile(r"(?<![a-z0-9])([a-z])、(?=[a-z](?![a-z0-9]))")
"""So do those of Chinese: `A、C都不对`."""
_LETTER_ALONE = re.compile(
    rf"(?<!\w)([{''.join(sorted(WORD_LETTERS))}])(?=[*_\"”`]|\s+[-\u2013\u2014]\s)"
)
"""A letter that is also a word, with a sign after it, which no word has."""
_SUBJECT = re.compile(rf"\(([a-z])\) ?(?={COPULA})")
"""A letter in brackets whose clause goes on: `(A) is red`."""


def assertions(text: str, options: Sequence[frozenset[str]]) -> tuple[list[str], bool]:
    """Return the clauses of each announcement, the last one up to the end of the text.

    Without a marker that announces an option it is the whole text. Also return whether one does.
    """
    text = plain(text)
    text = _SAYS_NOTHING.sub("", COMMAS.sub(r"\1 and ", DOTS.sub(r"\1&", text)))
    text = _REMAINDER.sub(_remaining, _COUNTERFACTUAL.sub("", text.replace("c'est", "est")))
    text = _CONCLUSION.sub("answer: ", text)
    text = _DASHED.sub(r"\1. ", _SUBJECT.sub(r" \1 ", text))
    text = _LETTER_ALONE.sub(r"\1 | ", HEADING.sub(r"\1: ", _NOT_BUT.sub("", text)))
    names, text = set[str]().union(*options), _without_labels(text, options)
    result = sorted((*find_announcements(text), *find_announcements_behind(text, names)))[
        -MAX_MARKERS:
    ]
    heads = clauses(text[: result[-1][0]] if result else "").split("|")
    goes_through = {place_of(head.strip(), options) for head in heads} >= {*range(len(options))}
    head = text[: result[0][0]] if result else ""
    signed = _SIGNED.match(head)
    opening = signed["letter"] if signed else ""
    others = names - {opening, *(result[0][2].split() if result else ())}  # "**D** x. E is right"
    if opening and any(pattern_of(name).search(clauses(head)) for name in others):
        opening = ""
    opening = opening if opening in names else _opening(_with_copula(text, options), names)
    regions = ["" if goes_through else clauses(opening)]
    for place, (start, end, option) in enumerate(result):
        # With a word behind it the lead keeps its border: in "A is not, choose B" B is not denied.
        lead = clauses(f"{SENTENCE.split(text[max(0, start - WINDOW) : start])[-1]} 0")[:-1]
        withdrawal = EVERY_LANGUAGE.before.search(lead) or HEDGED_BEFORE.search(lead)
        last = place + 1 == len(result)
        following = (
            _with_copula(f"{option}{text[end:]}", options)
            if last
            else option + first_sentence(text, end, result[place + 1][0])
        )
        region = clauses(f"{lead if withdrawal else ''} {following}")
        region = region if withdrawal else without_explanation(region, options)
        if option or any(pattern_of(name).search(BORDER.sub(" ", region)) for name in names):
            regions.append(region)
    if len(regions) > 1:
        return [region for region in regions if region], True
    if regions[0]:
        return [without_explanation(clauses(_with_copula(text, options)), options)], False
    return [clauses(text)], False


def _without_labels(text: str, options: Sequence[Collection[str]]) -> str:
    """Leave out the letter of an option behind its words: `red (A) is seen at dusk`."""
    for names in options:
        words = "|".join(re.escape(name) for name in names if len(name) > 1)
        letters = "|".join(re.escape(name) for name in names if len(name) == 1)
        if words and letters:
            text = re.sub(rf"(?<!\w)({words}) ?\((?:{letters})\)", r"\1", text)
    return text


def _with_copula(text: str, options: Sequence[Collection[str]]) -> str:
    """Read `B. A: red. C: green` as `B. A is red. C is green`: each says what an option is."""
    letters = "|".join(re.escape(name) for names in options for name in names if len(name) == 1)
    if not letters or ":" not in text:
        return text
    return re.sub(
        rf"([\w)}}\]*\"|][.,;:!\s]*[.;\n][-*_(\s]{{0,9}})({letters})[)*_|\s]{{0,9}}:[*_\s]{{0,9}}(?=\w)",
        r"\1\2 is ",
        text,
    )


def _remaining(match: re.Match[str]) -> str:
    """Announce the option that is left; one that is also eliminated is no answer."""
    eliminated, left = match["eliminated"], match["left"] or match["rest"]
    is_both = re.search(rf"(?<!\w){left}(?!\w)", eliminated) is not None
    return f"\nanswer: {'not ' if is_both else ''}{left}"


def _opening(text: str, names: Collection[str]) -> str:
    """Return the option that a text begins with, unless it begins with a list of options."""
    first = clauses(text[:WINDOW]).partition("|")[0].strip()
    first = REASON.split(first, maxsplit=1)[0].strip() or first
    if first.count(" ") >= MAX_SHORT and _GOES_ON.match(clauses(text[:WINDOW]).removeprefix(first)):
        return ""  # the wording of an option in a sentence about it
    if _FIRST_PART.match(text) and _SECOND_PART.search(text):
        return ""
    rest = (line for line in text.splitlines()[1:] if not MARKER.search(line))
    lines = (clauses(line).partition("|")[0].strip() for line in rest)
    return (
        first
        if first in names and not any(line in names and line != first for line in lines)
        else ""
    )
