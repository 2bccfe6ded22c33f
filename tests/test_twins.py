"""Each recipe's twin goes through the whole chain on a base with its paper's published keys."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from data_schemas.laptop_recipes import RECIPES, has_judge, scaled
from data_schemas.machine_settings import merged_over
from data_schemas.settings import PipelineSettings
from tasks.gym.judging.scripted import preferring
from tests import tiny_chain
from tests.chat_endpoint import completion, endpoint, send
from tests.engines.families import add_mtp_layer, write_model
from tests.published_bases import COMPASSMAX_V3, LING_LITE, QWEN2_5_MATH_7B

pytestmark = pytest.mark.slow
BASES = {
    "ring_lite": LING_LITE,
    "compass_thinker": QWEN2_5_MATH_7B,
    "compassmax": COMPASSMAX_V3,
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
def test_a_recipes_twin_runs_to_its_decision_on_its_papers_base(
    name: str, tiny_moe: Path, tmp_path: Path, judge: dict[str, str]
) -> None:
    base = write_model(BASES[name], tiny_moe, tmp_path / "base")
    if BASES[name].get("num_nextn_predict_layers"):
        add_mtp_layer(base)
    twin = scaled(RECIPES[name])
    sources = [one.model_dump() | {"limit": 90} for one in twin.curation.sources]
    rewards = {"max_abstained_share": 1.0} | ({"judge": judge} if has_judge(RECIPES[name]) else {})
    phase = SHORT | {"steps": 1, "prompts_per_step": 4, "rewards": rewards}
    small = {
        "base_model": str(base),
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
