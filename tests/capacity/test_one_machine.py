"""What a laptop is asked for, before a run begins."""

import json

import pytest

from tasks.capacity.machine_needs import needs, notes, slow_choices
from tasks.capacity.model_shape import shape_of
from tasks.models.model_folder import SHIPPED

SMOLLM2 = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 64,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5,
    "rope_theta": 100000.0,
    "tie_word_embeddings": True,
    "hidden_act": "silu",
}
GB = 10**9


@pytest.fixture
def smollm2():
    return shape_of(SMOLLM2)


def test_the_model_it_was_fitted_to_takes_what_it_took(smollm2):
    assert 134_515_008 == smollm2.parameters
    assert pytest.approx(6.4, abs=0.3) == needs(smollm2, 1024).memory / GB
    assert 16 * GB < needs(smollm2, 8192).memory  # the default swaps on a laptop of 16 GB


def test_a_run_says_what_it_takes_and_nothing_of_a_small_model(smollm2):
    found = needs(smollm2, 1024)
    tiny = needs(shape_of(json.loads((SHIPPED / "config.json").read_text())), 8192)

    (line,) = notes(found, 1024, 16 * GB, 100 * GB)

    assert (
        "training takes about 6.2 GB of memory, 1.9 GB of it for micro-batches of 1,024 tokens, "
        "and models about 5.9 GB of disk; 16.0 GB and 100.0 GB are free"
    ) == line
    assert [] == notes(tiny, 8192, 4 * GB, 4 * GB)


def test_what_is_missing_comes_with_what_to_do(smollm2):
    large = needs(smollm2, 8192)

    _, memory, disk = notes(large, 8192, 8 * GB, GB)
    (_, hopeless) = notes(large, 8192, 3 * GB, 100 * GB)

    assert memory.endswith("rl_two .engines.layout.micro_batch_tokens to 1,993")
    assert disk.endswith("free some, or name another store with --store")
    assert hopeless.endswith("Take a smaller model, or a machine with more")


def test_bf16_on_a_processor_without_it_and_several_threads_are_named_with_the_setting():
    plain, units = frozenset({"avx2", "avx512f"}), frozenset({"avx2", "avx512_bf16"})

    bf16, threads = slow_choices(["grading.engines.precision", "sft.engines.precision"], plain, 2)

    assert (
        "grading.engines.precision, sft.engines.precision: bf16 is 5 to 8 times slower than fp32 "
        "on this processor, which has no unit for it; set fp32"
    ) == bf16
    assert (
        "OMP_NUM_THREADS is 2: two threads took six times the processor time of one; set it to 1"
    ) == threads
    assert [] == slow_choices(["rl_one.engines.precision"], units, 1)
    assert [] == slow_choices([], plain, 1)
    assert [] == slow_choices(["rl_one.engines.precision"], frozenset(), 1)  # not known
