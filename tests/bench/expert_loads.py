"""How evenly micro-batches load expert-parallel ranks, and what another packing could gain.

    python -m tests.bench.expert_loads

The shipped base answers drawn problems; its answers are divided into micro-batches as Megatron's
trainer divides them, and the recorded routes of the rows that it computes say which experts are
used. All expert-parallel ranks compute a layer of a micro-batch together, so its time is that of
the fullest rank. `unevenness` is the sum of the fullest ranks' loads over that of the means. No
other packing of the same rows is below the unevenness of the whole batch: a sum of maxima is at
least the maximum of the sums.
"""

import argparse
import itertools
import random
from collections.abc import Sequence
from contextlib import closing

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from data_schemas.prompts import Domain, Message, Role
from data_schemas.rollouts import Rollout
from tasks.algorithms.packing import Prefixes
from tasks.curation.marketplace.drawing import draw_items
from tasks.engines.chat import load_tokenizer, render_prompt
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.protocols import Request, Sampling
from tasks.engines.trainer_megatron.micro_batches import divide, prompt_lengths
from tasks.models.model_folder import SHIPPED
from tasks.platform.command_line import positive, run
from tests.bench.engines import training_batch

DOMAINS = (Domain.MATHS, Domain.CODE, Domain.EXTRACTION, Domain.CHOICE, Domain.INSTRUCTION)


def expert_counts(
    rollouts: Sequence[Rollout],
    division: Sequence[Sequence[Sequence[int]]],
    prefixes: Prefixes,
    num_experts: int,
) -> NDArray[np.int64]:
    """Count how often every micro-batch uses every expert of every layer, [D, J, L, E].

    Args:
        division: per data-parallel rank D, the sequences of its J micro-batches.
        prefixes: what they share is counted once in a micro-batch.
    """

    def counts_LE(micro: Sequence[int]) -> NDArray[np.int64]:
        rows = [
            _routes(rollouts[sequence])[shared:]
            for sequence, shared in zip(micro, prefixes.among(micro), strict=True)
        ]
        experts_MLK = np.concatenate([_routes(rollouts[0])[:0], *rows])
        used_LX = experts_MLK.swapaxes(0, 1).reshape(experts_MLK.shape[1], -1)
        return np.array([np.bincount(used_X, minlength=num_experts) for used_X in used_LX])

    return np.array([[counts_LE(micro) for micro in micros] for micros in division])


def unevenness(counts_DJLE: NDArray[np.int64]) -> tuple[float, float]:
    """Return the unevenness of micro-batches, and that of the whole batch.

    As many ranks hold the experts as have sequences.
    """
    ranks, _, _, experts = counts_DJLE.shape
    found_JLR = counts_DJLE.sum(0).reshape(*counts_DJLE.shape[1:3], ranks, experts // ranks).sum(-1)
    means = found_JLR.mean(-1).sum()
    whole_LR = found_JLR.sum(0)
    return float(found_JLR.max(-1).sum() / means), float(whole_LR.max(-1).sum() / means)


def _routes(rollout: Rollout) -> NDArray[np.integer]:
    """Routes [T, L, K] of the fed tokens."""
    assert rollout.trace is not None
    return rollout.trace.experts_TLK


def recorded(problems: int, samples: int, tokens: int) -> tuple[list[Rollout], int]:
    """Let the shipped base answer problems of every domain; also returns its number of experts."""
    tokenizer, draws, requests = load_tokenizer(SHIPPED), random.Random(0), []
    for domain in DOMAINS:
        for item in itertools.islice(draw_items(draws, domain, problems=True), problems):
            prompt = render_prompt(tokenizer, (Message(role=Role.USER, content=item.prompt),))
            requests.append(Request(str(len(requests)), np.array(prompt, np.int32), samples))
    with closing(HFRolloutEngine(SHIPPED)) as engine:
        rollouts = list(engine.generate(requests, Sampling(tokens, 1.0, seed=0)))
        return sorted(
            rollouts, key=lambda one: (int(one.problem_id), one.sample)
        ), engine.num_experts


def main(arguments: Sequence[str]) -> None:
    """Roll out, divide and print."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.expert_loads",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--problems", type=positive, default=8, help="of every domain")
    parser.add_argument("--samples", type=positive, default=8)
    parser.add_argument("--tokens", type=positive, default=64, help="most of an answer")
    options = parser.parse_args(arguments)
    rollouts, experts = recorded(options.problems, options.samples, options.tokens)
    batch = training_batch(rollouts)
    prefixes = batch.prefixes
    table = Table(title="max / mean load of expert-parallel ranks", box=None)
    for head in ("ranks", "tokens", "micro-batches", "as divided", "bound", "gain at most"):
        table.add_column(head, justify="right")
    for ranks, tokens in itertools.product((2, 4, 8), (256, 1024)):
        division = divide(
            batch.lengths_N.tolist(),
            num_ranks=ranks,
            max_tokens=tokens,
            prefixes=prefixes,
            prompts=prompt_lengths(batch),
        )
        found, bound = unevenness(expert_counts(rollouts, division, prefixes, experts))
        cells = (ranks, tokens, len(division[0]))
        gain = f"{found / bound - 1:.1%}"
        table.add_row(*map(str, cells), f"{found:.3f}", f"{bound:.3f}", gain)
    Console(highlight=False).print(table)


if __name__ == "__main__":
    run(main)
