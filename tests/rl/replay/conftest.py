"""Real steps of the tiny model, by settings; every phase is trained once."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from data_schemas.rl_settings import RLSettings
from data_schemas.rollouts import ResponseScore, ScoringRequest
from data_schemas.rows import Domain, Problem
from data_schemas.verdicts import scored
from tasks.engines.chat import load_tokenizer, response_text
from tasks.rl.phase import Phase, train
from tasks.rl.step_snapshot import StepSnapshot, decode, name_of
from tests.records import problem_of


@dataclass
class EvenScorer:
    """Full marks for an even number of characters."""

    tokenizer: object
    waiting: list[ScoringRequest] = field(default_factory=list)

    def submit(self, item: ScoringRequest) -> None:
        self.waiting.append(item)

    def gather(self) -> dict[tuple[str, int], ResponseScore]:
        items, self.waiting = self.waiting, []
        found = {}
        for item in items:
            text = response_text(self.tokenizer, item.tokens.tolist())
            verdict = scored(float(len(text) % 2 == 0), "rule")
            found[item.group, item.sample] = ResponseScore(text, verdict, 0.0, 0)
        return found

    def check_canaries(self, verifiers) -> None:
        """There are no canaries."""


def problem(number: int) -> Problem:
    domain = (Domain.MATHS, Domain.CODE)[number % 2]
    return problem_of(
        f"say {number}", '{"value":"1"}', id=f"rule/{number}", domain=domain, source="rule"
    )


@pytest.fixture(scope="session")
def snapshot_file(tiny_moe, tmp_path_factory):
    """Train two steps under some settings; return the file of the second."""
    made: dict[str, Path] = {}

    def build(**changes: object) -> Path:
        name = repr(sorted(changes.items()))
        if name not in made:
            folder = tmp_path_factory.mktemp("phase")
            settings = RLSettings(
                domains={Domain.MATHS: 1.0, Domain.CODE: 1.0},
                steps=2,
                prompts_per_step=4,
                group_size=4,
                max_new_tokens=6,
                learning_rate=1e-2,
            ).model_copy(update=changes)
            problems = tuple(problem(number) for number in range(12))
            phase = Phase(settings, tiny_moe, problems, folder, "code-a")
            list(train(phase, EvenScorer(load_tokenizer(tiny_moe))))
            made[name] = folder / "snapshots" / name_of(2)
        return made[name]

    return build


@pytest.fixture(scope="session")
def snapshot(snapshot_file):
    def build(**changes: object) -> StepSnapshot:
        return decode(snapshot_file(**changes).read_bytes())

    return build
