"""A small run, written to disk the way the stages write it."""

import json

import numpy as np
import pytest

from data_schemas.artifacts import Execution
from data_schemas.reports import (
    Comparison,
    EvaluationReport,
    GateDecision,
    LayerUse,
    PrecisionReport,
    PrecisionSlice,
    StepReport,
)
from data_schemas.settings import PipelineSettings
from tasks.pages.inputs import RunInputs
from tasks.pages.page import write_report
from tasks.pages.stage_rows import StageRow
from tasks.store.files import canonical_json
from tests.records import filled, suite_score

ACCURACIES = {
    "base": 0.112,
    "sft/reasoning": 0.243,
    "sft/commerce": 0.266,
    "merged": 0.291,
    "rl/one": 0.352,
    "rl/two": 0.4335,
}
DOMAINS = ("maths", "code", "instruction", "choice", "extraction", "tool_use", "open_text")
LANGUAGES = ("en", "id", "ms", "pt", "th", "vi", "zh-TW")


def _suite(name, accuracy, problems):
    half = 0.9 * np.sqrt(accuracy * (1 - accuracy) / problems)
    return suite_score(
        accuracy,
        suite=name,
        problems=problems,
        low=max(0.0, accuracy - half),
        high=accuracy + half,
        pass_at_k=min(1.0, 1.4 * accuracy),
        abstained=3 if name == "all" else 0,
    )


def _evaluation(model, accuracy):
    names = [f"domain:{name}" for name in DOMAINS] + [f"language:{name}" for name in LANGUAGES]
    scale = np.linspace(0.6, 1.4, len(names))
    suites = [_suite("all", accuracy, 420)]
    suites += [_suite(name, accuracy * k, 60) for name, k in zip(names, scale, strict=True)]
    return filled(
        EvaluationReport,
        model=model,
        suites=tuple(suites),
        truncated_share=0.02,
        mean_response_tokens=31.0,
        mean_entropy_nats=0.6,
    )


def _gains():
    rows = {
        "all": (0.1425, 0.101, 0.183),
        "domain:maths": (0.21, 0.12, 0.30),
        "domain:code": (0.05, -0.02, 0.12),
        "domain:tool_use": (0.0, -0.03, 0.03),
        "domain:open_text": (-0.06, -0.11, -0.012),
    }
    return tuple(
        Comparison(
            suite=suite,
            parent="merged",
            difference=middle,
            low=low,
            high=high,
            problems=420 if suite == "all" else 60,
        )
        for suite, (middle, low, high) in rows.items()
    )


def write_steps(folder, steps, seed):
    """Write steps.jsonl with a noisy course of every metric."""
    generator = np.random.default_rng(seed)
    courses = {
        "reward/mean": (0.3, 0.5, 0.04),
        "reward/solved_share": (0.25, 0.42, 0.04),
        "reward/above_graded": (0.0, 0.15, 0.04),
        "zero_variance/share": (0.5, 0.35, 0.06),
        "policy/entropy_nats": (0.8, 0.45, 0.02),
        "rollout/length_tokens": (28.0, 34.0, 1.0),
        "mismatch/mean_abs_logprob": (2e-6, 4e-6, 5e-7),
        "mismatch/k3": (1e-9, 2e-9, 2e-10),
        "tokens/trained_share": (0.6, 0.8, 0.0),
        "tokens/surplus_share": (0.4, 0.2, 0.0),
        "policy/clip_share": (0.02, 0.05, 0.01),
        "policy/grad_norm": (0.8, 0.4, 0.1),
    }
    folder.mkdir(parents=True)
    lines = []
    for step in range(1, steps + 1):
        metrics = {
            name: float(first + (last - first) * step / steps + generator.normal(0, noise))
            for name, (first, last, noise) in courses.items()
        }
        report = StepReport(step=step, policy_version=step, metrics=metrics)
        lines.append(canonical_json(report) + b"\n")
    (folder / "steps.jsonl").write_bytes(b"".join(lines))
    return folder


def write_tuning(folder, chosen):
    """Write epochs.json and report.json of a fine-tuning."""
    folder.mkdir(parents=True)
    epochs = [
        {
            "epoch": epoch,
            "train_loss": 1.6 / epoch,
            "val_loss": 1.7 / epoch + 0.05 * epoch,
            "entropy": 0.9 - 0.2 * epoch,
            "chosen": epoch == chosen,
            "samples": [
                {
                    "demonstration": "d/7",
                    "domain": "maths",
                    "prompt": "What is 3 < 4?",
                    "reference": "<think>true</think>yes",
                    "response": f"<think>epoch {epoch}",
                }
            ],
        }
        for epoch in (1, 2, 3)
    ]
    (folder / "epochs.json").write_text(json.dumps(epochs))
    report = {
        "parent": "reasoning",
        "demonstrations": 1234,
        "entropy_window_nats": [0.17, 0.28],
        "chosen_epoch": chosen,
    }
    (folder / "report.json").write_text(json.dumps(report))
    return folder


STAGES = (
    StageRow("ingest", True, 0.4, 0, 3, "first time in this store"),
    StageRow(
        "curate",
        False,
        41.3,
        12345,
        9876,
        "same code, settings and inputs as execution a1b2 on 2026-11-21",
    ),
    StageRow("rl/one", True, 75.2, 1024, 320, "settings changed: learning_rate 0.001 -> 0.0005"),
    StageRow("rl/two", True, 81.0, 1024, 320, "input 'start' changed"),
)


def write_curation(folder):
    """Write the report.json of a curation of two sources."""
    folder.mkdir(parents=True)
    sources = {
        "gsm8k": {
            "rows": 1319,
            "items": 1319,
            "kept": {"problems": 1200, "demonstrations": 0, "held_out": 60},
            "dropped": {"duplicate": 2, "prompt_too_long": 54},
            "quarantined": {"bad_gold": 3},
        },
        "sample_world": {
            "rows": 4321,
            "items": 4321,
            "kept": {"problems": 1800, "demonstrations": 2101, "held_out": 360},
            "dropped": {"near_duplicate": 60},
            "quarantined": {},
        },
    }
    (folder / "report.json").write_text(json.dumps({"totals": {}, "sources": sources}))
    return folder


@pytest.fixture
def run(tmp_path):
    """A post-training run with everything a page can show."""
    return build_run(tmp_path)


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """Its page, written once."""
    folder = tmp_path_factory.mktemp("page")
    return write_report(build_run(folder), folder).read_text()


def build_run(tmp_path):
    """Write a run's artifacts below a folder."""
    return RunInputs(
        workflow="post_training",
        execution=Execution(id="c3d4", started=1_795_255_200.0),
        settings=PipelineSettings(base_model="/models/<mine>"),
        stages=STAGES,
        progression=tuple(_evaluation(model, accuracy) for model, accuracy in ACCURACIES.items()),
        gains=_gains(),
        gate=GateDecision(
            released=False,
            reasons=("passed: gain over merged is clear", "FAILED: open text lost 6.0 points"),
            comparisons=_gains(),
        ),
        phases={
            "rl/one": write_steps(tmp_path / "one", 40, 1),
            "rl/two": write_steps(tmp_path / "two", 40, 2),
        },
        tunings={
            "sft/reasoning": write_tuning(tmp_path / "reasoning", 3),
            "sft/commerce": write_tuning(tmp_path / "commerce", 2),
        },
        curated=write_curation(tmp_path / "curated"),
        places={"MLflow": "sqlite:////run/mlflow.db", "release": "not released"},
    )


@pytest.fixture
def precisions():
    """A model in int8: Thai loses for certain, and a domain has no verdicts."""

    def part(suite, k3, gain):
        return PrecisionSlice(
            suite=suite,
            responses=20,
            tokens=400,
            k3=k3,
            k3_low=k3 / 2,
            k3_high=2 * k3,
            abs_logprob=0.01,
            routes=0.0072,
            routed_tokens=0.0194,
            gain=gain
            and Comparison(
                suite=suite,
                parent="fp32",
                difference=gain[0],
                low=gain[1],
                high=gain[2],
                problems=20,
            ),
        )

    slices = (
        part("all", 2.4e-4, (-0.014, -0.043, 0.0)),
        part("language:th", 1.1e-3, (-0.102, -0.15, -0.05)),
        part("domain:general", 3e-4, None),
    )
    layer = LayerUse(layer=2, routes=0.02, moved=0.0123, expert=5, change=-0.011)
    return (
        PrecisionReport(
            model="released", reference="fp32", precision="int8", slices=slices, layers=(layer,)
        ),
    )
