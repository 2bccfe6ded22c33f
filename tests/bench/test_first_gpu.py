"""The slices of the first GPU hour: every result is kept, and nothing that was cut is lost."""

import importlib.util
import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tasks.errors import SettingsError
from tests.bench import rl_minutes
from tests.bench.comparisons import Part, compare, line_of
from tests.bench.first_gpu import (
    CALL_S,
    SLICES,
    TAIL_CHARS,
    Ended,
    Slice,
    comparison_lines,
    run_slices,
    slices_of,
)
from tests.bench.gpu_facts import FACTS, LIMIT_S
from tests.processes import run_process

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "tasks" / "engines" / "FIRST_GPU_HOUR.md"


def saying(name: str, code: str) -> Slice:
    return Slice(name, 1, ("-S", "-c", code))


def ended(out: Path) -> dict[str, str]:
    return {path.stem: json.loads(path.read_text())["ended"] for path in out.glob("*.json")}


def test_every_slice_leaves_its_result_and_the_end_of_what_it_said(tmp_path):
    slices = [
        saying("good", "print('1.25 tokens/s')"),
        saying("bad", "raise SystemExit('no kernel')"),
    ]

    _, left = run_slices(slices, tmp_path)

    assert [] == left
    assert {"good": "passed", "bad": "failed"} == ended(tmp_path)
    assert "1.25 tokens/s\n" == json.loads((tmp_path / "good.json").read_text())["tail"]
    assert "no kernel\n" == json.loads((tmp_path / "bad.json").read_text())["tail"]


def test_a_slice_with_a_result_is_not_run_again(tmp_path):
    first, second = saying("first", "print(1)"), saying("second", "print(2)")
    run_slices([first], tmp_path)

    done, _ = run_slices([first, second], tmp_path)

    assert ["second"] == [result.name for result in done]


def test_a_slice_that_a_call_cuts_short_is_left_for_the_next(tmp_path):
    slices = [saying("quick", "print(1)"), saying("endless", "import time; time.sleep(1e6)")]

    clock = iter([0.0, 0.0, 99.5]).__next__
    _, left = run_slices(slices, tmp_path, call_s=100.0, clock=clock)
    assert ["endless"] == [one.name for one in left]
    assert {"quick": "passed"} == ended(tmp_path)

    # Now all the time of the call was its own.
    (again,), left = run_slices(slices, tmp_path, call_s=0.5)
    assert Ended.CUT == again.ended
    assert [] == left


def test_nothing_of_a_slice_that_is_cut_goes_on(tmp_path):
    beat = tmp_path / "beat"
    child = f"import time\nwhile True: open({str(beat)!r}, 'a').write('.'); time.sleep(0.01)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {child!r}])"

    run_slices([saying("parent", code)], tmp_path / "out", call_s=2.0)

    size = beat.stat().st_size if beat.exists() else 0
    time.sleep(0.3)
    assert size == (beat.stat().st_size if beat.exists() else 0)


CALL = """
import sys
from pathlib import Path
from tests.bench.first_gpu import Slice, run_slices
code = f"import time\\nwhile True: open({sys.argv[2]!r}, 'a').write('.'); time.sleep(0.01)"
slices = [Slice("quick", 1, ("-S", "-c", "print(1)")), Slice("long", 1, ("-S", "-c", code))]
run_slices(slices, Path(sys.argv[1]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_call_that_is_stopped_leaves_no_slice_running_and_the_next_one_goes_on(tmp_path, number):
    out, beat = tmp_path / "out", tmp_path / "beat"
    with subprocess.Popen(
        [sys.executable, "-c", CALL, out, beat], cwd=ROOT, stderr=subprocess.DEVNULL
    ) as call:
        until = time.monotonic() + 60.0
        while not beat.exists() and time.monotonic() < until:
            time.sleep(0.02)
        call.send_signal(number)
    until, size = time.monotonic() + 30.0, -1
    while size != beat.stat().st_size and time.monotonic() < until:
        size = beat.stat().st_size
        time.sleep(0.5)

    assert size == beat.stat().st_size
    assert {"quick": "passed"} == ended(out)
    (done,), left = run_slices([saying("quick", ""), saying("long", "print(2)")], out)
    assert ("long", Ended.PASSED, []) == (done.name, done.ended, left)


SUDDEN = """
import os, subprocess, sys
class Sudden(subprocess.Popen):
    def __init__(self, command, **options):
        super().__init__(command, **options)
        if sys.argv[2] in str(command):
            os.kill(os.getpid(), 9)
subprocess.Popen = Sudden
"""


def test_a_slice_ends_with_a_call_that_is_killed_as_it_starts_it(tmp_path):
    beat = tmp_path / "beat"

    subprocess.run([sys.executable, "-c", SUDDEN + CALL, tmp_path / "out", beat], cwd=ROOT)

    until, size = time.monotonic() + 30.0, -1
    while size != (now := beat.stat().st_size if beat.exists() else 0) and time.monotonic() < until:
        size = now
        time.sleep(0.5)
    assert size == now


def test_a_threshold_without_a_result_is_not_measured(tmp_path):
    line = line_of(compare({"update": Part("update", 1, 1.0, 1.0, None, 99, 100)})[1])
    # What an error says after it does not fit into the end that is kept.
    code = f"print({line!r}); print('-' * {TAIL_CHARS})"
    kept = replace(saying("kept", code), compares=True)
    failed = replace(saying("failed", "raise SystemExit('out of memory')"), compares=True)
    unrun = replace(saying("unrun", ""), compares=True)

    done, _ = run_slices([kept, failed], tmp_path)

    assert [5, 5] == [len(result.comparisons) for result in done]
    lines = comparison_lines([kept, failed, unrun, saying("other", "")], tmp_path)
    said = [line for line in lines if "update: peak memory to make budget" in line]
    budget = "update: peak memory to make budget"
    assert [
        f"kept, {budget}: 0.990 met (0.95 to 1.05)",
        f"failed, {budget}: not measured (0.95 to 1.05)",
        f"unrun, {budget}: not measured (0.95 to 1.05)",
    ] == said
    assert 15 == len(lines)


def test_the_last_slices_are_half_an_hour_of_one_run(capsys):
    last = [one for one in SLICES if "tests.bench.rl_minutes" in one.command]

    assert list(SLICES[-6:]) == last
    assert ["5", "10", "15", "20", "25", "30"] == [one.command[-1] for one in last]
    assert 1 == len({one.command[:-1] for one in last})
    with pytest.raises(SystemExit):  # the arguments are those of the command
        rl_minutes.main([*last[0].command[2:-1], "never"])
    assert "--until" in capsys.readouterr().err


def test_the_slices_run_what_there_is():
    for one in SLICES:
        for word in one.command[1:]:
            if word.endswith(".py") or word.startswith("tests/"):
                assert (ROOT / word).exists(), word
            if word.startswith("tasks."):
                assert importlib.util.find_spec(word), word
    assert len(SLICES) == len({one.name for one in SLICES})


def test_the_page_says_of_every_slice_in_order_what_it_decides_and_how_long_it_takes():
    rows = re.findall(r"^\| (`.*`) \| (.+) \| .+ \| .+ \|$", PAGE.read_text(), re.MULTILINE)
    named = [name for slices, _ in rows for name in re.findall(r"`(\w+)`", slices)]
    first, last = named.index("rl_5_minutes"), len(named) - 1

    names = [one.name for one in SLICES]
    assert names[: first + 1] == named[: first + 1]  # and from there "..." to the last
    assert (first + 1, names[-1]) == (last, named[last])
    assert f"{len(FACTS)} facts of {LIMIT_S:.0f} s" in rows[0][1]
    assert [f"{CALL_S / 60:.0f} min"] * len(rows[1:]) == [took[:5] for _, took in rows[1:]]


REFUSED = """
from pathlib import Path
import pytest
from data_schemas.machine_settings import LayoutSettings, Precision
from tasks.engines.rollout_vllm.engine import VllmRolloutEngine
from tests.engines.trainer_megatron import world_of_trainers as worlds

pytestmark = pytest.mark.engines
BASE = Path("tasks/training/foundation/base_model")

def test_fp32():
    worlds.RemoteTrainer([], BASE, LayoutSettings(precision=Precision.FP32))

def test_two_ranks():
    with worlds.trainer_world(2):
        pass

def test_two_workers():
    VllmRolloutEngine(BASE, layout=LayoutSettings(rollout_tensor=2, dedicated_rollout_gpus=2))
"""


@pytest.mark.engines
def test_slices_that_run_tests_open_no_engine_that_one_gpu_refuses(tmp_path):
    slices = [one for one in SLICES if one.tier > 1 and "pytest" in one.command]
    files = {word for one in slices for word in one.command if word.endswith(".py")}
    other = tmp_path / "test_refused.py"
    other.write_text(REFUSED)

    done = run_process(
        [
            *(sys.executable, "-m", "pytest", "-q", "-m", "engines", "-p", "no:cacheprovider"),
            *("-p", "tests.bench.one_gpu", *sorted(files), str(other)),
        ],
        cwd=ROOT,
        variables={"PYTHONPATH": str(ROOT)},
        check=False,
    )
    found = json.loads(done.stdout.splitlines()[-1])

    assert {Path(file).name for file in files} | {other.name} == found["tests"].keys()
    with_an_engine = {file for file, count in found["opened"].items() if count}
    assert {other.name, "test_broadcast.py"} == found["tests"].keys() - with_an_engine
    assert 3 == len(found["refused"])
    for line, cause in zip(found["refused"], ("'fp32'", "2 ranks", "no room for"), strict=True):
        assert other.name in line
        assert cause in line


@pytest.mark.slow
def test_the_environment_is_said_as_json(tmp_path):
    (result,), _ = run_slices(SLICES[:1], tmp_path)

    assert Ended.PASSED == result.ended
    assert "torch" in json.loads(result.tail)["packages"]


@pytest.mark.skipif(
    importlib.util.find_spec("transformer_engine") is not None, reason="it is installed"
)
def test_a_tier_that_is_not_installed_is_refused_by_name():
    assert {1} == {one.tier for one in slices_of(1)}
    with pytest.raises(SettingsError, match=r"needs .*transformer_engine: make gpu-environment"):
        slices_of(2)
