"""The reward functions of docs/your_reward.md, with the arguments that each trainer passes."""

import json
import re
import sys
from pathlib import Path

import pytest

from tasks.models.model_folder import SHIPPED
from tests.processes import run_process

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "your_reward.md").read_text()
BLOCKS = dict(re.findall(r"```python\n# (my_\w+)\.py: [^\n]*\n(.*?)```", PAGE, re.DOTALL))
GOLD, BROKEN = '{"correct": ["a bag"]}', '{"correct": []}'
CASES = [("a bag", GOLD, 1.0), ("a shoe", GOLD, 0.0), ("a bag", BROKEN, None)]
TEXTS, GOLDS, SCORES = (list(column) for column in zip(*CASES, strict=True))


def function(name: str, of: str):
    names: dict[str, object] = {}
    exec(compile(BLOCKS[name], f"{name}.py", "exec"), names)
    return names[of]


def test_each_is_three_or_four_lines():
    assert {"my_trl", "my_verl", "my_verifiers"} == BLOCKS.keys()
    for text in BLOCKS.values():
        assert len(re.findall(r"^    \S", text, re.MULTILINE)) <= 4


@pytest.mark.parametrize("form", [str, lambda text: [{"role": "assistant", "content": text}]])
def test_trl_gets_a_score_or_none(form):
    """The arguments of trl 1.16.0, `GRPOTrainer._calculate_rewards`."""
    found = function("my_trl", "gym")(
        prompts=["?"] * 3,
        completions=[form(text) for text in TEXTS],
        completion_ids=[[1]] * 3,
        verifier=["choice"] * 3,
        answer=GOLDS,
        trainer_state=None,
        log_extra=None,
        log_metric=None,
    )

    assert SCORES == found


def test_verl_gets_a_score_and_an_abstention_is_0_and_says_so():
    """The arguments of verl 0.9.1, by name, with the further ones of its managers."""
    score = function("my_verl", "compute_score")

    found = [
        score(
            data_source="choice",
            solution_str=text,
            ground_truth=gold,
            extra_info={"num_turns": None},
            reward_router_address=None,
        )
        for text, gold in zip(TEXTS, GOLDS, strict=True)
    ]

    assert [(1.0, 0.0), (0.0, 0.0), (0.0, 1.0)] == [(f["score"], f["abstained"]) for f in found]


def test_verifiers_gets_a_score_and_an_abstention_is_in_the_state():
    """The arguments of verifiers 0.2.1, of which a function gets those that it names."""
    found = []
    for text, gold in zip(TEXTS, GOLDS, strict=True):
        state: dict[str, object] = {}
        score = function("my_verifiers", "gym")(
            completion=[{"role": "assistant", "content": text}],
            answer=gold,
            info={"verifier": "choice"},
            state=state,
        )
        found.append((score, state["abstained"]))

    assert [(1.0, False), (0.0, False), (0.0, True)] == found


TRAIN = """
import json, sys
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer
from my_trl import gym

scores = []
def note(**columns):
    scores.append(gym(**columns))
    return scores[-1]
rows = [{"prompt": "Which? a bag or a shoe?", "verifier": "choice", "answer": answer}
        for answer in ('{"correct": ["a bag"]}', '{"correct": []}')]
args = GRPOConfig(output_dir="out", per_device_train_batch_size=4, num_generations=2, max_steps=1,
    max_completion_length=8, use_cpu=True, report_to=[], save_strategy="no", beta=0.0,
    router_aux_loss_coef=0.0)
model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
GRPOTrainer(model=model, reward_funcs=note, args=args, processing_class=tokenizer,
    train_dataset=Dataset.from_list(rows)).train()
print("scores", json.dumps(scores))
"""


@pytest.mark.slow
def test_a_step_of_grpo_trainer_is_rewarded_by_it(tmp_path):
    (tmp_path / "my_trl.py").write_text(BLOCKS["my_trl"])

    done = run_process(
        [sys.executable, "-c", TRAIN, str(SHIPPED)],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}", "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
    )

    (line,) = [line for line in done.stdout.splitlines() if line.startswith("scores ")]
    # Two completions of a row that can be scored, and two of one whose gold is broken.
    assert 2 == line.count("null")


RUBRIC = """
import asyncio, json, sys
sys.path.append(sys.argv[1])
import verifiers
from my_verifiers import gym

def state(text, gold):
    rollout = dict(prompt=[dict(role="user", content="Which?")], answer=gold, task="default",
        completion=[dict(role="assistant", content=text)], info=dict(verifier="choice"))
    return verifiers.State(input=rollout, **rollout)

found = [state(text, gold) for text, gold, _ in json.loads(sys.argv[2])]
for one in found:
    asyncio.run(verifiers.Rubric(funcs=[gym]).score_rollout(one))
print(json.dumps([[one["reward"], one["abstained"]] for one in found]))
"""


@pytest.mark.environments
def test_a_rubric_of_verifiers_is_scored_by_it(tmp_path):
    (tmp_path / "my_verifiers.py").write_text(BLOCKS["my_verifiers"])
    python = ROOT / ".venv-environments" / "bin" / "python"
    # The packages of the gym stand behind those of the library.
    packages = str(Path(pytest.__file__).parents[1])

    done = run_process(
        [python, "-c", RUBRIC, packages, json.dumps(CASES)],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}", "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
    )

    expected = [[1.0, False], [0.0, False], [0.0, True]]
    assert expected == json.loads(done.stdout.splitlines()[-1])
