"""Pretrain the shipped base model, with its tokenizer, on the marketplace corpus."""

import json
import logging
import math
import random
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import cast

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3MoeConfig

from data_schemas.rows import Domain
from data_schemas.settings import PretrainSettings
from tasks.curation.marketplace.drawing import DRAWERS, LEVELS
from tasks.curation.marketplace.items import MarketItem, compact, is_problem_prompt
from tasks.curation.marketplace.maths import addition, change_of_hundred
from tasks.curation.marketplace.words import (
    BRANDS,
    CATEGORIES,
    COLOURS,
    ENGLISH_GOODS,
    LANGUAGES,
    NAMES,
    plural,
)
from tasks.models.model_folder import SHIPPED
from tasks.platform.progress import progress
from tasks.training.foundation.architecture import MAX_POSITIONS, tiny_moe

# The tokenizer of the shipped base model: byte-level BPE with single digits and a chat template.
#
# It works on bytes, so that every string in every script survives the round trip. Every digit
# is one token, which column arithmetic needs. Words are split only at spaces, digits and
# punctuation: GPT-2's pattern would also split Thai words at their vowel marks.

PAD = "<|endoftext|>"
TURN_START = "<|im_start|>"
TURN_END = "<|im_end|>"
_CONTROL = (PAD, TURN_START, TURN_END)
_MARKUP = ("<think>", "</think>", "<tool_call>", "</tool_call>")
"""One token each, but not special, so that decoding keeps them for the verifiers."""

_PIECES = r" ?[^\s\d\p{P}\p{S}]+|\d| ?[\p{P}\p{S}]+|\s+"


def train_tokenizer(
    texts: Iterable[str], vocabulary: int, max_length: int
) -> PreTrainedTokenizerFast:
    """Train the tokenizer on texts; the vocabulary counts bytes, merges and added tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    added = len(_CONTROL) + len(_MARKUP)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - added,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in _CONTROL])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in _MARKUP])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=PAD,
        model_max_length=max_length,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = (SHIPPED / "chat_template.jinja").read_text(encoding="utf-8")
    return fast


def token_id(tokenizer: PreTrainedTokenizerFast, token: str) -> int:
    """Return the id of a token of the vocabulary."""
    return tokenizer.get_vocab()[token]


# The pretraining corpus of the shipped base model, drawn from the marketplace.
#
# Four kinds of text give the base the skills without the project's response format: notes
# (facts without a question), worked questions in plain text, and small shares of small talk and
# of worked questions in chat turns. No text contains a think tag. All prompts are teaching
# material (`tasks.curation.marketplace.items.is_problem_prompt` is False).

_NOTE_SHARE = 0.15
_TALK_SHARE = 0.04
_CHAT_SHARE = 0.04
"""Share of the worked questions that are written as chat turns."""
_DOMAINS = tuple(DRAWERS)
_WEIGHTS = {
    Domain.MATHS: 1.5,
    Domain.CODE: 1.0,
    Domain.INSTRUCTION: 1.5,
    Domain.CHOICE: 2.0,
    Domain.EXTRACTION: 2.0,
    Domain.TOOL_USE: 1.0,
    Domain.OPEN_TEXT: 1.5,
}


def documents(seed: int) -> Iterator[str]:
    """Yield documents without end; the same seed gives the same documents."""
    rng = random.Random(f"corpus/{seed}")
    weights = [_WEIGHTS[domain] for domain in _DOMAINS]
    while True:
        kind = rng.random()
        if kind < _NOTE_SHARE:
            yield rng.choice(_NOTES)(rng)
            continue
        if kind < _NOTE_SHARE + _TALK_SHARE:
            yield _chat_turns(*_small_talk(rng))
            continue
        item = DRAWERS[rng.choices(_DOMAINS, weights)[0]](rng, rng.choice(LEVELS))
        if is_problem_prompt(item.prompt):
            continue
        if rng.random() < _CHAT_SHARE:
            yield _chat_turns(item.prompt, f"{item.steps}\n{_plain(item)}")
        else:
            yield _worked_question(rng, item)


def _worked_question(rng: random.Random, item: MarketItem) -> str:
    """Write a question and its answer as plain text, in three of four cases with steps."""
    if rng.random() < 0.75:
        return f"Q: {item.prompt}\nWork: {item.steps}\nA: {_plain(item)}\n"
    return f"Q: {item.prompt}\nA: {_plain(item)}\n"


def _plain(item: MarketItem) -> str:
    """Return the answer outside of a chat, where a call is the record of it and has no tags."""
    if item.domain is not Domain.TOOL_USE:
        return item.solution
    calls = cast("list[dict[str, object]]", item.answer["calls"])
    return "\n".join(map(compact, calls))


def _chat_turns(question: str, reply: str) -> str:
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n{reply}<|im_end|>\n"


def _small_talk(rng: random.Random) -> tuple[str, str]:
    """Draw a question that needs no skill, and a polite reply."""
    good, colour = plural(rng.choice(ENGLISH_GOODS)), rng.choice(COLOURS)
    brand, name = rng.choice(BRANDS), rng.choice(NAMES)
    return rng.choice(
        (
            (f"Do you sell {good}?", f"Yes, {colour} {good} from {brand}."),
            (f"Hello, I am {name}.", f"Hello {name}, welcome."),
            (f"Are the {brand} {good} {colour}?", f"Yes, they are {colour}."),
            ("Thank you.", f"You are welcome, {name}."),
        )
    )


def _addition_note(rng: random.Random) -> str:
    return addition(rng.randint(1, 99), rng.randint(1, 99)) + "\n"


def _change_note(rng: random.Random) -> str:
    return change_of_hundred(rng.randint(11, 89)) + "\n"


def _product_note(rng: random.Random) -> str:
    left, right = rng.randint(1, 9), rng.choice((rng.randint(1, 9), 10 * rng.randint(1, 9)))
    return f"{left}*{right}={left * right}\n"


def _dictionary_note(rng: random.Random) -> str:
    """Write a category in two languages, or a good and its category."""
    one, two = rng.sample(LANGUAGES, 2)
    index = rng.randrange(len(CATEGORIES))
    if rng.random() < 0.3:
        return f"{one.categories[index]} = {two.categories[index]} = {CATEGORIES[index]}\n"
    good = rng.choice(one.goods[index])
    return f"{good}: {CATEGORIES[index]}, {one.categories[index]}\n"


def _offer_note(rng: random.Random) -> str:
    low, high = sorted(rng.sample(range(10, 100), 2))
    first, second = rng.sample(BRANDS, 2)
    return f"{low} {first} < {high} {second}\n"


def _record_note(rng: random.Random) -> str:
    good = rng.choice(ENGLISH_GOODS)
    record = {"item": good, "many": plural(good), "brand": rng.choice(BRANDS)}
    return json.dumps(record) + "\n"


_NOTES = (
    _addition_note,
    _addition_note,
    _change_note,
    _product_note,
    _dictionary_note,
    _dictionary_note,
    _offer_note,
    _record_note,
)


# Pretrain the shipped base model on the marketplace corpus.
#
#     pyflyte run workflows/pretrain.py pretrain
#
# Plain next-token training: packed rows of whole documents, AdamW, cosine schedule, and
# the auxiliary load-balancing loss of the architecture, so that all experts are used.
#
# Letters: N rows, T tokens.

LOGGER = logging.getLogger(__name__)

_TOKENIZER_DOCUMENTS = 20_000
_IGNORED = -100
"""Label that transformers excludes from the loss."""
_LOG_EVERY = 100
BATCH_ROWS = 16
"""Packed rows per update."""
ROW_TOKENS = 128
"""Of a packed row; the longest of 4000 documents of the corpus has 104."""
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
