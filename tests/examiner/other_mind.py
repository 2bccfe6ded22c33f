r"""Verdicts on texts of other authors, beside the verdicts of other graders.

    python -m tests.examiner.other_mind DATA --out FILE [--python .venv-examiner/bin/python]

The texts are recorded solutions of two models (Qwen2.5-Math, and the GPT-3 of GSM8K's paper) and
reference solutions of GSM8K; golds are falsified by rules; sentences come from a table of
paraphrases, subject x copula x phrase x tail. A phrase belongs to one half by its digest, and a
model to one half: readers may be worked on with `tune`, `report` is only counted. Beside our
verdicts stand those of math-verify and, with `--python`, of verl's PRIME grader (PRM800K's and
Qwen's) and of OpenCompass, on up to `--asked` cases of each kind. See `command.py` for their
environment.
"""

# ruff: noqa: E501, RUF001 - Chinese signs are wide
import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, cast

import pandas as pd

from data_schemas.rows import Domain
from tasks.gym import table
from tasks.gym.workers import WorkerPool
from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tests.examiner.case import Case
from tests.examiner.scoring import Foreign
from tests.examiner.timing import math_verify
from tests.examiner.unseen import (
    Unseen,
    build_problem,
    half_of,
    read_reasoning,
    read_rows,
    recorded_right,
    wilson,
)

EVIDENCE = Path(__file__).with_name("other_mind.json")
VERIFIERS = ("final_answer", "rule_answer")
MATH_VERIFY_S = 5.0
SUBJECTS = ("the answer", "our answer", "the final answer", "so the answer", "the required answer")
COPULAS = (
    "is",
    "equals",
    "comes out to",
    "turns out to be",
    "works out to",
    "must be",
    "happens to be",
)
TAILS = (".", " in all.", " altogether.", ", as required.", ", and we are done.", " apples.")
ALTERED = (
    "the cube root of {n}", "one third of {n}", "four times as much as {n}", "{n} reduced by a quarter",
    "{n} raised to the third", "the next prime after {n}", "roughly between {n} and {m}",
    "either {n} or {m}", "{n} or possibly {m}", "{n}, though {m} is also conceivable",
    "neither {n} nor {m}", "anything except {n}", "not {n}", "certainly not {n}", "never {n}",
    "strictly more than {n}", "at most {n}", "no less than {n}", "{n} squared minus one",
    "the digits of {n} reversed", "{n} written backwards", "{n} plus or minus one",
    "{n} give or take two", "the sum of the digits of {n}", "{n} modulo five", "{n} choose two",
    "minus {n}", "negative {n}", "{n} percent of the total", "{n} and a half", "{n} point five",
    "{n} thousand", "{n} dozen", "{n} million", "the product of {n} and itself", "{n} over seven",
    "seven over {n}", "the gap between {n} and {m}", "{n}-ish", "a number ending in {n}",
    "the average of {n} and {m}", "{n} to the power of {m}", "{n} in hexadecimal",
    "the {n}th Fibonacci number", "{n} factorial", "double {n}", "{n} twice over", "{n} halved again",
    "the complement of {n}", "{n} if x is positive and {m} otherwise", "{n} too many", "{n} too few",
    "{n} apart from the sign", "{n} before tax and {m} after it", "{n} for Ann and {m} for Bob",
    "{n} larger than before", "the logarithm of {n}", "{n} less one", "one off from {n}",
    "the same as {n} with a zero appended", "{n} but not quite", "far from {n}", "{n} at best",
    "a shade under {n}", "on the order of {n}", "{n}, {m}", "{n}; {m}", "{n} and {m}",
)  # fmt: skip
"""What a sentence says instead of the number: another value, none, several, or a bound."""
DENIED = (
    "It would be a mistake to answer {n}.", "Nobody should answer {n}.",
    "The answer {n} is ruled out.", "{n} was my first guess, but it fails.",
    "Some say the answer is {n}; they are mistaken.",
    "The answer would be {n} if we forgot the tax.",
    "Were it not for the tax, the answer would be {n}.", "I wish the answer were {n}.",
    "My friend claims the answer is {n}, and I disagree.", "The answer is {n} only for even x.",
    "Whether the answer is {n} remains open.",
    "It looks as though the answer is {n}, but it is not.",
    "Contrary to the key, the answer isn't {n}.", "The answer cannot possibly be {n}.",
    "Answering {n} would be wrong.", "The answer is unrelated to {n}.", "The answer depends on {n}.",
    "The answer rhymes with {n}.", "Half the class got {n}.", "See exercise {n} for the answer.",
    "The answer was {n} last year.", "Had I been careless, the answer would have been {n}.",
    "There is nothing to suggest that the answer is {n}.", "The answer, {n}, is wrong.",
    "The answer is {n}? Hardly.", "The answer is {n}. Just kidding, it is {m}.",
    "The answer is {n}. No, {m}.", "The answer is {n}. On second thought, {m}.",
)  # fmt: skip
BOXED_RIGHT = (
    "Putting it together yields $\\boxed{{{n}}}$.", "which leaves $\\boxed{{{n}}}$ apples.",
    "for a total of \\boxed{{{n}}}.", "\\[ x = \\boxed{{{n}}} \\]", "Answer: $\\boxed{{{n}}}$",
    "**Answer**: $\\boxed{{{n}}}$", "$$\\boxed{{{n}}}.$$", "Hence there are $\\boxed{{{n}}}$ of them.",
    "This is not 7, it is $\\boxed{{{n}}}$.", "None of 3, 4, 5 works; $\\boxed{{{n}}}$ does.",
    "Without loss of generality it is $\\boxed{{{n}}}$.", "She needs at least $\\boxed{{{n}}}$ of them.",
    "The remainder is $\\boxed{{{n}}}$.", "a sum of $\\boxed{{{n}}}$", "so Dr. Brown pays \\boxed{{{n}}}.",
    "$3 + 4 \\neq 8$, thus $\\boxed{{{n}}}$.", "$\\boxed{{\\mathrm{{{n}}}}}$", "$\\boxed{{ {n} }}$",
    "$\\boxed{{{n}}}$ is the answer.", "\\(\\boxed{{{n}}}\\) is what we wanted.",
)  # fmt: skip
BOXED_WRONG = (
    "$\\boxed{{{n}}}^3$", "$3\\boxed{{{n}}}$", "$\\boxed{{{n}}} - 2$", "$\\boxed{{{n}}} / 3$",
    "$\\cos \\boxed{{{n}}}$", "$\\frac{{\\boxed{{{n}}}}}{{4}}$", "$-\\boxed{{{n}}}$",
    "$\\boxed{{{n}}}$ billion", "$\\boxed{{{n}}}$ hundred", "thrice $\\boxed{{{n}}}$",
    "a quarter of $\\boxed{{{n}}}$", "the factorial of $\\boxed{{{n}}}$", "$\\boxed{{{n}}}$ cubed",
    "$\\boxed{{{n}}}$ is false.", "$\\boxed{{{n}}}$ is not right.", "It is not $\\boxed{{{n}}}$.",
    "$\\boxed{{{n}}}$ or $\\boxed{{{m}}}$", "$\\boxed{{{n}}}$, no, $\\boxed{{{m}}}$",
    "$\\boxed{{{n} \\text{{ or }} {m}}}$", "$\\boxed{{{n} \\pm 2}}$", "$\\boxed{{\\sim {m}}}$",
    "$\\boxed{{{n} \\cdot 2}}$", "$\\boxed{{{n}^{{-1}}}}$", "$\\boxed{{> {n}}}$", "$\\boxed{{{n}?}}$x",
    "Assume the answer is $\\boxed{{{n}}}$.", "It is doubtful that the answer is $\\boxed{{{n}}}$.",
)  # fmt: skip
CHOSEN = {
    "en": (
        "All in all, {x} is the best option.", "That makes ({x}) the right answer.",
        "I am confident that the answer is {x}.", "The only correct option is {x}.",
        "Consequently, the answer must be {x}.", "Final choice: {x}", "**Choice: {x}**",
        "**{x}** is correct.", "Our pick is {x}: the answer is {x}.", "ANSWER: {x}",
        "The answer is:\n\n**{x}**", "$$\\boxed{{{x}}}$$", '{{"answer": "{x}", "why": "see above"}}',
    ),
    "zh": (
        "由此可见，正确答案就是{x}。", "经过分析，本题应选{x}。", "最后选择{x}。", "答案就是{x}。",
        "因此正确选项是：{x}", "所以，答案是 **{x}**。", "选项{x}是最合适的答案。", "【答案】 {x}。",
        "综合以上，选 {x}。", "我认为答案是{x}。", "故答案选{x}.", "正确答案：**{x}**", "\\boxed{{{x}}}",
    ),
}  # fmt: skip


def draw(data: Path, seed: int) -> Iterator[Unseen]:
    """Yield every case, the same for the same seed."""
    rng = random.Random(seed)
    recorded = list(_recorded(data))
    yield from recorded
    for case in recorded:
        yield from _with_false_golds(case, rng)
    yield from _references(data, rng)
    working = [_working(str(row["answer"])) for row in read_rows(data / "gsm8k/test.jsonl")]
    for verifier in VERIFIERS:
        yield from _sentences(working, verifier, rng)
    yield from _choices(data, rng)


def _recorded(data: Path) -> Iterator[Unseen]:
    for verifier in VERIFIERS:
        for row in read_rows(data / "qwen_math_graded/graded.jsonl"):
            problem = build_problem(str(row["question"]), {"value": row["gold"]}, verifier)
            text, right = str(row["response"]), recorded_right(row)
            yield Unseen("recorded verdict", "tune", problem, text, right)
        solutions = data / "gsm8k_model_solutions/solutions.parquet"
        for row in pd.read_parquet(solutions).to_dict("records") if solutions.is_file() else ():
            problem = build_problem(str(row["question"]), {"value": str(row["gold"])}, verifier)
            text, right = str(row["solution"]), bool(row["is_correct"])
            yield Unseen("recorded verdict", "report", problem, text, right)


def _with_false_golds(case: Unseen, rng: random.Random) -> Iterator[Unseen]:
    """Yield a right text with golds that it does not have."""
    if not case.right:
        return
    gold = json.loads(case.problem.answer)["value"]
    for false in rng.sample(falsified(gold), min(2, len(falsified(gold)))):
        problem = replace_gold(case.problem, false)
        yield replace(case, what="falsified gold", problem=problem, right=False)


def replace_gold(problem: Any, value: str) -> Any:
    """Return a problem with another gold."""
    return problem.model_copy(update={"answer": json.dumps({"value": value})})


def falsified(gold: str) -> list[str]:
    """Return golds of other values: neighbours, sign, digits moved, changed, added or dropped."""
    plain = gold.replace(",", "").strip("$ ")
    found: list[str] = []
    if re.fullmatch(r"-?\d+(?:\.\d+)?", plain):
        value = Fraction(plain)
        whole, _, places = plain.partition(".")
        found = [plain + "0" if not places else whole + "0." + places, plain[::-1], plain[:-1]]
        found += [str(int(whole) + step) + (f".{places}" if places else "") for step in (1, -1, 10)]
        found += [f"-{plain}".replace("--", ""), f"\\frac{{{plain}}}{{3}}" if value else "3"]
        numbers = re.compile(r"-?\d+(?:\.\d+)?")
        return [one for one in found if not numbers.fullmatch(one) or Fraction(one) != value]
    for digit in re.finditer(r"\d", gold):
        changed = str((int(digit[0]) + 1) % 10)
        found.append(gold[: digit.start()] + changed + gold[digit.end() :])
    return found


def _references(data: Path, rng: random.Random) -> Iterator[Unseen]:
    """Yield reference answers in a box, with their gold and with falsified ones."""
    for file, gold_name, half in (
        ("math_train/train.jsonl", "answer", "tune"),
        ("olympiadbench/test.jsonl", "final_answer", "report"),
        ("cmath_zh/test.jsonl", "answer", "report"),
    ):
        rows = read_rows(data / file)
        for row in rng.sample(rows, min(700, len(rows))):
            golds = row[gold_name]
            gold = str(golds[0] if isinstance(golds, list) else golds or "").strip("$")
            question = str(row.get("problem") or row.get("question"))
            # A gold with words, or a list, may have equals among its neighbours.
            if not gold or re.search(r"text|[,=<>]|\\(?:pm|in|cup)", gold):
                continue
            problem = build_problem(question, {"value": gold}, "final_answer")
            case = Unseen(
                "reference in a box", half, problem, f"So $\\boxed{{{gold}}}$.", right=True
            )
            yield case
            yield from _with_false_golds(case, rng)


def _working(solution: str) -> str:
    """Return a reference solution without its last two lines, which state the answer."""
    return "\n".join(re.sub(r"<<[^>]*>>", "", solution).split("\n")[:-2])


def _sentences(working: Sequence[str], verifier: str, rng: random.Random) -> Iterator[Unseen]:
    def case(what: str, key: str, sentence: str, right: bool) -> Unseen:
        value = str(rng.randint(11, 4000))
        text = f"{rng.choice(working)}\n{sentence.format(n=value, m=int(value) + 3)}"
        problem = build_problem("How many?", {"value": value}, verifier)
        return Unseen(what, half_of(key), problem, text, right)

    starts = [f"{subject} {copula}".capitalize() for subject, copula in product(SUBJECTS, COPULAS)]
    for phrase in ALTERED:
        for start in rng.sample(starts, 12):
            yield case("altered in prose", phrase, f"{start} {phrase}.", right=False)
    for sentence in DENIED:
        for _ in range(12):
            yield case("denied in prose", sentence, sentence, right=False)
    for sentence, right in [(s, True) for s in BOXED_RIGHT] + [(s, False) for s in BOXED_WRONG]:
        for _ in range(12):
            yield case("box in a phrase", sentence, sentence, right)
    if verifier == "final_answer":
        for start, tail in product(starts, TAILS):
            yield case("stated in prose", start + tail, f"{start} {{n}}{tail}", right=True)


def _choices(data: Path, rng: random.Random) -> Iterator[Unseen]:
    reasoning = read_reasoning(data)
    for language, forms in CHOSEN.items():
        for form in forms:
            for _ in range(40 if reasoning[language] else 0):
                right, other = rng.sample("ABCD", 2)
                gold = {"correct": [right], "others": [[one] for one in "ABCD" if one != right]}
                problem = build_problem("Which one?", gold, "choice", language, Domain.CHOICE)
                body = rng.choice(reasoning[language])
                name = f"choice after reasoning, {language}"
                for letter in (right, other):
                    text = f"{body}\n\n{form.format(x=letter)}"
                    yield Unseen(name, half_of(form), problem, text, letter == right)


READ = {
    ("altered in prose", "accepted"): "the phrase states another value, none or several; the last number was taken",
    ("box in a phrase", "accepted"): "what stands beside the box applies to it or denies it; its content alone was taken",
    ("box in a phrase", "rejected"): "\\mathrm around a number is style",
    ("denied in prose", "accepted"): "the sentence denies or takes back the number; the number was taken",
    ("falsified gold", "accepted"): "golds are compared within a relative tolerance, or 1/100 is taken for per cent",
    ("recorded verdict", "accepted"): "per cent nobody asked for (100 for 1), or a gold with {,} that takes 9999",
    ("recorded verdict", "rejected"): "A: 47 on a line of its own is no mark that they know",
    ("reference in a box", "rejected"): "the gold in its own spelling: a matrix, a unit in \\mbox",
    ("stated in prose", "rejected"): "words after the number (apples, in all) or a verb (works out to) that they do not read",
}  # fmt: skip
"""What became of each kind of disagreement when it was read; the known verdict is right in all."""
UNREAD = "not read yet"
Key = tuple[str, str, str, bool]


def examine(data: Path, seed: int, asked: int, python: str | None) -> tuple[Any, list[str]]:
    """Count false verdicts, ours and others', by kind, half and verifier.

    Returns:
        The counts, and a line for every case that we or another grader judge falsely.
    """
    kinds: dict[Key, list[Unseen]] = defaultdict(list)
    for case in draw(data, seed):
        kinds[case.what, case.half, case.problem.verifier, case.right].append(case)
    others = _Others(python)
    rows, lines = list[dict[str, object]](), list[str]()
    for (what, half, verifier, right), cases in sorted(kinds.items()):
        verdicts = table.score_batch([c.problem for c in cases], [c.response for c in cases])
        false = [(v.score == 1.0) != right for v in verdicts]
        kind = {"what": what, "half": half, "verifier": verifier}
        kind["false"] = "rejected" if right else "accepted"
        row: dict[str, object] = {**kind, "ours": rate(sum(false), len(false))}
        wrongly: dict[int, list[str]] = {p: ["ours"] for p, one in enumerate(false) if one}
        if verifier == "final_answer":
            chosen = random.Random(seed).sample(range(len(cases)), min(asked, len(cases)))
            theirs = others.false([cases[place] for place in chosen])
            row |= _rates(theirs, [false[place] for place in chosen])
            for name, verdict in theirs.items():
                for place, is_false in zip(chosen, verdict, strict=True):
                    if is_false:
                        wrongly.setdefault(place, []).append(name)
        rows.append(row)
        lines += [
            json.dumps(
                {
                    **kind,
                    "by": wrongly[place],
                    "gold": cases[place].problem.answer,
                    "response": cases[place].response[-300:],
                    "detail": verdicts[place].detail,
                },
                ensure_ascii=False,
            )
            for place in sorted(wrongly)
        ]
    table.close()
    others.close()
    return rows, lines


def rate(count: int, total: int) -> dict[str, object]:
    """Return a share with its Wilson interval."""
    return {
        "count": count,
        "of": total,
        "interval": [round(end, 4) for end in wilson(count, total)],
    }


def classed(lines: Sequence[str]) -> list[dict[str, object]]:
    """Class the cases in which graders disagree: how many, who judges falsely, why, an example."""
    classes: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for case in map(json.loads, lines):
        if case["verifier"] == "final_answer" and case["by"] != ["ours"]:
            classes[case["what"], case["false"]].append(case)
    return [
        {
            "class": f"{what}, {kind}",
            "n": len(cases),
            "judged falsely by": Counter(name for case in cases for name in case["by"]),
            "read": READ.get((what, kind), UNREAD),
            "example": f"gold {json.loads(cases[0]['gold'])['value']!r}: "
            f"...{cases[0]['response'][-60:]!r}",
        }
        for (what, kind), cases in sorted(classes.items())
    ]


def _rates(theirs: dict[str, list[bool]], ours: Sequence[bool]) -> dict[str, object]:
    """Return each grader's false verdicts, and how often it and we disagree."""
    rows: dict[str, object] = {}
    for name, false in theirs.items():
        pairs = list(zip(ours, false, strict=True))
        rows[name] = {
            **rate(sum(false), len(false)),
            "only_ours_false": sum(a and not b for a, b in pairs),
            "only_theirs_false": sum(b and not a for a, b in pairs),
        }
    return rows


class _Others:
    """Graders of other projects."""

    def __init__(self, python: str | None) -> None:
        self._pool = WorkerPool(1)
        self._foreign = Foreign(python) if python else None

    def false(self, cases: Sequence[Unseen]) -> dict[str, list[bool]]:
        """Say of each grader which cases it judges falsely."""
        found = {"math_verify": self._math_verify(cases)}
        for name in ("verl prime_math", "opencompass"):
            if self._foreign is not None and name in self._foreign.checkers:
                found[name] = [self._ask(name, case) for case in cases]
        return {
            name: [one != case.right for one, case in zip(accepted, cases, strict=True)]
            for name, accepted in found.items()
        }

    def close(self) -> None:
        """End the processes."""
        self._pool.close()
        if self._foreign is not None:
            self._foreign.close()

    def _math_verify(self, cases: Sequence[Unseen]) -> list[bool]:
        calls = [(case.problem, case.response) for case in cases]
        replies = self._pool.each(math_verify, calls, [MATH_VERIFY_S] * len(calls))
        return [not reply.failure and reply.value.score == 1.0 for reply in replies]

    def _ask(self, name: str, case: Unseen) -> bool:
        assert self._foreign is not None
        verdict, _ = self._foreign.score(name, cast("Case", case))
        return verdict.score == 1.0


def main(arguments: Sequence[str]) -> None:
    """Examine, write and print; see --help."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with one sub-folder per data set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--asked", type=int, default=300, help="cases per kind for other graders")
    parser.add_argument("--python", help="Python of the environment with other graders")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--wrong", type=Path, help="file for every false verdict, and whose")
    options = parser.parse_args(arguments)
    rows, lines = examine(options.data, options.seed, options.asked, options.python)
    if options.wrong:
        options.wrong.write_text("\n".join(lines) + "\n", "utf-8")
    command = (
        f"python -m tests.examiner.other_mind DATA --seed {options.seed} --asked {options.asked}"
    )
    command += " --python PYTHON" if options.python else ""
    if options.out:
        origin = evidence_file.origin(command, "tasks.gym.table")
        found = {**origin, "disagreements": classed(lines), "rows": rows}
        text = json.dumps(found, indent=1, ensure_ascii=False)
        options.out.write_text(text + "\n", "utf-8")
    for row in rows:
        print(*row.values(), sep=" | ")  # noqa: T201 - the result of the command


if __name__ == "__main__":
    run(main)
