"""What several areas share: tiny real models, a bucket, and a real MLflow server."""

import functools
import gc
import os
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tqdm import tqdm

from containers.stack import Stack
from tasks.provenance.lineage.connection import connect
from tests.tracking_servers import TrackingServer, tracking_server

# The libraries of models and of S3 are imported where they are used: with pytest-xdist, the process
# that hands out the tests loads this file as well, and needs none of them.

# Tests start Python some 500 times, and each start would compile the project anew: 5 CPU seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# As the Makefile sets it: a process that is forked while OpenMP has threads waits for them forever.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Workers would compute the same bytes, and take the cores of the other test processes.
os.environ.setdefault("EACHPROMPT_CORES", "1")
# Forked processes share tqdm's own lock: one that is killed as it writes a line would hold it for
# ever. Without tqdm's monitor no other thread has this one at a fork.
tqdm.set_lock(threading.RLock())
tqdm.monitor_interval = 0
# What is imported and collected holds no cycles worth a search.
gc.disable()

# How long an example takes says something about the machine, not about the code. The suite draws
# the same examples every time, so that its verdict is the commit's; `make laws` draws new ones.
settings.register_profile(
    "laws", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=500
)
settings.register_profile("suite", settings.get_profile("laws"), max_examples=50, derandomize=True)
settings.load_profile("suite")

LONGEST = (
    "test_phase.py",
    "test_pipeline.py",
    "test_resume.py",
    "test_package.py",
    "test_retrain.py",
    "test_team.py",
)
"""Files that take the longest, in that order."""

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_tiny_moe(folder: Path, seed: int = 0) -> Path:
    """Write a random two-layer Qwen3-MoE with a byte tokenizer; routers are far from ties."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3MoeConfig, Qwen3MoeForCausalLM

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>", "<think>", "</think>"],
        chat_template=CHAT_TEMPLATE,
    )
    config = Qwen3MoeConfig(
        vocab_size=288,
        hidden_size=32,
        intermediate_size=64,
        moe_intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        num_experts=8,
        num_experts_per_tok=2,
        norm_topk_prob=True,
        tie_word_embeddings=True,
        max_position_embeddings=256,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    torch.manual_seed(seed)
    model = Qwen3MoeForCausalLM(config)
    for name, parameter in model.named_parameters():
        scale = 0.5 if name.endswith("gate.weight") else 0.1
        if parameter.ndim >= 2:
            torch.nn.init.normal_(parameter, std=scale)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start with the longest files, so that no worker is left alone with one at the end."""
    if hasattr(config, "workerinput"):
        places = {name: place for place, name in enumerate(LONGEST)}
        items.sort(key=lambda item: places.get(item.path.name, len(places)))


def pytest_collection_finish() -> None:
    """Spare what was imported and collected every search for cycles: a twentieth of all.

    Not even one search comes before: it takes a CPU second in every process and frees no page.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _own_tracking() -> None:
    """Keep runs of tests out of whatever MLflow the caller uses."""
    os.environ.pop("MLFLOW_TRACKING_URI", None)


@pytest.fixture(scope="session", autouse=True)
def _own_signing_key(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep tests from creating a key in the caller's home folder."""
    key = tmp_path_factory.mktemp("key") / "signing_key.pem"
    os.environ["EACHPROMPT_SIGNING_KEY"] = str(key)


@pytest.fixture(scope="session")
def tiny_moe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory every engine here can open. Read only."""
    return build_tiny_moe(tmp_path_factory.mktemp("tiny_moe"))


@pytest.fixture
def silent_server() -> Iterator[str]:
    """The address of a server that is stopped: connections are accepted, nothing is answered."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty MLflow database. Read only."""
    from mlflow.store.db import utils
    from sqlalchemy import Engine

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    connect(f"sqlite:///{path}").search_experiments()
    # The newest schema is that of the installed MLflow, which imports all of its 70 migrations to
    # say so of every database that it opens: an eighth of a CPU second in each of 500 tests.
    utils._get_latest_schema_revision = functools.cache(utils._get_latest_schema_revision)
    # Every test has a database of its own. SQL is compiled once for all of them, not for each.
    create = utils.create_sqlalchemy_engine
    first = create(f"sqlite:///{path}")
    first.connect().close()

    def sharing(uri: str) -> Engine:
        engine = create(uri)
        if engine.name == "sqlite":
            engine.dialect, engine._compiled_cache = first.dialect, first._compiled_cache
        return engine

    utils.create_sqlalchemy_engine = sharing
    return path


@pytest.fixture(scope="session")
def mlflow_server(
    tmp_path_factory: pytest.TempPathFactory, migrated: Path
) -> Iterator[TrackingServer]:
    """A real MLflow server; every test loads the content it needs."""
    with (
        pytest.MonkeyPatch.context() as patch,
        tracking_server(tmp_path_factory.mktemp("server"), migrated) as server,
    ):
        # A loaded machine is no outage.
        patch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "120")
        yield server


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The stack of EACHPROMPT_STACK, or one of its own that ends with the tests."""
    given = os.environ.get("EACHPROMPT_STACK")
    # Not below pytest's folder, which PostgreSQL's user may not enter.
    made = Stack(Path(given or tempfile.mkdtemp(prefix="eachprompt-stack-")))
    made.up()
    yield made
    if not given:
        made.down()
        shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator:
    """A client of an S3 that needs no network and holds one empty bucket, 'bucket'."""
    from tests.buckets import empty_bucket

    with empty_bucket(monkeypatch) as client:
        yield client


def build_served_moe(tiny_moe: Path, folder: Path, **changes: object) -> Path:
    """Write a random model like `tiny_moe`, with heads as wide as vLLM's CPU kernel needs."""
    import torch
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    shutil.copytree(tiny_moe, folder, dirs_exist_ok=True)
    config = Qwen3MoeConfig.from_pretrained(tiny_moe, head_dim=32, **changes)
    torch.manual_seed(0)
    model = Qwen3MoeForCausalLM(config)
    for name, parameter in model.named_parameters():
        if parameter.ndim >= 2:
            torch.nn.init.normal_(parameter, std=0.5 if name.endswith("gate.weight") else 0.1)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def served_moe(tiny_moe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory that vLLM can open, too. Read only."""
    return build_served_moe(tiny_moe, tmp_path_factory.mktemp("served_moe"))


DENSE = {
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "qwen2": ("Qwen2", {}),
    "qwen2 tied": ("Qwen2", {"tie_word_embeddings": True}),
}
"""Prefix of the classes of transformers, and what their configuration has besides."""


@pytest.fixture(scope="session", params=DENSE)
def tiny_dense(request, tiny_moe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dense model of each family with the tokenizer of `tiny_moe`. Read only."""
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("tiny_dense")
    shutil.copytree(tiny_moe, folder, dirs_exist_ok=True)
    moe = transformers.Qwen3MoeConfig.from_pretrained(tiny_moe)
    family, changes = DENSE[request.param]
    same = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers")
    same += ("num_attention_heads", "num_key_value_heads", "max_position_embeddings")
    same += ("eos_token_id", "pad_token_id")
    make_config = getattr(transformers, f"{family}Config")
    config = make_config(**{name: getattr(moe, name) for name in same} | changes)
    torch.manual_seed(0)
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    for name, parameter in model.named_parameters():
        if parameter.ndim >= 2 or name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(folder)
    return folder
