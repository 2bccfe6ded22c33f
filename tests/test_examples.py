"""Settings to start from are read, and the tables of the tutorial become a model."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from data_schemas import presets
from data_schemas.settings import PipelineSettings
from tests.processes import run_process

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "workflows" / "examples"
SHOP = EXAMPLES / "shop" / "shop.yaml"
SETTINGS = sorted(
    path for path in EXAMPLES.rglob("*.yaml") if "parent" in yaml.safe_load(path.read_text())
)
SHORT = {
    "sft": {"epochs": 1, "entropy_prompts": 4},
    "grading": {"samples": 2, "max_problems": 16},
    "rl_one": {"steps": 1, "prompts_per_step": 4, "group_size": 4},
    "rl_two": {"steps": 0},
    "evaluation": {"samples": 1},
}
TABLE = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


def run(folder: Path, **settings: object) -> subprocess.CompletedProcess[str]:
    mine = folder / "mine.yaml"
    mine.write_text(yaml.safe_dump({"parent": str(SHOP), **SHORT, **settings}))
    (folder / "tmp").mkdir(exist_ok=True)
    return run_process(
        [
            *(sys.executable, "-m", "tasks.platform.console", "run"),
            *("--settings", str(mine), "--store", str(folder / "runs")),
        ],
        cwd=ROOT,
        variables={"HOME": str(folder), "TMPDIR": str(folder / "tmp"), "COLUMNS": "120"},
        check=False,
    )


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: path.stem)
def test_settings_to_start_from_are_settings_and_are_listed(path: Path):
    assert isinstance(presets.load(str(path)), PipelineSettings)
    assert f"]({path.relative_to(EXAMPLES)})" in (EXAMPLES / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_tables_of_a_shop_become_a_model_with_one_command(tmp_path: Path):
    done = run(tmp_path)

    said = done.stdout + done.stderr
    assert 0 == done.returncode, said
    assert "  kept        1,040 of 1,100: 480 problems, 500 demonstrations, 60 held out" in said
    assert "sft/reasoning: no source has demonstrations for it; the base is passed on" in said
    assert re.search(r"^ 3/17 curate +[\d.]+ s   1,040 of 1,100 kept", said, re.MULTILINE)
    places = re.findall(r"^ *(\d+)/17 ", said, re.MULTILINE)
    assert [*map(str, range(1, 18))] == places
    assert "elease" in said
    assert (tmp_path / "runs" / "index.html").is_file()
    (report,) = (tmp_path / "runs" / "reports").glob("*[0-9a-f].html")
    assert "What does it answer?" in report.read_text()


def texts_of_the_code() -> str:
    """Every text of the code; a value within a text is a tab."""
    found: list[str] = []
    for path in [*(ROOT / "tasks").rglob("*.py"), *(ROOT / "data_schemas").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [getattr(part, "value", "\t") for part in node.values]
                found.append("".join(part if isinstance(part, str) else "\t" for part in parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_the_texts_of_the_page_on_errors_are_those_of_the_code():
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    code = texts_of_the_code()

    said = TABLE.findall(page)
    assert len(said) > 20
    assert [] == [text for text in said if text not in code]
