"""Announcements of an option, before it (`the answer is`) and behind it (`is correct`)."""

# ruff: noqa: RUF001 - other scripts
import functools
import re
from collections.abc import Collection, Iterator
from string import punctuation, whitespace

from tasks.gym.denials import WINDOW, fold
from tasks.gym.options.languages import AND, KEY, LANGUAGES, OR, PHRASES, compile_folded
from tasks.gym.options.mentions import ARTICLES, ends_with

_ANNOUNCES = "|".join((*PHRASES, *(language.announces() for language in LANGUAGES)))
# How announcements begin. Tried at every place of a text, and the branches of all languages only
# where it matches: `re` passes over an alternative that begins with another letter at once.
_BEGINS_MARKER = (
    r"####|\\box|a(?:ccu|dec|deq|lte|ns|ntw|ppr|usw| gaba| resp)|b(?:ena|est|etu|on|y )|"
    r"c(?:ert|ho[io]|hín|họn|on|orr|âu)|e(?:le|li|sat|sco|u )|f(?:ina|itt)|g(?:aba|ius)|"
    r"i(?:[ ']|ch |o )|j(?:awa|e |ust|wb)|k(?:ami|asa|ita|orr)|l(?:eft|et[rt]|ike|ựa)|"
    r"m(?:arc|eil|ejo|elh|igl|y|ögl)|nous|o(?:ne|ps[iy]|pt|pç|pz|pc|ur)|"
    r"p(?:agp|ali|ass|hù|hươ|ic|il|in|ip)|r(?:ema|es[pu]|ich|igh|isp|p?ta|épo)|"
    r"s(?:ago|aya|ce|el|esu|olu|uit)|t(?:ama|epa|erb|h(?:at|is) |he cho|rue|ốt)|verd|"
    r"w(?:e[ ']|ahl|ast|hich|ir )|y(?:ang|o )|đ(?:/?a|áp|úng)|[คเขตถทดฉผรไแ]|"
    r"[答選选正最的應应故因所本只【错錯不]|可[應应選选]|"
    # An option that is called false.
    r"(?<!\w)(?:a(?:lternativ|m wen|nother)|disc|e(?:limin|quivo|rrad|rrat|rrón|xclud)|"
    r"f(?:als|au[sx])|hindi |i(?:mp[lor]|n(?:ac|adec|adeq|app|corr|esa|exa|fit|itial|korr|"
    r"lik|passen|pl|prop|richt|suit|val))|k(?:eliru|hông |urang |ém)|least |"
    r"m(?:ali|auvai|en[op]s? |eno |oins )|n(?:a (?:mali|hind)|icht |on? |ão )|o(?:riginal|ther)|"
    r"p(?:aling |eggi|eor|ior|ire|oores|revio)|reject|s(?:ai|alah|bagl|chlech|corr|econd)|"
    r"t(?:empt|hat is|idak |rap|ệ )|un(?:acc|app|fit|korr|lik|pass|pl|prop|rich|suit|wahr)|"
    r"w(?:eakes|hich is|orst|rong)|yang |ít )"
)
MARKER = compile_folded(rf"(?={_BEGINS_MARKER})(?:{_ANNOUNCES})", KEY)
"""Announces the answer. An article belongs to it: "A resposta" does not name option A."""
_CALLED_FALSE = compile_folded("|".join(language.false for language in LANGUAGES))
_DENIES = ". not "
_ARTICLE = re.compile(rf"(?<!\w)an? {re.escape(_DENIES)}")
"""The article of "a wrong answer is b" would be read as option A."""
# "### final answer\n\n", "**jawaban**\n": a line of its own that announces what is below it.
HEADING = compile_folded(
    r"(?m:^)[ \t#>*_]{0,9}((?:(?:final|correct) |正[確确]|最[終终佳])?(?:"
    + "|".join(language.answer for language in LANGUAGES)
    + r")(?: (?:akhir|final|finale|cuối cùng|đúng|corret[ao]|correcta?|correcte|"
    r"yang (?:paling )?(?:benar|tepat|betul)|na tama)|สุดท้าย|ที่ถูกต้อง)?)"
    r"[ \t*_]{0,5}\n[ \t\n]{0,9}(?=\S)"
)
_BEGINS_REVERSED = (
    r"'s| the|a(?:dal|ng )|b(?:ena|est|etu)|die |e(?:s |st)|fits|i(?:s |st |ala)|korr|là |"
    r"m(?:eru|ust|ới )|pali|rich|tepa|would|yang|[éè] | ?[คเถ]|[項项選选是為为唯正]"
)
REVERSED = compile_folded(
    rf"(?=\s?(?:{_BEGINS_REVERSED}))\s?"
    rf"(?:{'|'.join(language.is_good for language in LANGUAGES)})"
)
"""Follows the option: "B is the correct answer", B是正确的选项."""
_IS_TRUE = re.compile(r"(?<!\w)true(?!\w)(?! (?:answer|option|choice|one))")
HYPOTHESIS = re.compile(
    r"(?<!\w)(?:if|whether|suppose|assum\w+|unless|which|what|jika|kalau|andai\w*|bila|apakah|qual|cuál|"
    r"quelle|welche|quale|si (?:la|el)|se (?:a|la)|wenn|falls|ob|nếu|giả sử)(?!\w)|如果|"
    r"假[設设]|若|是否|哪|"
    r"ถ้า|หาก|สมมติ"
)
"""Before a marker in its clause: nothing is announced."""
_HENCE = re.compile(
    r"(?<!\w)(?:thus|hence|therefore|portanto|logo|donc|quindi|daher|jadi|maka|vậy|boxed) |"
    r"因此|所以|可[知见見得]"
)
"""Begins a clause without a sign before it."""
CLAUSE_END = re.compile(r"[.,;:!?\n。，；]")
SENTENCE = re.compile(r"[.!?](?=\s|$)|。|\n")
_JOINING = re.compile(rf"(?<!\w)(?:&|{AND}|{OR})(?!\w)")


def deny_false_options(text: str) -> str:
    """Write `the wrong answer is b` as a denial of b; a question may ask for the false option."""
    return _ARTICLE.sub(_DENIES, MARKER.sub(_denial, text))


def _denial(marker: re.Match[str]) -> str:
    return _DENIES if _CALLED_FALSE.search(marker[0]) else marker[0]


def find_announcements(text: str) -> Iterator[tuple[int, int, str]]:
    """Find markers before an option: start, end and ''."""
    end = len(text.rstrip(punctuation + whitespace))
    last = next((place for place in reversed(range(end)) if _folded(text[place])), -1)
    for marker in MARKER.finditer(text):
        if marker.end() <= last and not HYPOTHESIS.search(_clause(text, marker.start())):
            yield *marker.span(), ""


def find_announcements_behind(text: str, names: Collection[str]) -> Iterator[tuple[int, int, str]]:
    """Find options before a marker: start and end of the marker, and the option."""
    ends = {name[-1:] for name in names}
    for marker in REVERSED.finditer(text):
        before = range(marker.start() - 1, max(-1, marker.start() - WINDOW - 1), -1)
        last = next((char for place in before if (char := _folded(text[place]))), "")
        if last[-1:] not in ends:
            continue  # most ends of clauses are no option, and folding them takes longest
        clause = _clause(text, marker.start())
        words = _HENCE.split(fold(clause))[-1]
        head, _, rest = words.partition(" ")  # "C A is the answer" behind "Answer:"
        beside = ""
        if len(head) == 1 and rest and head in names and not _JOINING.search(rest[:-1]):
            words, beside = rest, "" if rest == head or head in ARTICLES else f"{head} | "
        name = max((name for name in names if ends_with(words, name)), key=len, default="")
        proves = len(name) == 1 and words == name and _IS_TRUE.search(marker[0])  # "g is true"
        if "would" in marker[0]:
            clause = SENTENCE.split(text[max(0, marker.start() - WINDOW) : marker.start()])[-1]
        is_asked = text[marker.end() : marker.end() + WINDOW].lstrip(" *_").startswith("?")
        if name and not proves and not is_asked and not HYPOTHESIS.search(clause):
            yield *marker.span(), f"{beside}{name} |"


def _clause(text: str, end: int) -> str:
    """Return what stands before a place in its clause."""
    return CLAUSE_END.split(text[max(0, end - WINDOW) : end])[-1]


@functools.lru_cache(maxsize=4096)
def _folded(char: str) -> str:
    """Fold one character; nothing is left of a sign or a blank."""
    return fold(char)


def first_sentence(text: str, start: int, end: int) -> str:
    """Return the sentence that a marker begins, or the next line if nothing follows the marker."""
    part = text[start:end]
    first = next((place for place, char in enumerate(part) if _folded(char)), len(part))
    for sentence in SENTENCE.finditer(part):
        if sentence.start() > first:
            return part[: sentence.start()]
    return part
