"""An exported model in vLLM as anybody starts it, without a line of this project."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.embedded.trainer import TorchTrainer
from tasks.engines.protocols import Request, Sampling
from tasks.engines.rollout_vllm.environment import EVERYWHERE, WITHOUT_GPU
from tests.engines.families import write_family
from tests.processes import run_process

pytest.importorskip("vllm")
pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]
PLAIN = """
import json, sys
from vllm import LLM, SamplingParams

folder, *prompt = sys.argv[1:]
model = LLM(folder, dtype="float32", enforce_eager=True, max_model_len=128, max_num_seqs=4,
            gpu_memory_utilization=0.2)
sampling = SamplingParams(temperature=0.0, max_tokens=24, detokenize=False)
(result,) = model.generate([{"prompt_token_ids": [*map(int, prompt)]}], sampling, use_tqdm=False)
print("RESULT", json.dumps([[*result.outputs[0].token_ids], result.outputs[0].finish_reason]))
"""
PROMPT = np.arange(20, 32, dtype=np.int32)


def test_an_exported_model_writes_the_same_and_stops_in_vllm(served_moe, tmp_path: Path):
    source, out = tmp_path / "source", tmp_path / "out"
    write_family("qwen3_moe mixed", served_moe, source, hidden_size=128, head_dim=32)
    config = json.loads((source / "config.json").read_text())
    # As every published file has it: vLLM tells by it whether a model generates.
    config["architectures"] = ["Qwen3MoeForCausalLM"]
    (source / "config.json").write_text(json.dumps(config))
    sampling = Sampling(max_new_tokens=24, temperature=0.0, seed=0, record_routes=False)
    (free,) = HFRolloutEngine(source).generate([Request("p", PROMPT, 1)], sampling)
    own = load_tokenizer(source).eos_token_id
    # A token that the model does write in the middle, which the tokenizer has not as its end.
    end = int(free.response_tokens[7])
    generation = json.loads((source / "generation_config.json").read_text())
    generation["eos_token_id"] = [own, end]
    (source / "generation_config.json").write_text(json.dumps(generation))
    out.mkdir()
    trainer = TorchTrainer(source)
    trainer.export(out)
    trainer.close()
    model = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
    written = model.generate(torch.tensor(PROMPT)[None], max_new_tokens=24, do_sample=False)

    done = run_process(
        [sys.executable, "-c", PLAIN, out, *map(str, PROMPT)],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        | EVERYWHERE
        | WITHOUT_GPU
        | {"VLLM_CPU_KVCACHE_SPACE": "1"},
    )

    (line,) = [one for one in done.stdout.splitlines() if one.startswith("RESULT ")]
    tokens, reason = json.loads(line.removeprefix("RESULT "))
    assert "stop" == reason
    assert end == tokens[-1]
    assert written[0, len(PROMPT) :].tolist() == tokens
