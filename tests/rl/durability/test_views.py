"""The responses of a step on the page of a phase."""

import json

import numpy as np
import pytest

from tasks.engines.chat import load_tokenizer, token_texts
from tasks.rl import step_snapshot
from tasks.rl.phase import train
from tasks.rl.views import page_of_phase, responses_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("phase")


@pytest.fixture
def phase(phase_in, scorer, folder):
    """Two steps, done once for all tests."""
    phase = phase_in(folder, steps=2)
    if not (folder / step_snapshot.FOLDER).exists():
        list(train(phase, scorer()))
    return phase


@pytest.fixture
def snapshot(phase):
    path = phase.state / step_snapshot.FOLDER / step_snapshot.name_of(2)
    return step_snapshot.decode(path.read_bytes())


@pytest.fixture
def tokenizer(tiny_moe):
    return load_tokenizer(tiny_moe)


def test_every_response_is_there_with_its_verdict_and_a_value_per_token(snapshot, tokenizer):
    found = responses_of(snapshot, tokenizer, 10_000)

    groups = {entry.group.problem.id: entry for entry in snapshot.groups}
    assert set(groups) == {group.problem for group in found.groups}
    for group in found.groups:
        for view, item in zip(group.responses, groups[group.problem].group.rollouts, strict=True):
            length = len(item.rollout.response_tokens)
            assert length == len(view.tokens) == len(view.logprobs) == len(view.routes)
            assert (item.verdict.score, item.verdict.reason) == (view.score, view.reason)
            assert view.gaps == () or length == len(view.gaps) == len(view.entropies)


@pytest.mark.parametrize("text", ["two words", "ไทย 12 บาท", "tiếng Việt", "価格 😀", ""])
def test_a_character_of_several_tokens_is_shown_once(tokenizer, text):
    tokens = tokenizer.encode(text, add_special_tokens=False)

    texts = token_texts(tokenizer, tokens)

    assert len(tokens) == len(texts)
    assert text == "".join(texts)


def test_bytes_that_are_no_character_do_not_hide_the_tokens_after_them(tokenizer):
    start = tokenizer.encode("ท", add_special_tokens=False)[:1]
    tokens = [*start * 6, *tokenizer.encode("end", add_special_tokens=False)]

    assert "".join(token_texts(tokenizer, tokens)).endswith("end")


def test_gap_and_advantage_are_those_of_the_sequence_in_the_batch(snapshot, tokenizer):
    found = {group.problem: group for group in responses_of(snapshot, tokenizer, 10_000).groups}

    assert len(snapshot.outputs["owners_N2"]) > 0
    for row, (place, sample) in enumerate(snapshot.outputs["owners_N2"].tolist()):
        entry = snapshot.groups[place].group
        view = found[entry.problem.id].responses[sample]
        mask_T = snapshot.outputs["response_NT"][row]
        logprobs = entry.rollouts[sample].rollout.logprobs
        gaps = snapshot.inputs["old_logprobs_NT"][row][mask_T] - logprobs
        assert view.gaps == pytest.approx(gaps, abs=1e-4)
        assert view.advantage == pytest.approx(
            snapshot.outputs["advantages_NT"][row][mask_T].mean()
        )


def test_the_routes_are_those_of_the_position_that_predicted_the_token(snapshot, tokenizer):
    entry = snapshot.groups[0].group
    rollout = entry.rollouts[0].rollout
    found = {group.problem: group for group in responses_of(snapshot, tokenizer, 10_000).groups}

    first = rollout.trace.experts_TLK[len(rollout.prompt_tokens) - 1]
    expected = " | ".join(" ".join(map(str, layer)) for layer in first.tolist())
    assert expected == found[entry.problem.id].responses[0].routes[0]


def test_groups_with_the_largest_mismatch_are_shown_and_the_others_counted(snapshot, tokenizer):
    sizes = {
        entry.group.problem.id: sum(len(r.rollout.response_tokens) for r in entry.group.rollouts)
        for entry in snapshot.groups
    }
    whole = responses_of(snapshot, tokenizer, sum(sizes.values()))
    first = sizes[whole.groups[0].problem]

    some = responses_of(snapshot, tokenizer, first)

    largest = [
        max((abs(gap) for view in group.responses for gap in view.gaps), default=0.0)
        for group in whole.groups
    ]
    assert sorted(largest, reverse=True) == largest
    assert (len(sizes), 0) == (len(whole.groups), whole.left_out)
    assert (whole.groups[:1], len(sizes) - 1) == (some.groups, some.left_out)
    (cut,) = responses_of(snapshot, tokenizer, 1).groups
    assert (1, len(whole.groups[0].responses) - 1) == (len(cut.responses), cut.left_out)
    assert largest[0] == max(map(abs, cut.responses[0].gaps))


def test_a_token_whose_logits_overflowed_is_on_the_page_without_a_number(snapshot, tokenizer):
    broken = snapshot.inputs["old_logprobs_NT"].copy()
    broken[0] = np.nan
    snapshot.inputs["old_logprobs_NT"] = broken

    text = responses_of(snapshot, tokenizer, 10_000).model_dump_json()

    assert "NaN" not in text


def test_the_page_of_a_phase_has_all_its_steps(phase, tokenizer):
    html = page_of_phase(phase.state, tokenizer, "rl/one of x", 4, 2, running=True)

    found = json.loads(html.split('id="data">')[1].split("</script>")[0])
    assert [1, 2] == [step for step, _ in found["curves"][0]["points"]]
    assert 2 == found["responses"]["step"]


def test_a_snapshot_that_is_gone_costs_the_responses_only(phase, tokenizer):
    path = phase.state / step_snapshot.FOLDER / step_snapshot.name_of(1)
    kept = path.read_bytes()
    path.unlink()

    html = page_of_phase(phase.state, tokenizer, "rl/one of x", 4, 1, running=True)

    path.write_bytes(kept)
    assert '"responses":null' in html
