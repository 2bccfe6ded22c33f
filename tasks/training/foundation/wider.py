"""Pretrain a wider variant of the shipped base model, for the tables of the mismatch.

    python -m tasks.training.foundation.wider wider_model

It takes half an hour on one core. The model has the tokenizer of the shipped base and is
trained for a third of its steps.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerFast

from data_schemas.settings import PretrainSettings
from tasks.engines.chat import load_tokenizer
from tasks.platform.command_line import command_parser, positive, run
from tasks.training.foundation.architecture import wider_moe
from tasks.training.foundation.base import shipped_base
from tasks.training.foundation.pretraining import pretrain_as
from tasks.training.foundation.tokenizer import PAD, TURN_END, token_id


def main(arguments: Sequence[str]) -> None:
    """Train and write the model."""
    parser = command_parser("python -m tasks.training.foundation.wider", __doc__)
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--steps", type=positive, default=2000)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    settings = PretrainSettings(steps=options.steps)
    tokenizer = load_tokenizer(shipped_base())
    assert isinstance(tokenizer, PreTrainedTokenizerFast)
    config = wider_moe(settings.vocabulary, token_id(tokenizer, PAD), token_id(tokenizer, TURN_END))
    pretrain_as(config, tokenizer, settings, options.out)


if __name__ == "__main__":
    run(main)
