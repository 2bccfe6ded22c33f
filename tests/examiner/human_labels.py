r"""Verdicts beside the labels of people, on sets that others collected: `... human_labels FOLDER`.

    python -m tests.examiner.human_labels FOLDER --python PYTHON --out FILE

FOLDER has what could be had of these sets, under the names of their own repositories:

    HardVerify-Math.json              github.com/uw-nsl/TinyV, benchmarks: a right and a wrong
                                      answer to 250 problems on which a rule had been wrong
    verify_bench_hard.jsonl           VerifyBench-Hard (ZJU-REAL; two annotators a row): the rows of
    verify_bench_hard_gt.jsonl        800 tokens and more, github.com/cjj826/LongJudgeBench
    eval_examples.json                github.com/IAAR-Shanghai/xVerify, src/xVerify/examples
    NQ.json, TQ.json                  EVOUNA, github.com/wangcunxiang/QA-Eval: five models' answers
    cases_even.jsonl                  tests of math-verify, whose authors say what must be accepted

A row is claimed if one of our verifiers is meant for its gold: mathematics (`final_answer`) and
options of a question (`choice`). The golds of other rows are free text, of which none is; of
EVOUNA, numbers are scored as `final_answer` although its texts announce no answer. Other graders
are asked on every scored row: math-verify, and with `--python` (see `command.py`) OpenCompass,
verl's PRIME grader, and that of Qwen2.5-Math if QWEN_MATH is the folder `evaluation` of its clone.
They do not depend on our code, so that `--before` takes their counts from an earlier file.
All get the same answer; a gold that is a worked solution is the content of its box, for graders
that take no other form of its last box.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, abstain
from tasks.gym import table
from tasks.gym.workers import WorkerPool
from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tests.examiner.case import Case
from tests.examiner.scoring import Foreign
from tests.examiner.timing import math_verify
from tests.examiner.unseen import wilson
from tests.records import problem_of

EVIDENCE = Path(__file__).with_name("human_labels.json")
READINGS = Path(__file__).with_name("human_labels_read.json")
"""What a person found of every false verdict of ours, by set and row."""
UNREAD = "not read"
DATED = "a full date, where the gold is its year"
UNANNOUNCED = "no answer is announced, and the last sentence states something else as well"
UNMARKED = "EVOUNA"
MATH_VERIFY_S = 5.0
OURS = "ours"
OTHERS = ("math_verify", "qwen2.5-math", "opencompass", "verl prime_math")
MODELS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
"""Whose answers EVOUNA has."""
STATES = (("proved", "disproved", "unknown"), ("yes", "no"), ("true", "false"))
# "(A) red", "\textbf{(A)}\ 325", "A: red" at the beginning of a line
_OPTION = re.compile(r"\(([A-Z])\)\}?|^\s*-?\s*([A-Z])[.:)]", re.MULTILINE)
# "B", "(B)", "B: necessary", "(B)\ 337.5"
_LETTER = re.compile(r"\(?([A-Z])\)?(?:[\s:.\\]|$)")
_STYLE = re.compile(r"\\(?:text|textbf|mathrm|boxed)\{((?:[^{}]|\{[^{}]*\})*)\}")
# "1,234", "3.5", "1979"
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Labelled:
    """An answer and whether people call it right."""

    source: str
    key: str
    question: str
    gold: str
    response: str
    right: bool
    verifier: str = ""
    """Ours; '' if none is meant for such a gold."""
    answer: str = ""
    """The gold in the form of our verifier."""

    def problem(self, answer: str) -> Problem:
        """Return the problem with a gold."""
        return problem_of(
            self.question or "?",
            answer,
            id=f"{self.source}/{self.key}",
            verifier=self.verifier or "final_answer",
            source=self.source,
            source_row=self.key,
        )


@dataclass(frozen=True, slots=True)
class Answered:
    """A labelled answer in the words of its set, before a verifier is chosen."""

    key: str
    question: str
    gold: str
    response: str
    right: bool
    kind: str
    """maths, options or free."""


def hard_verify(path: Path) -> Iterator[Answered]:
    """Read HardVerify-Math: what stood in a box is put into one again."""
    for row in json.loads(path.read_text("utf-8")):
        for name, right in (("fn_output", True), ("tn_output", False)):
            boxed = f"\\boxed{{{row[name].strip('$ ')}}}"
            key = f"{row['id']}/{name}"
            yield Answered(key, row["question"], row["ground_truth"], boxed, right, "maths")


def verify_bench(path: Path) -> Iterator[Answered]:
    """Read the rows of VerifyBench-Hard, and their golds from the file beside them."""
    golds = {row["id"]: row["answer"] for row in _lines(path.with_name(f"{path.stem}_gt.jsonl"))}
    kinds = {"A": "maths", "B": "maths", "C": "options"}
    for row in _lines(path):
        truth, (response,) = row["ground_truth"], row["responses"]
        kind = kinds.get(truth["answer_type"][0], "free")
        asked, gold = row["instruction"], golds[row["id"]]
        right = truth["gold_correct"]
        yield Answered(row["id"], asked, gold, response["content"], right, kind)


def x_verify(path: Path) -> Iterator[Answered]:
    """Read the published examples of xVerify that a person labelled."""
    kinds = {"math": "maths", "alphabet_option": "options"}
    for place, row in enumerate(json.loads(path.read_text("utf-8"))):
        kind = kinds.get(row["key_answer_type"], "free")
        right = row["human_judgment_result"] == "Correct"
        gold, said = row["correct_answer"], row["llm_output"]
        yield Answered(str(place), row["question"], gold, said, right, kind)


def evouna(path: Path) -> Iterator[Answered]:
    """Read EVOUNA without the questions that its authors call improper."""
    for place, row in enumerate(json.loads(path.read_text("utf-8"))):
        first, *_ = (row["golden_answer"] or "").split("/")
        kind = "maths" if _NUMBER.fullmatch(first.strip()) else "free"
        for model in MODELS if first and not row["improper"] else ():
            said, right = row[f"answer_{model}"], row[f"judge_{model}"]
            if said and right is not None:
                yield Answered(f"{place}/{model}", row["question"], first, said, right, kind)


def tests_of_math_verify(path: Path) -> Iterator[Answered]:
    """Read the cases that math-verify's own tests state."""
    for row in _lines(path):
        yield Answered(row["id"], "", row["gold"], row["pred"], bool(row["expected"]), "maths")


SETS: dict[str, tuple[str, Callable[[Path], Iterator[Answered]]]] = {
    "HardVerify-Math": ("HardVerify-Math.json", hard_verify),
    "VerifyBench-Hard": ("verify_bench_hard.jsonl", verify_bench),
    "xVerify": ("eval_examples.json", x_verify),
    "EVOUNA NQ": ("NQ.json", evouna),
    "EVOUNA TQ": ("TQ.json", evouna),
    "tests of math-verify": ("cases_even.jsonl", tests_of_math_verify),
}


def read(folder: Path) -> Iterator[Labelled]:
    """Read the sets that the folder has, each row with the verifier that is meant for it."""
    for name, (file, reader) in SETS.items():
        for path in sorted(folder.rglob(file))[:1]:
            for one in reader(path):
                yield _chosen(name, one)


def bare(gold: str) -> str:
    """Return what stands in the last box of a worked solution, without a point behind it."""
    start = gold.rfind("\\boxed{")
    depth = 0
    for place in range(start, len(gold)) if start >= 0 else ():
        depth += (gold[place] == "{") - (gold[place] == "}")
        if gold[place] == "}" and not depth:
            return gold[start + len("\\boxed{") : place].strip().rstrip(".")
    return gold.strip()


def option_gold(question: str, gold: str) -> dict[str, list[Any]] | None:
    """Return the gold of `choice` for a letter or a state, with what else the question offers."""
    plain = _STYLE.sub(r"\1", gold).strip()
    for states in STATES:
        if plain.casefold() in states:
            others = [[state] for state in states if state != plain.casefold()]
            return {"correct": [plain.casefold()], "others": others}
    letter = _LETTER.match(plain)
    options: dict[str, list[str]] = {}
    marks = list(_OPTION.finditer(question))
    for mark, following in zip_longest(marks, marks[1:]):
        text = question[mark.end() : following.start() if following else None]
        text = re.split(r"\\q?quad|\n|\\(?:text|textbf|mathrm)\{$", text.strip("\\ }"))[0].strip()
        key = mark[1] or mark[2]
        options.setdefault(key, [key, text] if 0 < len(text) <= 200 else [key])
    if not letter or letter[1] not in options or len(options) < 2:
        return None
    return {
        "correct": options[letter[1]],
        "others": [names for key, names in options.items() if key != letter[1]],
    }


def examine(
    rows: Sequence[Labelled], foreign: Foreign | None
) -> tuple[dict[str, list[Verdict]], list[str]]:
    """Return the verdicts of every grader on the claimed rows, and the graders in order."""
    ours = table.score_batch([row.problem(row.answer) for row in rows], [r.response for r in rows])
    plain = [row.problem(json.dumps({"value": row.gold})) for row in rows]
    found = {OURS: list(ours), OTHERS[0]: _math_verify(plain, rows)}
    plain = [row.problem(json.dumps({"value": bare(row.gold)})) for row in rows]
    for name in OTHERS[1:]:
        if foreign is not None and name in foreign.checkers:
            found[name] = [
                foreign.score(name, cast("Case", _Asked(problem, row.response)))[0]
                for problem, row in zip(plain, rows, strict=True)
            ]
    return found, list(found)


def counts(rows: Sequence[Labelled], verdicts: Sequence[Verdict], right: bool) -> dict[str, Any]:
    """Count the false verdicts on answers with one label; an abstention is none of them."""
    chosen = [one for row, one in zip(rows, verdicts, strict=True) if row.right is right]
    false = sum((one.score == 1.0) is not right for one in chosen if not one.abstained)
    low, high = wilson(false, len(chosen))
    reasons = Counter(one.reason for one in chosen if one.abstained)
    interval = [round(low, 4), round(high, 4)]
    return {"false": false, "of": len(chosen), "interval": interval, "abstained": reasons}


def summary(
    rows: Sequence[Labelled], found: dict[str, list[Verdict]], read_before: dict[str, str]
) -> list[dict[str, Any]]:
    """Return a record for every set and verifier, ours with the largest share refused first."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault((row.source, row.verifier), []).append(place)
    records: list[dict[str, Any]] = []
    for (source, verifier), places in groups.items():
        chosen = [rows[place] for place in places]
        graders = {
            name: {
                kind: counts(chosen, [verdicts[place] for place in places], right)
                for kind, right in (("refused", True), ("accepted", False))
            }
            for name, verdicts in found.items()
        }
        causes: dict[str, Counter[str]] = {"refused": Counter(), "accepted": Counter()}
        for place in places:
            row, verdict = rows[place], found[OURS][place]
            if not verdict.abstained and (verdict.score == 1.0) is not row.right:
                kind = "refused" if row.right else "accepted"
                causes[kind][cause(row, verdict, read_before)] += 1
        records.append({"set": source, "verifier": verifier, "graders": graders, "causes": causes})
    return sorted(records, key=_worst, reverse=True)


def cause(row: Labelled, verdict: Verdict, read_before: dict[str, str]) -> str:
    """Say what a person found of a false verdict; a text that announces no answer is one cause."""
    known = read_before.get(f"{row.source}/{row.key}")
    if known is None and row.right and row.source.startswith(UNMARKED):
        dated = re.search(rf"\d{{1,2}}(?:st|nd|rd|th)?,? {re.escape(row.gold)}", row.response)
        return DATED if dated else UNANNOUNCED
    return known or UNREAD


def with_others(
    records: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return records with the counts of graders that were not asked this time.

    They do not depend on our code; a set that has another number of rows now gets none.
    """
    known = {(row["set"], row["verifier"]): row["graders"] for row in before}
    results = list[dict[str, Any]]()
    for record in records:
        ours = record["graders"][OURS]
        graders = {
            name: kinds
            for name, kinds in known.get((record["set"], record["verifier"]), {}).items()
            if all(kinds[kind]["of"] == ours[kind]["of"] for kind in kinds)
        }
        results.append({**record, "graders": {**graders, **record["graders"]}})
    return results


def main(arguments: Sequence[str]) -> None:
    """Examine, write and print; see --help."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder with the files that the module names")
    parser.add_argument("--python", help="Python of the environment with other graders")
    parser.add_argument("--before", type=Path, help="counts that have the graders not asked now")
    parser.add_argument("--out", type=Path, help="file for the counts")
    parser.add_argument("--wrong", type=Path, help="file for every false verdict of ours")
    options = parser.parse_args(arguments)
    every = list(read(options.folder))
    if not every:
        parser.error(f"{options.folder} has none of {', '.join(file for file, _ in SETS.values())}")
    rows = [row for row in every if row.verifier]
    foreign = Foreign(options.python) if options.python else None
    found, names = examine(rows, foreign)
    if foreign is not None:
        foreign.close()
    table.close()
    records = summary(rows, found, json.loads(READINGS.read_text("utf-8")))
    if options.before:
        earlier = json.loads(options.before.read_text("utf-8"))
        records, names = with_others(records, earlier["rows"]), earlier["graders"]
    unclaimed = Counter(row.source for row in every if not row.verifier)
    if options.wrong:
        options.wrong.write_text("".join(_false(rows, found[OURS])), "utf-8")
    if options.out:
        source = "--before FILE" if options.before else "--python PYTHON"
        command = f"python -m tests.examiner.human_labels FOLDER {source}"
        content = {
            **evidence_file.origin(command, "tasks.gym.table"),
            "graders": names,
            "rows": records,
            "unclaimed": unclaimed,
        }
        options.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for record in records:
        for name, kinds in record["graders"].items():
            words = [
                f"{kind} {one['false']} of {one['of']}, abstained {sum(one['abstained'].values())}"
                for kind, one in kinds.items()
            ]
            print(record["set"], record["verifier"], name, *words, sep=" | ")  # noqa: T201 - result


def _chosen(name: str, one: Answered) -> Labelled:
    gold = bare(one.gold) if one.gold.count("\\boxed") == 1 else one.gold
    verifier, answer = "", ""
    if one.kind == "options":
        options = option_gold(one.question, bare(one.gold))
        verifier, answer = ("choice", json.dumps(options)) if options else ("", "")
    elif one.kind == "maths":
        verifier, answer = "final_answer", json.dumps({"value": gold})
    return Labelled(name, one.key, one.question, gold, one.response, one.right, verifier, answer)


@dataclass(frozen=True, slots=True)
class _Asked:
    problem: Problem
    response: str


def _math_verify(problems: Sequence[Problem], rows: Sequence[Labelled]) -> list[Verdict]:
    pool = WorkerPool(1)
    calls = [(problem, row.response) for problem, row in zip(problems, rows, strict=True)]
    try:
        replies = list(pool.each(math_verify, calls, [MATH_VERIFY_S] * len(calls)))
    finally:
        pool.close()
    return [_reply(reply) for reply in replies]


def _reply(reply: Any) -> Verdict:
    return abstain(str(reply.failure)) if reply.failure else reply.value


def _false(rows: Sequence[Labelled], verdicts: Sequence[Verdict]) -> Iterator[str]:
    for row, verdict in zip(rows, verdicts, strict=True):
        if not verdict.abstained and (verdict.score == 1.0) is not row.right:
            fields = {
                "row": f"{row.source}/{row.key}",
                "right": row.right,
                "reason": verdict.reason,
                "detail": verdict.detail,
                "gold": row.gold,
                "end": row.response[-200:],
            }
            yield json.dumps(fields, ensure_ascii=False) + "\n"


def _worst(record: dict[str, Any]) -> float:
    refused = record["graders"][OURS]["refused"]
    return refused["false"] / max(1, refused["of"])


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


if __name__ == "__main__":
    run(main)
