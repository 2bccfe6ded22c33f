"""How a model directory becomes a model."""

from concurrent.futures import ThreadPoolExecutor

import torch

from tasks.engines.embedded.hf_model import load_model


def test_models_that_threads_load_at_once_have_the_weights_of_the_file(tiny_moe):
    alone = load_model(tiny_moe).state_dict()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(load_model, [tiny_moe] * 12))

    for model in (*together, load_model(tiny_moe)):
        found = model.state_dict()
        assert alone.keys() == found.keys()
        assert all(torch.equal(alone[name], found[name]) for name in alone)
