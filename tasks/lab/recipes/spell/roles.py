"""What questioner, responder and verifier of a self-play are asked, and how they are read (SPELL).

The questioner answers with JSON, `{"q": question, "a": answer}`; the responder with an answer; the
verifier's last line is `[[YES]]` or `[[NO]]`. Nothing here reads `Problem.answer`: what is asked
and what is right is in the messages and in the agents' own responses.

Source: SPELL (arXiv 2509.23863).
Differs: an answer has at most MAX_ANSWER_WORDS words (the paper: 20 tokens), and a choice at least
two options (the paper: four).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from data_schemas.rows import Message, Problem, Role
from data_schemas.verdicts import Verdict, abstain, scored
from tasks.gym.protocol import answer_part
from tasks.gym.scoring.canaries import Canary
from tasks.lab.recipes.spell.offers import Task
from tasks.lab.recipes.spell.settings import PastQuestion, SpellRole

ASK = {task: f"Ask: {task}" for task in Task}
"""First message of the questioner."""
ANSWER = "Answer"
"""Message to the responder."""
COMPARE = "Same? Last line: [[YES]] or [[NO]]"
"""Message to the verifier."""
NAME = f"{__name__}:verify"
"""Name of the verifier of a response's form, in a row."""
CANARIES = (Canary(NAME, {}, "[[YES]]", "Yes, or [[NO]]", prompt=COMPARE),)
MAX_ANSWER_WORDS = 20
_NEW = "New:"
_VOTE = re.compile(r"^ *\[\[(YES|NO)\]\] *$", re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_WORD = re.compile(r"-?\d+(?:\.\d+)?|\w+")


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """A question of the policy, with the answer that it gives itself."""

    question: str
    answer: str

    @property
    def usable(self) -> bool:
        """False for an answer that the published code passes over: 0, or too long."""
        return self.answer != "0" and len(self.answer.split()) <= MAX_ANSWER_WORDS

    def fits(self, task: Task) -> bool:
        """Say whether the question has the form of a task."""
        is_number = _NUMBER.fullmatch(self.answer) is not None
        match task:
            case Task.NUMERIC:
                return is_number
            case Task.FREE:
                return not is_number
            case Task.CHOICE:
                options = self.question.rpartition(": ")[2].split(", ")
                return 1 < len(set(options)) == len(options) and self.answer in options


def questioner_input(
    task: Task, memory: Sequence[PastQuestion], documents: Sequence[str]
) -> tuple[Message, ...]:
    """Ask for a question that is harder than those remembered, and different."""
    old = [line for one in memory for line in (*one.documents, f"Q: {one.question} = {one.answer}")]
    return _messages(ASK[task], [*old, _NEW, *documents])


def new_documents(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the documents that a questioner was shown, without those of its memory."""
    return tuple(messages[-1].content.rpartition(f"{_NEW}\n")[2].splitlines())


def responder_input(documents: Sequence[str], question: str) -> tuple[Message, ...]:
    """Ask a question about documents; without any, to see whether it can be guessed."""
    return _messages(ANSWER, [*documents, question])


def documents_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the documents that a responder was shown."""
    return tuple(messages[-1].content.splitlines()[:-1])


def verifier_input(question: str, reference: str, answer: str) -> tuple[Message, ...]:
    """Ask whether two answers mean the same."""
    return _messages(COMPARE, [question, reference, answer])


def agent_of(messages: Sequence[Message]) -> SpellRole | None:
    """Name the agent that is asked; None if it is none of these."""
    first = messages[0].content
    agents = dict.fromkeys(ASK.values(), SpellRole.QUESTIONER)
    return (agents | {ANSWER: SpellRole.RESPONDER, COMPARE: SpellRole.VERIFIER}).get(first)


def task_of(messages: Sequence[Message]) -> Task:
    """Name the task that a questioner is given."""
    return next(task for task, text in ASK.items() if text == messages[0].content)


def read_question(response: str) -> QuestionAnswer | None:
    """Read a question and its answer, of any task; None if they are not there."""
    try:
        result = json.loads(answer_part(response) or "")
    except ValueError:
        return None
    if not isinstance(result, dict) or set(result) != {"q", "a"}:
        return None
    question, answer = (_one_line(result[name]) for name in ("q", "a"))
    return QuestionAnswer(question, answer) if question and answer else None


def read_answer(response: str) -> str | None:
    """Read an answer in one line; None if there is none, or a long one."""
    answer = " ".join((answer_part(response) or "").split())
    return answer if 0 < len(answer.split()) <= MAX_ANSWER_WORDS else None


def read_vote(response: str) -> bool | None:
    """Read a vote: True for the same meaning, None if there is no vote."""
    matches = _VOTE.findall(answer_part(response) or "")
    return matches[-1] == "YES" if matches else None


def covers(reference: str, answer: str) -> bool:
    """Say whether an answer contains the reference, word by word, and no other number.

    Differs: the published check looks for the characters, so that 112 covers 12, and a list of
    numbers any of them.
    """
    target, words = (_WORD.findall(text.casefold()) for text in (reference, answer))
    places = range(len(words) - len(target) + 1)
    result = bool(target) and any(words[at : at + len(target)] == target for at in places)
    numbers = {word for word in words if _NUMBER.fullmatch(word)}
    return result and numbers <= set(target)


def verify(problem: Problem, response: str) -> Verdict:
    """Score 1 if the response has the form of its role, else 0; the gold is not read."""
    match agent_of(problem.messages):
        case SpellRole.QUESTIONER:
            question = read_question(response)
            fits = question is not None and question.fits(task_of(problem.messages))
        case SpellRole.RESPONDER:
            fits = read_answer(response) is not None
        case SpellRole.VERIFIER:
            fits = read_vote(response) is not None
        case _:
            return abstain("no_role", "the first message is of no role")
    return scored(1.0, "well_formed") if fits else scored(0.0, "bad_format")


def _one_line(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _messages(system: str, lines: Sequence[str]) -> tuple[Message, ...]:
    return (
        Message(role=Role.SYSTEM, content=system),
        Message(role=Role.USER, content="\n".join(lines)),
    )
