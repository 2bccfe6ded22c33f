"""Write problems for concepts, and keep the valid, new ones that nobody is examined with."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from transformers import PreTrainedTokenizerBase

from data_schemas.rollouts import StopReason
from tasks.curation.marketplace.items import is_problem_prompt
from tasks.engines.chat import render_prompts, response_text
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.lab.recipes.promptcot.formulas import concept_probabilities
from tasks.lab.recipes.promptcot.prompts import read_response, writer_prompt
from tasks.lab.recipes.promptcot.records import WordedProblem, WrittenProblem
from tasks.lab.recipes.promptcot.settings import SynthesisSettings
from tasks.lab.recipes.promptcot.wording import Concepts, parse

WALK_TEMPERATURE = 0.2
"""PromptCoT 1.0."""
UNENDED, FORM, NO_PROBLEM, OTHER_CONCEPTS = "unended", "form", "no_problem", "other_concepts"
TAUGHT, TWICE, EXAMINED = "taught", "twice", "held_out_prompt"


def write(
    settings: SynthesisSettings,
    concepts: Sequence[str],
    writer: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
) -> list[WrittenProblem]:
    """Decode one problem per set of concepts, and say which are valid.

    A valid problem is in the wording that the parser reads, has an answer, and is about the
    concepts. In the order of `concepts`.
    """
    prompts = render_prompts(tokenizer, [writer_prompt(text) for text in concepts])
    requests = [Request(f"w{place:05d}", prompt, 1) for place, prompt in enumerate(prompts)]
    sampling = Sampling(
        settings.max_new_tokens, settings.temperature, seed=settings.seed, record_routes=False
    )
    rollouts = sorted(writer.generate(requests, sampling), key=lambda one: one.problem_id)
    return [
        _check(
            rollout.problem_id,
            text,
            response_text(tokenizer, rollout.response_tokens.tolist()),
            ended=rollout.stop_reason is StopReason.END,
        )
        for text, rollout in zip(concepts, rollouts, strict=True)
    ]


def _check(name: str, concepts: str, response: str, *, ended: bool) -> WrittenProblem:
    parts = read_response(response) if ended else None
    result = parse(parts[1]) if parts else None
    reason = ""
    if not ended:
        reason = UNENDED
    elif parts is None:
        reason = FORM
    elif result is None:
        reason = NO_PROBLEM
    elif result.concepts.text != concepts:
        reason = OTHER_CONCEPTS
    problem = parts[1] if parts and not reason else ""
    return WrittenProblem(
        id=name, concepts=concepts, response=response, problem=problem, reason=reason
    )


def keep_new(rows: Sequence[WrittenProblem], taught: Sequence[str]) -> list[WrittenProblem]:
    """Leave out what is taught, was written before, or is a held-out prompt of any seed by hash."""
    texts, taught_texts = set[str](), set(taught)
    results = []
    for one in rows:
        reason = one.reason
        if not reason:
            if is_problem_prompt(one.problem):
                reason = EXAMINED
            elif one.problem in taught_texts:
                reason = TAUGHT
            elif one.problem in texts:
                reason = TWICE
            texts.add(one.problem)
        problem = one.problem if not reason else ""
        results.append(one.model_copy(update={"reason": reason, "problem": problem}))
    return results


def walk(rows: Sequence[WordedProblem], count: int, seed: int) -> list[str]:
    """Draw new sets of concepts: kinds of step and level of a problem, goods by a walk.

    The first good is drawn evenly, every other one by a softmax of co-occurrence and cosine with
    the one before.

    Args:
        rows: problems whose concepts are known.
        count: of sets.
        seed: of the draw.
    """
    rng = random.Random(f"concepts/{seed}")
    examples = [result.concepts for row in rows if (result := parse(row.problem)) is not None]
    goods = sorted({good for one in examples for good in one.goods})
    steps = _steps(examples, goods)
    results = []
    for _ in range(count):
        like = rng.choice(examples)
        path = [rng.choice(goods)]
        while len(path) < len(like.goods):
            weights = steps[path[-1]]
            others = [good for good in goods if good not in path]
            path.append(rng.choices(others, [weights[good] for good in others])[0])
        results.append(Concepts(like.kinds, tuple(path), like.level).text)
    return results


def _steps(examples: Sequence[Concepts], goods: Sequence[str]) -> dict[str, dict[str, float]]:
    """Probability of every next good."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in examples:
        for left, right in pairwise(one.goods):
            counts[left][right] += 1
            counts[right][left] += 1
    table = np.array([[counts[left][right] for right in goods] for left in goods], np.float64)
    table /= max(1.0, table.max())
    unit = table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    scores = table + unit @ unit.T
    return {
        good: dict(
            zip(goods, concept_probabilities(row.tolist(), WALK_TEMPERATURE).tolist(), strict=True)
        )
        for good, row in zip(goods, scores, strict=True)
    }
