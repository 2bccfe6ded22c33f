"""Code of a user's own: found, refused by one line, hashed, shipped, and never named by a row."""

import hashlib
import json
import pickle
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest
import torch
from flytekit.tools.script_mode import list_imported_modules_as_files

from data_schemas.artifacts import Context, Execution, StoreRef
from data_schemas.references import ObjectReference, is_reference
from data_schemas.rl_settings import AdvantageSettings, LossSettings, RewardSettings
from data_schemas.rollouts import ScoringRequest
from data_schemas.rows import Domain, Problem, QuarantinedItem
from data_schemas.settings import CurationSettings, PipelineSettings, Source
from tasks.algorithms.advantages.protocol import Advantage
from tasks.algorithms.advantages.table import ADVANTAGES, estimate
from tasks.algorithms.losses import table
from tasks.algorithms.losses.protocol import Loss
from tasks.algorithms.terms.token_budget import TokenBudget
from tasks.curation.adapters.table import read_file
from tasks.engines.protocols import TokenBatch
from tasks.engines.scoring import open_scoring
from tasks.errors import DataError, SettingsError
from tasks.gym.protocol import Game, Verifier
from tasks.gym.table import VERIFIERS
from tasks.plugins import load, pin, pinned
from tasks.provenance.lineage.stage import stage
from tasks.rl.objective import UpdateLoss
from tasks.rl.phase import state_folder
from tasks.settings.fit import require_fit, settle
from tests.algorithms.signals import signal_of
from tests.records import problem_of


def problem(verifier: str, gold: object = None) -> Problem:
    """A problem whose answer is this gold."""
    return problem_of(
        "question",
        json.dumps(gold or {}),
        id=f"test/{verifier.partition('@')[0]}",
        domain=Domain.GENERAL,
        verifier=verifier,
        source_row="0",
    )


REWARD = """
from data_schemas.verdicts import scored


def polite(problem, response):
    return scored(float("please" in response), "words", "")
"""
DPPO = """
import torch

from tasks.algorithms.losses.protocol import Loss
from tasks.algorithms.losses.surrogate import sequence_mean_weights, unclipped


class Dppo(Loss):
    bound: float = 0.2

    def plan(self, step):
        return unclipped(step.mask_NT, sequence_mean_weights(step.mask_NT))

    def objective(self, logprobs_NT, old_logprobs_NT, advantages_NT, plan):
        moved_NT = (logprobs_NT.exp() - old_logprobs_NT.exp()).detach()
        masked_NT = torch.where(advantages_NT > 0, moved_NT > self.bound, moved_NT < -self.bound)
        ratio_NT = (logprobs_NT - old_logprobs_NT).exp()
        value_NT = plan.weights_NT * ratio_NT * advantages_NT * ~masked_NT
        return value_NT.sum(dim=1), masked_NT & (plan.weights_NT > 0)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of a user, with a verifier and a loss."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_reward.py").write_text(REWARD)
    (tmp_path / "my_loss.py").write_text(DPPO)
    return tmp_path


@pytest.mark.parametrize(
    "text", ["my.py:name", "a/b.py:name", "/x/my.py:n", "pkg:name", "pkg.mod:name"]
)
def test_a_reference_is_a_file_or_a_module_and_a_name(text):
    assert is_reference(text)
    assert is_reference(f"{text}@{'0' * 64}")
    assert text == str(ObjectReference.parse(text))


@pytest.mark.parametrize("text", ["grpo", "my.yaml", "my.py", "my.py:", "a b.py:x", "s3://x/y", ""])
def test_other_names_are_none(text):
    assert not is_reference(text)


@pytest.mark.usefixtures("folder")
def test_a_name_in_a_file_is_loaded_and_a_class_is_instantiated():
    assert load("my_reward.py:polite", Verifier)(problem("polite"), "please").solved
    assert "Dppo" == type(load("my_loss.py:Dppo", Loss)).__name__


def test_a_name_in_a_module_is_loaded():
    value = load("tasks.algorithms.advantages.rloo:RLOO", Advantage)

    assert ADVANTAGES["rloo"] is type(value)


class Other(Protocol):
    """A form of one method with a keyword."""

    def change(self, text: str, *, times: int) -> str:
        """Change a text."""
        ...


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("reference", "form", "message"),
    [
        ("absent.py:polite", Verifier, "absent.py is in neither"),
        ("absent.module:polite", Verifier, "absent.module cannot be imported"),
        ("my_reward.py:polit", Verifier, "has no 'polit'; did you mean `polite`?"),
        (
            "my_reward.py:polite",
            Loss,
            "polite is no Loss: it is not derived from tasks.algorithms",
        ),
        ("my_loss.py:Dppo", Verifier, "is no Verifier: it is no function. Example: def Dppo(prob"),
        ("my_reward.py:polite", Other, "no method change. Example: class polite: def change(self,"),
        ("my_loss.py:torch", Game, "it has no method observe"),
    ],
)
def test_what_is_not_of_the_form_is_refused_in_one_line_with_an_example(reference, form, message):
    with pytest.raises(SettingsError, match=re.escape(message)) as refused:
        load(reference, form)

    assert "\n" not in str(refused.value)


def test_a_function_with_other_parameters_is_refused(folder):
    (folder / "my_reward.py").write_text("def polite(response):\n    return None\n")

    with pytest.raises(SettingsError, match=r"too many positional arguments\. Example: def"):
        load("my_reward.py:polite", Verifier)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named"),
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "line 1: invalid syntax"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_by_name(folder, text, message):
    (folder / "broken.py").write_text(text)

    with pytest.raises(SettingsError, match=f"broken.py cannot be imported: .*{message}|{message}"):
        load("broken.py:name", Verifier)


def test_a_pin_covers_what_the_file_imports_beside_it_and_what_it_names(folder):
    (folder / "rows.py").write_text(
        "from words import GOOD\n\nVERIFIER = 'my_reward.py:polite'\n\n\ndef read(row): ...\n"
    )
    (folder / "words.py").write_text("GOOD = 1\n")
    first = pin("rows.py:read")
    (folder / "words.py").write_text("GOOD = 2\n")
    second = pin("rows.py:read")
    (folder / "my_reward.py").write_text(REWARD + "\n# changed\n")

    assert 3 == len({first, second, pin("rows.py:read")})


@pytest.mark.usefixtures("folder")
def test_a_pin_does_not_depend_on_the_place_of_the_folder(tmp_path_factory, monkeypatch):
    here = pin("my_reward.py:polite")
    other = tmp_path_factory.mktemp("other")
    (other / "my_reward.py").write_text(REWARD)
    monkeypatch.chdir(other)

    assert here == pin("my_reward.py:polite") == pin(here)


def test_code_that_changed_after_it_was_pinned_is_refused(folder):
    (folder / "my_reward.py").write_text(REWARD.replace("please", "kindly"))
    chosen = pin("my_reward.py:polite")
    (folder / "my_reward.py").write_text(REWARD.replace("please", "thanks"))

    with pytest.raises(SettingsError, match=r"my_reward\.py has changed since polite was chosen"):
        load(chosen, Verifier)


def test_settings_are_pinned_wherever_they_name_code(folder):
    (folder / "rows.py").write_text("def read(row): ...\n")
    source = Source(adapter="rows.py:read", path="x.jsonl")
    settings = PipelineSettings.model_validate(
        {"rl_one": {"loss": {"kind": "my_loss.py:Dppo"}}, "rl_two": {"advantage": "rloo"}}
    ).model_copy(update={"curation": CurationSettings(sources=(Source(adapter="gsm8k"), source))})

    found = settle(settings)

    assert re.fullmatch(r"my_loss.py:Dppo@[0-9a-f]{64}", found.rl_one.loss.kind)
    assert re.fullmatch(r"rows.py:read@[0-9a-f]{64}", found.curation.sources[1].adapter)
    assert PipelineSettings().rl_one.loss.own == {}
    assert 0.2 == found.rl_two.loss.own["clip_low"] == found.rl_two.loss.own["high_entropy_share"]
    assert {"bound": 0.2} == found.rl_one.loss.own
    assert ("gsm8k", "rloo") == (found.curation.sources[0].adapter, found.rl_two.advantage.kind)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("phase", "message"),
    [
        ({"loss": {"kind": "grpoo"}}, "rl_one.loss.kind is 'grpoo'; did you mean `grpo`?"),
        (
            {"loss": {"kind": "my_reward.py:polite"}},
            "rl_one.loss.kind: my_reward.py:polite is no",
        ),
        ({"advantage": "rlo"}, "rl_one.advantage.kind is 'rlo'; did you mean `rloo`?"),
        ({"advantage": "nowhere.py:x"}, "rl_one.advantage.kind: nowhere.py is in neither"),
    ],
)
def test_a_wrong_name_is_refused_with_its_setting_before_anything_runs(phase, message):
    settings = PipelineSettings.model_validate({"rl_one": phase})

    with pytest.raises(SettingsError, match=re.escape(message)):
        require_fit(settings, trains=False)


def test_changed_code_has_another_state_folder_and_another_cache_key(folder):
    settings = PipelineSettings.model_validate({"rl_one": {"loss": {"kind": "my_loss.py:Dppo"}}})
    before = pinned(settings).rl_one
    (folder / "my_loss.py").write_text(DPPO.replace("0.2", "0.1"))
    after = pinned(settings).rl_one

    # Flyte's cache key of a stage has the settings of the stage in it.
    assert before.model_dump_json() != after.model_dump_json()
    assert len({state_folder(folder, one, "start", "rows").name for one in (before, after)}) == 2


@pytest.mark.usefixtures("folder")
def test_a_statement_names_the_code_and_one_without_pin_is_refused(tmp_path):
    settings = LossSettings(kind="my_loss.py:Dppo")
    store = StoreRef(uri=str(tmp_path / "store"), id="s", tracking_uri=f"sqlite:///{tmp_path}/m.db")
    execution = Execution(id="one", started=0.0, workflow="test")

    with (
        pytest.raises(SettingsError, match=r"my_loss\.py:Dppo is not pinned"),
        stage("loss", settings, Context(store, execution), "0" * 64),
    ):
        pass
    chosen = pinned(settings)
    with stage("loss", chosen, Context(store, execution), "0" * 64) as record:
        assert ("0" * 64, chosen.kind.partition("@")[2]) == record._code


def test_code_below_the_project_is_among_the_files_that_flyte_copies(folder):
    (folder / "my_reward.py").write_text(f"{REWARD}# {folder}\n")  # no other test has loaded it
    chosen = pin("my_reward.py:polite")

    files = list_imported_modules_as_files(str(folder), list(sys.modules.values()))

    assert str(folder / "my_reward.py") in files
    assert chosen.startswith("my_reward.py:polite@")  # relative: as a pod finds it


@pytest.mark.usefixtures("folder")
def test_a_mask_on_probabilities_is_a_loss():
    """DPPO (2602.04879): .02 -> .1 keeps its gradient r A, .6 -> .85 has none for A > 0."""
    settings = LossSettings(kind="my_loss.py:Dppo")
    old = torch.tensor([[0.02], [0.6], [0.9]]).log()
    logprobs = torch.tensor([[0.1], [0.85], [0.6]]).log().requires_grad_()
    advantages, mask = torch.tensor([[1.0], [1.0], [-1.0]]), torch.ones(3, 1, dtype=torch.bool)
    plan = table.plan(settings, torch.zeros(3, 1), mask, vocabulary=8)

    objective, clipped = table.find(settings).objective(logprobs, old, advantages, plan)
    objective.sum().backward()

    assert [5.0, 0.0, 0.0] == pytest.approx(logprobs.grad.flatten().tolist(), abs=1e-5)
    assert [False, True, True] == clipped.flatten().tolist()


@pytest.mark.usefixtures("folder")
def test_a_budget_of_tokens_applies_to_a_loss_of_ones_own():
    settings = LossSettings(kind="my_loss.py:Dppo")
    mask = torch.ones(2, 4, dtype=torch.bool)
    whole = table.plan(settings, torch.zeros(2, 4), mask, vocabulary=8)

    plan = TokenBudget(tokens_per_response=2.5).weigh(signal_of(mask, plan=whole)).plan

    assert 5 == int((plan.weights_NT > 0).sum())


def test_a_loss_that_returns_another_form_is_refused_by_name(folder):
    # A name that no other test's folder, which stays on the path, has a file of.
    (folder / "base_of_odd.py").write_text(DPPO)
    (folder / "odd.py").write_text(
        "from base_of_odd import Dppo\n"
        "class Odd(Dppo):\n"
        "    def objective(self, logprobs_NT, old_logprobs_NT, advantages_NT, plan):\n"
        "        return advantages_NT.sum(dim=1), advantages_NT > 0\n"
    )
    names = ("old_logprobs", "advantages", "weights", "clip_low", "clip_high", "groups")
    batch = TokenBatch.of_sequences([np.ones(3, np.int32)] * 2)
    batch = replace(batch, columns={name: torch.ones(2, 3) for name in names})
    logprobs = torch.zeros(2, 3, requires_grad=True)

    with pytest.raises(DataError, match=r"loss.kind odd.py:Odd returned .* \(2,\), not different"):
        UpdateLoss(LossSettings(kind="odd.py:Odd"), 2)(logprobs, batch)


def test_an_estimator_that_returns_no_numbers_is_refused(folder):
    (folder / "odd.py").write_text(
        "from tasks.algorithms.advantages.protocol import Advantage\n"
        "class Odd(Advantage):\n"
        "    def estimate(self, scores_PG, penalties_PG, valid_PG, *, std_floor):\n"
        "        return scores_PG / 0\n"
    )
    settings = PipelineSettings.model_validate({"rl_one": {"advantage": "odd.py:Odd"}}).rl_one
    rewards = torch.tensor([[1.0, 0.0]])

    with pytest.raises(DataError, match=r"advantage odd.py:Odd returned \(1, 2\) with 2 values"):
        estimate(settings, rewards, 0 * rewards, torch.ones(1, 2, dtype=torch.bool))


@pytest.mark.usefixtures("folder")
def test_a_verifier_of_ones_own_scores_in_a_worker():
    asked = problem(pin("my_reward.py:polite"))
    with open_scoring(None, RewardSettings(), num_workers=1) as service:
        for sample, text in enumerate(("yes please", "no")):
            service.submit(ScoringRequest(asked, "a", sample, 2, text))
        verdicts = service.gather()

    assert [1.0, 0.0] == [verdicts["a", sample].verdict.score for sample in (0, 1)]
    assert pickle.loads(pickle.dumps(VERIFIERS[asked.verifier])) == VERIFIERS[asked.verifier]


def read(folder: Path, adapter: str, rows: Sequence[object]) -> list[object]:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(read_file(adapter, 0, path))


@pytest.mark.attack
@pytest.mark.parametrize("adapter", ["episodes", "prompt_jsonl", "sample_shop"])
@pytest.mark.parametrize("name", ["evil.py:polite", " evil.py:polite\n", "environment"])
def test_a_row_never_names_code(folder, adapter, name):
    (folder / "evil.py").write_text("open('was_run', 'w')\n\ndef polite(problem, response): ...\n")
    row = {
        "id": "1",
        "domain": "general",
        "language": "en",
        "prompt": "?",
        "messages": [{"role": "user", "content": "?"}],
        "verifier": name,
        "answer": {},
    }

    (refused,) = read(folder, adapter, [row])

    assert isinstance(refused, QuarantinedItem)
    assert "code_in_row" == refused.reason
    assert not (folder / "was_run").exists()


@pytest.mark.usefixtures("folder")
def test_a_criterion_of_a_rubric_never_names_code():
    gold = {
        "criteria": [
            {"criterion": "x", "points": 1.0, "verifier": "my_reward.py:polite", "answer": {}}
        ],
        "aggregation": "ruscarl",
    }

    verdict = VERIFIERS["rule_rubric"](problem("rule_rubric", gold), "please")

    assert verdict.abstained
    assert "bad_gold" == verdict.reason


def test_the_digest_is_that_of_the_content(folder):
    """One file: its name and the digest of its bytes."""
    text = (folder / "my_reward.py").read_bytes()
    expected = hashlib.sha256(b"my_reward.py\n" + hashlib.sha256(text).digest()).hexdigest()

    assert f"my_reward.py:polite@{expected}" == pin("my_reward.py:polite")


def test_a_response_is_compared_with_the_others_by_rloo():
    scores, valid = torch.tensor([[1.0, 0, 0, 9]]), torch.tensor([[True, True, True, False]])

    found = ADVANTAGES["rloo"]().estimate(scores, 0 * scores, valid, std_floor=0.05)

    assert [1.0, -0.5, -0.5, 0.0] == pytest.approx(found[0].tolist())


def test_equal_rewards_have_no_advantage_by_any_name():
    scores, valid = torch.full((1, 8), 0.7), torch.ones(1, 8, dtype=torch.bool)

    for name, kind in ADVANTAGES.items():
        if not kind.follows_loss:
            found = kind().estimate(scores, 0 * scores, valid, std_floor=0.0)
            assert not found.any(), name


def test_the_estimator_of_a_loss_is_that_of_its_paper():
    settings = PipelineSettings().rl_one
    rewards, valid = torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.ones(1, 4, dtype=torch.bool)

    def first(**changes: object) -> float:
        loss = settings.loss.model_copy(update={"kind": changes.pop("kind", "espo")})
        advantage = AdvantageSettings(kind=changes.pop("advantage", "of_loss"))
        chosen = settings.model_copy(update={"loss": loss, "advantage": advantage})
        return float(estimate(chosen, rewards, 0 * rewards, valid)[0, 0])

    assert 3**0.5 == pytest.approx(first(), abs=1e-4)
    assert 0.75 == first(kind="dr_grpo") == first(advantage="centred")
    assert 3**0.5 == pytest.approx(first(kind="dr_grpo", advantage="grpo"), abs=1e-4)
    assert 1.0 == first(advantage="rloo")
