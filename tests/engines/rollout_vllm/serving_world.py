"""What every rank of a launched world does in test_launch: a group of its own first, then vLLM."""

import json
import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import distributed

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.protocols import Request, Sampling
from tests.engines.rollout_vllm.scheduled_ahead import scheduled_ahead

REQUESTS = [Request(f"p{n}", np.arange(20, 30 + n, dtype=np.int32), 3) for n in range(3)]
SAMPLING = Sampling(12, 1.0, seed=3)
ENDS_FIRST = replace(REQUESTS[0], num_samples=1, response_tokens=np.full(7, 9, dtype=np.int32))


def answers(engine, requests, sampling=SAMPLING):
    """Tokens, log-probabilities and routes by sample."""
    return {
        f"{one.problem_id}/{one.sample}": [
            one.response_tokens.tolist(),
            one.logprobs.tolist(),
            one.trace.experts_TLK.tolist(),
        ]
        for one in engine.generate(requests, sampling)
    }


def serve(folder, tensor):
    """Open, generate, update, generate; say what came."""
    from tasks.engines.embedded.trainer import TorchTrainer
    from tasks.engines.rollout_vllm.engine import VllmRolloutEngine

    engine = VllmRolloutEngine(folder, layout=LayoutSettings(rollout_tensor=tensor))
    # Replicas answer different prompts, and take different times for it.
    own = REQUESTS if tensor > 1 else REQUESTS[distributed.get_rank() :]
    before = answers(engine, own)
    cut = answers(engine, [ENDS_FIRST, REQUESTS[1]], replace(SAMPLING, enough=1))
    trainer = TorchTrainer(folder)
    with torch.no_grad():
        for _, parameter in trainer.weights():
            parameter.mul_(1.02)
    digest = engine.load_weights(trainer.weights(), version=1)
    probe = engine.score_logprobs([REQUESTS[0].prompt_tokens])[0].tolist()
    after = answers(engine, own)
    is_ahead = engine._backend._engine.vllm_config.scheduler_config.async_scheduling
    engine.close()
    return {
        "before": before,
        "cut": cut,
        "after": after,
        "digest": digest,
        "probe": probe,
        "is_ahead": is_ahead,
    }


def main(folder, tensor):
    """Serve without asynchronous scheduling and with it; sum over the first group."""
    plain = serve(folder, tensor)
    with scheduled_ahead():
        ahead = serve(folder, tensor)
    total = torch.tensor([distributed.get_rank() + 1.0])
    distributed.all_reduce(total)
    return {"plain": plain, "ahead": ahead, "sum": total.item()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    distributed.init_process_group("gloo")
    found = main(Path(sys.argv[1]), int(sys.argv[2]))
    Path(sys.argv[3], os.environ["RANK"]).write_text(json.dumps(found))
    distributed.destroy_process_group()
