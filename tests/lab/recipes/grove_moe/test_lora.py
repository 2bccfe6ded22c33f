"""Adapters of adjugates do what those of experts do."""

import pytest

from tests.engines.embedded.test_lora import (
    test_an_export_is_a_plain_checkpoint_of_the_merged_model,
    test_before_training_an_adapter_changes_nothing,
    test_factors_are_trained_and_the_model_is_frozen,
    test_gradients_are_those_of_the_dense_sum_by_the_chain_rule,
    test_log_probabilities_are_those_of_the_dense_sum,
    trainer,
)

__all__ = [
    "test_an_export_is_a_plain_checkpoint_of_the_merged_model",
    "test_before_training_an_adapter_changes_nothing",
    "test_factors_are_trained_and_the_model_is_frozen",
    "test_gradients_are_those_of_the_dense_sum_by_the_chain_rule",
    "test_log_probabilities_are_those_of_the_dense_sum",
    "trainer",
]


@pytest.fixture
def folder(tiny_grove):
    return tiny_grove
