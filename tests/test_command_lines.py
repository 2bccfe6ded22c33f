"""What is typed wrong is answered in one line that names it, with exit code 2 and no traceback."""

import gc
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from flytekit.clis.sdk_in_container.pyflyte import main

from tasks.lab.study.mismatch import drift
from tasks.platform.command_line import run
from tasks.training.foundation import wider
from tests.bench import engines, rewards, rl_step
from tests.bench.resume import command as resume
from tests.processes import run_process
from tests.timing import processes_s, timed

# flytekit leaves the folder of a task's checkpoint to the garbage collector, which warns. It runs
# at the end of this module, so that the warnings fail no other test and not the exit of pytest.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
ROOT = Path(__file__).parents[1]
COMPLETENESS = "lab/recipes/completeness completeness"
NOWHERE = {"base_model": "/nowhere"}
"""What is not refused before ends here, before anything expensive."""
MODEL_NAMES = ("a/b", "a:b", "a@b", "'a'", "<b>a</b>", "..", " ", "a" * 201)
"""What MLflow refuses as it registers a release, or cannot find again."""


def judged(**changes: object) -> dict[str, object]:
    """Settings with a judge behind an endpoint."""
    judge = {"kind": "http", "address": "http://h/v1", "model": "m", "timeout_s": 60.0} | changes
    return {"rl_one": {"rewards": {"judge": judge}}}


PIPELINE = [
    ({"rl_one": {"stepps": 3}}, "rl_one.stepps is not a setting; did you mean `steps`?"),
    ({"curationn": {}}, "curationn is not a setting; did you mean `curation`?"),
    ({"rl_two": {"zzz": 3}}, "rl_two.zzz is not a setting; choose from domains, steps"),
    ({"curation": {"sources": [{"adaptr": "x"}]}}, "sources[0].adapter is missing (and"),
    ({"rl_two": {"steps": -3}}, "rl_two.steps is -3; it must be greater"),
    ({"rl_two": {"steps": 2.5}}, "rl_two.steps is 2.5; it must be a valid integer"),
    ({"rl_two": {"steps": "many"}}, "rl_two.steps is 'many'; it must be a valid integer"),
    ({"rl_two": {"steps": 10**30}}, "it must be less than or equal to 1000000"),
    ({"rl_two": {"steps": None}}, "rl_two.steps is None; it must be a valid integer"),
    ({"sft": {"learning_rate": float("nan")}}, "sft.learning_rate is nan; it must be a finite"),
    ({"sft": {"learning_rate": float("inf")}}, "sft.learning_rate is inf; it must be a finite"),
    ({"release": {"min_gain": float("nan")}}, "release.min_gain is nan; it must be a finite"),
    ({"rl_one": {"domains": {"maths": float("nan")}}}, "rl_one.domains.maths is nan"),
    ({"rl_one": {"domains": {"mathz": 1}}}, "did you mean `maths`?"),
    ({"rl_one": {"domains": {}}}, "domains needs at least one domain"),
    ({"rl_one": {"domains": {"maths": -1}}}, "domains needs at least one domain"),
    ({"rl_one": {"loss": {"kind": "gpso"}}}, "did you mean `gspo`?"),
    ({"rl_one": {"loss": {"kind": 5}}}, "rl_one.loss.kind is 5; it must be a valid string"),
    ({"evaluation": {"seed": -1}}, "evaluation.seed is -1; it must be greater"),
    ({"curation": {"seed": 2**32}}, "curation.seed is 4294967296; it must be less than"),
    ({"curation": {"seed": 10**400}}, "curation.seed"),
    ({"curation": 5}, "curation is 5; it must be an object"),
    ({"curation": {"sources": []}}, "curation.sources is []; it must have at least 1 item"),
    ({"merge": {"weights": [1]}}, "merge.weights[1] is missing"),
    ({"release": {"name": ""}}, "release.name is ''; it must match pattern"),
    (
        {"rl_one": {"rewards": {"judge": {"kind": "http"}}}},
        "judge: kind is http; set address as well",
    ),
    (
        {"rl_one": {"rewards": {"judge": {"kind": "http", "address": "ftp://x", "model": "m"}}}},
        "judge: address 'ftp://x' is no base URL",
    ),
    (
        {"rl_one": {"rewards": {"judge": {"kind": "model", "address": "/nowhere"}}}},
        "rl_one.rewards.judge.address: /nowhere is not a folder",
    ),
    (
        {"curation": {"guard": {"kind": "model", "address": "/nowhere"}}},
        "curation.guard.address: /nowhere is not a folder",
    ),
    ({"curation": {"guard": {"kind": "http"}}}, "curation.guard: kind is http; set address"),
    (
        {"curation": {"encoder": {"kind": "model", "address": "/nowhere"}}},
        "curation.encoder.address: /nowhere is not a folder",
    ),
    ({"grading": {"screen_model": "/nowhere"}}, "grading.screen_model: /nowhere is not a folder"),
    ({"rl_one": {"engines": {"rollout": "vllm"}}}, "'vllm' is not installed here"),
    ({"rl_one": {"engines": {"layout": {"tensor": 2}}}}, "use trainer 'megatron'"),
    (NOWHERE, "base_model: /nowhere is not a folder"),
    ({"sft": {"parents": {"commerce": "hf://a/b"}}}, "sft.parents.commerce: hf://a/b is of an"),
    ({"base_model": "gs://bucket/x"}, "base_model: gs://bucket/x is of an unknown kind. Give a"),
    ({"base_model": "s3://k:pw@bucket/x"}, "has credentials in it, which would be recorded"),
    (
        {"rl_one": {"rewards": {"judge": {"address": "http://h/v1"}}}},
        "judge: address is set, but kind is none; use",
    ),
    (judged(address="http://h:99999/v1"), "judge: address 'http://h:99999/v1' is no base URL"),
    (judged(address="http://"), "judge: address 'http://' is no base URL"),
    (judged(address="http://a b/v1"), "judge: address 'http://a b/v1' is no base URL"),
    (judged(address="http://[::1/v1"), "judge: address 'http://[::1/v1' is no base URL"),
    (judged(address="http://h/v1?x=1"), "judge: address 'http://h/v1?x=1' is no base URL"),
    (judged(model=" "), "set model to the name it is served under"),
    (judged(timeout_s=1e300), "judge.timeout_s is 1e+300; it must be less than"),
    (judged(kind="model", address="/tmp"), "rl_one.rewards.judge.address: /tmp/config.json is"),
    ({"grading": {"screen_model": "/tmp"}}, "grading.screen_model: /tmp/config.json is missing"),
    ({"rl_one": {"engines": {"precision": "fp8"}}}, "precision is fp8, which rollout 'hf' does"),
    ({"sft": {"engines": {"layout": {"precision": "fp8"}}}}, "the trainer computes in fp32"),
    ({"sft": {"entropy_window": [0.5, 0.3]}}, "entropy_window needs 0 <= low < high"),
    ({"sft": {"entropy_window": [float("nan"), 1]}}, "sft.entropy_window[0] is nan"),
    ({"sft": {"learning_rate": 100}}, "sft.learning_rate is 100; it must be less than"),
    ({"rl_one": {"learning_rate": 100}}, "rl_one.learning_rate is 100; it must be less than"),
    ({"rl_one": {"temperature": 1e-300}}, "rl_one.temperature is 1e-300; it must be greater"),
    ({"evaluation": {"temperature": 1e-300}}, "temperature is 1e-300; use 0 (greedy), or 0.01"),
    ({"merge": {"scale": 1e300}}, "merge.scale is 1e+300; it must be less than"),
    ({"merge": {"weights": [float("nan"), 1]}}, "merge.weights[0] is nan"),
    ({"grading": {"weights": {"maths": -1}}}, "weights must be positive"),
    ({"grading": {"weights": {"maths": 1e308, "code": 1e308}}}, "weights must be positive"),
    ({"rl_one": {"domains": {"maths": 1e308, "code": 1e308}}}, "with a positive share"),
    ({"rl_one": {"group_size": 10**9}}, "rl_one.group_size is 1000000000; it must be less"),
    ({"evaluation": {"samples": 10**9}}, "evaluation.samples is 1000000000; it must be less"),
    ({"grading": {"max_new_tokens": 500}}, "grading.max_new_tokens 500 behind a prompt of"),
    ({"rl_one": {"max_new_tokens": 500}}, "96 exceeds the 512 positions of"),
    ({"rl_two": {"max_new_tokens": 10**9}}, "rl_two.max_new_tokens is 1000000000; it must be less"),
    ({"rl_two": {"max_new_tokens": 10**7}}, "rl_two.max_new_tokens 10000000 behind a prompt"),
    ({"evaluation": {"max_new_tokens": 500}}, "evaluation.max_new_tokens 500 behind a prompt"),
    ({"curation": {"max_prompt_tokens": 500}}, "curation.max_prompt_tokens 500 exceeds the 512"),
    *(({"release": {"name": name}}, "release.name is") for name in MODEL_NAMES),
    ([], "the value is []; it must be an object"),
    (5, "the value is 5; it must be an object"),
    (None, "the value is None; it must be an object"),
]
STORES = [
    ("gs://bucket/x", "gs://bucket/x is neither a path nor s3://bucket/prefix"),
    ("https://host/x", "https://host/x is neither a path nor s3://bucket/prefix"),
    ("hdfs://name/x", "hdfs://name/x is neither a path nor s3://bucket/prefix"),
    ("file:///x", "file:///x is neither a path nor s3://bucket/prefix"),
    ("s3://", "s3:// is neither a path nor s3://bucket/prefix"),
    ("", "--store is empty"),
    ("  ", "--store is empty"),
]
SOURCES = [
    ("gsm8k=", "is not adapter=path. Example: --sources gsm8k="),
    ("=", "is not adapter=path"),
    ("gsm9k=/x", "adapter is 'gsm9k'. Did you mean `gsm8k`? Use one of"),
    ("gsm8k=/nowhere", "/nowhere is no folder or file"),
    ("gsm8k=gs://x", "gs://x is neither a path nor s3://bucket/prefix"),
]
MODEL = [
    ("nope", "nope"),
    ("", "''"),
    ("models:/x", "models:/x"),
    ("models:/eachprompt-tiny/abc", "models:/eachprompt-tiny/abc"),
]
OTHERS = [
    ("pretrain", ["--settings", '{"stepps": 1}'], "did you mean `steps`?"),
    ("pretrain", ["--settings", '{"steps": 0}'], "steps is 0; it must be greater"),
    ("pretrain", ["--settings", '{"seed": -1}'], "seed is -1"),
    ("pretrain", ["--settings", '{"vocabulary": 1}'], "vocabulary is 1"),
    ("judge", ["--settings", '{"epoch": 1}'], "did you mean `epochs`?"),
    ("judge", ["--settings", '{"learning_rate": 0}'], "learning_rate is 0"),
    ("judge", ["--settings", '{"entropy_window": [1]}'], "entropy_window[1] is missing"),
    ("judge", ["--files", "[1]"], "--files[0] is 1; it must be a valid string"),
    ("judge", ["--files", "x"], "should be a valid json object"),
    ("judge", ["--files", '["/nowhere"]'], "--files /nowhere is no file"),
    ("judge", ["--base_model", "/nowhere"], "/nowhere is not a folder"),
    ("retrain", ["--settings", '{"inbox": ""}'], "inbox is ''; it must have at least 1 character"),
    ("retrain", ["--settings", '{"min_rows": -1}'], "min_rows is -1"),
    ("retrain", ["--settings", '{"min_unsolved_share": 2}'], "min_unsolved_share is 2"),
    ("retrain", ["--settings", '{"rl": {"stepps": 1}}'], "did you mean `steps`?"),
    ("retrain", [], "nothing was released as eachprompt-tiny"),
    ("replay", ["--loss", "gpso"], "--loss 'gpso' is none of: espo"),
    ("replay", ["--step", "-1"], "--step is -1; it must be greater"),
    ("replay", ["--step", "abc"], "'abc' is not a valid integer"),
    ("replay", ["--file", "/nowhere"], "/nowhere cannot be read"),
    ("replay", [], "nothing was released as eachprompt-tiny"),
    ("ledger", ["--show", "-1"], "--show is -1"),
    ("ledger", [], "nothing was released as eachprompt-tiny"),
    ("audit", [], "there is no MLflow store"),
    ("lineage trace", [], "holds no statements. Correct it."),
    ("lineage forget", [], "--rows is missing"),
    ("lineage compare", ["--after", "x"], "--before is missing"),
    ("lineage compare", ["--before", "x", "--after", "x", "--format", "y"], "--format 'y' is"),
    ("lineage forget", ["--rows", "/nowhere"], "--rows /nowhere is no file"),
    ("lineage trace", ["--row", "a", "--file", "b"], "give one of --row, --file"),
    ("lineage trace", ["--format", "yaml"], "--format 'yaml' is neither text nor json"),
    ("lineage trace", ["--show", "-1"], "--show is -1"),
    ("agreement", [], "--file is missing"),
    ("agreement", ["--file", "/nowhere"], "--file /nowhere is no file"),
    ("agreement", ["--file", ""], "--file is empty"),
    ("agreement", ["--file", "/tmp"], "--file /tmp is no file"),
    (
        "agreement",
        ["--file", "gs://x/y.jsonl"],
        "gs://x/y.jsonl is neither a path nor s3://bucket/prefix",
    ),
    ("agreement", ["--file", "x", "--show", "-1"], "--show is -1"),
    (COMPLETENESS, ["--judge", "{}", "--file", "/nowhere"], "--file /nowhere is no file"),
    (COMPLETENESS, ["--judge", '{"kind": "htp"}', "--file", "x"], "did you mean `http`?"),
    ("lab/recipes/av_speaker av_speaker", [], "--both is missing"),
    ("lab/recipes/av_speaker av_speaker", ["--both", "/nowhere"], "--both /nowhere is no file"),
    ("lab/mismatch mismatch", ["--prompts", "0"], "--prompts is 0"),
    ("lab/mismatch mismatch", ["--max_new_tokens", "0"], "--max_new_tokens is 0"),
    ("lab/mismatch mismatch", ["--seeds", "[]"], "--seeds is []"),
    ("lab/mismatch mismatch", ["--seeds", "[-1]"], "--seeds[0] is -1"),
    (
        "lab/mismatch mismatch",
        ["--seeds", '["a"]'],
        "--seeds[0] is 'a'; it must be a valid integer",
    ),
    ("lab/mismatch mismatch", ["--seeds", "x"], "should be a valid json object"),
    ("lab/mismatch mismatch", ["--engines", "fake"], "--engines 'fake' is none of: embedded, real"),
    ("lab/mismatch mismatch", ["--model_folder", "/nowhere"], "/nowhere is not a folder"),
    ("capacity", [], "give either --preset or --model"),
    ("capacity", ["--preset", "full_scal"], "did you mean `full_scale`?"),
    ("capacity", ["--preset", "full_scale", "--model", "x"], "give either --preset or --model"),
    ("capacity", ["--model", "/nowhere"], "it has no config.json"),
    ("capacity", ["--preset", "full_scale", "--layout", "x"], "--layout x is not JSON"),
    ("capacity", ["--preset", "full_scale", "--layout", '{"tensors": 1}'], "mean `tensor`?"),
    ("capacity", ["--preset", "full_scale", "--layout", '{"pipeline": 7}'], "multiple"),
    ("capacity", ["--preset", "full_scale", "--gpus", "-1"], "--gpus is -1"),
    ("capacity", ["--preset", "full_scale", "--gpus", "x"], "'x' is not a valid integer"),
    ("capacity", ["--preset", "full_scale", "--gpu_gib", "nan"], "--gpu_gib is nan"),
    (
        "capacity",
        ["--preset", "full_scale", "--precision", "fp1"],
        "not one of fp32, bf16, fp16, fp8",
    ),
    ("evaluate", [], "--model is missing"),
    ("evaluate", ["--model", "/nowhere"], "/nowhere is not a folder"),
    ("evaluate", ["--model", "x/a,y/a"], "two models are called 'a'"),
    ("evaluate", ["--model", "http://host/v1"], "names no model; write http://host/v1#NAME"),
    ("evaluate", ["--model", "hf://a/b"], "hf://a/b is of an unknown kind. Give a"),
    ("evaluate", ["--model", "x", "--settings", '{"sftt": {}}'], "did you mean `sft`?"),
    ("lab/study study", [], "--of is missing"),
    ("lab/study study", ["--of", "/nowhere.yaml"], "/nowhere.yaml cannot be read"),
    ("lab/study study", ["--of", "lapto", "--against", "single_node"], "mean `laptop`?"),
    ("lab/study study", ["--of", "nightly", "--against", "laptop"], "has no PipelineSettings"),
    ("lab/study study", ["--of", "x.yaml", "--seeds", "-1"], "--seeds is -1"),
    ("lab/recipes/grove_moe upcycle", ["--settings", '{"widht": 16}'], "did you mean `width`?"),
    ("post_training", ["--settings", "notjson"], "should be a valid json object"),
    ("post_training", ["--settings", "{"], "should be a valid json object"),
    ("post_training", ["--settings", ""], "should be a valid json object"),
    ("post_training", ["--nope"], "No such option"),
    ("post_training", ["extra"], "unexpected extra argument"),
]
NESTED = "[" * 20_000
FILES = [
    ("replay", "--file", "{}", "--file: not a file of packed arrays"),
    ("agreement", "--file", "{]", "line 1: Expecting property name"),
    ("agreement", "--file", "", "has no row. Provide graded responses"),
    ("agreement", "--file", "[1]", "line 1 is not a JSON object"),
    ("agreement", "--file", '{"a": 1}', "row 0: needs one of gold"),
    ("agreement", "--file", NESTED, "--file: it is nested too deeply to be read"),
    ("judge", "--files", "{]", "is not JSON lines or a JSON list"),
    ("judge", "--files", '{"a": 1}', "row 1: input, output_1, output_2, label is missing"),
    ("judge", "--files", "", "--files: 0 comparisons of 0 tasks cannot be split"),
    ("judge", "--files", NESTED, "--files: it is nested too deeply to be read"),
    (COMPLETENESS, "--file", "{]", "--file: "),
    ("lab/recipes/av_speaker av_speaker", "--both", "{]", "--both: "),
]
"""What a file that was typed holds: whoever typed it can act, so that these exit with 2."""
WITH_PASSWORD = "https://me:hunter2@host/x"
CREDENTIALS = [
    *(
        ("post_training", ["--settings", json.dumps(settings)], {})
        for settings in (
            judged(address=WITH_PASSWORD),
            judged(address="http://hunter2@host/v1"),
            judged(address="http://host/v1?api_key=hunter2"),
            {"base_model": WITH_PASSWORD},
            {"grading": {"screen_model": WITH_PASSWORD}},
            {"curation": {"sources": [{"adapter": "gsm8k", "path": WITH_PASSWORD}]}},
        )
    ),
    ("post_training", ["--sources", f"gsm8k={WITH_PASSWORD}"], {}),
    ("pretrain", ["--store", "s3://key:hunter2@bucket/x"], {}),
    ("retrain", ["--settings", '{"inbox": "s3://key:hunter2@bucket/x"}'], {}),
    ("judge", ["--files", '["https://host/x?X-Amz-Signature=hunter2"]'], {}),
    ("evaluate", ["--model", WITH_PASSWORD], {}),
    ("agreement", ["--file", WITH_PASSWORD], {}),
    *(
        (name, [], {"MLFLOW_TRACKING_URI": uri})
        for name in ("pretrain", "audit", "ledger", "replay")
        for uri in (
            WITH_PASSWORD,
            "http://hunter2@host",
            "postgresql+psycopg2://me:hunter2@host/db",
            "postgresql://me@host/db?password=hunter2",
        )
    ),
]
"""What would be recorded with the inputs of every task."""
COMMANDS = [
    (drift, ["--steps", "0"], "'0' must be a whole number from 1 on"),
    (drift, ["--prompts", "x"], "'x' must be a whole number"),
    (drift, ["--replay", "r4"], "'r4' is not a valid RouterReplay"),
    (drift, ["--model", "/nowhere"], "/nowhere is not a folder"),
    (drift, ["--engines", "fake"], "invalid choice: 'fake'"),
    (wider, [], "the following arguments are required: out"),
    (wider, ["x", "--steps", "-1"], "'-1' must be a whole number"),
    (engines, ["--rounds", "0"], "'0' must be a whole number"),
    (engines, ["--model", "/nowhere"], "/nowhere is not a folder"),
    (rewards, ["--count", "nan"], "'nan' must be a whole number"),
    (rewards, ["--trace", "/nowhere", "--count", "1"], "--trace /nowhere is no file of such lines"),
    (rewards, ["--rate", "0"], "'0' must be a positive number"),
    (rl_step, ["none"], "'none' must be a whole number"),
    (resume, ["--points", "0"], "'0' must be a whole number"),
]


@pytest.fixture(scope="module", autouse=True)
def _collect_garbage_here():
    yield
    gc.collect()


def named(value: object) -> str:
    return re.sub(r"\s+", " ", value if isinstance(value, str) else json.dumps(value))[:60]


def said(stderr: str) -> list[str]:
    """The lines of an error: ours, or what stands in the frame that click draws.

    Before it, a run says which settings differ from the preset's.
    """
    lines = [
        line
        for line in stderr.splitlines()
        if line.strip() and not re.match(r"[a-z_]+\.[\w.]+: .* -> ", line)
    ]
    framed = [line.strip("│ ") for line in lines if line.startswith("│")]
    return framed or lines


def refused(tmp_path: Path, name: str, *arguments: str) -> str:
    """Type a command that must be refused and return the one line that says why."""
    runner = CliRunner(env={"COLUMNS": "300", "TERMINAL_WIDTH": "300"})
    file, _, command = name.partition(" ")
    typed = ["run", f"workflows/{file}.py", command or file, *arguments]
    alone = ("agreement", "mismatch", "capacity", "av_speaker")
    if (command or file) not in alone and "--store" not in arguments:
        typed += ["--store", str(tmp_path / "runs")]

    done = runner.invoke(main, typed)

    assert 2 == done.exit_code, done.output
    assert "Traceback" not in done.output
    assert "pydantic.dev" not in done.output
    # Beside the lines of stages that had ended before.
    lines = [line for line in said(done.stderr) if not re.search(r" \d+\.\d s$", line)]
    assert 1 == len(lines), lines
    return lines[0]


READERS = ("audit", "ledger", "replay", "trace")
"""Commands that need nothing but a store."""
MODELS = (
    (["chat", "models:/shop@previous"], "which has models:/shop@released, models:/shop/1. Correct"),
    (["publish", "models:/shop/2"], "models:/shop/2 is not in this MLflow store"),
    (["evaluate", "--model", "a=models:/shop/1,b=models:/shop/2"], "models:/shop/2 is not in"),
    (["run", "--base_model", "models:/shoop/1"], "models:/shoop/1 is not in"),
    (
        ["diff-models", "--before", "models:/shop/1", "--after", "models:/shop/2"],
        "shop/2 is not in",
    ),
    (["audit", "--model", "models:/shop@x"], "models:/shop@x is not in"),
    (["audit", "--model", "models:/shop"], "'models:/shop' names no model"),
    *(
        ([name], "models:/eachprompt-tiny@released is not in")
        for name in ("audit", "replay", "trace")
    ),
)
"""Registered models that a store does not have."""
HEAVY = ("flytekit", "torch", "transformers", "mlflow", "pandas", "scipy")
TYPE_ALL = f"""
import contextlib, io, json, sys
from tasks.platform.console import main
found = []
for words in json.load(sys.stdin):
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        found.append([main(words), said.getvalue()])
print(json.dumps([found, [name for name in {HEAVY!r} if name in sys.modules]]))
"""


def own_loss(folder: Path) -> str:
    """Settings with a misspelt name in a file of one's own."""
    (folder / "my_loss.py").write_text("class Sapo:\n    def plan(self): ...\n")
    return json.dumps({"rl_one": {"loss": {"kind": "my_loss.py:Sapoo"}}})


def own_base(folder: Path) -> Path:
    """A base whose tokenizer has no chat template."""
    base = folder / "base"
    base.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (base / name).write_text('{"model_type": "qwen3"}')
    return base


def kept_store(folder: Path) -> Path:
    """A store whose MLflow has one version of one model, as far as it is read here."""
    store = folder / "kept"
    if not store.exists():
        (store / "statements").mkdir(parents=True)
        with closing(sqlite3.connect(store / "mlflow.db")) as database:
            database.executescript(
                "CREATE TABLE registered_model_aliases (name, alias, version);"
                "CREATE TABLE model_versions (name, version, current_stage);"
                "INSERT INTO registered_model_aliases VALUES ('shop', 'released', 1);"
                "INSERT INTO model_versions VALUES ('shop', 1, 'None');"
            )
    return store


@pytest.mark.slow
def test_the_command_refuses_120_wrong_inputs_in_a_line_each_before_a_library_is_loaded(
    tmp_path,
):
    typed = [
        *((["run", "--settings", json.dumps(value)], text) for value, text in PIPELINE),
        *((["run", "--store", store], text) for store, text in STORES),
        *((["curate", "--sources", sources], text) for sources, text in SOURCES),
        (["run", "--base_model", "/nowhere"], "base_model: /nowhere is not a folder"),
        (["run", "--base_model", "Qwen/Qwen3"], "hf download Qwen/Qwen3 --local-dir Qwen/Qwen3"),
        (["chat", "/nowhere"], "MODEL: /nowhere is not a folder"),
        (["chat", "models:/x@released"], "runs holds no statements"),
        (["chat", "models:/x@released", "--store", "/tmp"], "--store /tmp holds no statements"),
        (["chat", "models:/x@released", "--store=/tmp"], "--store /tmp holds no statements"),
        *(([*words, "--store", str(kept_store(tmp_path))], text) for words, text in MODELS),
        (["evaluate", "--model", "/nowhere"], "--model: /nowhere is not a folder"),
        (["forget", "--rows", "/nowhere"], "--rows /nowhere is no file"),
        (["lab", "study", "--of", "/nowhere.yaml"], "--of /nowhere.yaml is no file"),
        (["lab", "study", "--of", "lapto", "--against", "single_node"], "did you mean `laptop`?"),
        (
            ["lab", "study", "--of", "laptop", "--against", "singlenode"],
            "did you mean `single_node`?",
        ),
        (
            ["lab", "study", "--of", "nightly", "--against", "laptop"],
            "but this takes PipelineSettings",
        ),
        (["run", "--settings", '{"rl_one": {"advantage": "grpoo"}}'], "did you mean `grpo`?"),
        (["retrain", "--settings", '{"rl": {"loss": {"kind": "gpso"}}}'], "did you mean `gspo`?"),
        (
            ["run", "--settings", '{"rl_two": {"loss": {"kind": "nowhere.py:Loss"}}}'],
            "nowhere.py is in neither",
        ),
        (
            ["run", "--settings", own_loss(tmp_path)],
            "rl_one.loss.kind: my_loss.py has no 'Sapoo'; did you mean `Sapo`?",
        ),
        (["run", "--base_model", str(own_base(tmp_path))], "base has no chat template"),
        (["replay", "--loss", "gpso"], "--loss 'gpso' is none of: espo, gspo"),
        (["replay", "--store", ".", "--model", "nope"], "'nope' names no model; use models:/"),
        *(([name], "runs holds no statements. Name the folder") for name in READERS),
        *(([name, "--store", "/tmp"], "--store /tmp holds no statements") for name in READERS),
        (["lab", "mismatch", "--model_folder", "/nowhere"], "--model_folder: /nowhere is not"),
        (["lab", "mismatch", "--engines", "fake"], "--engines 'fake' is none of: embedded, real"),
        (["judge", "--base_model", "/nowhere"], "--base_model: /nowhere is not a folder"),
        (["lab", "upcycle", "--model", "/nowhere"], "/nowhere is not a folder"),
        (["lab", "super-experts", "--model", "/nowhere"], "/nowhere is not a folder"),
        (["capacity"], "give either --preset or --model"),
        (["capacity", "--model", "/nowhere"], "/nowhere is not a folder"),
        (["trace", "--show", "-1"], "--show is -1; it must be greater"),
        (["trace", "--format", "yaml"], "--format 'yaml' is neither text nor json"),
        (["capacity", "--preset", "full_scal"], "did you mean `full_scale`?"),
        (["run", "extra"], "takes options only, and 'extra' is none"),
        (["run", "--store", "a", "--store", "b"], "--store is given twice"),
        (["lab", "mismatch", "--seeds", "x"], "--seeds is 'x'; write a JSON list"),
    ]
    assert len(typed) >= 120

    done = run_process(
        [sys.executable, "-c", TYPE_ALL],
        cwd=tmp_path,
        variables={"PYTHONPATH": str(ROOT)},
        input=json.dumps([words for words, _ in typed]),
    )

    answers, heavy = json.loads(done.stdout)
    assert [] == heavy
    for (words, text), (code, said) in zip(typed, answers, strict=True):
        assert (2, 1) == (code, len(said.splitlines())), (words, said)
        # A value that is no object and no file is refused as text.
        assert text in said or "neither a JSON object nor a file" in said, (words, said)


@pytest.mark.slow
def test_what_is_typed_wrong_costs_less_than_two_seconds_of_cpu(tmp_path):
    words = ["run", "--sources", "gsm8k=/nowhere"]

    cpu_s, done = timed(
        lambda: subprocess.run(
            [sys.executable, "-m", "tasks.platform.console", *words],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=False,
        ),
        2.0,
        clock=processes_s,
    )

    assert 2 == done.returncode
    assert cpu_s < 2.0


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "message"), PIPELINE, ids=named)
def test_a_wrong_setting_is_named_with_what_is_allowed(tmp_path, settings, message):
    assert message in refused(tmp_path, "post_training", "--settings", json.dumps(settings))


@pytest.mark.parametrize("name", ["post_training", "pretrain", "audit"])
@pytest.mark.parametrize(("store", "message"), STORES, ids=named)
def test_a_store_that_cannot_be_is_refused_by_name(tmp_path, name, store, message):
    assert message in refused(tmp_path, name, "--store", store)


@pytest.mark.parametrize(("sources", "message"), SOURCES, ids=named)
def test_sources_that_cannot_be_read_are_refused(tmp_path, sources, message):
    assert message in refused(tmp_path, "post_training", "--sources", sources)


@pytest.mark.parametrize("name", ["audit", "ledger", "replay"])
@pytest.mark.parametrize(("model", "message"), MODEL, ids=named)
def test_a_model_that_cannot_be_is_refused(tmp_path, name, model, message):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mlflow.db").touch()

    empty = "--model is empty" if not model and name == "audit" else message
    assert empty in refused(tmp_path, name, "--model", model)


@pytest.mark.parametrize(("name", "arguments", "message"), OTHERS, ids=named)
def test_every_command_names_what_was_typed_wrong(tmp_path, name, arguments, message):
    assert message in refused(tmp_path, name, *arguments)


@pytest.mark.parametrize(("name", "option", "text", "message"), FILES, ids=named)
def test_a_file_that_is_not_what_its_option_takes_is_named(tmp_path, name, option, text, message):
    file = tmp_path / "typed.jsonl"
    file.write_text(text)
    value = json.dumps([str(file)]) if option == "--files" else str(file)
    judge = json.dumps({"kind": "http", "address": "http://h/v1", "model": "m"})
    more = ["--judge", judge] if name == COMPLETENESS else []

    assert message in refused(tmp_path, name, option, value, *more)


@pytest.mark.slow
def test_a_mapping_of_20000_brackets_is_refused_before_a_model_is_copied(tmp_path):
    (tmp_path / "mapping.yaml").write_text(NESTED)

    said = refused(tmp_path, "post_training", "--sources", f"{tmp_path}/mapping.yaml=/nowhere")

    assert "mapping.yaml is nested too deeply to be read" in said
    assert not (tmp_path / "runs").exists()


def test_sources_that_are_not_there_are_refused_before_a_model_is_copied(tmp_path):
    said = refused(tmp_path, "post_training", "--sources", "gsm8k=/nowhere")

    assert "/nowhere is no folder or file" in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("module", "arguments", "message"), COMMANDS, ids=str)
def test_a_python_command_names_what_was_typed_wrong(module, arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        run(module.main, arguments)

    assert 2 == ended.value.code
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("name", "arguments", "environment"), CREDENTIALS, ids=named)
def test_credentials_are_refused_without_repeating_them(
    tmp_path, monkeypatch, name, arguments, environment
):
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)

    message = refused(tmp_path, name, *arguments)

    assert "Leave" in message
    assert "hunter2" not in message
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in written if b"hunter2" in path.read_bytes()]


def test_an_option_given_twice_is_refused(tmp_path, monkeypatch):
    twice = ["--settings", json.dumps(NOWHERE), "--settings", '{"sft": {"epochs": 1}}']
    monkeypatch.setattr(sys, "argv", ["pyflyte", "run", "workflows/post_training.py", *twice])

    message = refused(tmp_path, "post_training", *twice)

    assert message.startswith("SettingsError: --settings is given 2 times")
