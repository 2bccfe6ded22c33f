"""Turn comparisons, read or of the sample world, into the pairs of the judge."""

import itertools
import json
import logging
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from data_schemas.arrow import read_table, write_table
from data_schemas.rows import Demonstration, Domain, Parent
from data_schemas.settings import SFTSettings
from tasks.curation.marketplace.drawing import LEVELS
from tasks.curation.marketplace.items import is_problem_prompt
from tasks.curation.marketplace.open_text import OpenTextTask, draw_task
from tasks.curation.marketplace.title_faults import FAULTS, first_fault, same_title
from tasks.engines.chat import load_tokenizer, render_prompts
from tasks.engines.model_judge import REPLY_SHARE
from tasks.gym.judging.comparison_prompt import Label, comparison_prompt, completion, swap_label
from tasks.store.files import canonical_json, sha256_bytes, write_bytes
from tasks.training.judge.pairs import ComparisonPair, read_pairs, split_by_task, task_key

# Comparisons of the sample world: titles that are tidied, or nearly.
#
# The tasks are those of the open-text family, from its teaching material, so that no problem of RL
# or of the held-out suites is among them. Of the answers to a task one is the tidy title, as one
# of the two texts is where RL compares a response with its reference. The others have a fault (a
# wrong colour, a missing brand, a slogan ...), and a few are the title in another case. An answer
# without a fault is better than one with a fault; otherwise they tie. The family's rule verifier
# agrees.
#
# The judge learns to write the tidy title, then either answer up to its first fault, and the label
# last, which follows from these.

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


# Turn comparisons into the training and held-out pairs of the judge.
#
# Every training pair becomes two demonstrations, one per order of its answers, so that the judge
# learns no position bias. Pairs whose prompt leaves the model no room for its reply, or whose
# reply is longer than that room, are left out and counted.

logger = logging.getLogger(__name__)

DEMONSTRATIONS = "demonstrations.parquet"
"""The file name that fine-tuning reads."""
TRAINING = "training.parquet"
HELD_OUT = "held_out.parquet"
LEFT_OUT = "left_out.json"
_ANY_ENTROPY = (0.0, 1e3)
COMPARISONS = {Label.A: "A is better", Label.B: "B is better", Label.TIE: "equal"}
UNDETERMINED = "und"
"""BCP 47 tag of an unspecified language."""


def settings_for_judge(settings: SFTSettings) -> SFTSettings:
    """Select the checkpoint by validation loss alone, and measure entropy on one prompt.

    The entropy window is for models that explore in RL; a judge replies in one fixed form.
    """
    return settings.model_copy(update={"entropy_window": _ANY_ENTROPY, "entropy_prompts": 1})


def check(settings: SFTSettings, files: Sequence[Path]) -> None:
    """Refuse files that `collect` would refuse for what is in them; none is the sample world.

    Raises:
        DataError: a file cannot be read, or has too few tasks to be split.
    """
    if files:
        split_by_task(read_pairs(files)[0], settings.seed)


def collect(
    settings: SFTSettings, files: Sequence[Path], base: Path, out: Path
) -> dict[str, float | int | str]:
    """Write training pairs, held-out pairs and demonstrations; return their counts.

    Args:
        settings: its seed determines the sample and the split.
        files: of PandaLM or LLMBar; empty for the sample world.
        base: its tokenizer and context length determine which pairs fit.
        out: empty folder.
    """
    if files:
        pairs, left_out = read_pairs(files)
    else:
        pairs, left_out = sample_comparisons(settings.seed), Counter[str]()
    fitting = _select_fitting(pairs, base)
    left_out["too_long"] = len(pairs) - len(fitting)
    for reason, count in left_out.items():
        if count:
            logger.warning("%d comparisons left out: %s", count, reason)
    training, held_out = split_by_task(fitting, settings.seed)
    return write_collection(training, held_out, left_out, out)


def write_collection(
    training: Sequence[ComparisonPair],
    held_out: Sequence[ComparisonPair],
    left_out: Mapping[str, int],
    out: Path,
) -> dict[str, float | int | str]:
    """Write the pairs and the demonstrations of the training ones; return their counts."""
    demonstrations = [row for pair in training for row in both_orders(pair)]
    write_table(out / TRAINING, ComparisonPair, training)
    write_table(out / HELD_OUT, ComparisonPair, held_out)
    write_table(out / DEMONSTRATIONS, Demonstration, demonstrations)
    write_bytes(out / LEFT_OUT, canonical_json(dict(left_out)))
    return {
        "training_pairs": len(training),
        "training_tasks": len({task_key(pair.task) for pair in training}),
        "held_out_pairs": len(held_out),
        "held_out_tasks": len({task_key(pair.task) for pair in held_out}),
        **{f"left_out/{reason}": count for reason, count in left_out.items()},
    }


def both_orders(pair: ComparisonPair) -> tuple[Demonstration, Demonstration]:
    """Write a pair as two demonstrations, one per order of its answers.

    The analyses of a pair come before its label. Human files have none: from them a judge
    learns labels only.
    """
    a, b = (pair.answer_a, pair.analysis_a), (pair.answer_b, pair.analysis_b)
    orders = ((a, b, pair.label), (b, a, swap_label(pair.label)))
    row = sha256_bytes(canonical_json(pair))
    first, second = (
        Demonstration(
            id=f"{pair.id}/{place}",
            parent=Parent.JUDGE,
            domain=Domain.OPEN_TEXT,
            language=UNDETERMINED,
            messages=comparison_prompt(pair.task, answer_one, answer_two),
            response=completion(
                label,
                requirements=pair.requirements,
                analysis_a=analysis_a,
                analysis_b=analysis_b,
                comparison=COMPARISONS[label] if pair.requirements else "",
            ),
            source="comparisons",
            source_row=row,
        )
        for place, ((answer_one, analysis_a), (answer_two, analysis_b), label) in enumerate(
            orders, start=1
        )
    )
    return first, second


def read_collection(folder: Path) -> tuple[list[ComparisonPair], list[ComparisonPair]]:
    """Read the pairs: (training, held out)."""
    return read_table(folder / TRAINING, ComparisonPair), read_table(
        folder / HELD_OUT, ComparisonPair
    )


def _select_fitting(pairs: Sequence[ComparisonPair], base: Path) -> list[ComparisonPair]:
    """Keep the pairs whose prompt leaves the judge room for its reply, and whose reply fits it."""
    if not pairs:
        return []
    context = int(json.loads((base / "config.json").read_bytes())["max_position_embeddings"])
    reply = context // REPLY_SHARE
    tokenizer = load_tokenizer(base)
    rows = [both_orders(pair)[0] for pair in pairs]
    prompts = render_prompts(tokenizer, [row.messages for row in rows])
    replies = tokenizer([row.response for row in rows]).input_ids
    return [
        pair
        for pair, prompt, answer in zip(pairs, prompts, replies, strict=True)
        if len(prompt) <= context - reply and len(answer) < reply
    ]
