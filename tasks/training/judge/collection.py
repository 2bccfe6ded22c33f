"""Turn comparisons into the training and held-out pairs of the judge.

Every training pair becomes two demonstrations, one per order of its answers, so that the judge
learns no position bias. Pairs whose prompt leaves the model no room for its reply, or whose
reply is longer than that room, are left out and counted.
"""

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from data_schemas.arrow import read_table, write_table
from data_schemas.rows import Demonstration, Domain, Parent
from data_schemas.settings import SFTSettings
from tasks.engines.chat import load_tokenizer, render_prompts
from tasks.engines.model_judge import REPLY_SHARE
from tasks.gym.judging.comparison_prompt import Label, comparison_prompt, completion, swap_label
from tasks.store.files import canonical_json, sha256_bytes, write_bytes
from tasks.training.judge.pairs import ComparisonPair, read_pairs, split_by_task, task_key
from tasks.training.judge.sample_comparisons import sample_comparisons

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
