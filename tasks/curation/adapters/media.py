"""Benchmarks with sound and video. Engines take text only, so their questions are never answered.

AV-SpeakerBench (arXiv 2512.02231). A run that needs the clip is refused by name. The same
questions without any clip are a source of their own: a floor, which a model without ears and
eyes reaches.
"""

from data_schemas.rows import Domain, Message, Problem, Role
from tasks.curation.items import Item
from tasks.curation.rows import BadRow, RawRow, as_texts
from tasks.store.files import canonical_json

BLIND = "av_speakerbench_blind"
NEEDS_MEDIA = {
    "av_speakerbench": "it asks about sound and video, and every engine here takes text only. The "
    f"questions alone are the adapter {BLIND!r}, a floor; answers that another program made are "
    "compared by workflows/lab/recipes/av_speaker.py"
}
"""Benchmarks that no run here can answer, and what can be run instead."""
_LETTERS = "ABCD"


def av_speakerbench_blind(row: RawRow) -> list[Item]:
    """Read a question and its four choices, without the clip that they are about."""
    question, answer = row.text("question"), row.text("answer").strip().strip("().")
    choices = row.fields.get("choices")
    if (
        not isinstance(choices, list)
        or len(choices) != len(_LETTERS)
        or len(set(as_texts(choices, "choices"))) != len(_LETTERS)
    ):
        raise BadRow("bad_gold", f"choices are not four different texts: {choices!r}")
    if answer not in tuple(_LETTERS):
        raise BadRow("bad_gold", f"answer is {answer!r}, not one of A, B, C, D")
    lines = "\n".join(
        f"{letter}: {choice}" for letter, choice in zip(_LETTERS, choices, strict=True)
    )
    gold = {"correct": [answer], "others": [[other] for other in _LETTERS if other != answer]}
    prompt = f"{question}\n{lines}\nThere is no clip: guess. Answer A, B, C or D."
    problem = Problem(
        id=f"{BLIND}/{row.key}",
        domain=Domain.CHOICE,
        language="en",
        messages=(Message(role=Role.USER, content=prompt),),
        verifier="choice",
        answer=canonical_json(gold).decode(),
        source=BLIND,
        source_row=row.source_row,
    )
    return [Item(problem, content=f"{question}\n{lines}")]
