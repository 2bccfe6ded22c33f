"""Sums of several steps: what is held out shares no template, or no level, with what is taught."""

import json

import pytest

from tasks.curation.adapters.table import read_file
from tasks.curation.generated.chains import DEMONSTRATIONS, PROBLEMS, TAUGHT
from tasks.curation.ingest import GENERATED
from tasks.gym.table import VERIFIERS

HELD_OUT = {
    "sample_chains_template": {"template"},
    "sample_chains_level": {"level"},
    "sample_chains_both": {"template", "level"},
}
"""What of a held-out source no row that is trained on has."""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chains")
    for source in (TAUGHT, *HELD_OUT):
        GENERATED[source](0, folder / source)
    return folder


def read(world, source, name=PROBLEMS):
    return [item for items in read_file(source, 0, world / source / name) for item in items]


def properties(world, source, name=PROBLEMS):
    rows = [json.loads(line) for line in (world / source / name).read_text().splitlines()]
    return {
        "template": {row["id"].partition("-")[0] for row in rows},
        "level": {row["level"] for row in rows},
    }


@pytest.mark.parametrize("source", HELD_OUT)
def test_templates_and_levels_of_held_out_rows_are_in_no_row_that_is_trained_on(world, source):
    held_out = properties(world, source)
    trained = [properties(world, TAUGHT, name) for name in (PROBLEMS, DEMONSTRATIONS)]
    disjoint = {one for one in held_out if not any(held_out[one] & rows[one] for rows in trained)}

    assert HELD_OUT[source] == disjoint
    assert trained[0] == trained[1]


def test_a_demonstration_writes_every_intermediate_result_down_and_is_right(world):
    for item in read(world, TAUGHT, DEMONSTRATIONS):
        answer = json.loads(item.answers.answer)
        thought, _, said = item.record.response.partition("</think>")
        written = [
            step.rpartition("=" if ":" not in step else " ")[2] for step in thought.split("; ")
        ]

        assert answer["chain"] == written
        assert item.answers.level == len(answer["chain"])
        assert answer["chain"][-1] == answer["value"] == said
        assert VERIFIERS["final_answer"](item.answers, item.record.response).solved


def test_no_prompt_is_asked_twice_or_shown_and_asked(world):
    prompts = [
        item.record.prompt_text for source in (TAUGHT, *HELD_OUT) for item in read(world, source)
    ]
    shown = {item.record.prompt_text for item in read(world, TAUGHT, DEMONSTRATIONS)}

    assert len(prompts) == len(set(prompts))
    assert not shown & set(prompts)


def test_the_same_seed_gives_the_same_bytes(world, tmp_path):
    GENERATED[TAUGHT](0, tmp_path)

    for name in (PROBLEMS, DEMONSTRATIONS):
        assert (world / TAUGHT / name).read_bytes() == (tmp_path / name).read_bytes()
