r"""An answer that stands in a JSON object: `{"reasoning": "3 + 4 = 7", "answer": "7"}`, or a tag.

Models that are asked for JSON write so, in a fence or beside words. The object is a container: its
answer is stated, its other values are working. Every verifier that reads an answer in words reads
the container too, as a marked line, so that a second answer beside it stays a second answer.
"""

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

MAX_OBJECTS = 20
"""Objects that are tried; a response has one."""
_KEY_WORDS = (
    r"(?:(?:final|correct|my|the)[_ -]?)?(?:answer|choice|option|selection)"
    r"(?:[_ -]?(?:letter|value))?|"
    r"答案|選項|选项|选择|jawaban(?:[_ ]akhir)?|jawapan(?:[_ ]akhir)?|respuesta(?:[_ ]final)?|"
    r"réponse(?:[_ ]finale)?|resposta(?:[_ ]final)?|antwort|risposta|đáp[_ ]án|คำตอบ|答え|정답"
)
_KEY = re.compile(_KEY_WORDS, re.IGNORECASE)
# "alternatives", "other_possible_answers", "second_choice"; "options" and "other_choices" are none.
_OTHER_KEY = re.compile(
    r"(?:(?:another|alternate|alternative|second|secondary|backup|fallback|plausible|additional|"
    r"acceptable)[_ -]?(?:possible[_ -]?)?)+(?:answer|choice|solution|selection)s?|"
    r"(?:other[_ -]?)?(?:possible[_ -]?)?answers?|other[_ -]?(?:possible[_ -]?)?solutions?|"
    r"final|alternatives?|alternates?|second[_ -]?best|backup|fallback|runner[_ -]?up|"
    r"also[_ -]?(?:possible|correct|acceptable|valid)|maybe|"
    r"jawa[bp]an[_ ](?:lain|alternatif)|outras?[_ ]respostas?|otras?[_ ]respuestas?|"
    r"autres?[_ ]réponses?|其他答案|[备備][选選]答案|đáp[_ ]án[_ ]khác|คำตอบอื่น",
    re.IGNORECASE,
)
"""What an object offers beside its answer is an answer as well: one must not hedge in JSON."""
# "answer": , 'final_answer' :
_HINT = re.compile(rf"([\"'])(?:{_KEY_WORDS})\1\s{{0,9}}:", re.IGNORECASE)
# "<answer>7</answer>"
_TAGGED = re.compile(r"<answer>\s{0,9}([^<>\n]{1,999}?)\s{0,9}</answer>", re.IGNORECASE)
# "<b>" of "<b>7</b>", "</answer>" of "It is 7</answer>"
_STYLE_TAG = re.compile(r"</?(?:answer|b|i|u|em|strong|mark|p|code)>", re.IGNORECASE)
_START = re.compile(r"\{\s{0,99}[\"']")
_TOKEN = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[{}]", re.DOTALL)
_FENCE_BEFORE = re.compile(r"(?:```|~~~)[ \t]{0,3}[a-zA-Z]{0,9}\s{0,99}\Z")
_FENCE_AFTER = re.compile(r"\s{0,99}(?:```|~~~)")
# '    "answer": "54"\n}' at the end of an object that is none: its text has quotes, or none.
_LINE = re.compile(
    rf"^[ \t]{{0,99}}([\"'])(?:{_KEY_WORDS})\1[ \t]{{0,9}}:[ \t]{{0,9}}"
    r"(?P<value>\"(?:[^\"\\\n]|\\.)*\"|[^\"'\s{\[][^\n,}]*)[ \t,]{0,9}"
    r"(?:\s{0,9}\}(?:\s{0,9}(?:```|~~~))?|$)",
    re.IGNORECASE | re.MULTILINE,
)
# "\frac" and "\sqrt" where JSON needs "\\frac"; of its own escapes only those that begin a command.
_COMMAND = re.compile(
    r"\\\\|\\(?=(?:f(?:rac|box|orall|loor)|b(?:oxed|eta|inom|ar|egin|mod|ig|f|ot)|"
    r"t(?:heta|imes|an|ext|frac|o|au|riangle|binom)|n(?:eq?|u|ot|otin|mid|abla|i)|"
    r"r(?:ight|ho|angle|floor|ceil|m))(?![a-z]))|\\(?![\"\\/bfnrtu])|\\u(?![0-9a-fA-F]{4})"
)


def without_container(text: str) -> str:
    """Return a text with every JSON object or tag that states an answer as a marked line, `#### 7`.

    An object with several answers is a line for each: they have to agree. Of an object that cannot
    be read, as many that models write, a line with its answer is; without one it stays as it is.
    """
    if "</" in text:
        text = _STYLE_TAG.sub("", _TAGGED.sub(r"\n#### \1\n", text)).strip()
    if not _HINT.search(text):
        return text
    parts: list[str] = []
    position = 0
    for start, end in _objects(text):
        answers = _answers(_pairs(text[start:end]))
        if answers:
            fence = _FENCE_AFTER.match(text, end)
            parts.append(_FENCE_BEFORE.sub("", _LINE.sub(_marked, text[position:start])))
            parts += [f"\n#### {answer}" for answer in answers]
            parts.append("\n")
            position = fence.end() if fence else end
    result = "".join((*parts, _LINE.sub(_marked, text[position:])))
    return text if result == text else result.strip()


def _marked(line: re.Match[str]) -> str:
    value = line["value"]
    if value.startswith('"'):
        value = _text(_pairs(value))
    return f"\n#### {value}\n" if value.strip() else line[0]


def _objects(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the outermost objects begin and end."""
    position = 0
    for _ in range(MAX_OBJECTS):
        opening = _START.search(text, position)
        if opening is None:
            return
        depth, position = 0, opening.end()
        for token in _TOKEN.finditer(text, opening.start()):
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if depth == 0:
                yield opening.start(), token.end()
                position = token.end()
                break


class _Object(list[tuple[str, Any]]):
    """Keys and values of an object, repeated keys included."""


def _pairs(text: str) -> object:
    """Read an object; None if it is none. Numbers keep their spelling."""
    repaired = _COMMAND.sub(lambda match: "\\\\", text)
    try:
        return json.loads(
            repaired,
            strict=False,
            object_pairs_hook=_Object,
            parse_float=str,
            parse_int=str,
            parse_constant=str,
        )
    except (ValueError, RecursionError):
        return _python(repaired)


def _python(text: str) -> object:
    """Read an object as Python writes one, with single quotes."""
    try:
        body = ast.parse(text, mode="eval").body
        if not isinstance(body, ast.Dict) or None in body.keys:
            return None
        pairs = zip(body.keys, body.values, strict=True)
        return _Object(
            (str(ast.literal_eval(key or "")), ast.literal_eval(value)) for key, value in pairs
        )
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _answers(value: object) -> list[str]:
    """Return the answers of an object, or of the objects in it if it states none itself."""
    if not isinstance(value, _Object):
        return []
    own = [_text(one) for key, one in value if _KEY.fullmatch(key.strip())]
    if not own:
        return [answer for _, one in value for answer in _answers(one)]
    beside = [
        _text(one)
        for key, offers in value
        if not _KEY.fullmatch(key.strip())
        and _OTHER_KEY.fullmatch(key.strip())
        and not isinstance(offers, bool)
        for one in (
            offers if isinstance(offers, list) and not isinstance(offers, _Object) else [offers]
        )
    ]
    return [*own, *(one for one in beside if one and one.casefold() not in ("none", "n/a"))]


def _text(value: object) -> str:
    """Write a value on one line: elements with commas, entries of an object as `x = 1`."""
    if isinstance(value, _Object):
        entries = [(key, _text(one)) for key, one in value]
        if len(entries) == 1 and len(entries[0][0]) > 1:
            return entries[0][1]
        return ", ".join(f"{key} = {one}" for key, one in entries)
    if isinstance(value, dict):
        return _text(_Object(value.items()))
    if isinstance(value, list | tuple | set):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else " ".join(str(value).split())
