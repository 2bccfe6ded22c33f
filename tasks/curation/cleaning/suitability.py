"""Which problems cannot be a reward, and which responses teach a bad habit.

Problems of maths and science with a final answer, by Ring-lite's rules for RL prompts (arXiv
2506.14731, section on data): no images, no multi-part questions, no missing, guessable or
non-unique answers. Benchmarks are left as they are published.
Differs: the paper names the rules only; the patterns are ours. A drawing in Asymptote is text and
stays. Problems whose source declares a choice (verifier `choice`) are a domain of their own.

Responses: refusals, responses that begin with what their writer is ("As an AI language model,
..."), and signs of a response that was written with the answer or the tests at hand.
"""

import json
import re

from data_schemas.rows import Demonstration, Domain, Problem
from tasks.gym.protocol import THINK_CLOSE
from tasks.gym.refusal import HEAD, find_refusal
from tasks.gym.table import has_value_gold

Unsuitable = tuple[str, str]
"""Reason, detail."""

_MARKUP = (Domain.TOOL_USE, Domain.CODE, Domain.EXTRACTION, Domain.INSTRUCTION)
"""Domains whose prompts may quote the markup of an image as text."""
_IMAGE = re.compile(
    r"!\[[^\]]*\]\([^)]*\)|<im(?:age|g)\b[^>]*>|\\includegraphics|\[image\]", re.IGNORECASE
)
_SHOWN = re.compile(
    r"\b(?:in|see|from|to) the (?:figure|diagram|picture|graph|image)s?"
    r"(?: (?:below|above|shown|at (?:the )?(?:right|left)|to the (?:right|left)))|"
    r"\b(?:figure|diagram|picture|image) (?:below|above) (?:shows?|depicts?)|"
    r"\b(?:shown|pictured|depicted) in the (?:figure|diagram|picture|image)\b|"
    r"(?:如[右左上下]?图|如圖|ดังรูป|ตามรูป|\bgambar (?:di bawah|berikut)|\bfigura (?:abaixo|acima))",
    re.IGNORECASE,
)
_DRAWN = re.compile(r"\[asy\]|\\begin\{(?:tikzpicture|array|tabular)\}|```|<svg\b")
_VERB = (
    r"(?:find|determine|prove|show|what|how|compute|calculate|evaluate|express|write|draw|sketch|"
    r"explain|is|are|does|for which)\b"
)
_PARTS = re.compile(
    rf"(?:^|[\s.;:])\(?(?:part )?\(?(?:a|i|1)\)[.:]?\s+{_VERB}.*?"
    rf"[\s.;:?]\(?(?:part )?\(?(?:b|ii|2)\)[.:]?\s+(?:hence,? )?{_VERB}",
    re.IGNORECASE | re.DOTALL,
)
_PROOF = re.compile(r"\b(?:prove|show) that\b", re.IGNORECASE)
_QUESTION = re.compile(
    r"\?|\b(?:find|determine|what|how (?:many|much)|compute|calculate|evaluate|express|value of)\b",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"none|n/?a|nan|null|nil|unknown|undetermined|proof|see (?:the )?(?:solution|above|below).*|"
    r"answers? (?:may|will|can) vary.*|not (?:given|available)|to be proved|[?.\-\u2013\u2014_\s]+",
    re.IGNORECASE,
)
_GUESSED = re.compile(
    r"yes|no|true|false|correct|incorrect|是|否|不是|对|错|正确|错误|ya|tidak|benar|salah|"
    r"sim|não|verdadeiro|falso|đúng|sai|có|không|ใช่|ไม่ใช่|จริง|เท็จ",
    re.IGNORECASE,
)
_LETTER = re.compile(r"\(?([A-E])\)?[.)]?")
_OPTIONS = re.compile(r"(?:\(A\)|\bA[).:]).*?(?:\(B\)|\bB[).:])", re.DOTALL)
_SEVERAL = re.compile(r"\bor\b|\bany (?:of|number|value|real|integer)\b|\be\.g\.|\bfor example\b")
_EXAMPLE = re.compile(
    r"\b(?:give|find|name|write(?: down)?|construct) an example\b|"
    r"\b(?:find|give|name) any (?:one|number|pair|solution)\b",
    re.IGNORECASE,
)
_STYLE = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:bf|rm))\s*\{([^{}]*)\}|[$\s]+")
_LEAKED = re.compile(
    r"\b(?:reference|official|provided|gold(?:en)?|ground[- ]truth|expected) (?:answer|label)s?\b|"
    r"\b(?:the|an) answer key\b|\bhard-?cod(?:e|ed|ing) the (?:answer|output|expected|test)|"
    r"\b(?:pass|trick|fool|satisfy) the (?:grader|checker|verifier|reward)\b",
    re.IGNORECASE,
)
_AS_A_MODEL = re.compile(
    r"\bas an AI(?: language)? model\b|"
    r"\bas (?:an AI(?: assistant)?|a (?:large )?language model),? I\b|"
    r"作为(?:一个|一名|一款)(?:AI|人工智能)|作为(?:AI|人工智能)(?:语言)?(?:模型|助手)",
    re.IGNORECASE,
)
"""At the beginning of an answer. The verifier `refusal` takes it for none without "I cannot"."""
_STEMS = {
    _SHOWN: (
        *("the figure", "the diagram", "the picture", "the graph", "the image", "below ", "above "),
        *("gambar ", "figura ", "如", "รูป"),
    ),
    _PARTS: ("b)", "ii)", "2)"),
    _PROOF: ("prove that", "show that"),
    _EXAMPLE: ("an example", " any one", " any number", " any pair", " any solution"),
    _LEAKED: (
        *("reference ", "official ", "provided ", "gold ", "golden ", "truth ", "expected "),
        *("answer key", "hardcod", "hard-cod", "grader", "checker", "verifier", "reward"),
    ),
}
"""Parts of patterns that few texts have: every match has one of these once its case is folded."""
_ALIKE = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})
"""What re.IGNORECASE takes for a letter of ASCII, besides letters of ASCII."""
_RIGGED = re.compile(
    r"\bos\._exit\(|\b(?:unittest|pytest)\.skip|\bsys\.(?:settrace|setprofile)\(|"
    r"\binspect\.(?:stack|currentframe)\(|\bgc\.get_objects\(|\bopen\(__file__|"
    r"def __eq__\(self, \w+\):\s*return True\b|\bsys\.modules\["
)


def unsuitable_problem(problem: Problem) -> Unsuitable | None:
    """Say why a problem cannot be a reward; None if it can."""
    text = problem.messages[-1].content
    if problem.domain not in _MARKUP and (picture := _IMAGE.search(text)):
        return "image", f"the prompt contains {picture[0][:60]!r}"
    if problem.domain not in (Domain.MATHS, Domain.SCIENCE) or not has_value_gold(problem.verifier):
        return None
    gold = _gold(problem)
    return _question_fault(text) or _gold_fault(text, gold)


def unsuitable_response(demonstration: Demonstration) -> Unsuitable | None:
    """Say why a response should not be imitated; None if it may.

    A request that no tool can serve is rightly declined, so refusals of tool use stay.
    """
    answer = demonstration.response.rpartition(THINK_CLOSE)[2].strip()
    if demonstration.domain is not Domain.TOOL_USE:
        if refusal := find_refusal(answer):
            return "refusal", refusal
        if opening := _AS_A_MODEL.search(answer[:HEAD]):
            return "refusal", opening[0]
    if leaked := _search(_LEAKED, demonstration.response, folded(demonstration.response)):
        return "reward_hacking", f"mentions {leaked[0]!r}"
    if demonstration.domain is Domain.CODE and (rigged := _RIGGED.search(answer)):
        return "reward_hacking", f"the program contains {rigged[0]!r}"
    return None


def folded(text: str) -> str:
    """Fold case so that every letter that re.IGNORECASE takes for one of ASCII is that one."""
    return (text if text.isascii() else text.translate(_ALIKE)).lower()


def _search(pattern: re.Pattern[str], text: str, lower: str) -> re.Match[str] | None:
    """Search a text; that its folded text has no stem of the pattern is found out sooner."""
    for stem in _STEMS[pattern]:
        if stem in lower:
            return pattern.search(text)
    return None


def _gold(problem: Problem) -> str:
    """Return the expected value as plain text; '' if it cannot be read, which is another fault."""
    try:
        value = json.loads(problem.answer)["value"]
    except (ValueError, KeyError, TypeError):
        return ""
    return _STYLE.sub(lambda match: f" {match[1] or ''} ", str(value)).strip()


def _question_fault(text: str) -> Unsuitable | None:
    lower = folded(text)
    if (mention := _search(_SHOWN, text, lower)) and not _DRAWN.search(text):
        return "image", f"{mention[0]!r}, and no drawing"
    if parts := _search(_PARTS, text, lower):
        return "multi_part", parts[0][:60].strip()
    if _search(_PROOF, text, lower) and not _QUESTION.search(_PROOF.sub("", text)):
        return "missing_answer", "the prompt asks for a proof"
    if example := _search(_EXAMPLE, text, lower):
        return "non_unique_answer", example[0]
    return None


def _gold_fault(text: str, gold: str) -> Unsuitable | None:
    if gold and _MISSING.fullmatch(gold):
        return "missing_answer", f"the answer is {gold!r}"
    if _GUESSED.fullmatch(gold):
        return "guessable", f"the answer is {gold!r}: a guess is right half of the time"
    if _LETTER.fullmatch(gold) and _OPTIONS.search(text):
        return "guessable", f"the answer is option {gold!r}"
    if several := _SEVERAL.search(gold):
        return "non_unique_answer", f"{several[0]!r} in the answer {gold[:60]!r}"
    return None
