"""vLLM and Megatron-core in two or four processes: python real_scenarios.py MODEL OUT NAME."""

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import scenarios  # beside this file
import torch

# Imported once, before the ranks are forked.
import tasks.engines.rollout_vllm.engine
import tasks.engines.trainer_megatron.trainer
from data_schemas.machine_settings import LayoutSettings, MachineSettings, RolloutKind, TrainerKind
from tasks.engines.protocols import Sampling, TokenBatch
from tasks.engines.recording_loss import ROW, RecordingLoss
from tasks.engines.select import open_rollout, open_trainer
from tasks.engines.weight_sync import Outgoing

SAMPLING = Sampling(max_new_tokens=12, temperature=1.0, seed=3)
LAYOUTS = {
    "colocated": (2, LayoutSettings(expert=2)),
    "dedicated": (2, LayoutSettings(expert=2, dedicated_rollout_gpus=1)),
    "stages": (4, LayoutSettings(pipeline=2, expert=2, rollout_tensor=2)),
    "shards": (4, LayoutSettings(tensor=2, expert=2, rollout_tensor=2)),
}
"""Processes, and how they share the work."""


def batch_of(rollouts: list) -> TokenBatch:
    """Prompts and responses with their routes, as RL trains on them."""
    rows = [torch.tensor([*one.prompt_tokens, *one.response_tokens]) for one in rollouts]
    width, (_, layers, k) = max(map(len, rows)), rollouts[0].trace.experts_TLK.shape
    tokens_NT = torch.zeros(len(rows), width, dtype=torch.int64)
    response_NT = torch.zeros(len(rows), width, dtype=torch.bool)
    experts_NTLK = torch.full((len(rows), width, layers, k), -1)
    for number, (row, one) in enumerate(zip(rows, rollouts, strict=True)):
        tokens_NT[number, : len(row)] = row
        response_NT[number, len(one.prompt_tokens) : len(row)] = True
        routes = torch.from_numpy(one.trace.experts_TLK.astype(np.int64))
        experts_NTLK[number, : len(routes)] = routes
    lengths_N = torch.tensor([len(row) for row in rows])
    numbers = {ROW: torch.arange(len(rows))}
    return TokenBatch(tokens_NT, lengths_N, response_NT, experts_NTLK, numbers)


def gap(trainer, rollouts: list) -> float:
    """Largest |dlogp| between trainer and engine, routes replayed, nats."""
    batch = batch_of(rollouts)
    scores = trainer.score(batch, temperature=1.0, record_routes=False)
    found = scores.logprobs_NT[batch.response_NT].numpy()
    return float(np.abs(found - np.concatenate([one.logprobs for one in rollouts])).max())


def a_step(layout: LayoutSettings, model: Path, out: Path) -> dict:
    """Roll out, sleep, score, update, sync the weights, roll out again."""
    engines = MachineSettings(rollout=RolloutKind.VLLM, trainer=TrainerKind.MEGATRON, layout=layout)
    trainer, engine = open_trainer(engines, model), open_rollout(engines, model)
    first = list(engine.generate(scenarios.requests(), SAMPLING))
    engine.sleep()
    loss = RecordingLoss(scenarios.token_sum)
    before = gap(trainer, first)
    trainer.update(batch_of(first), loss, temperature=1.0, learning_rate=1e-2)
    outgoing = Outgoing(trainer.weights())
    installed = engine.load_weights(outgoing, 1)
    second = list(engine.generate(scenarios.requests(), SAMPLING))
    engine._dedicated = True  # all requests are dealt at once, and no queue is shared
    dealt = list(engine.generate(scenarios.requests(), SAMPLING))
    canaries = [np.arange(10, 26, dtype=np.int32)]
    found = {
        "answers": [len(first), len(second)],
        "rows": sorted(row for call in loss.calls for row in call.rows_M.tolist()),
        "gaps": [before, gap(trainer, second)],
        "same_as_dealt": scenarios.answers(second) == scenarios.answers(dealt),
        "same_answers": scenarios.answers(first) == scenarios.answers(second),
        "digests": [installed, outgoing.digest()],
        "versions": sorted({one.policy_version for one in second}),
        "probed": len(engine.score_logprobs(canaries)[0]),
        "sequences": engine.counters.sequences,
    }
    engine.close()
    (out / "state").mkdir()
    trainer.save(out / "state")  # its groups are still there
    trainer.close()
    return found


def main(model: Path, out: Path, names: list[str]) -> None:
    tasks.engines.rollout_vllm.engine.SLOTS = 2  # so that a shared queue is asked more than once
    found = {}
    for name in names:
        processes, layout = LAYOUTS[name]
        scenarios.SCENARIOS[name] = partial(a_step, layout)
        found[name] = scenarios.run(name, model, out / name, processes)
    (out / "found.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
