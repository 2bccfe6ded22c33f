"""Pretrain the shipped base model on the marketplace corpus.

    pyflyte run workflows/pretrain.py pretrain

Plain next-token training: packed rows of whole documents, AdamW, cosine schedule, and
the auxiliary load-balancing loss of the architecture, so that all experts are used.

Letters: N rows, T tokens.
"""

import logging
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3MoeConfig

from data_schemas.settings import PretrainSettings
from tasks.platform.progress import progress
from tasks.training.foundation.architecture import MAX_POSITIONS, tiny_moe
from tasks.training.foundation.corpus import documents
from tasks.training.foundation.tokenizer import PAD, TURN_END, token_id, train_tokenizer

LOGGER = logging.getLogger(__name__)

_TOKENIZER_DOCUMENTS = 20_000
_IGNORED = -100
"""Label that transformers excludes from the loss."""
_LOG_EVERY = 100
BATCH_ROWS = 16
"""Packed rows per update."""
ROW_TOKENS = 128
"""Tokens of a packed row; the longest of 4000 documents of the corpus has 104."""
PEAK_LEARNING_RATE = 2e-3
WARMUP_SHARE = 0.03
WEIGHT_DECAY = 0.1
LOAD_BALANCE = 0.05
"""Weight of the loss that keeps all experts in use."""


def pretrain(settings: PretrainSettings, out: Path) -> dict[str, float | int | str]:
    """Train tokenizer and model from scratch and write a Hugging Face directory.

    Returns:
        Facts: parameters, tokens seen, mean loss of the last hundred steps in nats.
    """
    tokenizer = make_tokenizer(settings)
    pad_id, end_id = token_id(tokenizer, PAD), token_id(tokenizer, TURN_END)
    return pretrain_as(tiny_moe(settings.vocabulary, pad_id, end_id), tokenizer, settings, out)


def pretrain_as(
    config: Qwen3MoeConfig,
    tokenizer: PreTrainedTokenizerFast,
    settings: PretrainSettings,
    out: Path,
) -> dict[str, float | int | str]:
    """Train a model of this config from scratch and write it with its tokenizer; see `pretrain`."""
    # Imported here: transformers' model code takes seconds, and every stage imports this module.
    from transformers import Qwen3MoeForCausalLM

    torch.manual_seed(settings.seed)
    pad_id, end_id = token_id(tokenizer, PAD), token_id(tokenizer, TURN_END)
    config.router_aux_loss_coef = LOAD_BALANCE
    model = Qwen3MoeForCausalLM(config)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    losses = list(_train(model, tokenizer, settings))
    recent = losses[-_LOG_EVERY:]

    model.generation_config = GenerationConfig(
        eos_token_id=end_id, pad_token_id=pad_id, do_sample=True, temperature=1.0
    )
    # bf16 halves the file; engines cast it to their own dtype on loading.
    torch.nn.Module.to(model, torch.bfloat16)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return {
        "parameters": num_parameters,
        "tokens_seen": settings.steps * BATCH_ROWS * ROW_TOKENS,
        "final_loss_nats": sum(recent) / len(recent),
    }


def make_tokenizer(settings: PretrainSettings) -> PreTrainedTokenizerFast:
    """Train the tokenizer on the first documents of the corpus."""
    texts = islice(documents(settings.seed), _TOKENIZER_DOCUMENTS)
    return train_tokenizer(texts, settings.vocabulary, MAX_POSITIONS)


def _train(
    model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast, settings: PretrainSettings
) -> Iterator[float]:
    """Yield the loss of every step, including the load-balancing term."""
    optimizer = torch.optim.AdamW(
        _parameter_groups(model, WEIGHT_DECAY),
        lr=PEAK_LEARNING_RATE,
        betas=(0.9, 0.95),
        fused=True,
    )
    pad_id = token_id(tokenizer, PAD)
    rows = packed_rows(documents(settings.seed + 1), tokenizer, ROW_TOKENS)
    model.train()
    for step in progress(range(settings.steps), "pretrain", settings.steps):
        for group in optimizer.param_groups:
            group["lr"] = PEAK_LEARNING_RATE * rate_share(step, settings)
        tokens_NT = torch.tensor(list(islice(rows, BATCH_ROWS)))
        labels_NT = tokens_NT.masked_fill(tokens_NT.eq(pad_id), _IGNORED)
        loss = model(
            input_ids=tokens_NT, labels=labels_NT, use_cache=False, output_router_logits=True
        ).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % _LOG_EVERY == 0:
            LOGGER.info("pretrain step %d: loss %.3f nats", step, loss.item())
        yield loss.item()


def packed_rows(
    texts: Iterator[str], tokenizer: PreTrainedTokenizerFast, row_tokens: int
) -> Iterator[list[int]]:
    """Pack whole documents into rows, padded at the end; longer documents are left out."""
    pad_id = token_id(tokenizer, PAD)
    row: list[int] = []
    for text in texts:
        tokens = tokenizer.encode(text)
        if len(tokens) > row_tokens:
            continue
        if len(row) + len(tokens) > row_tokens:
            yield row + [pad_id] * (row_tokens - len(row))
            row = []
        row += tokens


def rate_share(step: int, settings: PretrainSettings) -> float:
    """Return the share of the peak learning rate: linear warm-up, then cosine to a tenth."""
    warmup = max(1, round(WARMUP_SHARE * settings.steps))
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, settings.steps - warmup)
    return 0.1 + 0.9 * 0.5 * (1.0 + math.cos(math.pi * progress))


def _parameter_groups(model: torch.nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Apply weight decay to matrices, but not to norms."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
