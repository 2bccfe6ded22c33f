"""A phase without roles writes the bytes that it wrote before there were any."""

import dataclasses

import numpy as np
import pytest
import torch

from data_schemas.arrow import arrow_schema
from data_schemas.ledgers import LedgerRow
from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.reports import GateRecord, StepReport, StepTiming
from data_schemas.rl_settings import (
    EngineSettings,
    LossSettings,
    RouterReplay,
    ZeroVarianceSettings,
)
from data_schemas.verdicts import abstain, scored
from tasks.engines.chat import load_tokenizer
from tasks.engines.protocols import TokenScores
from tasks.engines.scripted import ScriptedRolloutEngine
from tasks.rl import codec, state, step_snapshot
from tasks.rl.batch import build
from tasks.rl.collector import Collector
from tasks.rl.ledger import collect_metrics, ledger_rows
from tasks.store.files import canonical_json, sha256_bytes
from tests.algorithms.signals import signal_of
from tests.records import filled

CHANGES = {
    "router_replay": RouterReplay.OFF,
    # Its advantages are exact in float32 on every processor.
    "loss": LossSettings(kind="dr_grpo"),
}
MODES = {
    "synchronous": {},
    "in segments": {"engines": EngineSettings(segment_tokens=3)},
    "with a curriculum": {"zero_variance": ZeroVarianceSettings(curriculum=((0.0, 0.6),))},
}
RECORDED = {
    "synchronous": {
        "state": "56a126a91f0de892",
        "snapshots": "efc85dc5d2ba722f",
        "ledger": "6e7a45dae4c2d4b6",
        "metrics": "42532625421415dd",
        "record": "e9bf5b65ec884abe",
    },
    "in segments": {
        "state": "397a9f591920b7dc",
        "snapshots": "36dc50dfbebb6892",
        "ledger": "377d36ebd8652f80",
        "metrics": "f7d3dbe73e5f0e49",
        "record": "5c7a1faa00541795",
    },
    "with a curriculum": {
        "state": "5866bb1e15b3bd20",
        "snapshots": "6618fac48b990eaa",
        "ledger": "6bfc863e4e138ae9",
        "metrics": "1349ea9b3d199a3e",
        "record": "2ce9e978fd3d7a69",
    },
}


def says(prompt: str, sample: int) -> str:
    return str(sample) * (1 + (len(prompt) + sample * sample) % 5)


def rule(problem, response):
    if response.startswith("3") and problem.id.endswith("7"):
        return abstain("timeout")
    return scored(float(len(response) % 2 == 0), "rule")


def gate_record(step: int) -> GateRecord:
    return filled(GateRecord, step=step)


def snapshot_of(settings, collected, batch) -> bytes:
    shape = batch.tokens.tokens_NT.shape
    old = TokenScores(torch.zeros(shape), torch.zeros(shape), None)
    given = step_snapshot.StepInputs(
        settings, 300, tuple(collected.trained), gate_record(collected.step)
    )
    made = step_snapshot.StepOutputs(batch, (), signal_of(torch.zeros(shape).bool()))
    written = step_snapshot.encode(
        step_snapshot.seal(given, (old, old), step_snapshot.Recorder(batch), made)
    )
    arrays, meta = codec.unpack(written)
    # Settings may gain fields; everything else of a plain step stays.
    return codec.pack(arrays, {name: part for name, part in meta.items() if name != "settings"})


@pytest.fixture
def digests(settings, problems, tiny_moe, scorer):
    """Digests of everything that two steps and their state are written as; seconds are left out."""
    graded = [
        GradedProblem(**row.model_dump(), pass_rate=0.25 * (n % 5), mean_tokens=5.0, band=Band.HARD)
        for n, row in enumerate(problems)
    ]

    def run(changes):
        asked = settings.model_copy(update=CHANGES | changes)
        tokenizer = load_tokenizer(tiny_moe)
        engine = ScriptedRolloutEngine(tokenizer, says)
        collector = Collector(asked, engine, tokenizer, scorer(rule), graded)
        found = [
            dataclasses.replace(collector.collect(step), costs=[], rollout_seconds=0.0)
            for step in (1, 2)
        ]
        found = [dataclasses.replace(one, reward_seconds=0.0) for one in found]
        between = state.encode(state.PendingState(collector.state(), tuple(found)))
        batches = [build(asked, one.trained) for one in found]
        rows = [
            row
            for one, batch in zip(found, batches, strict=True)
            for row in ledger_rows(
                one, batch, batch.advantages_N[:, None] * batch.tokens.response_NT, {}
            )
        ]
        metrics = [collect_metrics(one) | one.metrics for one in found]
        record = state.StepRecord(
            report=StepReport(step=1, policy_version=0, metrics=metrics[0]),
            timing=StepTiming(step=1, seconds={}),
            ledger=tuple(rows),
            costs=(),
            gate=gate_record(1),
        )
        snapshots = b"".join(map(snapshot_of, (asked, asked), found, batches))
        ledger = [str(arrow_schema(LedgerRow)).encode(), *map(canonical_json, rows)]
        parts = {
            "state": between,
            "snapshots": snapshots,
            "ledger": b"\n".join(ledger),
            "metrics": canonical_json(metrics),
            "record": canonical_json(record),
        }
        assert np.any([row.trained_tokens for row in rows])
        return {name: sha256_bytes(part)[:16] for name, part in parts.items()}

    return run


@pytest.mark.parametrize("mode", MODES)
def test_a_plain_phase_keeps_its_digests(digests, mode):
    assert RECORDED[mode] == digests(MODES[mode])
