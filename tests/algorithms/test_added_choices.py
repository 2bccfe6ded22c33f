"""A choice is added by a file and a line: the names, the listing, the check and its use know it."""

import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml

import tasks
from tests.processes import run_process

ROOT = Path(tasks.__file__).parents[1]
LOSS = '''"""GRPO with one width."""

from tasks.algorithms.losses.grpo import GRPO


class Even(GRPO):
    """The same width on both sides."""

    clip_low: float = 0.3
    clip_high: float = 0.3
'''
TERM = '''"""Weights of a half."""

from pydantic import Field

from tasks.algorithms.terms.protocol import StepEffect, Term


class Half(Term):
    """Every token weighs less."""

    share: float = Field(default=0.5, description="of its weight")

    def weigh(self, step):
        """Weigh."""
        return StepEffect(weights_NT=self.share * step.kept_NT)
'''
ADVANTAGE = '''"""Advantages by a power of the scores."""

from pydantic import Field

from tasks.algorithms.advantages.centred import CentredAdvantage


class Powered(CentredAdvantage):
    """Centre the scores to a power."""

    power: float = Field(default=1.0, description="of a score")

    def estimate(self, scores_PG, penalties_PG, valid_PG, *, std_floor):
        """Centre."""
        scores_PG = scores_PG**self.power
        return super().estimate(scores_PG, penalties_PG, valid_PG, std_floor=std_floor)
'''
VERIFIER = '''"""Responses of an even length are right."""

from tasks.gym.protocol import scored


def verify(problem, response):
    """Count."""
    return scored(float(len(response) % 2 == 0), "even")
'''
BEFORE = """
import sys
from data_schemas.settings import PipelineSettings
from tasks.settings import check

settings = PipelineSettings.model_validate({"rl_one": %s})
check.require_names(settings)
assert "torch" not in sys.modules

from tasks.settings.listing import rows_of
from tasks.settings.fit import require_fit, settle

require_fit(settings, trains=True)
settings = settle(settings)
rows = {row.name: row.value for row in rows_of(settings)}
"""
LOSS_USE = """
from tasks.algorithms.losses import table
print(table.find(settings.rl_one.loss).clip_range, rows["rl_one.loss.clip_low"])
"""
ADVANTAGE_USE = """
import torch
from tasks.algorithms.advantages.table import find

scores = torch.tensor([[0.0, 0.5]])
found = find(settings.rl_one)
values = found.estimate(scores, 0 * scores, scores > -1, std_floor=0.0)
print(values.tolist(), rows["rl_one.advantage.power"])
"""
VERIFIER_USE = """
from data_schemas.rows import Message, Problem, Role
from tasks.gym.table import VERIFIERS

problem = Problem(
    id="p", domain="maths", language="en", messages=(Message(role=Role.USER, content="q"),),
    verifier="added", answer="{}", source="s", source_row="0" * 64,
)
print([VERIFIERS["added"](problem, text).score for text in ("ab", "abc")])
"""
TERM_USE = """
import torch
from tasks.algorithms.losses.surrogate import unclipped
from tasks.algorithms.losses.table import whole_step
from tasks.algorithms.terms.fold import fold_step
from tasks.algorithms.terms.protocol import StepSignal
from tasks.algorithms.terms.table import find_terms

one, no = torch.ones(1, 1), torch.zeros(1, dtype=torch.bool)
signal = StepSignal(
    *(one.bool(), one, one, one, one, None, no, no, whole_step(one.bool())),
    *(one, unclipped(one, one), one, one),
)
weights_NT = fold_step(find_terms(settings.rl_one.terms), signal).weights_NT
print(weights_NT.tolist(), rows["rl_one.terms[0].share"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "table", "text", "changes", "use", "expected"),
    [
        pytest.param(
            *("losses", "LOSSES", LOSS, '{"loss": {"kind": "added", "clip_high": 0.4}}', LOSS_USE),
            "(0.3, 0.4) 0.3",
            id="loss",
        ),
        pytest.param(
            *("terms", "TERMS", TERM, '{"terms": [{"kind": "added", "share": 0.25}]}', TERM_USE),
            "[[0.25]] 0.25",
            id="term",
        ),
        pytest.param(
            *("advantages", "ADVANTAGES", ADVANTAGE),
            *('{"advantage": {"kind": "added", "power": 2}}', ADVANTAGE_USE),
            "[[-0.125, 0.125]] 2.0",
            id="advantage",
        ),
    ],
)
def test_a_built_in_choice_is_a_file_and_a_line(
    tmp_path, folder, table, text, changes, use, expected
):
    copy(tmp_path)
    add_choice(tmp_path, folder, table, text)

    assert expected == last_line(tmp_path, BEFORE % changes + use)


@pytest.mark.slow
def test_a_built_in_verifier_is_a_file_and_a_line(tmp_path):
    copy(tmp_path)
    add_verifier(tmp_path, VERIFIER)

    assert "[1.0, 0.0]" == last_line(tmp_path, VERIFIER_USE)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_pipeline_runs_with_four_added_choices(tmp_path):
    """Fine-tuning, a step of RL and the evaluation; the gate may refuse so short a run."""
    copy(tmp_path)
    for folder, table, text in (
        ("losses", "LOSSES", LOSS),
        ("terms", "TERMS", TERM),
        ("advantages", "ADVANTAGES", ADVANTAGE),
    ):
        add_choice(tmp_path, folder, table, text)
    add_verifier(tmp_path, VERIFIER.replace("len(response) % 2 == 0", "'think>' in response"))
    phase = {
        "loss": {"kind": "added"},
        "terms": [{"kind": "added"}],
        "advantage": {"kind": "added"},
    }
    settings = {
        "parent": "laptop",
        "curation": {"sources": [{"adapter": "sample_world", "limit": 300, "verifier": "added"}]},
        "sft": {"epochs": 1, "entropy_prompts": 4},
        "grading": {"samples": 2, "max_problems": 24},
        "rl_one": {"steps": 1, "prompts_per_step": 4, "group_size": 4, **phase},
        "rl_two": {"steps": 0},
        "evaluation": {"samples": 1},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(settings))

    done = run_process(
        [
            *(sys.executable, "-m", "tasks.platform.console", "run"),
            *("--settings", "mine.yaml", "--store", "runs"),
        ],
        cwd=tmp_path,
        variables={"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)},
        check=False,
    )

    said = done.stdout + done.stderr
    assert re.search(r"rl/one +[0-9.]+ s +24 rows in, 4 out", said), said[-3000:]
    assert "17/17 release " in said, said[-3000:]


def add_choice(copied: Path, folder: str, table: str, text: str) -> None:
    algorithms = copied / "tasks/algorithms"
    (algorithms / folder / "added.py").write_text(text)
    name = text.partition("class ")[2].partition("(")[0]
    names = (algorithms / "names.py").read_text()
    # Of its line's beginning: LOSSES is no PAIR_LOSSES.
    line = f'\n{table} = {{\n    "added": "tasks.algorithms.{folder}.added:{name}",'
    (algorithms / "names.py").write_text(names.replace(f"\n{table} = {{", line))


def add_verifier(copied: Path, text: str) -> None:
    (copied / "tasks/gym/added.py").write_text(text)
    table = copied / "tasks/gym/table.py"
    listed = table.read_text().replace(
        "_BUILT_IN = {", '_BUILT_IN = {\n    "added": Entry(added.verify),'
    )
    table.write_text(listed.replace("from tasks.gym import ", "from tasks.gym import added, "))


def copy(folder: Path) -> None:
    shutil.copy(ROOT / "lock_cpu.txt", folder)
    for package in ("tasks", "data_schemas", "workflows", "containers"):
        shutil.copytree(
            ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "lab")
        )


def last_line(folder: Path, program: str) -> str:
    done = run_process(
        [sys.executable, "-c", program], cwd=folder, variables={"PYTHONPATH": str(folder)}
    )
    return done.stdout.splitlines()[-1]
