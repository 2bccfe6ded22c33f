"""Comparisons of the sample world: titles that are tidied, or nearly.

The tasks are those of the open-text family, from its teaching material, so that no problem of RL
or of the held-out suites is among them. Of the answers to a task one is the tidy title, as one
of the two texts is where RL compares a response with its reference. The others have a fault (a
wrong colour, a missing brand, a slogan ...), and a few are the title in another case. An answer
without a fault is better than one with a fault; otherwise they tie. The family's rule verifier
agrees.

The judge learns to write the tidy title, then either answer up to its first fault, and the label
last, which follows from these.
"""

import itertools
import random

from tasks.curation.marketplace.drawing import LEVELS
from tasks.curation.marketplace.items import is_problem_prompt
from tasks.curation.marketplace.open_text import OpenTextTask, draw_task
from tasks.curation.marketplace.title_faults import FAULTS, first_fault, same_title
from tasks.gym.judging.comparison_prompt import Label
from tasks.training.judge.pairs import ComparisonPair

TASKS = 1440
"""More tasks teach more than more epochs: the model of 0.84 M knows 360 of them by heart."""
ANSWERS = 3
"""Answers per task, the tidy title among them; all their pairs are compared."""
OTHER_CASE_SHARE = 0.1
RIGHT, WRONG = "ok", "no"
"""How the analysis of an answer ends."""


def sample_comparisons(seed: int) -> list[ComparisonPair]:
    """Draw distinct tasks and return every pair of answers of each."""
    rng = random.Random(seed)
    tasks: dict[str, OpenTextTask] = {}
    for level in itertools.cycle(LEVELS):
        if len(tasks) == TASKS:
            break
        task = draw_task(rng, level)
        if not is_problem_prompt(task.prompt):
            tasks.setdefault(task.prompt, task)
    return [
        pair
        for place, task in enumerate(tasks.values())
        for pair in _pairs(rng, task, f"sample/{place}")
    ]


def analysis(tidy: str, answer: str) -> str:
    """Write an answer up to its first fault and what is to be said of it."""
    fault = first_fault(tidy, answer)
    return f"{answer} {RIGHT}" if fault is None else f"{fault} {WRONG}"


def _pairs(rng: random.Random, task: OpenTextTask, name: str) -> list[ComparisonPair]:
    tidy = task.tidy.text
    answers = _answers(rng, task)
    return [
        ComparisonPair(
            id=f"{name}/{number}",
            task=task.prompt,
            answer_a=first,
            answer_b=second,
            label=_label(tidy, first, second),
            annotators=(),
            requirements=tidy,
            analysis_a=analysis(tidy, first),
            analysis_b=analysis(tidy, second),
        )
        for number, (first, second) in enumerate(itertools.combinations(answers, 2))
    ]


def _answers(rng: random.Random, task: OpenTextTask) -> list[str]:
    """Draw different answers in random order, with the tidy title and one that has a fault."""
    answers = [task.tidy.text]
    while len(answers) < ANSWERS:
        may_be_same = len(answers) == ANSWERS - 1
        same = may_be_same and rng.random() < OTHER_CASE_SHARE * (ANSWERS - 1)
        answer = (same_title if same else rng.choice(FAULTS))(rng, task.tidy)
        if answer and answer not in answers:
            answers.append(answer)
    return rng.sample(answers, len(answers))


def _label(tidy: str, first: str, second: str) -> Label:
    is_right = [first_fault(tidy, answer) is None for answer in (first, second)]
    if is_right[0] == is_right[1]:
        return Label.TIE
    return Label.A if is_right[0] else Label.B
