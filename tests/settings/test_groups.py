"""Groups of suites become their members, and nothing is trained on one."""

import pytest

from data_schemas import presets
from data_schemas.settings import Source
from tasks.curation.adapters.table import ADAPTERS
from tasks.curation.ingest import GENERATED
from tasks.errors import SettingsError
from tasks.formats.benchmark_file import group_of, shipped_groups, shipped_suites
from tasks.formats.mapping_files import shipped_mappings
from tasks.settings.groups import expand
from tasks.settings.options import with_sources, with_suites


@pytest.mark.parametrize("name", shipped_groups())
def test_every_member_of_a_group_is_a_suite_or_generated_or_a_group(name):
    readable = {*shipped_suites(), *ADAPTERS, *shipped_mappings()}
    for member in shipped_groups()[name].members:
        suite, _, path = member.partition("=")
        if path:
            assert suite in readable
        else:
            assert suite in GENERATED or group_of(suite) is not None


def test_a_group_becomes_its_members_in_its_folder():
    chosen = with_suites(presets.CPU_SMOKE, "ecommerce=data/").curation.sources

    assert all(one.evaluation for one in chosen)
    paths = {one.adapter: one.path for one in chosen}
    assert ("", "data/prdect_id", "data/tau_bench_retail/tasks_dev.jsonl") == (
        paths["generated_guide"], paths["prdect_id"], paths["tau_bench_retail"],
    )  # fmt: skip


def test_a_suite_of_two_groups_is_read_once():
    both = with_suites(presets.CPU_SMOKE, "safety_generated,seven_languages=d").curation.sources

    assert len(both) == len({one.adapter for one in both})


def test_a_group_is_a_benchmark_of_a_training_run_only_with_evaluation_in_front():
    chosen = with_sources(presets.CPU_SMOKE, "sample_world,evaluation:safety_generated")

    assert [("sample_world", False), ("sample_harmful", True), ("sample_harmless", True)] == [
        (one.adapter, one.evaluation) for one in chosen.curation.sources
    ]
    with pytest.raises(SettingsError, match=r"nothing is trained on a suite.*evaluation:e"):
        with_sources(presets.CPU_SMOKE, "sample_world,ecommerce=data")


def test_groups_in_the_settings_are_replaced_too():
    source = Source(adapter="safety_generated", evaluation=True)
    curation = presets.CPU_SMOKE.curation.model_copy(update={"sources": (source,)})
    given = presets.CPU_SMOKE.model_copy(update={"curation": curation})

    assert ["sample_harmful", "sample_harmless"] == [
        one.adapter for one in with_sources(given, "").curation.sources
    ]


def test_a_group_with_data_needs_a_folder():
    with pytest.raises(SettingsError, match=r"ecommerce reads attribute_extraction.*=FOLDER"):
        with_suites(presets.CPU_SMOKE, "ecommerce")


def test_a_group_of_ones_own_may_contain_groups_but_not_itself(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"name: mine\nmembers: [safety_generated, gsm8k=test.jsonl, {path}]")
    source = Source(adapter=str(path), path=str(tmp_path), evaluation=True)

    with pytest.raises(SettingsError, match=r"mine\.yaml is a group .*contains itself"):
        expand([source])
    path.write_text("name: mine\nmembers: [safety_generated, gsm8k=test.jsonl]")
    assert ["sample_harmful", "sample_harmless", "gsm8k"] == [
        one.adapter for one in expand([source])
    ]
