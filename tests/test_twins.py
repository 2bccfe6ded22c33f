"""Each recipe's twin goes through the whole chain on a base of its paper's family."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from data_schemas.machine_settings import merged_over
from data_schemas.presets import RECIPES, has_judge, scaled
from data_schemas.settings import PipelineSettings
from tasks.gym.judging.scripted import preferring
from tests import tiny_chain
from tests.chat_endpoint import completion, endpoint, send
from tests.engines.families import write_family

pytestmark = pytest.mark.slow
BASES = {
    "ring_lite": ("ling lite", {}),
    "compass_thinker": ("llama", {"model_type": "qwen2", "tie_word_embeddings": False}),
    "compassmax": (
        "qwen3_moe mixed",
        {"mlp_only_layers": [], "num_experts": 16, "num_experts_per_tok": 4},
    ),
}
SHORT = {"max_new_tokens": 4}
TIDIER = preferring(lambda title: float("SALE" not in title))


@pytest.fixture
def judge() -> Iterator[dict[str, str]]:
    def behave(handler, asked, _):
        send(handler, completion(TIDIER(asked["messages"][-1]["content"])))

    with endpoint(behave) as address:
        yield {"kind": "http", "address": address, "model": "judge"}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipes_twin_runs_to_its_decision_on_a_base_of_its_papers_family(
    name: str, tiny_moe: Path, tmp_path: Path, judge: dict[str, str]
) -> None:
    family, changes = BASES[name]
    base = str(write_family(family, tiny_moe, tmp_path / "base", **changes))
    twin = scaled(RECIPES[name])
    sources = [one.model_dump() | {"limit": 90} for one in twin.curation.sources]
    rewards = {"max_abstained_share": 1.0} | ({"judge": judge} if has_judge(RECIPES[name]) else {})
    phase = SHORT | {"steps": 1, "prompts_per_step": 4, "rewards": rewards}
    small = {
        "base_model": base,
        "curation": {"sources": sources, "held_out_per_suite": 2, "max_prompt_tokens": 160},
        "sft": {"epochs": 1, "entropy_prompts": 2},
        "general_sft": {"entropy_prompts": 2},
        # A random model solves nothing: what is too hard stays.
        "grading": SHORT | {"samples": 2, "max_problems": 100, "drop_at_or_below": -0.01},
        "rl_one": phase,
        "rl_two": phase,
        "evaluation": SHORT | {"samples": 1},
    }

    released = tiny_chain.run(
        PipelineSettings.model_validate(merged_over(twin, small)), tmp_path / "home"
    )

    page = Path(released.page).read_text()
    last = "sft/general" if twin.general_sft.epochs else "rl/two"
    assert all(f">{name}<" in page for name in ("base", "merged", "rl/one", "rl/two", last))
