"""Adapters for reasoning in words: BIG-Bench Hard, GPQA, knights and knaves, ZebraLogic."""

import re

from data_schemas.rows import Domain, Message, Problem, Role
from tasks.curation.items import Item, ticket
from tasks.curation.rows import BadRow, RawRow, as_texts, tidy
from tasks.store.files import canonical_json

_LETTERED = re.compile(r"^\(([A-Z])\)\s*(.+)$", re.MULTILINE)
_LISTED = re.compile(r"^-\s*(.+)$", re.MULTILINE)
_PAIRS = (("True", "False"), ("yes", "no"), ("Yes", "No"), ("valid", "invalid"))
_NUMBER = re.compile(r"-?\d+")


def bbh(row: RawRow) -> list[Item]:
    """Read a BIG-Bench Hard row: a choice, a number, or a text that has to be equal.

    The lists of words and of brackets are compared as texts of one JSON field.
    """
    question, target = row.text("input"), row.text("target")
    options = _options(question, target)
    if options:
        right = [names for names in options if target in names]
        if len(right) != 1:
            raise BadRow("bad_gold", f"{target!r} is {len(right)} of {len(options)} options")
        others = [names for names in options if target not in names]
        gold: dict[str, object] = {"correct": right[0], "others": others}
        return [_item("bbh", row, "choice", question, question, gold)]
    if _NUMBER.fullmatch(target):
        return [_item("bbh", row, "final_answer", question, question, {"value": target})]
    prompt = f'{question}\nAnswer with one JSON object: {{"answer": "..."}}.'
    return [_item("bbh", row, "extraction", question, prompt, {"fields": {"answer": target}})]


def knights_knaves(row: RawRow) -> list[Item]:
    """Read a knights-and-knaves row: who tells the truth."""
    quiz, names, truths = row.text("quiz"), row.texts("names"), row.items("solution")
    if len(names) != len(truths) or not all(isinstance(one, bool) for one in truths):
        raise BadRow("bad_gold", f"{len(names)} names with the 'solution' {truths}")
    words = row.fields.get("knight_knave")
    roles = words if isinstance(words, dict) else {}
    knight, knave = (str(roles.get(role, role)) for role in ("knight", "knave"))
    fields = {name: knight if true else knave for name, true in zip(names, truths, strict=True)}
    prompt = (
        f'{quiz}\nAnswer with one JSON object that gives "{knight}" or "{knave}" for each of: '
        f"{', '.join(fields)}."
    )
    return [_item("knights_knaves", row, "extraction", quiz, prompt, {"fields": fields})]


def zebra_logic(row: RawRow) -> list[Item]:
    """Read a ZebraLogic grid: what each house has. Copies without solution are refused."""
    puzzle, solution = row.text("puzzle"), row.fields.get("solution")
    if not isinstance(solution, dict) or not all(map(solution.get, ("header", "rows"))):
        raise BadRow("no_gold", "'solution' is not an object with header and rows")
    header = as_texts(solution["header"], "solution.header")
    cells = [as_texts(line, "solution.rows") for line in solution["rows"]]
    if any(set(cell) <= {"_"} for line in cells for cell in line):
        raise BadRow("no_gold", "the solution is masked; the private copy has it")
    fields = {
        f"{header[0]} {line[0]}": dict(zip(header[1:], line[1:], strict=True)) for line in cells
    }
    prompt = (
        f"{puzzle}\nAnswer with one JSON object that has a key for each house, "
        f'"{header[0]} 1" to "{header[0]} {len(cells)}", with an object of: '
        f"{', '.join(header[1:])}."
    )
    return [_item("zebra_logic", row, "extraction", puzzle, prompt, {"fields": fields})]


def gpqa(row: RawRow) -> list[Item]:
    """Read a GPQA row: the right answer and three wrong ones.

    Differs: GPQA's code shuffles the options with a seed; here they are in the order of a hash of
    question and option, so that a row's options never move.
    """
    question = row.text("Question")
    right = tidy(row.text("Correct Answer"))
    texts = [right, *(tidy(row.text(f"Incorrect Answer {number}")) for number in (1, 2, 3))]
    if len(set(texts)) != len(texts):
        raise BadRow("bad_gold", f"two of the options are equal: {texts}")
    texts.sort(key=lambda text: ticket("gpqa", 0, f"{question}/{text}"))
    options = dict(zip("ABCD", texts, strict=True))
    lines = "\n".join(f"{letter}: {text}" for letter, text in options.items())
    gold: dict[str, object] = {
        "correct": [letter for letter, text in options.items() if text == right],
        "others": [[letter] for letter, text in options.items() if text != right],
    }
    prompt = f"{question}\n{lines}\nAnswer A, B, C or D."
    return [_item("gpqa", row, "choice", question, prompt, gold)]


def _options(question: str, target: str) -> list[list[str]]:
    """Return the names of every option; [] if the question is open."""
    lettered = _LETTERED.findall(question)
    if lettered:
        return [[f"({letter})", letter, tidy(text)] for letter, text in lettered]
    entries = _LISTED.findall(question.partition("Options:")[2])
    if entries:
        return [[tidy(text)] for text in entries]
    return [[name] for pair in _PAIRS if target in pair for name in pair]


def _item(
    source: str, row: RawRow, verifier: str, content: str, prompt: str, gold: dict[str, object]
) -> Item:
    key = row.fields.get("id", row.fields.get("Record ID"))
    problem = Problem(
        id=f"{source}/{key if isinstance(key, str) and key else row.key}",
        domain=Domain.GENERAL,
        language="en",
        messages=(Message(role=Role.USER, content=prompt),),
        verifier=verifier,
        answer=canonical_json(gold).decode(),
        source=source,
        source_row=row.source_row,
    )
    return Item(problem, content)
