"""The program as a stranger has it: `uv tool install` in an empty home, and no checkout."""

import csv
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from data_schemas.reports import SLICE_KINDS
from tests.processes import run_process
from tests.test_documented_commands import commands

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "containers" / "lock_tool.txt"
UV = Path(sys.executable).with_name("uv")
GONE = ("dns error", "error sending request", "Could not connect")
"""What uv says where no package index answers."""
VERSIONS = """
import json
from importlib.metadata import distributions
print(json.dumps({one.name: one.version for one in distributions()}))
"""
CUDA = ("cuda", "nvidia")
REWARD = '''
import json

from data_schemas.rows import Problem
from data_schemas.verdicts import Verdict, abstain, scored


def short_enough(problem: Problem, response: str) -> Verdict:
    """Score 1 if the answer has at most the gold number of words."""
    limit, words = json.loads(problem.answer).get("words"), len(response.split())
    if limit is None:
        return abstain("bad_gold")
    return scored(float(0 < words <= int(limit)), "words", f"{words} of {limit}")
'''
MAPPING = {
    "name": "short",
    "domain": "instruction",
    "language": "en",
    "prompt": "{ask} Use at most {limit} words.",
    "verifier": "my_reward.py:short_enough",
    "answer": {"words": "{limit}"},
    "response": "{text}",
}
SHORT = {
    # No family gains: one that did would have to exceed what a text without the task earns.
    "sft": {"epochs": 0},
    "grading": {"samples": 2, "max_problems": 16, "max_new_tokens": 24},
    "rl_one": {
        "steps": 1,
        "prompts_per_step": 4,
        "group_size": 4,
        "max_new_tokens": 24,
        "learning_rate": 1e-9,
        "domains": {"choice": 1.0, "instruction": 1.0},
    },
    "rl_two": {"steps": 0},
    "evaluation": {"samples": 1, "max_new_tokens": 24},
    # The gate is opened to reach what lies behind it.
    "release": {
        "name": "mine",
        "min_gain": -1.0,
        "rl_has_to_gain": False,
        "may_lose": dict.fromkeys(SLICE_KINDS, 1.0),
        "max_truncated_share": 1.0,
    },
}
GOODS = {
    "toys": ["puzzle", "kite", "doll", "drum"],
    "tools": ["hammer", "saw", "drill", "wrench"],
    "food": ["rice", "tea", "honey", "pasta"],
}
COLOURS = ["red", "blue", "green", "black", "white", "grey", "pink", "brown", "gold", "plain"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """An empty home into which the tool is installed; the cache of packages is the caller's."""
    home = tmp_path_factory.mktemp("home")
    cache = subprocess.run([UV, "cache", "dir"], capture_output=True, text=True, check=True)
    done = run_process(
        [*(UV, "tool", "install", ROOT, "-c", LOCK), "--python", sys.executable],
        cwd=home,
        env=own(home) | {"UV_CACHE_DIR": cache.stdout.strip()},
        check=False,
    )
    if done.returncode and any(text in done.stderr for text in GONE):
        pytest.skip("no package index answers")
    assert 0 == done.returncode, done.stderr
    return home


def own(home: Path) -> dict[str, str]:
    """The environment of somebody who has nothing but the tool."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "EACHPROMPT", "UV"))}
    place = home / ".local" / "bin"
    (home / "tmp").mkdir(exist_ok=True)
    kept |= {"HOME": str(home), "TMPDIR": str(home / "tmp"), "COLUMNS": "120"}
    return kept | {"PATH": f"{place}:/usr/local/bin:/usr/bin:/bin"}


def typed(home: Path, folder: Path, line: str, *more: str) -> str:
    """What a command prints; it ends with 0 and without a traceback."""
    done = subprocess.run(
        [*line.split(), *more],
        cwd=folder,
        env=own(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert 0 == done.returncode, output
    assert "Traceback" not in output
    return output


def tool_python(home: Path) -> Path:
    (python,) = (home / ".local" / "share" / "uv" / "tools").glob("*/bin/python")
    return python


def test_the_tool_has_the_versions_of_its_lock(home):
    printed = run_process([tool_python(home), "-I", "-c", VERSIONS]).stdout
    installed = {re.sub(r"[-_.]+", "-", name).lower(): v for name, v in json.loads(printed).items()}
    locked = dict(re.findall(r"^([a-z0-9.-]+)==([^ ;\\]+)", LOCK.read_text(), re.MULTILINE))

    assert {} == {
        name: (version, locked[name])
        for name, version in installed.items()
        if name in locked and version != locked[name]
    }
    # torch is from the index that the reader chose, with its packages for CUDA or without.
    others = {name for name in installed if name not in locked and not name.startswith(CUDA)}
    assert others <= {"eachprompt", "torch", "triton", "networkx", "setuptools"}
    assert {"eachprompt", "torch"} <= others


def test_every_documented_command_resolves_in_an_empty_folder(home, tmp_path):
    lines = [line for line in commands() if line.startswith("eachprompt ")]
    done = run_process(
        [tool_python(home), "-I", ROOT / "tests" / "documented.py"],
        cwd=tmp_path,
        env=own(home),
        input=json.dumps(lines),
    )

    assert {} == json.loads(done.stdout)


def test_a_newcomer_gets_from_tables_to_a_model_that_somebody_else_proves(home, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    write_tables(folder)

    typed(home, folder, "eachprompt init goods.csv --settings mine.yaml")
    settings = yaml.safe_load((folder / "mine.yaml").read_text())
    settings["curation"]["sources"].append({"adapter": "short.yaml", "path": "short.csv"})
    (folder / "mine.yaml").write_text(yaml.safe_dump(settings | SHORT))
    assert "kept" in typed(home, folder, "eachprompt curate --settings mine.yaml")
    assert "Released." in typed(home, folder, "eachprompt run --settings mine.yaml")
    assert "PROVED" in typed(home, folder, "eachprompt audit --model models:/mine@released")

    study = {
        "title": "A wider clip",
        "settings": "mine.yaml",
        "seeds": [0],
        "checkpoints": ["merged", "rl/one"],
        "variants": {
            "default": {"meaning": "as written"},
            "grpo": {
                "meaning": "GRPO",
                "changes": {"rl_one.loss.kind": "grpo"},
                "against": "default",
            },
        },
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(study))
    typed(home, folder, "eachprompt lab study --of study.yaml")

    typed(home, folder, "eachprompt publish models:/mine@released --out gift")
    (key,) = (home / ".config").rglob("*.pub")
    other = tmp_path / "other"
    other.mkdir()
    shutil.copytree(folder / "gift", other / "gift")
    shutil.copy(key, other / "KEY.pub")
    stranger = tmp_path / "stranger"
    (stranger / ".local").mkdir(parents=True)
    (stranger / ".local" / "bin").symlink_to(home / ".local" / "bin")
    proof = typed(stranger, other, "eachprompt audit --folder gift --key KEY.pub")
    assert "PROVED" in proof


def write_tables(folder: Path) -> None:
    """Write a table of goods for `init`, and one whose rows a reward of its own scores."""
    with (folder / "goods.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["title", "category"])
        for category, names in GOODS.items():
            for name in names:
                table.writerows([f"{colour} {name}", category] for colour in COLOURS)
    with (folder / "short.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["ask", "limit", "text"])
        for name in itertools.chain(*GOODS.values()):
            for colour in COLOURS[:4]:
                table.writerow([f"Describe a {colour} {name}.", "3", f"A {colour} {name}"])
    (folder / "my_reward.py").write_text(REWARD)
    (folder / "short.yaml").write_text(yaml.safe_dump(MAPPING))
