"""A base model ends a text with one token and its chat template a turn with another: both end."""

import json
import shutil

import numpy as np

from data_schemas.rollouts import StopReason
from tasks.engines.chat import ends_of, load_tokenizer, response_text
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.protocols import Request, Sampling
from tasks.engines.scoring import find_tokenizer
from tasks.gym.scoring.responses import text_of
from tasks.models.architectures import end_ids

SAMPLING = Sampling(max_new_tokens=40, temperature=1.0, seed=0, record_routes=False)


def with_ends(source, folder, **ends):
    """Copy a model with other end tokens in its files."""
    shutil.copytree(source, folder)
    for name, end in ends.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": end}))
    return folder


def responses(folder):
    requests = [Request(f"p{number}", np.array([5, 6, 7 + number]), 4) for number in range(3)]
    engine = HFRolloutEngine(folder)
    return list(engine.generate(requests, SAMPLING))


def test_the_tokens_of_all_files_end_a_response(tiny_moe, tmp_path):
    own = load_tokenizer(tiny_moe).eos_token_id
    folder = with_ends(tiny_moe, tmp_path / "m", config=[own, 3], generation_config=4)

    assert (own, 3, 4) == end_ids(folder, own) == ends_of(load_tokenizer(folder))
    assert (own,) == ends_of(load_tokenizer(tiny_moe)) == end_ids(tmp_path, own)


def test_a_response_ends_with_either_token_and_keeps_it(tiny_moe, tmp_path):
    before = responses(tiny_moe)
    other = int(before[0].response_tokens[2])
    own = load_tokenizer(tiny_moe).eos_token_id
    folder = with_ends(tiny_moe, tmp_path / "m", config=[own, other])

    after = {(one.problem_id, one.sample): one for one in responses(folder)}

    for rollout in before:
        tokens = rollout.response_tokens.tolist()
        ended = after[rollout.problem_id, rollout.sample]
        cut = tokens.index(other) + 1 if other in tokens else len(tokens)
        assert tokens[:cut] == ended.response_tokens.tolist()
        if other in tokens:
            assert StopReason.END is ended.stop_reason
            assert len(ended.logprobs) == cut


def test_the_text_of_a_response_has_neither_end(tiny_moe, tmp_path):
    own = load_tokenizer(tiny_moe).eos_token_id
    folder = with_ends(tiny_moe, tmp_path / "m", config=[own, 3])
    tokenizer, source = load_tokenizer(folder), find_tokenizer(folder)

    for end in (own, 3):
        tokens = [70, 71, end]
        assert response_text(tokenizer, tokens) == response_text(tokenizer, [70, 71])
        assert text_of(source, tokens) == response_text(tokenizer, tokens)
