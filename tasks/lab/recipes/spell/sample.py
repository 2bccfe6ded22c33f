"""The sample world of a self-play: offer lists, and what questioner, responder and verifier say.

`problems.jsonl` contains clusters of offer lists for the questioner, and questions with references
for a plain phase and the held-out suites; `demonstrations.jsonl` contains responses of the three
roles to other clusters. A question behind a memory is harder than all of it, as long as the lists
have as much. Half of the answers that the verifier is shown mean the same; its two answers are of
no list that others see.

Problems and demonstrations share no cluster for any seed.
"""

import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from data_schemas.rows import Domain, Message, Parent
from tasks.curation.adapters.table import Adapter
from tasks.curation.adapters.verified import verified
from tasks.curation.items import Item
from tasks.curation.marketplace.items import compact, is_problem_prompt, respond
from tasks.curation.marketplace.words import BRANDS
from tasks.curation.rows import RawRow
from tasks.gym.table import VERIFIERS
from tasks.lab.recipes.spell import roles
from tasks.lab.recipes.spell.offers import (
    MOST_OPERATIONS,
    OfferList,
    Question,
    Task,
    draw_cluster,
    draw_question,
)
from tasks.lab.recipes.spell.roles import (
    questioner_input,
    responder_input,
    verifier_input,
)
from tasks.lab.recipes.spell.settings import PastQuestion, SpellRole
from tasks.store.files import write_bytes

SOURCE = f"{__name__}:SAMPLE"
"""Its name in settings."""
PROBLEMS = "problems.jsonl"
DEMONSTRATIONS = "demonstrations.jsonl"
NUM_CLUSTERS = 120
"""For the questioner, each with every task."""
NUM_QUESTIONS = 900
"""With references."""
SHOWN = {SpellRole.QUESTIONER: 1200, SpellRole.RESPONDER: 1500, SpellRole.VERIFIER: 2400}
"""Demonstrations per role."""
MEMORY = 3
NEW_LISTS = 2
Cluster = tuple[OfferList, ...]


def generate(seed: int, folder: Path) -> None:
    """Write both files; the same seed gives the same bytes."""
    rng = random.Random(f"sample self-play/{seed}")
    clusters = _clusters(rng, problems=True)
    cluster_rows = [_cluster_row(cluster) for cluster in islice(clusters, NUM_CLUSTERS)]
    question_rows = [_pose(rng, n, one) for n, one in enumerate(islice(clusters, NUM_QUESTIONS))]
    clusters_to_teach = _clusters(rng, problems=False)
    writers = {
        SpellRole.QUESTIONER: _teach_question,
        SpellRole.RESPONDER: _teach_answer,
        SpellRole.VERIFIER: _teach_vote,
    }
    demonstrations = [
        writers[agent](rng, number, cluster)
        for agent, count in SHOWN.items()
        for number, cluster in enumerate(islice(clusters_to_teach, count))
    ]
    _write(folder / PROBLEMS, "p", [*cluster_rows, *question_rows])
    _write(folder / DEMONSTRATIONS, "d", demonstrations)


def _clusters(rng: random.Random, *, problems: bool) -> Iterator[Cluster]:
    while True:
        cluster = draw_cluster(rng)
        if is_problem_prompt("\n".join(one.text for one in cluster)) == problems:
            yield cluster


def _task(number: int) -> Task:
    return tuple(Task)[number % len(Task)]


def _lines(lists: Cluster) -> list[str]:
    return [one.text for one in lists]


def _row(messages: tuple[Message, ...], domain: Domain, verifier: str) -> dict[str, object]:
    return {
        "domain": domain,
        "language": "en",
        "messages": [message.model_dump(mode="json") for message in messages],
        "verifier": verifier,
        "answer": {},
    }


def _cluster_row(cluster: Cluster) -> dict[str, object]:
    """Write the documents of a cluster; what is asked about them is up to the policy."""
    return _row(questioner_input(Task.NUMERIC, (), _lines(cluster)), Domain.GENERAL, roles.NAME)


def _pose(rng: random.Random, number: int, cluster: Cluster) -> dict[str, object]:
    """Write a question with its reference."""
    task = _task(number)
    question = draw_question(rng, task, cluster, rng.randint(1, MOST_OPERATIONS))
    messages = responder_input(_lines(cluster), question.text)
    if task is Task.NUMERIC:
        row = _row(messages, Domain.MATHS, "final_answer")
        return row | {"level": question.operations, "answer": {"value": question.answer}}
    if task is Task.CHOICE:
        brands = question.text.rpartition(": ")[2].split(", ")
    else:
        brands = [brand for one in cluster for brand, _ in one.offers]
    others = [[brand] for brand in brands if brand != question.answer]
    row = _row(messages, Domain.CHOICE, "choice")
    gold = {"correct": [question.answer], "others": others}
    return row | {"level": question.operations, "answer": gold}


def _teach_question(rng: random.Random, number: int, cluster: Cluster) -> dict[str, object]:
    """Write a question about two new lists and those of a memory of none to three questions."""
    task, lists = _task(number), list(cluster)
    memory: list[PastQuestion] = []
    all_lists: list[OfferList] = []
    operations = 0
    for _ in range(rng.randint(0, MEMORY)):
        mine = rng.sample(lists, NEW_LISTS)
        operations = min(operations + rng.randint(0, 1) + (not memory), MOST_OPERATIONS)
        all_lists += [one for one in mine if one not in all_lists]
        old = draw_question(rng, rng.choice(tuple(Task)), all_lists, operations)
        operations = max(operations, old.operations)
        lines = tuple(one.text for one in mine)
        memory.append(PastQuestion(documents=lines, question=old.text, answer=old.answer))
    new = rng.sample(lists, NEW_LISTS)
    all_lists += [one for one in new if one not in all_lists]
    questions = {one.question for one in memory}
    target = min(operations + 1, MOST_OPERATIONS)
    question = draw_question(rng, task, all_lists, target)
    while question.text in questions:
        question = draw_question(rng, task, all_lists, target)
    messages = questioner_input(task, memory, [one.text for one in new])
    response = respond(question.steps, compact({"q": question.text, "a": question.answer}))
    return _row(messages, Domain.GENERAL, roles.NAME) | _reply(response)


def _teach_answer(rng: random.Random, number: int, cluster: Cluster) -> dict[str, object]:
    question = draw_question(rng, _task(number), cluster, rng.randint(1, MOST_OPERATIONS))
    messages = responder_input(_lines(cluster), question.text)
    answer = question.answer if rng.random() < 0.8 else f"It is {question.answer}"
    return _row(messages, Domain.GENERAL, roles.NAME) | _reply(respond(question.steps, answer))


def _teach_vote(rng: random.Random, number: int, cluster: Cluster) -> dict[str, object]:
    task = _task(number)
    question = draw_question(rng, task, cluster, rng.randint(1, MOST_OPERATIONS))
    same = rng.random() < 0.5
    answer = question.answer if same else _wrong(rng, task, question)
    wording = answer if rng.random() < 0.7 else f"It is {answer}"
    messages = verifier_input(question.text, question.answer, wording)
    vote = "[[YES]]" if same else "[[NO]]"
    response = respond(f"{question.answer}, {answer}", vote)
    return _row(messages, Domain.GENERAL, roles.NAME) | _reply(response)


def _wrong(rng: random.Random, task: Task, question: Question) -> str:
    if task is not Task.NUMERIC:
        return rng.choice([brand for brand in BRANDS if brand != question.answer])
    return str(max(1, int(question.answer) + rng.choice((-10, -2, -1, 1, 2, 10))))


def _reply(response: str) -> dict[str, object]:
    return {"parent": Parent.REASONING, "response": response}


def _write(path: Path, prefix: str, rows: list[dict[str, object]]) -> None:
    lines = (
        json.dumps({"id": f"{prefix}{number:05d}", **row}, ensure_ascii=False)
        for number, row in enumerate(rows)
    )
    write_bytes(path, ("\n".join(lines) + "\n").encode())


def sample_self_play(row: RawRow) -> list[Item]:
    """Read a row of questioner, responder or verifier."""
    return verified("sample_self_play", row, VERIFIERS)


SAMPLE = Adapter(
    sample_self_play,
    ("domain", "language", "messages", "verifier", "answer"),
    (PROBLEMS, DEMONSTRATIONS),
    generate,
)
