from data_schemas.rl_settings import RewardSettings
from data_schemas.rollouts import ScoringRequest
from tasks.gym import monitors
from tasks.gym.scoring.service import ScoringService


def test_brevity_falls_by_half_for_every_two_hundred_characters_of_the_answer(problem):
    one = problem("choice", {})

    assert 1.0 == monitors.brevity(one, "").score
    assert 0.5 == monitors.brevity(one, "x" * 200).score
    assert 0.5 == monitors.brevity(one, f"<think>{'y' * 500}</think>{'x' * 200}").score


def test_the_form_is_a_thought_that_ends_and_an_answer(problem):
    one = problem("choice", {})
    texts = ("<think>why</think>B", "B", "<think>why", "<think>why</think> ", "")

    assert [1.0, 1.0, 0.0, 0.0, 0.0] == [monitors.form(one, text).score for text in texts]


def test_the_service_scores_a_response_by_its_verifier_and_by_a_monitor(problem):
    one = problem("final_answer", {"value": "4"})
    watched = one.model_copy(update={"verifier": "tasks.gym.monitors:form"})
    with ScoringService(None, RewardSettings(), num_workers=1) as service:
        for key, row in (("g", one), ("g|0", watched)):
            service.submit(ScoringRequest(row, key, 0, 1, "5"))
        found = service.gather()

    assert {("g", 0): 0.0, ("g|0", 0): 1.0} == {
        key: one.verdict.score for key, one in found.items()
    }
