"""The wider sibling: its shape, and that it is written as a model that opens."""

from transformers import AutoConfig

from tasks.engines.embedded.hf_model import load_model
from tasks.training.foundation import wider


def test_the_sibling_is_deeper_with_more_experts_and_opens_as_a_model(tmp_path):
    wider.main([str(tmp_path), "--steps", "1"])

    config = AutoConfig.from_pretrained(tmp_path)
    assert (6, 4) == (config.num_hidden_layers, config.num_experts_per_tok)
    assert (32, 128) == load_model(tmp_path).get_parameter("model.layers.5.mlp.gate.weight").shape
