"""What an evening left is read from its store, and what did not come to its end is refused."""

import json
from pathlib import Path

import pytest

from data_schemas.reports import Baseline, Comparison, EvaluationReport, GateDecision
from tasks.errors import DataError
from tasks.formats.progression import write_progression
from tests.bench.evening import ends_of, read_store
from tests.records import filled, suite_score


def report(model: str, accuracy: float, same_as: str = "") -> EvaluationReport:
    suite = suite_score(accuracy, problems=40, samples=1, low=accuracy - 0.1, high=accuracy + 0.1)
    return filled(
        EvaluationReport,
        model=model,
        checkpoint=f"digest of {model}",
        same_as=same_as,
        suites=(suite,),
        mean_response_tokens=20.0,
        baselines=(Baseline(name="arithmetic", accuracy={"all": 0.15}),),
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    gain = Comparison(
        suite="all", parent="merged", difference=-0.1, low=-0.2, high=0.05, problems=40
    )
    decision = GateDecision(released=False, reasons=("FAILED: gain",), comparisons=(gain,))
    reports = [report("base", 0.2), report("merged", 0.4), report("rl/two", 0.3, "rl/one")]
    for name in ("gate", "progression", "phase"):
        (tmp_path / "objects" / name).mkdir(parents=True)
    write_progression(tmp_path / "objects" / "progression", reports, [gain])
    (tmp_path / "objects" / "gate" / "gate.json").write_text(decision.model_dump_json())
    steps = [
        {"step": step, "policy_version": step, "metrics": {"reward/mean": step / 8}}
        for step in range(1, 9)
    ]
    lines = "".join(json.dumps(step) + "\n" for step in steps)
    (tmp_path / "objects" / "phase" / "steps.jsonl").write_text(lines)
    return tmp_path


def test_models_baselines_reward_and_gain_of_an_evening_are_read(store):
    found = read_store(store)

    assert {"base": 0.2, "merged": 0.4} == {
        name: score["accuracy"] for name, score in found["models"].items()
    }
    assert (False, ["gain"]) == (found["released"], found["failed"])
    assert {"arithmetic": 0.15} == found["baselines"]
    assert {"steps": 8, "end": 2, "first": 1.5 / 8, "last": 7.5 / 8} == found["reward"]
    assert (-0.1, -0.2, 0.05, 40) == tuple(
        found["gain"][name] for name in ("difference", "low", "high", "problems")
    )


def test_a_curve_of_one_step_has_one_step_at_both_ends():
    assert {"steps": 1, "end": 1, "first": 0.5, "last": 0.5} == ends_of([0.5])


def test_an_evening_without_its_gate_is_no_result(store):
    (store / "objects" / "gate" / "gate.json").unlink()

    with pytest.raises(DataError, match=r"0 files gate\.json, not one"):
        read_store(store)
