r"""CPU time of verdicts on mathematical texts that no author of a solution would write.

    python -m tests.examiner.cost --texts 20000 --out FILE

Integrals, sums, products, limits, towers of powers, nested fractions and roots, matrices, series,
drawn by a grammar; one to eight of them in a text, in boxes or sentences, against golds that are
numbers or formulas. The verifiers take turns. The CPU time is that of the worker that gives the
verdict, with everything it asks sympy; importing sympy, once per worker, does not count.
"""

import argparse
import heapq
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

from data_schemas.rows import Problem
from tasks.gym.maths import final_answer, rule_answer
from tasks.gym.workers import WorkerPool, WorkerReply
from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tests.examiner.timing import warm_verdict
from tests.records import problem_of

VERIFIERS = {"final_answer": final_answer.verify, "rule_answer": rule_answer.verify}
GOLDS = (
    *("26", "-3", r"\frac{7}{12}", "0.375", r"50\%", "1,234", r"12\text{ cm}", "0", "1", "2024"),
    *(r"2\sqrt{3}", r"\frac{\pi}{6}", "x^2+1", "(1, 2)", r"[0, 2)", "3, 5", "y = 2x + 1"),
    *(r"\sum_{k=0}^{3} k", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\int_0^1 x \, dx"),
)
LIMIT_S = 1.0
KILLED_S = 10.0
"""CPU seconds after which the worker of the measurement is killed."""
REPEATED = 5
"""Times that a text is asked again whose worker was killed: on a busy machine by the clock, or by
system time, with less CPU time than the limit. One that is always killed counts as `KILLED_S`."""
DEPTH = 4
CHUNK = 500
_SHOWN = 5
_FORMS = (
    *(r"\int_{#}^{#} # \, d@", r"\int # \, d@", r"\sum_{@=#}^{#} #", r"\prod_{@=1}^{#} #"),
    *(r"\lim_{@ \to #} #", r"\frac{d}{d@} #", "{#}^{#}", "{#}^{#^{#}}", r"\frac{#}{#}"),
    *(r"\sqrt{#}", r"\sqrt[7]{#}", r"\left(# + #\right)^{2}", r"\left(# - #\right)^{40}"),
    *(r"\sin\left(#\right)", r"\ln\left(#\right)", r"\arctan\left(#\right)", r"\binom{#}{#}"),
    *(r"\left(#\right)!", r"\begin{pmatrix} # & # \\ # & # \end{pmatrix}", r"\{ @ \mid # < # \}"),
    *("# + #", "# - #", r"# \cdot #", "# = #", "#, #", "# < #", r"# \cup #", r"\left[#, #\right)"),
)
"""`#` is an expression, `@` a name."""


def draw_text(rng: random.Random) -> str:
    """Draw a response that states one to eight expressions."""
    stated = [
        _expression(rng, rng.randint(1, DEPTH)) for _ in range(rng.choice((1, 1, 1, 2, 4, 8)))
    ]
    form = rng.choice(("\\boxed{{{}}}", "$\\boxed{{{}}}$", "The answer is ${}$.", "#### {}", "{}"))
    glue = rng.choice((" ", ", ", "\n", " or ", " and "))
    return glue.join(form.format(text) for text in stated)


def _expression(rng: random.Random, depth: int) -> str:
    if depth == 0:
        number = rng.choice((rng.randint(-9, 99), rng.randint(100, 10**6), 0))
        return rng.choice((str(number), rng.choice("xynke"), rng.choice((r"\pi", r"\infty", "i"))))
    form = rng.choice(_FORMS).replace("@", rng.choice("xtnk"))
    return re.sub("#", lambda _: _expression(rng, depth - 1), form)


def build_problem(gold: str) -> Problem:
    """Build a problem with this gold."""
    return problem_of(
        "Find it.", json.dumps({"value": gold}), id="cost", source="cost", source_row="0"
    )


def draw(texts: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield golds with texts, the same for the same seed."""
    rng = random.Random(seed)
    for _ in range(texts):
        yield rng.choice(GOLDS), draw_text(rng)


def measure(texts: int, seed: int) -> dict[str, object]:
    """Score every text; return the slowest of each verifier, and how many took too long."""
    pool = WorkerPool(1)
    cases = list(zip(draw(texts, seed), cycle(VERIFIERS), strict=False))
    seconds: dict[str, list[float]] = defaultdict(list)
    slowest: dict[str, list[tuple[float, str, str]]] = defaultdict(list)
    for start in range(0, texts, CHUNK):
        chunk = cases[start : start + CHUNK]
        calls = [(VERIFIERS[name], build_problem(gold), text) for (gold, text), name in chunk]
        replies = list(pool.each(warm_verdict, calls, [KILLED_S] * len(calls)))
        for place, call in enumerate(calls):
            for _ in range(REPEATED if replies[place].failure else 0):
                (replies[place],) = pool.each(warm_verdict, [call], [KILLED_S])
                if not replies[place].failure:
                    break
        for ((gold, text), name), reply in zip(chunk, replies, strict=True):
            seconds[name].append(_seconds(reply))
            heapq.heappush(slowest[name], (seconds[name][-1], gold, text))
            if len(slowest[name]) > _SHOWN:
                heapq.heappop(slowest[name])
    pool.close()
    return {name: _summary(sorted(seconds[name]), slowest[name]) for name in seconds}


def _summary(
    seconds: Sequence[float], slowest: Sequence[tuple[float, str, str]]
) -> dict[str, object]:
    return {
        "texts": len(seconds),
        "most_cpu_s": round(seconds[-1], 3),
        "p999_cpu_s": round(seconds[int(len(seconds) * 0.999)], 3),
        "mean_cpu_ms": round(1000 * sum(seconds) / len(seconds), 3),
        "over_a_second": sum(one > LIMIT_S for one in seconds),
        "slowest": [
            {"cpu_s": round(one, 3), "gold": gold, "text": text}
            for one, gold, text in sorted(slowest, reverse=True)
        ],
    }


def _seconds(reply: WorkerReply) -> float:
    return KILLED_S if reply.failure else reply.value[1]


def main(arguments: Sequence[str]) -> None:
    """Measure, write and print; see --help."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    command = f"python -m tests.examiner.cost --texts {options.texts} --seed {options.seed}"
    origin = evidence_file.origin(
        command, "tasks.gym.maths.final_answer", "tasks.gym.maths.rule_answer"
    )
    text = json.dumps(
        {**origin, **measure(options.texts, options.seed)}, indent=1, ensure_ascii=False
    )
    if options.out:
        options.out.write_text(text + "\n", "utf-8")
    print(text)  # noqa: T201 - the result of the command


if __name__ == "__main__":
    run(main)
