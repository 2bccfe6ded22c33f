import numpy as np
import pytest

from data_schemas.rollouts import StopReason, split_turns
from tasks.algorithms.kept_sets import check_kept
from tasks.engines import episodes
from tasks.engines.chat import load_tokenizer, render_prompt, render_response
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.engines.protocols import Request, Sampling
from tasks.errors import SettingsError
from tasks.gym.environments import shop
from tasks.training.foundation.base import shipped_base
from tests.gym.environments.conftest import LOOK_UP, Speaker, call, problem_of

TURNS = (LOOK_UP, call("cancel", "order", 412), "done")
SAMPLING = Sampling(400, 1.0, seed=0)


@pytest.fixture
def play(tokenizer):
    def run(engine, problem, samples=1, sampling=SAMPLING):
        prompt = render_prompt(tokenizer, problem.messages)
        requests = [Request(problem.id, prompt, samples)]
        return list(episodes.generate(engine, tokenizer, {problem.id: problem}, requests, sampling))

    return run


def test_an_episode_is_the_sampled_tokens_and_the_answers_between_them(play, tokenizer, case):
    (episode,) = play(Speaker(tokenizer, TURNS), problem_of(case(412)))

    turns = split_turns(episode.response_tokens, episode.sampled)
    said = [render_response(tokenizer, turn) for turn in TURNS]
    assert [tokens.tolist() for tokens in said] == [tokens.tolist() for tokens in turns]
    assert sum(map(len, said)) == episode.num_sampled == len(episode.sampled_tokens)
    text = tokenizer.decode(episode.response_tokens.tolist())
    for answer in ("412 red mug new; 733 blue mug home; 734 black kite sent", "ok"):
        assert f"<|im_end|>\n<|im_start|>tool\n{answer}<|im_end|>\n<|im_start|>assistant\n" in text
    assert shop.verify(problem_of(case(412)), episodes.text_of(tokenizer, episode)).solved


def test_the_engine_continues_from_the_tokens_of_the_episode(play, tokenizer, case):
    speaker = Speaker(tokenizer, TURNS)

    (episode,) = play(speaker, problem_of(case(412)))

    continued = [requests[0].response_tokens for requests in speaker.calls]
    assert [0, *sorted(map(len, continued[1:]))] == [len(tokens) for tokens in continued]
    for tokens in continued:
        assert tokens.tolist() == episode.response_tokens[: len(tokens)].tolist()


def test_an_answer_has_no_logprob_and_tokens_keep_the_routes_of_their_sampling(
    play, tokenizer, case
):
    (episode,) = play(Speaker(tokenizer, TURNS), problem_of(case(412)))

    assert np.array_equal(np.where(episode.sampled, -1.0, 0.0), episode.logprobs)
    # The last token of a turn is fed with the next turn, and so is the answer to it.
    starts = np.flatnonzero(np.diff(episode.sampled, prepend=False) & episode.sampled)
    ends = np.flatnonzero(np.diff(episode.sampled, append=False) & episode.sampled)
    fed = len(episode.prompt_tokens) + np.array([*ends, len(episode.response_tokens)])
    expected_T = np.repeat([0, 1, 2], np.diff([0, *ends[:-1], ends[-1]]))
    assert 3 == len(starts) == len(ends)
    assert expected_T.tolist() == episode.trace.experts_TLK[:, 0, 0].tolist()[fed[0] - ends[0] :]


def test_an_answer_has_no_set_and_tokens_keep_those_that_they_were_drawn_from(
    play, tokenizer, case
):
    sampling = Sampling(400, 1.0, seed=0, top_p=0.9, record_kept=True)

    (episode,) = play(Speaker(tokenizer, TURNS), problem_of(case(412)), sampling=sampling)

    check_kept(episode.kept, episode.response_tokens, episode.sampled)
    assert episode.sampled_tokens.tolist() == episode.kept.ids.tolist()


def test_every_sample_has_its_own_episode(play, tokenizer, case):
    found = play(Speaker(tokenizer, TURNS), problem_of(case(412)), samples=3)

    assert [0, 1, 2] == sorted(episode.sample for episode in found)
    assert {3} == {len(split_turns(one.response_tokens, one.sampled)) for one in found}


def test_samples_under_different_prompts_keep_theirs_in_every_turn(tokenizer, case):
    problem, speaker = problem_of(case(412)), Speaker(tokenizer, TURNS)
    prompt = render_prompt(tokenizer, problem.messages)
    prompts = [np.concatenate([prompt, prompt]), prompt]
    requests = [Request(problem.id, one, 1, first_sample=n) for n, one in enumerate(prompts)]

    rollouts = episodes.generate(speaker, tokenizer, {problem.id: problem}, requests, SAMPLING)

    lengths = {one.sample: len(one.prompt_tokens) for one in rollouts}
    assert {0: 2 * len(prompt), 1: len(prompt)} == lengths


def test_other_problems_are_answered_in_one_turn(play, tokenizer, case):
    problem = problem_of(case(412)).model_copy(update={"verifier": "tool_calls"})

    (rollout,) = play(Speaker(tokenizer, TURNS), problem)

    assert rollout.sampled is None
    assert LOOK_UP == episodes.text_of(tokenizer, rollout)


@pytest.mark.parametrize("stop", [StopReason.LENGTH, StopReason.STOP])
def test_a_turn_that_was_cut_is_not_answered(play, tokenizer, case, stop):
    (rollout,) = play(Speaker(tokenizer, TURNS, stop), problem_of(case(412)))

    assert (stop, None) == (rollout.stop_reason, rollout.sampled)


def test_an_answer_beyond_the_limit_ends_the_episode_as_truncated(play, tokenizer, case):
    first = len(render_response(tokenizer, LOOK_UP))

    (rollout,) = play(
        Speaker(tokenizer, TURNS), problem_of(case(412)), sampling=Sampling(first + 20, 1.0, seed=0)
    )

    assert StopReason.LENGTH is rollout.stop_reason
    assert first == len(rollout.response_tokens)


def test_episodes_in_segments_are_refused_before_anything_is_generated(play, tokenizer, case):
    speaker = Speaker(tokenizer, TURNS)

    with pytest.raises(SettingsError, match=r"segment_tokens to 0"):
        play(speaker, problem_of(case(412)), sampling=Sampling(400, 1.0, 0, segment_tokens=8))
    assert [] == speaker.calls


def test_an_episode_of_the_embedded_engine_does_not_depend_on_the_others(tokenizer, case):
    """A model that was never taught to call still ends its turns, which the shop answers."""
    engine = HFRolloutEngine(shipped_base())
    own = load_tokenizer(shipped_base())
    asked = {f"shop/{n}": problem_of(case(412), f"shop/{n}") for n in range(3)}
    prompt = render_prompt(own, asked["shop/0"].messages)

    def episode_of(names):
        requests = [Request(name, prompt, 2) for name in names]
        found = episodes.generate(engine, own, asked, requests, Sampling(96, 1.0, seed=0))
        return {(one.problem_id, one.sample): one.response_tokens.tolist() for one in found}

    together, alone = episode_of(asked), episode_of(["shop/1"])

    assert alone == {key: together[key] for key in alone}
