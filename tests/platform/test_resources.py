"""The table of stages; what reaches the cluster is asserted in test_package."""

from tasks.platform import resources


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
