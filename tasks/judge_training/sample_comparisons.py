"""Comparisons of the sample world: titles of three qualities, so that ties are meaningful.

A task asks for a tidy title. An answer is a tidy title (quality 2), a title with sale slogans (1),
or only sale slogans (0). Two different answers of equal quality are a tie. The task is much easier
than human comparisons: a model of a million weights learns it in minutes, so the whole training of
a judge can be tried out.
"""

import itertools
import random

from tasks.judge_training.pairs import ComparisonPair
from tasks.marketplace.words import BRANDS, LANGUAGES, Language
from tasks.rewards.judging.form import Label

TASKS = 180
ANSWERS = 4
"""Answers per task; all their pairs are compared."""
QUALITIES = (0, 1, 2)
REQUIREMENTS = "title, no slogans"
ANALYSES = ("slogans, no title", "title, slogans", "title, no slogans")
"""What an answer of each quality does: from two of these the label follows."""


def sample_comparisons(seed: int) -> list[ComparisonPair]:
    """Draw distinct tasks and return every pair of answers of each."""
    rng = random.Random(seed)
    tasks: dict[str, dict[str, int]] = {}
    while len(tasks) < TASKS:
        task, answers = _draw(rng)
        tasks.setdefault(task, answers)
    return [
        ComparisonPair(
            id=f"sample/{place}/{number}",
            task=task,
            answer_a=first,
            answer_b=second,
            label=_label(answers[first], answers[second]),
            annotators=(),
            requirements=REQUIREMENTS,
            analysis_a=ANALYSES[answers[first]],
            analysis_b=ANALYSES[answers[second]],
        )
        for place, (task, answers) in enumerate(tasks.items())
        for number, (first, second) in enumerate(itertools.combinations(answers, 2))
    ]


def _draw(rng: random.Random) -> tuple[str, dict[str, int]]:
    """Draw a task and its answers with their quality; at least two qualities differ."""
    language = rng.choice(LANGUAGES)
    good = rng.choice(rng.choice(language.goods))
    words = [rng.choice(BRANDS), rng.choice(language.colours), good]
    rng.shuffle(words)
    qualities = rng.choices(QUALITIES, k=ANSWERS)
    while len(set(qualities)) == 1:
        qualities = rng.choices(QUALITIES, k=ANSWERS)
    answers: dict[str, int] = {}
    for quality in qualities:
        # Redraw until the wording is new; every quality has more wordings than ANSWERS.
        while (answer := _answer(rng, language, words, quality)) in answers:
            pass
        answers[answer] = quality
    return f"{language.tidy} {' '.join(words)}", answers


def _answer(rng: random.Random, language: Language, words: list[str], quality: int) -> str:
    title = rng.sample(words, len(words)) if quality > 0 else []
    shouts = [f"{language.sale}!"] * (rng.randint(2, 5) if quality < 2 else 0)
    return " ".join([*title, *shouts])


def _label(first: int, second: int) -> Label:
    if first == second:
        return Label.TIE
    return Label.A if first > second else Label.B
