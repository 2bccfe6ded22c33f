"""A judge in this process, on real (untrained) weights."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from data_schemas.rows import Message, Role
from tasks.engines.model_judge import ModelJudge
from tasks.errors import SettingsError
from tasks.gym.judging.comparison_prompt import comparison_prompt
from tasks.gym.judging.protocol import JudgeCalls

BASE_MODEL = Path(__file__).parents[2] / "tasks/training/foundation/base_model"


def prompt(text):
    return (Message(role=Role.USER, content=text),)


@pytest.fixture(scope="module")
def judge(tiny_moe):
    return ModelJudge(tiny_moe)


def test_a_reply_does_not_depend_on_what_else_is_asked_or_by_whom(judge):
    prompts = [prompt("a"), prompt("a longer prompt"), prompt("bb")]
    together = judge.ask(prompts)
    with ThreadPoolExecutor(3) as pool:
        alone = list(pool.map(lambda one: judge.ask([one])[0], prompts))

    assert together == alone
    assert None not in together


def test_a_prompt_without_room_for_a_reply_is_not_answered_and_counted(tiny_moe, caplog):
    judge = ModelJudge(tiny_moe)  # 256 positions, a byte is a token
    replies = judge.ask([prompt("x" * 200), prompt("short")])

    assert replies[0] is None
    assert isinstance(replies[1], str)
    assert JudgeCalls(asked=2, failed=1) == judge.calls
    assert "1 of 2 prompts are longer than 192 tokens" in caplog.text


def test_nothing_asked_is_nothing_answered(judge):
    assert [] == judge.ask([])


def test_the_shipped_base_has_room_for_a_comparison_in_the_marketplace():
    judge = ModelJudge(BASE_MODEL)
    asked = comparison_prompt("Tidy up: SHOES red Acme x3", "Acme red shoes x3", "shoes red Acme")

    assert isinstance(judge.ask([asked])[0], str)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"judge\.address: .*config\.json is missing"):
        ModelJudge(tmp_path)


def test_a_dense_model_judges_too(tiny_dense):
    (reply,) = ModelJudge(tiny_dense).ask([prompt("short")])

    assert isinstance(reply, str)


def test_a_model_that_the_embedded_engine_does_not_run_is_sent_to_an_endpoint(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))

    with pytest.raises(SettingsError, match=r"'gpt2'; supported .*`vllm serve`"):
        ModelJudge(tmp_path)


def test_a_judge_without_all_of_its_weights_is_refused(tiny_moe, tmp_path):
    folder = shutil.copytree(tiny_moe, tmp_path / "judge")
    (folder / "model.safetensors").write_bytes(b"")

    with pytest.raises(SettingsError, match=r"judge\.address: .* not a complete safetensors file"):
        ModelJudge(folder)
