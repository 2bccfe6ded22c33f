"""What every rank of a launched world does in test_launch: a group of its own first, then vLLM."""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import distributed

from data_schemas.machine_settings import LayoutSettings
from tasks.engines.protocols import Request, Sampling

REQUESTS = [Request(f"p{n}", np.arange(20, 30 + n, dtype=np.int32), 3) for n in range(3)]
SAMPLING = Sampling(12, 1.0, seed=3)


def answers(engine, requests):
    """Tokens by sample."""
    found = engine.generate(requests, SAMPLING)
    return {f"{r.problem_id}/{r.sample}": r.response_tokens.tolist() for r in found}


def serve(folder, tensor):
    """Open, generate, update, generate; say what came, and that the first group still works."""
    from tasks.engines.embedded.trainer import TorchTrainer
    from tasks.engines.rollout_vllm.engine import VllmRolloutEngine

    rank = distributed.get_rank()
    engine = VllmRolloutEngine(folder, layout=LayoutSettings(rollout_tensor=tensor))
    # Replicas answer different prompts, and take different times for it.
    own = REQUESTS if tensor > 1 else REQUESTS[rank:]
    before = answers(engine, own)
    trainer = TorchTrainer(folder)
    with torch.no_grad():
        for _, parameter in trainer.weights():
            parameter.mul_(1.02)
    digest = engine.load_weights(trainer.weights(), version=1)
    probe = engine.score_logprobs([REQUESTS[0].prompt_tokens])[0].tolist()
    after = answers(engine, own)
    engine.close()
    total = torch.tensor([rank + 1.0])
    distributed.all_reduce(total)
    return {
        "before": before,
        "after": after,
        "digest": digest,
        "probe": probe,
        "sum": total.item(),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    distributed.init_process_group("gloo")
    found = serve(Path(sys.argv[1]), int(sys.argv[2]))
    Path(sys.argv[3], os.environ["RANK"]).write_text(json.dumps(found))
    distributed.destroy_process_group()
