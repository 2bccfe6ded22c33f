"""The table of stages; what reaches the cluster is asserted in test_package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.platform import resources

ROOT = Path(__file__).parents[2]


def test_only_what_looks_outside_is_never_served_from_the_cache():
    uncached = {name for name, stage in resources.STAGES.items() if not stage.cached}

    assert uncached == {
        "check_settings",
        "with_seed",
        "scaled_recipe",
        "open_store",
        "ingest",
        "ingest_base",
        "agreement",
        "tabulate",
        "collect_comparisons",
        "release",
        "summary",
        "audit",
        "ledger",
        "replay",
        "mismatch",
        "capacity",
        "fit_settings",
        "find_start",
        "scan_inbox",
        "skip_grading",
        "assess_learning_value",
        "record_skip",
        "conclude",
        "retrain_summary",
    }


def test_preemptible_stages_have_retries_and_time_to_commit():
    for stage in resources.STAGES.values():
        assert not stage.interruptible or (stage.retries >= 3 and stage.grace_s > 0)


@pytest.mark.parametrize("variable", ["EACHPROMPT_PROCESSES", "EACHPROMPT_NODES"])
@pytest.mark.parametrize("count", ["two", "0", "-1", "1.5", ""])
def test_a_count_from_the_environment_is_a_whole_number_from_one_on(variable, count):
    done = subprocess.run(
        [sys.executable, "-c", "import tasks.platform.resources"],
        cwd=ROOT,
        env=os.environ | {variable: count},
        capture_output=True,
        text=True,
        check=False,
    )

    assert f"{variable} is '{count}'; give a whole number from 1 on" in done.stderr
