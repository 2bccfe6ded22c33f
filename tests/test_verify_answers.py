"""Two models solve training problems; their solve rates select problems of the next curation."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from data_schemas.arrow import read_table
from data_schemas.pass_rates import SolveRate
from data_schemas.rows import FACETS, HELD_OUT, PROBLEMS, Facet, Problem
from data_schemas.settings import (
    CurationSettings,
    EvaluationSettings,
    PipelineSettings,
    Source,
)
from tasks.training.foundation.base import shipped_base
from workflows.curate import curate
from workflows.evaluate import evaluate
from workflows.verify_answers import verify_answers

SMALL = {"samples": 3, "max_new_tokens": 24}
ASKED = 10


def settings(*lists: Source) -> PipelineSettings:
    world = Source(adapter="sample_world", limit=160)
    return PipelineSettings.model_validate(
        {
            "curation": CurationSettings(sources=(world, *lists), held_out_per_suite=3),
            "grading": {"max_problems": ASKED, "weights": {"choice": 1.0}},
            "evaluation": SMALL,
        }
    )


def damaged(folder: Path) -> Path:
    """The shipped base with noise on its weights: it solves fewer problems."""
    shutil.copytree(shipped_base(), folder)
    weights, drawn = load_file(folder / "model.safetensors"), torch.Generator().manual_seed(0)
    for value in weights.values():
        if value.ndim > 1:
            noise = torch.randn(value.shape, generator=drawn)
            value += (0.15 * value.float().std() * noise).to(value.dtype)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))  # of Flyte's cache, which has what was curated before
        yield folder


@pytest.fixture(scope="module")
def rates_file(store) -> Path:
    """What verify_answers wrote."""
    models = f"teacher={shipped_base()},student={damaged(store / 'student')}"
    doubted = verify_answers(model=models, settings=settings(), store=str(store / "runs"))
    return Path(doubted.doubts.uri) / "solve_rates.jsonl"


# Each step is tried every day: `evaluation/formats`, `curation/cleaning/test_pass_rates.py`.
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_rates_of_two_models_select_the_problems_that_one_has_not_mastered(store, rates_file):
    rates = [SolveRate.model_validate_json(line) for line in rates_file.read_bytes().splitlines()]
    assert {("teacher", 3), ("student", 3)} == {(one.model, one.samples) for one in rates}
    assert 2 * ASKED == len(rates) == len({(one.problem, one.model) for one in rates})
    of = {
        model: {one.problem: one.pass_rate for one in rates if one.model == model}
        for model in ("teacher", "student")
    }
    wanted = {
        problem
        for problem, rate in of["teacher"].items()
        if rate is not None
        and rate >= 0.3
        and (other := of["student"][problem]) is not None
        and other <= 0.7
    }
    scored = of["teacher"].keys() - {
        problem for rated in of.values() for problem, rate in rated.items() if rate is None
    }
    assert wanted
    assert wanted < scored
    bands = [
        {"source": "sample_world", "model": "teacher", "lowest": 0.3},
        {"source": "sample_world", "model": "student", "highest": 0.7},
    ]
    (store / "bands.jsonl").write_text("\n".join(map(json.dumps, bands)))
    lists = {"solve_rates": rates_file, "bands": store / "bands.jsonl"}

    plain = curate(settings=settings(), store=str(store / "runs"))
    chosen = settings(*(Source(adapter=name, path=str(path)) for name, path in lists.items()))
    selected = curate(settings=chosen, store=str(store / "runs"))

    before, after = Path(plain.curated.uri), Path(selected.curated.uri)
    assert wanted == {one.id for one in read_table(after / PROBLEMS, Problem)}
    assert (before / HELD_OUT).read_bytes() == (after / HELD_OUT).read_bytes()
    account = json.loads((after / "report.json").read_bytes())["sources"]["sample_world"]
    offered = len(read_table(before / PROBLEMS, Problem))
    assert (
        offered
        == len(wanted) + account["dropped"]["outside_band"] + (account["dropped"]["no_pass_rate"])
    )
    assert len(scored - wanted) >= account["dropped"]["outside_band"] > 0
    assert {"matched": ASKED, "unmatched": 0} == account["solve_rates"]
    found = {(one.problem, one.name): float(one.value) for one in read_table(after / FACETS, Facet)}
    assert found == {
        (problem, f"pass_rate:{model}"): rated[problem]
        for model, rated in of.items()
        for problem in wanted
    }
    page = Path(selected.page).read_text()
    assert "how often a model solves them" in page
    assert all(f'<tr><th scope="row">{model}</th>' in page for model in of)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_model_called_base_stands_beside_the_base_model(store, caplog):
    small = settings().model_copy(update={"evaluation": EvaluationSettings(**SMALL)})

    found = evaluate(
        model=f"base={damaged(store / 'other')}", settings=small, store=str(store / "called_base")
    )

    reports = [json.loads((Path(one.uri) / "report.json").read_bytes()) for one in found.scores]
    assert ["base_model", "base"] == [one["model"] for one in reports]
    assert reports[0]["checkpoint"] != reports[1]["checkpoint"]
    assert "MLflow refused" not in caplog.text
