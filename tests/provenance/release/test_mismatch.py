"""The mismatch gate's records decide about a release, and are found by the chain."""

import pytest

from data_schemas.reports import GATES_FILE, GateRecord, MismatchDecision
from data_schemas.statements import Output, Statement
from tasks.provenance.release.mismatch import gates_behind, rules, summary
from tasks.store.files import canonical_json
from tasks.store.local import new_object
from tests.records import filled


def record(
    step: int, decision: MismatchDecision = MismatchDecision.PROCEED, k3: float = 1e-6
) -> GateRecord:
    return filled(GateRecord, step=step, decision=decision, k3=k3, probe_logprob=0.01 * step)


def statement(store, name: str, files: dict[str, bytes]) -> Statement:
    with new_object(store) as (folder, committed):
        for file, payload in files.items():
            (folder / file).write_bytes(payload)
    return filled(
        Statement,
        stage=name,
        outputs=(Output(role="report", uri=committed.uri, digest=committed.digest),),
    )


def test_decisions_are_counted_and_the_largest_gaps_kept():
    phase = summary(
        "rl/one", [record(1, k3=2e-3), record(2, MismatchDecision.CORRECT, k3=0.05), record(3)]
    )

    assert (3, 2, 1, 0) == (phase.steps, phase.proceeded, phase.corrected, phase.paused)
    assert (0.05, pytest.approx(0.03)) == (phase.max_k3, phase.max_probe)


@pytest.mark.parametrize(
    ("records", "passed", "text"),
    [
        (
            [record(1), record(2, MismatchDecision.CORRECT)],
            True,
            "1 steps proceeded, 1 were corrected",
        ),
        ([record(1), record(2, MismatchDecision.PAUSE)], False, "1 paused"),
        ([], False, "no gate records"),
    ],
)
def test_a_phase_that_paused_or_has_no_records_fails(records, passed, text):
    [(found, reason)] = rules((summary("rl/one", records),))

    assert passed is found
    assert reason.startswith("mismatch in rl/one: ")
    assert text in reason


def test_every_phase_of_the_chain_is_read_and_other_stages_are_not(tmp_path):
    lines = b"".join(canonical_json(record(step)) + b"\n" for step in (1, 2))
    chain = {
        "a": statement(tmp_path, "sft/reasoning", {"x": b"1"}),
        "b": statement(tmp_path, "rl/one", {GATES_FILE: lines}),
        "c": statement(tmp_path, "rl/two", {"steps.jsonl": b""}),
    }

    gates = gates_behind(chain, tmp_path)

    assert [("rl/one", 2), ("rl/two", 0)] == [(phase.stage, phase.steps) for phase in gates]
