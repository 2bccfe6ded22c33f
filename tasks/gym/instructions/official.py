"""IFEval as its published scores read it, for comparisons with them; no reward.

Equal to the checks of lm-evaluation-harness 0.4.13.dev0 (4e7e0d47, which are those of
google-research) with NLTK up to 3.9, on the 20 kinds of `OFFICIAL`: `checks` reads these
instructions as they are worded, and pays otherwise where blank lines, CRLF, marks of emphasis,
rules of Markdown, products and NaN occur. NLTK 3.10 counts the words of Thai and Hindi otherwise.

Differs: sentences, words in capitals and languages are those of `checks`: the harness asks the
models of NLTK and langdetect.
"""

import json
import re

from tasks.gym.instructions.arguments import Arguments, Check
from tasks.gym.instructions.checks import CHECKS, CONSTRAINED


def _search(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def _frequency(text: str, arguments: Arguments) -> bool:
    found = re.findall(arguments["keyword"].strip(), text, re.IGNORECASE)
    return arguments["relation"](len(found), arguments["frequency"])


def _num_words(text: str, arguments: Arguments) -> bool:
    return arguments["relation"](len(re.findall(r"\w+", text)), arguments["num_words"])


def _first_word(text: str, arguments: Arguments) -> bool:
    parts = text.split("\n\n")
    nth, count = arguments["nth_paragraph"], sum(bool(part.strip()) for part in parts)
    paragraph = parts[nth - 1].strip() if nth <= count else ""
    if not paragraph:
        return False
    word = paragraph.split()[0].lstrip("'").lstrip('"')
    first = re.split(r"[.,?!'\"]", word, maxsplit=1)[0].lower()
    return count == arguments["num_paragraphs"] and first == arguments["first_word"].lower()


def _postscript(text: str, arguments: Arguments) -> bool:
    marker: str = arguments["postscript_marker"].strip()
    pattern = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}.get(marker, marker.lower())
    return re.search(pattern, text.lower()) is not None


def _bullets(text: str, arguments: Arguments) -> bool:
    starred = re.findall(r"^\s*\*[^\*].*$", text, re.MULTILINE)
    return (
        len(starred) + len(re.findall(r"^\s*-.*$", text, re.MULTILINE)) == arguments["num_bullets"]
    )


def _highlights(text: str, arguments: Arguments) -> bool:
    single = [part for part in re.findall(r"\*[^\n\*]*\*", text) if part.strip("*").strip()]
    double = [part for part in re.findall(r"\*\*[^\n\*]*\*\*", text) if part[2:-2].strip()]
    return len(single) + len(double) >= arguments["num_highlights"]


def _is_json(text: str, arguments: Arguments) -> bool:
    del arguments
    text = text.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


def _title(text: str, arguments: Arguments) -> bool:
    del arguments
    return any(found.lstrip("<").rstrip(">").strip() for found in re.findall(r"<<[^\n]+>>", text))


def _sections(text: str, arguments: Arguments) -> bool:
    pattern = rf"\s?{arguments['section_spliter'].strip()}\s?\d+\s?"
    return len(re.split(pattern, text)) - 1 >= arguments["num_sections"]


def _ends(text: str, arguments: Arguments) -> bool:
    return text.strip().strip('"').lower().endswith(arguments["end_phrase"].strip().lower())


_SAME = (
    "keywords:letter_frequency",
    "length_constraints:number_paragraphs",
    "combination:two_responses",
    "combination:repeat_prompt",
)
OFFICIAL: dict[str, Check] = {
    **{name: CHECKS[name].check for name in _SAME},
    "keywords:existence": lambda text, a: all(_search(word, text) for word in a["keywords"]),
    "keywords:forbidden_words": lambda text, a: (
        not any(_search(rf"\b{word}\b", text) for word in a["forbidden_words"])
    ),
    "keywords:frequency": _frequency,
    "length_constraints:number_words": _num_words,
    "length_constraints:nth_paragraph_first_word": _first_word,
    "detectable_content:number_placeholders": lambda text, a: (
        len(re.findall(r"\[.*?\]", text)) >= a["num_placeholders"]
    ),
    "detectable_content:postscript": _postscript,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:constrained_response": lambda text, _: any(
        answer in text for answer in CONSTRAINED
    ),
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:json_format": _is_json,
    "detectable_format:title": _title,
    "startend:end_checker": _ends,
    "startend:quotation": lambda text, _: (
        len(text.strip()) > 1 and text.strip()[0] == text.strip()[-1] == '"'
    ),
    "punctuation:no_comma": lambda text, _: "," not in text,
}
"""By id, the check that equals the harness'."""
