"""Label written problems by the majority of a model's answers, and audit the labels.

The parser's answer is written beside the label. Nothing is trained on it: a model that is taught
real problems has no parser.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from data_schemas.rows import Domain, Message, Problem, Role
from data_schemas.sources import RAW_FILES, RawFile
from tasks.engines.chat import render_prompts, response_text
from tasks.engines.protocols import Request, RolloutEngine, Sampling
from tasks.errors import DataError
from tasks.formats.mapping_files import shipped_mappings
from tasks.gym.table import VERIFIERS
from tasks.gym.voting import voted_answer
from tasks.lab.recipes.promptcot.formulas import majority
from tasks.lab.recipes.promptcot.prompts import LANGUAGE
from tasks.lab.recipes.promptcot.records import LabelledProblem, WrittenProblem
from tasks.lab.recipes.promptcot.settings import SynthesisSettings
from tasks.lab.recipes.promptcot.wording import parse
from tasks.store.files import canonical_json, sha256_file, write_bytes

MAPPING = "synthesised"
"""Reads the rows of the file."""
RAW_FILE = "problems.jsonl"


def label(
    settings: SynthesisSettings,
    rows: Sequence[WrittenProblem],
    solver: RolloutEngine,
    tokenizer: PreTrainedTokenizerBase,
) -> list[LabelledProblem]:
    """Let the solver answer every problem, and take the most frequent answer.

    A tie gives no label.

    Args:
        settings: answers per problem.
        rows: those that were kept.
        solver: answers at temperature 1.
        tokenizer: of the solver.
    """
    problems = [_problem(one.id, one.problem) for one in rows]
    prompts = render_prompts(tokenizer, [problem.messages for problem in problems])
    requests = [
        Request(problem.id, prompt, settings.votes)
        for problem, prompt in zip(problems, prompts, strict=True)
    ]
    sampling = Sampling(settings.max_new_tokens, 1.0, seed=settings.seed, record_routes=False)
    texts: dict[str, dict[int, str]] = defaultdict(dict)
    for rollout in solver.generate(requests, sampling):
        text = response_text(tokenizer, rollout.response_tokens.tolist())
        texts[rollout.problem_id][rollout.sample] = text
    return [
        _vote(problem, [text for _, text in sorted(texts[problem.id].items())])
        for problem in problems
    ]


def _problem(name: str, text: str, answer: str = "0") -> Problem:
    return Problem(
        id=name,
        domain=Domain.MATHS,
        language=LANGUAGE,
        messages=(Message(role=Role.USER, content=text),),
        verifier="final_answer",
        answer=canonical_json({"value": answer}).decode(),
        source=MAPPING,
        source_row="",
    )


def _vote(problem: Problem, responses: Sequence[str]) -> LabelledProblem:
    verify = VERIFIERS[problem.verifier]
    answers = [voted_answer(problem, text, verify(problem, text)) or None for text in responses]
    result = majority(answers)
    truth = parse(problem.prompt_text)
    if truth is None:
        raise DataError(f"{problem.prompt_text!r} was kept, but the parser does not read it")
    return LabelledProblem(
        id=problem.id,
        problem=problem.prompt_text,
        label=None if result.tied else result.answer,
        votes=result.votes,
        of=result.of,
        truth=str(truth.answer),
    )


def write_raw(labelled: Sequence[LabelledProblem], out: Path) -> None:
    """Write the problems that have a label as a raw file with its list, which curation reads."""
    rows = [
        json.dumps({"id": one.id, "problem": one.problem, "answer": one.label})
        for one in labelled
        if one.label is not None
    ]
    if not rows:
        raise DataError("no written problem has a label; raise synthesis.problems")
    path = out / RAW_FILE
    write_bytes(path, ("\n".join(rows) + "\n").encode())
    entry = RawFile(
        adapter=MAPPING,
        uri=RAW_FILE,
        sha256=sha256_file(path),
        bytes=path.stat().st_size,
        limit=0,
        source=0,
        mapping=shipped_mappings()[MAPPING],
    )
    dumped = [entry.model_dump(mode="json", exclude_none=True)]
    write_bytes(out / RAW_FILES, canonical_json(dumped))


def audit(labelled: Sequence[LabelledProblem]) -> tuple[int, int]:
    """Count the labels, and those that are not the parser's answer."""
    labels = [one for one in labelled if one.label is not None]
    return len(labels), sum(one.label != one.truth for one in labels)
