r"""Answers in forms that neither the readers nor the other classes of the examiner are made from.

    python -m tests.examiner.unseen DATA --out FILE

The forms are a grammar of paraphrases of its own; the reasoning around them, the numbers and the
problems are other people's: model outputs (Qwen2.5-Math, Marco-o1), GSM8K, MATH, MGSM, CMATH,
OlympiadBench. Each form belongs to one half by its digest: on `tune` the readers may be worked on,
`report` is only counted. Every rate is given with its Wilson interval.

Differs from `command.py`: few forms, but whole sentences and whole texts around the answer.
"""

# ruff: noqa: RUF001 - Chinese signs
import argparse
import hashlib
import json
import math
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from data_schemas.rows import Domain, Problem
from tasks.gym import table
from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tests.records import problem_of

HALVES = ("tune", "report")
PER_FORM = 12
"""Numbers that each form is tried with."""

ALTERED = (
    "twice {n}",
    "double {n}",
    "three times {n}",
    "half of {n}",
    "a third of {n}",
    "the square of {n}",
    "the square root of {n}",
    "the cube of {n}",
    "the reciprocal of {n}",
    "the opposite of {n}",
    "the negative of {n}",
    "the sum of {n} and 1",
    "the product of {n} and 3",
    "the difference between {n} and 1",
    "the quotient of {n} and 2",
    "7 per cent of {n}",
    "{n} per cent of 9",
    "{n} percent of itself",
    "one more than {n}",
    "one less than {n}",
    "two short of {n}",
    "5 plus {n}",
    "{n} plus five",
    "{n} minus one",
    "{n} times itself",
    "{n} squared",
    "{n} cubed",
    "{n} halved",
    "{n} doubled",
    "{n} divided by two",
    "{n} to the fourth power",
    "the factorial of {n}",
    "the absolute value of {n} minus 3",
    "the remainder of {n} modulo 7",
    "the last digit of {n}",
    "the number of divisors of {n}",
    "the {n}th prime",
    "{n} aka 9",
    "{n} alias nine",
    "{n} a.k.a. 12",
    "the predecessor of {n}",
    "the successor of {n}",
    "{n} in base nine",
    "{n} dozen and one",
    "everything except {n}",
    "any number other than {n}",
    "all integers below {n}",
    "anything from {n} upwards",
    "the interval starting at {n}",
    "a multiple of {n}",
    "a divisor of {n}",
    "a number close to {n}",
    "a number near {n}",
    "within one of {n}",
    "no larger than {n}",
    "no fewer than {n}",
    "well below {n}",
    "slightly above {n}",
    "barely under {n}",
    "just shy of {n}",
    "north of {n}",
    "upwards of {n}",
    "in the vicinity of {n}",
    "somewhere around {n} or so, give or take",
    "{n}, unless it is 9",
    "{n} if the coin is fair and 9 otherwise",
    "{n} versus 9",
    "{n} as opposed to 9",
    "{n} against 9",
    "{n} respectively 9",
    "{n} with a probability of one half",
    "{n} on some days",
    "{n} at the earliest",
    "{n} and counting",
)
"""What stands for the number in a sentence that states another value, none, or several."""
DENIED = (
    "It is false that the answer is {n}.",
    "It is wrong to say that the answer is {n}.",
    "It is impossible that the answer is {n}.",
    "Nobody would claim that the answer is {n}.",
    "I doubt that the answer is {n}.",
    "I refuse to believe that the answer is {n}.",
    "There is no way the answer is {n}.",
    "The claim that the answer is {n} fails.",
    "A common mistake is to think that the answer is {n}.",
    "One might be tempted to say the answer is {n}.",
    "If the answer is {n}, I will eat my hat.",
    "Suppose the answer is {n}.",
    "Let us assume the answer is {n}.",
    "Is it true that the answer is {n}?",
    "Could it be that the answer is {n}?",
    "I was told that the answer is {n}, which contradicts the above.",
    "The answer is {n} is what a careless reader would write.",
    "The answer is {n}, said nobody.",
    "Had we added, the answer is {n}; we multiply.",
    "It is impossible to find f({n}).",
    "It is not known whether the answer is {n}.",
    "We cannot conclude that the answer is {n}.",
    "The answer is anyone's guess; mine is {n} or 9.",
    "The answer lies outside {n}.",
    "The answer differs from {n}.",
    "The answer exceeds {n}.",
    "The answer can be found on page {n}.",
    "The answer has {n} digits.",
    "The answer begins with {n}.",
    "The answer ends in {n}.",
    "The answer is in line {n}.",
    "The answer is option {n}.",
    "The answer is obvious from equation {n}.",
    "The answer is given by theorem {n}.",
    "The answer was computed in {n} steps.",
)
ANNOUNCED = ("The answer is {a}.", "Therefore, the final answer is {a}.", "Answer: {a}")
STATED = (
    "The answer is {n}.",
    "Therefore, the answer is **{n}**.",
    "The final answer is: {n}",
    "Final Answer: {n}",
    "**Answer:** {n}",
    "**Answer**: ${n}$",
    "Answer: {n}.",
    "Thus the answer is ${n}$.",
    "Hence, the answer is exactly {n}.",
    "The correct answer is {n}.",
    "The answer to the problem is {n}.",
    "The answer is {n}. I hope it is correct.",
    "The answer is {n}. Let me know if you have questions.",
    "The answer is {n}. Thank you!",
    "The answer is therefore {n}.",
    "The answer is simply {n}.",
    "The answer is equal to {n}.",
    "The answer is the number {n}.",
    "The answer is \\(\\mathbf{{{n}}}\\).",
    "In conclusion, the answer is {n}.",
    "#### {n}",
    "\\boxed{{{n}}}",
    "Therefore the value we want is $\\boxed{{{n}}}$.",
    "No value works except $\\boxed{{{n}}}$.",
    "There is no choice other than $\\boxed{{{n}}}$.",
    "We cannot have 0 or 1, so it is $\\boxed{{{n}}}$.",
    "Mr. Smith has $\\boxed{{{n}}}$.",
    "Not 0, but rather $\\boxed{{{n}}}$.",
    "Since $x \\ne 0$ or $x \\ne 1$, we get $x = \\boxed{{{n}}}$.",
    "We try 0 or 1 first; neither works. The result is $\\boxed{{{n}}}$.",
    "$\\boxed{{\\color{{blue}}{{{n}}}}}$",
    "$\\boxed{{\\color{{red}} {n}}}$",
    "$\\boxed{{\\textcolor{{red}}{{{n}}}}}$",
)
AROUND = (
    "$-\\boxed{{{n}}}$",
    "$\\boxed{{{n}}}^2$",
    "$\\boxed{{{n}}}^{{3}}$",
    "$\\frac{{1}}{{\\boxed{{{n}}}}}$",
    "$\\sqrt{{\\boxed{{{n}}}}}$",
    "$2\\boxed{{{n}}}$",
    "$2 \\cdot \\boxed{{{n}}}$",
    "$\\boxed{{{n}}} + 1$",
    "$\\boxed{{{n}}} - 1$",
    "$\\boxed{{{n}}} \\cdot 3$",
    "$\\boxed{{{n}}}/2$",
    "$\\boxed{{{n}}}!$",
    "$\\boxed{{{n}}}$ million",
    "$\\boxed{{{n}}}$ thousand dollars",
    "$\\boxed{{{n}}}\\%$",
    "$\\boxed{{{n}}} \\times 10^3$",
    "$\\boxed{{{n}}}$ is not the answer.",
    "$\\boxed{{{n}}}$ is wrong.",
    "$\\boxed{{{n}}}$ is incorrect.",
    "$\\boxed{{{n}}}$ cannot be right.",
    "The answer is not $\\boxed{{{n}}}$.",
    "$|\\boxed{{{n}}} - 3|$",
    "$\\left(\\boxed{{{n}}}\\right)^2$",
    "$\\log \\boxed{{{n}}}$",
    "$x \\ne \\boxed{{{n}}}$",
)
UNITS = (
    "J", "MJ", "mJ", "eV", "cal", "kcal", "kWh", "N", "kN", "W", "kW", "Pa", "kPa", "bar", "atm",
    "V", "mV", "A", "mA", "C", "m", "cm", "km", "mm", "nm", "s", "ms", "h", "min", "kg", "g", "mg",
    "mol", "K", "Hz", "T", "m/s", "km/h", "m^2", "L", "mL", "kJ/mol", "kJ/kg", "N m^2", "blorps",
    "furlongs", "erg", "joules", "kilowatt hours", "newtons", "metres", "calories", "BTU",
)  # fmt: skip
"""Units that are not kJ."""
BESIDE = ("\\boxed{{{n}}} {u}", "$\\boxed{{{n}}}$ {u}", "$\\boxed{{{n}}}\\ \\mathrm{{{u}}}$",
          "$\\boxed{{{n}}}\\,\\text{{{u}}}$", "The energy is $\\boxed{{{n}}}$ {u}.",
          "$\\boxed{{{n}\\ \\text{{{u}}}}}$")  # fmt: skip
CHOSEN = {
    "en": (
        "The answer is {x}.",
        "Therefore, the correct answer is {x}.",
        "So the best choice is {x}.",
        "Option {x} is correct.",
        "Therefore, Option {x} is the correct answer.\n\n**Answer:** {x}",
        "Thus, the right option is ({x}).",
        "Hence, I choose {x}.",
        "The correct option is **{x}**.",
        "**Answer: {x}**",
        "**Final Answer:** {x}",
        "Answer: ({x})",
        "{x} is the correct answer.",
        "({x}) is the right choice.",
        "The answer is therefore option {x}.",
        "\\boxed{{{x}}}",
        "The final answer is $\\boxed{{\\text{{{x}}}}}$.",
        '{{"answer": "{x}"}}',
        '```json\n{{"reasoning": "see above", "choice": "{x}"}}\n```',
        "My answer: {x}",
        "We select option {x}.",
        "The most suitable option is {x}.",
        "So the choice must be {x}.",
        "Correct choice: {x}",
        "Choice {x} fits best.",
    ),
    "zh": (
        "故选：{x}",
        "故选{x}。",
        "故选：{x}．",
        "【答案】{x}",
        "【答案】{x}\n【解析】由上述计算可得。",
        "因此，答案选{x}。",
        "因此，答案选择{x}。",
        "所以正确答案是{x}。",
        "正确选项为{x}。",
        "综上所述，正确的选项是{x}。",
        "答案：{x}",
        "答案是选项{x}。",
        "所以选择{x}。",
        "选项{x}是正确的。",
        "{x}是正确的选项。",
        "故答案为：{x}",
        "因此应选{x}项。",
        "本题选{x}。",
        "最终答案：{x}",
        "最合适的选择是{x}。",
        "所以，选{x}",
        "**答案：{x}**",
        "正确答案为（{x}）。",
        '{{"答案": "{x}"}}',
    ),
}


@dataclass(frozen=True, slots=True)
class Unseen:
    """One response with the verdict that it must get."""

    what: str
    half: str
    problem: Problem
    response: str
    right: bool


def half_of(form: str) -> str:
    """Say which half a form belongs to."""
    return HALVES[hashlib.sha256(form.encode()).digest()[0] % 2]


def build_problem(
    prompt: str,
    gold: dict[str, object],
    verifier: str,
    language: str = "en",
    domain: Domain = Domain.MATHS,
    name: str = "unseen",
) -> Problem:
    """Build a problem with this gold."""
    return problem_of(
        prompt,
        json.dumps(gold),
        id=name,
        domain=domain,
        language=language,
        verifier=verifier,
        source="unseen",
        source_row="0",
    )


def read_numbers(data: Path) -> list[tuple[str, str, str]]:
    """Read (question, gold number, language) of public sets."""
    found: list[tuple[str, str, str]] = []
    for file, question, gold, language in (
        ("gsm8k/test.jsonl", "question", "gold", "en"),
        ("math_train/train.jsonl", "problem", "answer", "en"),
        ("mgsm/zh.jsonl", "question", "gold", "zh"),
        ("cmath_zh/test.jsonl", "question", "answer", "zh"),
        ("amc23/test.jsonl", "question", "answer", "en"),
    ):
        for row in read_rows(data / file):
            value = str(row[gold]).replace(",", "").removesuffix(".0")
            if value.isdecimal() and 10 < int(value) < 10**6:
                found.append((str(row[question]), value, language))
    return found


def read_rows(path: Path) -> list[dict[str, object]]:
    """Read a file of JSON lines; none where it is absent."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def recorded_right(row: dict[str, object]) -> bool:
    """Say whether a graded response is right; the record's grader does not read `10{,}000`."""
    return bool(row["verdict"]) or str(row["gold"]).replace("{,}", "") == row["pred"]


def draw(data: Path, seed: int) -> Iterator[Unseen]:
    """Yield every case, the same for the same seed."""
    numbers = read_numbers(data)
    rng = random.Random(seed)
    english = [entry for entry in numbers if entry[2] == "en"]
    yield from _golds(numbers, rng)
    for verifier in ("final_answer", "rule_answer"):
        yield from _prose(english, verifier, rng)
    yield from _beside_units(rng)
    yield from _choices(data, rng)
    yield from _recorded(data)


def _golds(numbers: Sequence[tuple[str, str, str]], rng: random.Random) -> Iterator[Unseen]:
    r"""Falsify golds: another value before or after \approx, per cent, a base, another event."""
    wrong = (
        r"\boxed{{{n} \approx {m}}}", r"\boxed{{{m} \approx {n}}}", r"\boxed{{{n} \simeq {m}}}",
        r"\boxed{{{m} \doteq {n}}}", "\\boxed{{{n} ≈ {m}}}", "#### {m} ≈ {n}", "#### {n} ≈ {m}",
        r"\boxed{{{n}\%}}", r"\boxed{{0.{n}\%}}", r"\boxed{{{n}_{{11}}}}", r"\boxed{{{n}_7}}",
        r"The answer is ${m} \approx {n}$.", r"The answer is ${n} \approx {m}$.",
        r"\boxed{{{n} = {m}}}", r"\boxed{{{n} \ne {m}}}", r"\boxed{{{n} \to {m}}}",
        r"\boxed{{{n} \text{{ or }} {m}}}", r"\boxed{{{n} \pm 1}}", r"\boxed{{{n}.5}}",
        r"\boxed{{{n} \sim {m}}}", r"\boxed{{{n}\cong {m}}}", r"\boxed{{{n}:{m}}}",
    )  # fmt: skip
    for form in wrong:
        if "_7" in form:
            pool = [one for one in numbers if not set(one[1]) & set("789")]
        elif "%" in form:
            pool = [one for one in numbers if not any(w in one[0] for w in _PERCENT_WORDS)]
        else:
            pool = list(numbers)
        for question, gold, language in rng.sample(pool, min(len(pool), 4 * PER_FORM)):
            other = str(int(gold) + rng.choice((1, 3, 17)))
            text = form.format(n=gold, m=other)
            for verifier in ("final_answer", "rule_answer"):
                problem = build_problem(question, {"value": gold}, verifier, language)
                yield Unseen("falsified golds", half_of(form), problem, text, right=False)


_PERCENT_WORDS = ("percent", "per cent", "%", "百分", "成")


def _prose(
    numbers: Sequence[tuple[str, str, str]], verifier: str, rng: random.Random
) -> Iterator[Unseen]:
    sentences = [
        (form, sentence.replace("{a}", form)) for form in ALTERED for sentence in ANNOUNCED
    ]
    sentences += [(form, form) for form in DENIED]
    kinds = [("prose around the number", form, text, False) for form, text in sentences]
    kinds += [("what surrounds a box", form, form, False) for form in AROUND]
    if verifier == "final_answer":
        kinds += [("one right answer stated", form, form, True) for form in STATED]
    for what, form, text, right in kinds:
        most = PER_FORM if right or text == form else PER_FORM // 3
        for question, gold, language in rng.sample(list(numbers), most):
            working = rng.choice(("", "We add up.\n", "The rest follows from the above.\n\n"))
            problem = build_problem(question, {"value": gold}, verifier, language)
            yield Unseen(what, half_of(form), problem, working + text.format(n=gold), right)


def _beside_units(rng: random.Random) -> Iterator[Unseen]:
    for unit in UNITS:
        for form in BESIDE:
            value = str(rng.randint(11, 900))
            for verifier in ("final_answer", "rule_answer"):
                gold = {"value": value, "unit": "kJ"}
                problem = build_problem("How much energy?", gold, verifier)
                text = form.format(n=value, u=unit)
                yield Unseen("another unit beside a box", half_of(unit), problem, text, right=False)
    for unit in ("kJ", "kilojoules", "kilojoule"):
        for form in BESIDE:
            problem = build_problem(
                "How much energy?", {"value": "12", "unit": "kJ"}, "final_answer"
            )
            text = form.format(n="12", u=unit)
            yield Unseen("the right unit beside a box", half_of(form), problem, text, right=True)


def read_reasoning(data: Path) -> dict[str, list[str]]:
    """Read reasoning of public models by language, without its last paragraph."""
    english = [str(row["response"]) for row in read_rows(data / "qwen_math_graded/graded.jsonl")]
    mixed = [str(row["response"]) for row in read_rows(data / "marco_o1_cot/sft.jsonl")]
    chinese = [text for text in mixed if sum("\u4e00" <= char <= "\u9fff" for char in text) > 50]
    english += [text for text in mixed if text.isascii()]
    texts = {"en": english, "zh": chinese}
    return {
        language: [
            body
            for text in found
            if (body := _without_conclusion(text)) and "boxed" not in body and "{" not in body[-1:]
        ]
        for language, found in texts.items()
    }


def _without_conclusion(text: str) -> str:
    text = text.replace("<Thought>", "").partition("</Thought>")[0]
    paragraphs = [part for part in text.strip().split("\n\n") if part.strip()]
    return "\n\n".join(paragraphs[:-1])


def _choices(data: Path, rng: random.Random) -> Iterator[Unseen]:
    reasoning = read_reasoning(data)
    for language, forms in CHOSEN.items():
        for form in forms:
            for _ in range(PER_FORM if reasoning[language] else 0):
                right, other = rng.sample("ABCD", 2)
                gold = {"correct": [right], "others": [[one] for one in "ABCD" if one != right]}
                problem = build_problem("Which one?", gold, "choice", language, Domain.CHOICE)
                body = rng.choice(reasoning[language])
                name = f"choice after reasoning, {language}"
                for letter, fits in ((right, True), (other, False)):
                    text = f"{body}\n\n{form.format(x=letter)}"
                    yield Unseen(name, half_of(form), problem, text, fits)


def _recorded(data: Path) -> Iterator[Unseen]:
    """Yield recorded solutions with one box, their gold and another gold."""
    for row in read_rows(data / "qwen_math_graded/graded.jsonl"):
        gold, text = str(row["gold"]), str(row["response"])
        problem = build_problem(str(row["question"]), {"value": gold}, "final_answer")
        half = half_of(str(row["id"]))
        yield Unseen("recorded solutions", half, problem, text, recorded_right(row))
    for row in read_rows(data / "olympiadbench/test.jsonl"):
        golds = row["final_answer"]
        gold = str(golds[0] if isinstance(golds, list) else golds).strip("$")
        solutions = row["solution"]
        solution = str(solutions[0] if isinstance(solutions, list) else solutions)
        if "boxed" in solution or not gold or "tfrac" in gold:
            continue
        tail = f"{solution}\n\nSo the result is $\\boxed{{{gold}}}$."
        problem = build_problem(str(row["question"]), {"value": gold}, "final_answer")
        half = half_of(str(row["id"]))
        yield Unseen("competition solutions with a box", half, problem, tail, right=True)


def wilson(count: int, total: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share (Wilson 1927); (0, 1) of nothing."""
    if not total:
        return 0.0, 1.0
    z = 1.959964
    share = count / total
    middle = share + z * z / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    below = 1 + z * z / total
    return max(0.0, (middle - spread) / below), min(1.0, (middle + spread) / below)


def examine(data: Path, seed: int, wrong: Path | None) -> dict[str, object]:
    """Score all cases; count false verdicts by kind, half and verifier."""
    counts: dict[tuple[str, str, str, bool], list[int]] = defaultdict(lambda: [0, 0])
    slowest, slow_text = 0.0, ""
    lines: list[str] = []
    for case in draw(data, seed):
        start = time.process_time()
        (verdict,) = table.score_batch([case.problem], [case.response])
        seconds = time.process_time() - start
        if seconds > slowest:
            slowest, slow_text = seconds, case.response[-200:]
        false = (verdict.score == 1.0) != case.right
        count = counts[case.what, case.half, case.problem.verifier, case.right]
        count[0] += false
        count[1] += 1
        if false:
            shown = {
                "what": case.what,
                "half": case.half,
                "verifier": case.problem.verifier,
                "right": case.right,
                "gold": case.problem.answer,
                "response": case.response[-300:],
                "reason": verdict.reason,
                "detail": verdict.detail,
            }
            lines.append(json.dumps(shown, ensure_ascii=False))
    table.close()
    if wrong is not None:
        wrong.write_text("\n".join(lines) + "\n", "utf-8")
    rows = [
        {
            "what": what,
            "half": half,
            "verifier": verifier,
            "false": "accepted" if not right else "rejected",
            "count": false,
            "of": total,
            "share": round(false / total, 4),
            "interval": [round(end, 4) for end in wilson(false, total)],
        }
        for (what, half, verifier, right), (false, total) in sorted(counts.items())
    ]
    return {"slowest_cpu_s": round(slowest, 3), "slowest_text": slow_text, "rows": rows}


def main(arguments: Sequence[str]) -> None:
    """Examine, write the table and print it; see --help."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with one sub-folder per data set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--wrong", type=Path, help="file for every false verdict")
    options = parser.parse_args(arguments)
    found = examine(options.data, options.seed, options.wrong)
    command = f"python -m tests.examiner.unseen DATA --seed {options.seed}"
    if options.out:
        origin = evidence_file.origin(command, "tasks.gym.table")
        text = json.dumps({**origin, **found}, indent=1, ensure_ascii=False)
        options.out.write_text(text + "\n", "utf-8")
    print_rows(found["rows"])  # type: ignore[arg-type]


def print_rows(rows: Sequence[dict[str, object]]) -> None:
    """Print the table."""
    from rich.console import Console

    console = Console(width=140)
    for row in rows:
        console.print(" | ".join(str(value) for value in row.values()))


if __name__ == "__main__":
    run(main)
