"""The code that docs/extend.md shows does what the page says, as a user would copy it."""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from data_schemas.ledgers import TokenUse
from data_schemas.reports import SLICE_KINDS
from data_schemas.rl_settings import RLSettings
from data_schemas.rows import Problem
from data_schemas.settings import MergeSettings
from tasks.algorithms.advantages.table import find
from tasks.algorithms.losses.protocol import Loss
from tasks.algorithms.merging.protocol import combine
from tasks.algorithms.merging.table import find as find_method
from tasks.algorithms.terms.fold import fold_step, lost_tokens
from tasks.algorithms.terms.table import find_terms
from tasks.curation.adapters.mapped import read_mapped
from tasks.curation.adapters.table import read_file
from tasks.curation.rows import read_rows
from tasks.engines.embedded.hf_model import load_model
from tasks.engines.embedded.rollout_forward import DecoderForward
from tasks.formats.mapping_files import mapping_of
from tasks.gym.environments.table import ENVIRONMENTS
from tasks.gym.protocol import join_turns
from tasks.gym.table import is_signed, score_batch
from tasks.models.model_folder import SHIPPED, check_model_folder, with_code
from tasks.plugins import load, pin
from tests.algorithms.signals import signal_of, terms_of
from tests.processes import run_process
from tests.tables import for_each

ROOT = Path(__file__).parents[1]
EXTEND = ROOT / "docs" / "extend.md"
REWARDS = ROOT / "docs" / "your_reward.md"
RECIPES = ROOT / "tasks" / "rl" / "README.md"
BLOCKS = re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", EXTEND.read_text(), flags=re.DOTALL)
ROWS = {
    "words.jsonl": [{"ask": f"Describe shoe {n}.", "words": 2 + n % 9} for n in range(40)],
    "guesses.jsonl": [
        {"ask": f"Guess my number, game {n}: 1 to 9.", "number": str(1 + n % 9)} for n in range(40)
    ],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the page's files, in which a user works."""
    for name, text in BLOCKS:
        (tmp_path / name).write_text(text)
    for name, rows in ROWS.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    base = shutil.copytree(SHIPPED, tmp_path / "my_base")
    config = json.loads((base / "config.json").read_text())
    config |= {"model_type": "scaled_moe", "embedding_multiplier": 1.25}
    (base / "config.json").write_text(json.dumps(config))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problem_of(folder: Path, adapter: str, *rows: object) -> Problem:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ((item,),) = read_file(adapter, 0, path)
    assert isinstance(item.record, Problem)
    return item.record


def test_each_kind_of_code_is_shown_with_its_imports():
    shown = {"my_rows.py", "my_reward.py", "my_game.py", "my_loss.py", "my_advantage.py"}
    shown |= {"my_family.py", "my_merge.py", "my_term.py"}

    assert shown == {name for name, _ in BLOCKS if name.endswith(".py")}
    assert ["my.yaml", "my_guesses.yaml"] == [name for name, _ in BLOCKS if ".py" not in name]


def test_the_adapter_makes_a_problem_that_the_verifier_scores(folder):
    problem = problem_of(folder, "my_rows.py:words", {"ask": "Say it.", "words": 2})

    assert re.fullmatch(r"my_reward\.py:short_enough@[0-9a-f]{64}", problem.verifier)
    verdicts = score_batch([problem] * 2, ["all good", "it is all good"])
    assert [1.0, 0.0] == [verdict.score for verdict in verdicts]
    (unknown,) = score_batch([problem.model_copy(update={"answer": "{}"})], ["all good"])
    assert unknown.abstained


def test_the_class_of_the_page_declares_that_a_wrong_answer_costs(folder):
    problem = problem_of(folder, "my_rows.py:words", {"ask": "Say it.", "words": 2})
    exact = problem.model_copy(
        update={"verifier": pin("my_reward.py:Exact"), "answer": '{"value":"7"}'}
    )

    assert [False, True] == [is_signed(one) for one in (problem, exact)]
    verdicts = score_batch([exact] * 2, ["<think>8</think>7", "8"])
    assert [1.0, 0.0] == [verdict.score for verdict in verdicts]


def test_the_mapping_of_the_page_on_rewards_reads_a_table_for_the_same_verifier(folder):
    (mapping,) = re.findall(r"```yaml\n# short.yaml\n(.*?)```", REWARDS.read_text(), re.DOTALL)
    (folder / "short.yaml").write_text(mapping)
    (folder / "rows.csv").write_text("ask,limit\nSay it.,2\n")

    (row,) = read_rows(folder / "rows.csv")
    (item,) = read_mapped(mapping_of("short.yaml"), row, "")

    verdicts = score_batch([item.record] * 2, ["all good", "it is all good"])
    assert [1.0, 0.0] == [verdict.score for verdict in verdicts]


def test_the_adapter_quarantines_a_row_without_a_limit(folder):
    path = folder / "rows.jsonl"
    path.write_text('{"ask": "Say it.", "words": "two"}\n')

    (refused,) = read_file("my_rows.py:words", 0, path)

    assert ("words", "bad_limit") == (refused.source, refused.reason)


def test_the_environment_answers_until_the_number_is_found(folder):
    problem = problem_of(folder, "my_rows.py:words", {"ask": "Guess.", "words": 2}).model_copy(
        update={"verifier": "my_game.py:Guess", "answer": '{"number":"7"}'}
    )
    observe = ENVIRONMENTS[problem.verifier]

    assert "higher" == observe(problem, ["3"])[0].content
    assert "lower" == observe(problem, ["3", "9"])[0].content
    assert observe(problem, ["3", "7"]) is None
    verdicts = score_batch([problem] * 2, [join_turns(["3", "7"]), join_turns(["1", "2", "3"])])
    assert [1.0, 0.0] == [verdict.score for verdict in verdicts]


@pytest.mark.usefixtures("folder")
def test_the_loss_is_that_of_its_paper():
    """Worked numbers: three tokens at log-ratios .5, -.05, -.7 of gradient 4 s (1 - s) r A / 3."""
    loss = load("my_loss.py:Sapo", Loss)
    old = torch.tensor([[-1.0, -0.5, -2.0]])
    logprobs = (old + torch.tensor([[0.5, -0.05, -0.7]])).requires_grad_()
    weights = torch.full((1, 3), 1 / 3)
    plan = loss.plan(StepOfOne(torch.ones(1, 3, dtype=torch.bool)))

    objective, _ = loss.objective(logprobs, old, torch.ones(1, 3), plan)
    objective.sum().backward()

    gate = torch.sigmoid((logprobs - old).exp() - 1)
    slope = 4 * gate * (1 - gate) * (logprobs - old).exp() / 3
    assert torch.allclose(weights, plan.weights_NT)
    assert torch.allclose(slope, logprobs.grad, atol=1e-6)
    on_policy, _ = loss.objective(old, old, -torch.ones(1, 3), plan)
    assert -1.904762 == pytest.approx(float(on_policy))


class StepOfOne:
    """What the plan of a loss reads, of a step with one sequence."""

    def __init__(self, mask_NT: torch.Tensor) -> None:
        self.mask_NT = mask_NT


@pytest.mark.usefixtures("folder")
def test_the_term_trains_the_fifth_of_the_tokens_with_the_highest_entropy():
    mask = torch.arange(6) < torch.tensor([[6], [4]])
    entropy = torch.tensor([[0.1, 0.9, 0.2, 0.3, 0.8, 0.4], [0.5, 0.1, 0.2, 0.3, 9.0, 9.0]])
    signal = signal_of(mask, entropy_NT=entropy * mask, advantages_NT=mask.float())
    (term,) = find_terms(terms_of({"kind": "my_term.py:Forks"}))

    folded = fold_step([term], signal)

    assert [[0, 1], [0, 4]] == (folded.weights_NT * mask).nonzero().tolist()
    assert 8 == int(lost_tokens(folded, torch.zeros_like(mask))[TokenUse.MASKED].sum())
    nothing = signal_of(torch.zeros(0, 3, dtype=torch.bool))
    assert (0, 3) == tuple(fold_step([term], nothing).weights_NT.shape)


@pytest.mark.usefixtures("folder")
def test_the_advantage_divides_by_the_mean():
    scores = torch.tensor([[1.0, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0], [0.5, 0.25, 0, 0]])
    expected = [[3.0, -1, -1, -1], [1 / 3, 1 / 3, 1 / 3, -1], [0] * 4, [5 / 3, 1 / 3, -1, -1]]
    valid = torch.ones(4, 4, dtype=torch.bool)

    def advantages(**own):
        kind = {"kind": "my_advantage.py:PowerMean", **own}
        settings = RLSettings.model_validate({"domains": {"maths": 1.0}, "advantage": kind})
        return find(settings).estimate(scores, 0 * scores, valid, std_floor=0.05)

    assert torch.allclose(torch.tensor(expected), advantages(), atol=1e-6)
    # The root of a mean of 1/4 is 1/2, and 3/4 of an advantage divided by it is 3/2.
    assert [1.5, -0.5, -0.5, -0.5] == pytest.approx(advantages(power=0.5)[0].tolist())


@pytest.mark.usefixtures("folder")
def test_the_merge_method_goes_half_of_the_way_to_the_parent():
    method = find_method(MergeSettings.model_validate({"method": "my_merge.py:Towards"}))
    vectors_M = torch.tensor([[1.0, -2.0], [5.0, 5.0]])

    found = combine(method, torch.ones(2), vectors_M, torch.ones(2), scale=1.0)

    assert [1.5, 0.0] == found.tensor.tolist()


@pytest.mark.usefixtures("folder")
def test_the_architecture_is_read_opened_and_rolled_out_as_it_is_trained():
    with with_code(Path("my_base"), pin("my_family.py:Scaled")) as opened:
        check_model_folder(opened)
        model = load_model(opened)
        plain = load_model(SHIPPED)
        tokens = torch.arange(20)[None]
        forward = DecoderForward(model)

        found = forward.logits(forward.prefill(tokens).hidden_PTH)
        expected = model(input_ids=tokens).logits

    assert torch.allclose(expected, found, atol=1e-4)
    assert (expected - plain(input_ids=tokens).logits).abs().max() > 0.1
    assert ("scaled_moe", 8) == (forward.architecture.family, forward.architecture.num_experts)


SMALL = {
    "curation": {"held_out_per_suite": 3},
    "sft": {"epochs": 0},
    "grading": {"samples": 2, "max_problems": 60, "max_new_tokens": 24, "drop_at_or_above": 1.01},
    "rl_one": {
        "steps": 2,
        "prompts_per_step": 4,
        "group_size": 4,
        "max_new_tokens": 32,
        "zero_variance": {"skip": {"above": 1.0}},
    },
    "rl_two": {"steps": 0},
    "evaluation": {"samples": 1, "max_new_tokens": 24},
    "release": {
        "min_gain": -1.0,
        "may_lose": dict.fromkeys(SLICE_KINDS, 1.0),
        "max_truncated_share": 1.0,
    },
}


def start(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("pyflyte"), "run"]
    command += [ROOT / "workflows" / "post_training.py", "post_training"]
    command += ["--settings", "small.yaml", "--store", folder / "runs"]
    environment = os.environ | {"HOME": str(folder), "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
    return run_process(command, cwd=folder, env=environment, check=False)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_everything_that_is_shown_runs_through_the_pipeline_without_an_edit(folder):
    own = yaml.safe_load((folder / "my.yaml").read_text())
    for group, values in SMALL.items():
        own[group] = {**own.get(group, {}), **values}
    own["curation"]["sources"][0]["limit"] = 120
    (recipe,) = re.findall(r"```python\n(.*?)```", RECIPES.read_text(), re.DOTALL)
    (folder / "my_recipe.py").write_text(recipe)
    own["rl_one"]["recipe"] = {"implementation": "my_recipe.py:open_hint"}
    (folder / "small.yaml").write_text(yaml.safe_dump(own))

    done = start(folder)

    assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-4000:]
    envelopes = map(json.loads, map(Path.read_bytes, (folder / "runs/statements").iterdir()))
    text = " ".join(base64.b64decode(one["payload"]).decode() for one in envelopes)
    own = (
        "my_rows.py:words",
        "my_loss.py:Sapo",
        "my_term.py:Forks",
        "my_advantage.py:PowerMean",
        "my_family.py:Scaled",
        "my_merge.py:Towards",
    )
    for name in own:
        assert f"{name}@" in text
    assert '"implementation":"my_recipe.py:open_hint"' in text.replace("\\", "")
    configs = [path.read_text() for path in (folder / "runs/objects").glob("*/config.json")]
    assert len(configs) > 2
    assert all("my_family.py:Scaled@" in one for one in configs)


def test_the_walk_through_the_code_names_files_that_exist():
    text = (ROOT / ".github/CONTRIBUTING.md").read_text()
    walk = text[text.index("## One rollout and one checkpoint") :]
    files = re.findall(r"`([a-z_/]+\.py)`", walk)

    assert len(files) > 15
    assert [] == [name for name in files if not (ROOT / "tasks" / name).is_file()]


# Not those of environments and runs, which lie beside.
FOLDERS = (
    ".github",
    "containers",
    "data_schemas",
    "docs",
    "findings",
    "tasks",
    "tests",
    "workflows",
)
PAGES = [ROOT / "README.md", ROOT / "AGENTS.md"]
PAGES += [path for name in FOLDERS for path in (ROOT / name).rglob("*.md")]
CODE = re.compile(r"^```.*?^```|^    [^\n]*$", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub makes links of them: `## Build status` is `build-status`."""
    titles = re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@for_each("page", PAGES)
def test_every_file_that_a_page_names_exists(page):
    text = page.read_text()
    links = [name for name in re.findall(r"\]\(([^)#]+)", text) if "://" not in name]
    paths = re.findall(r"`((?:tasks|tests|workflows|data_schemas)/[\w/]+\.py)`", text)

    assert [] == [name for name in links if not (page.parent / name).exists()]
    places = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text)
    assert [] == [
        f"{name}#{place}"
        for name, place in places
        if place not in anchors(page.parent / name if name else page)
    ]
    assert [] == [name for name in paths if not (ROOT / name).exists()]
