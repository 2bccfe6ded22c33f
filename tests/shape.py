"""The shape of this project in numbers, of any commit beside another.

    python -m tests.shape                  this working tree
    python -m tests.shape HEAD~200 HEAD    two commits, each in a checkout of its own

Numbers are counted, not judged. What a commit cannot be asked is '-': it lacks the test that reads
the frames, say. The default environment is used for all of them.
"""

import argparse
import ast
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

PACKAGES = ("workflows", "tasks", "data_schemas")
FRAMES = "tests/rl/durability/test_frames.py"
STEP = "tests/rl/test_phase.py"
STEP_TEST = "test_every_loss_and_replay_mode_trains and espo and R3"
NAMES = "tasks/algorithms/names.py"
IMPORTED = """
import resource, time
import workflows.post_training
kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(f"{time.process_time():.1f} CPU s, {kib / 1024:.0f} MiB")
"""
"""What `eachprompt run` has loaded when its first stage begins."""


def main(arguments: list[str]) -> None:
    """Print one column per commit."""
    parser = argparse.ArgumentParser(description="the shape of commits, side by side")
    parser.add_argument("commits", nargs="*", help="none = this working tree")
    commits = parser.parse_args(arguments).commits
    columns: list[dict[str, str]] = [] if commits else [shape_of(Path.cwd())]
    for commit in commits:
        with checkout(commit) as root:
            columns.append(shape_of(root))
    names = dict.fromkeys(name for column in columns for name in column)
    heads = commits or ["this tree"]
    sys.stdout.write("| | " + " | ".join(heads) + " |\n" + "|---" * (len(heads) + 1) + "|\n")
    for name in names:
        cells = [column.get(name, "-") for column in columns]
        sys.stdout.write(f"| {name} | " + " | ".join(cells) + " |\n")


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Check a commit out into a folder of its own, beside the environment that is here."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        _run("git", "worktree", "add", "--quiet", "--detach", str(root), commit)
        try:
            (root / ".venv").symlink_to(Path(sys.prefix))
            yield root
        finally:
            _run("git", "worktree", "remove", "--force", str(root))


def shape_of(root: Path) -> dict[str, str]:
    """Measure a tree."""
    sources = sorted(path for name in PACKAGES for path in (root / name).rglob("*.py"))
    trees = {path: ast.parse(path.read_text()) for path in sources}
    classes = Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    text = {path: path.read_text() for path in sources}
    tracked = _run("git", "ls-files", root=root).split()
    tops = {path.split("/")[0] for path in tracked}
    measured: dict[str, str | Callable[[], str]] = {
        "frames from the task `rl` to a loss": lambda: _frames(root),
        "a step of RL walks through": lambda: _step(root),
        "names of choices compared outside of their files": lambda: _compared(root, text),
        "files that name the loss `gmpo`": str(_count(text, r"[\"']gmpo[\"']")),
        "headings in mid-file": str(sum(_headings(tree, text[p]) for p, tree in trees.items())),
        "public class names used twice": str(sum(times > 1 for times in classes.values())),
        "`execution=execution`": str(_hits(text, r"\bexecution=execution\b")),
        "`store=store`": str(_hits(text, r"\bstore=store\b")),
        "entries at the top, without dot-files": str(sum(not one.startswith(".") for one in tops)),
        "README.md, bytes": str((root / "README.md").stat().st_size),
        "CHANGELOG.md, bytes": str((root / "CHANGELOG.md").stat().st_size),
        "targets in `make help`": str(_targets(root)),
        "wheel": lambda: _wheel(root),
        "loaded by `eachprompt run`": lambda: _run(sys.executable, "-c", IMPORTED, root=root),
        "lines of code": f"{sum(_lines(tree) for tree in trees.values())}",
    }
    result = {
        name: value if isinstance(value, str) else _tried(value) for name, value in measured.items()
    }
    rooms: Counter[str] = Counter()
    for path, tree in trees.items():
        place = path.relative_to(root).as_posix()
        rooms["/".join(place.split("/")[: 1 + bool(re.match("tasks/.*/", place))])] += _lines(tree)
    return result | {f"lines of code in {room}": str(rooms[room]) for room in sorted(rooms)}


def _tried(measure: Callable[[], str]) -> str:
    try:
        return measure().strip()
    except (OSError, subprocess.CalledProcessError, LookupError, ValueError):
        return "-"


def _frames(root: Path) -> str:
    """Count the frames that the test prints."""
    printed = _run(sys.executable, "-m", "pytest", "-q", "-s", FRAMES, root=root)
    return str(len(re.findall(r"^\w+\.py: \w+\.?$", printed, re.MULTILINE)))


def _step(root: Path) -> str:
    """Count what a step calls, in the test that trains with ESPO and R3."""
    here = str(Path(__file__).parent)
    options = ("-p", "shape", "-m", "", "-k", STEP_TEST, STEP)
    printed = _run(sys.executable, "-m", "pytest", "-q", "-s", *options, root=root, beside=here)
    return re.findall(r"^WALK (.*)$", printed, re.MULTILINE)[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Say what was called between the begin and the end of a step; with `-p shape`."""
    root, called, inside = Path.cwd() / "tasks", set[tuple[str, str]](), False

    def notice(frame: FrameType, event: str, _: object) -> None:
        nonlocal inside
        if frame.f_code.co_name == "one_step" and event in {"call", "return"}:
            inside = event == "call"
        if inside and event == "call" and frame.f_code.co_filename.startswith(str(root)):
            called.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(notice)
    try:
        yield
    finally:
        sys.setprofile(None)
        files = {file for file, _ in called}
        rooms = {Path(file).relative_to(root).parts[0] for file in files}
        sys.stdout.write(
            f"\nWALK {len(rooms)} rooms, {len(files)} files, {len(called)} functions\n"
        )


def _compared(root: Path, text: dict[Path, str]) -> str:
    """Count comparisons with the name of a choice in files that do not define it."""
    tables = [
        ast.literal_eval(node.value)
        for node in ast.parse((root / NAMES).read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
    ]
    own = {
        root / (place.partition(":")[0].replace(".", "/") + ".py")
        for table in tables
        for place in table.values()
    }
    names = "|".join(name for table in tables for name in table)
    pattern = rf"(?:[=!]=|\b(?:is|not|in|case))\s*[(\[{{]?\s*[\"'](?:{names})[\"']"
    return str(_hits({path: words for path, words in text.items() if path not in own}, pattern))


def _hits(text: dict[Path, str], pattern: str) -> int:
    return sum(len(re.findall(pattern, words)) for words in text.values())


def _count(text: dict[Path, str], pattern: str) -> int:
    return sum(bool(re.search(pattern, words)) for words in text.values())


def _headings(tree: ast.Module, words: str) -> int:
    """Count blocks of comments that stand alone behind the first definition."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = next((node.lineno for node in tree.body if isinstance(node, kinds)), None)
    lines = words.splitlines()
    return sum(
        lines[number - 1].startswith("#") and not lines[number].strip()
        for number in range(first or len(lines), len(lines))
    )


def _lines(tree: ast.Module) -> int:
    """Count the lines that hold code: no comments, no docstrings, no blank ones."""
    texts = {
        number
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    held = {
        number
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword)
        for number in (node.lineno, node.end_lineno or node.lineno)
    }
    return len(held - texts)


def _targets(root: Path) -> int:
    """Count the targets that `make help` lists."""
    files = [root / "Makefile", *root.glob("*/*.mk")]
    return sum(
        len(re.findall(r"^[a-z0-9-]+:.*## ", one.read_text(), re.MULTILINE)) for one in files
    )


def _wheel(root: Path) -> str:
    """Build the wheel; say its size, its files and how many are no code."""
    with tempfile.TemporaryDirectory() as folder:
        _run(
            sys.executable,
            "-m",
            "uv",
            "build",
            "--quiet",
            "--wheel",
            "--out-dir",
            folder,
            root=root,
        )
        (wheel,) = Path(folder).glob("*.whl")
        names = zipfile.ZipFile(wheel).namelist()
        others = Counter(Path(name).suffix for name in names if not name.endswith(".py"))
        kinds = ", ".join(
            f"{count} {suffix or 'without ending'}" for suffix, count in others.most_common(3)
        )
        return f"{wheel.stat().st_size} bytes, {len(names)} files; not code: {kinds}"


def _run(*command: str, root: Path | None = None, beside: str = "") -> str:
    variables = {
        "PYTHONPATH": f"{root or Path.cwd()}:{beside}",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "FLYTE_SDK_LOGGING_LEVEL": "40",  # its warnings go to the output that is read here
    }
    return subprocess.run(
        command,
        cwd=root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


if __name__ == "__main__":
    main(sys.argv[1:])
