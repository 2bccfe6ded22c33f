"""What the page of a running phase holds."""

import json

import pytest

from data_schemas.ledgers import PromptCost
from data_schemas.reports import StepReport, StepTiming
from tasks.pages.live import REFRESH_S, SLOWEST, by_mismatch, render
from tasks.pages.live_views import GroupView, Responses, ResponseView, StepView


def step(number: int, **metrics: float) -> StepView:
    values = {
        "reward/mean": 0.1 * number,
        "rollout/generated_tokens": 1000.0,
        "mismatch/k3": 1e-6,
        "tokens/trained_share": 0.75,
        "tokens/surplus_share": 0.25,
    }
    return StepView(
        report=StepReport(step=number, policy_version=number, metrics=values | metrics),
        timing=StepTiming(step=number, seconds={"collect": 3.0, "rollout": 2.9, "update": 1.0}),
        costs=tuple(
            PromptCost(
                step=number,
                round=0,
                problem_id=f"p{place}",
                engine_seconds=float(place),
                verifier_seconds=0.5,
                judge_calls=0,
            )
            for place in range(20)
        ),
    )


RESPONSES = Responses(
    step=2,
    left_out=3,
    groups=(
        GroupView(
            problem="world/1",
            domain="maths",
            language="en",
            prompt="1 + 1?",
            answer='"2"',
            source_row="0" * 64,
            outcome="non_zero_variance",
            responses=(
                ResponseView(
                    tokens=("2", "</script><img src=x onerror=alert(1)>"),
                    gaps=(0.1, -0.2),
                    entropies=(0.5, 0.0),
                    logprobs=(-0.1, -1.0),
                    routes=("0 1", "2 3"),
                    score=1.0,
                    solved=True,
                    reason="correct",
                    detail="",
                    penalty=0.0,
                    advantage=0.5,
                    stop_reason="end",
                ),
            ),
        ),
    ),
)


def page(**changes) -> str:
    options = {"num_steps": 10, "running": True} | changes
    responses = options.pop("responses", RESPONSES)
    return render("rl/one of x", "running", [step(1), step(2)], responses, **options)


def data(html: str):
    return json.loads(html.split('id="data">')[1].split("</script>")[0])


def test_the_page_has_the_numbers_of_all_steps_and_the_newest_responses():
    found = data(page())

    curves = {curve["title"]: curve["points"] for curve in found["curves"]}
    assert [[1, 0.1], [2, 0.2]] == curves["Reward"]
    assert "Solved" not in curves  # no step has it
    assert ["step", "2 of 10"] == found["tiles"][0]
    assert 0.5 == found["responses"]["groups"][0]["responses"][0]["advantage"]
    assert 3 == found["responses"]["left_out"]


def test_times_and_uses_of_tokens_are_stacked_by_step():
    parts, uses = data(page())["stacks"]

    assert (["collect", "update"], [[3.0, 1.0]] * 2) == (parts["names"], parts["rows"])
    assert (["trained", "surplus"], [[75.0, 25.0]] * 2) == (uses["names"], uses["rows"])


def test_the_steps_so_far_are_summed_up_by_language_and_task_family():
    def views(name: str, **measures: float) -> list[StepView]:
        shares = {"length_tokens": 8.0, "truncated_share": 0.25, "abstained_share": 0.5}
        values = {f"slices/{name}/{one}": value for one, value in (shares | measures).items()}
        return [step(number, **values) for number in (1, 2)]

    def slices(views: list[StepView]):
        return data(render("rl/one", "", views, None, num_steps=10, running=True))["slices"]

    found = slices(views("language/th", reward=0.5, k3=1e-3))

    course, share = "{0} \N{RIGHTWARDS ARROW} {0}", "{0}.0\N{NO-BREAK SPACE}%"
    assert ["steps", "reward", "tokens", "cut at the limit"] == found["columns"][:4]
    assert [
        "th",
        "2",
        course.format("0.50"),
        course.format("8.0"),
        share.format(25),
        share.format(50),
        "1.0e-03",
    ] == found["rows"][0]
    assert ["tool use"] == [row[0] for row in slices(views("domain/tool_use"))["rows"]]
    assert [] == data(page())["slices"]["rows"]


def test_the_slowest_prompts_come_first():
    slowest = data(page())["slowest"]

    assert [f"p{place}" for place in range(19, 19 - SLOWEST, -1)] == [row[0] for row in slowest]


def test_the_rest_of_the_phase_is_estimated_from_the_newest_step():
    assert ["left at this pace", "1 min"] == data(page())["tiles"][3]  # 8 steps of 4 s: 0.53 min


def test_a_phase_that_tokens_end_has_no_last_step_and_no_time_left():
    tiles = dict(data(page(num_steps=None))["tiles"])

    assert "2" == tiles["step"]
    assert "left at this pace" not in tiles


def test_no_text_of_a_response_becomes_markup():
    html = page()

    assert "<img" not in html
    assert 1 == html.count("</script>\n<script>")
    assert "</script><img" in data(html)["responses"]["groups"][0]["responses"][0]["tokens"][1]


@pytest.mark.parametrize(("running", "seconds"), [(True, REFRESH_S), (False, 0)])
def test_the_last_page_does_not_load_itself_again(running, seconds):
    assert seconds == data(page(running=running))["refresh_s"]


def test_a_value_that_is_no_number_is_left_out_and_does_not_break_the_page():
    views = [step(1, **{"policy/grad_norm": float("nan")}), step(2, **{"policy/grad_norm": 2.0})]

    html = render("rl/one of x", "running", views, None, num_steps=10, running=True)

    curves = {curve["title"]: curve["points"] for curve in data(html)["curves"]}
    assert "NaN" not in html
    assert [[2, 2.0]] == curves["Gradient norm"]


def test_a_page_without_responses_says_why():
    found = data(page(responses=None))

    assert found["responses"] is None
    assert "too large" in found["no_responses"]


def test_groups_that_fit_are_taken_whole_and_of_the_first_what_fits_if_none_does():
    gaps = [[0.1, 0.0], [0.3, 0.9], [0.2, 0.4]]

    assert {1: [0, 1], 2: [0, 1], 0: [0, 1]} == by_mismatch(gaps, [[1, 1]] * 3, 6)
    assert {1: [0, 1], 0: [0, 1]} == by_mismatch(gaps, [[1, 1], [1, 1], [5, 5]], 6)
    assert {1: [1]} == by_mismatch(gaps, [[9, 9], [5, 4], [9, 9]], 6)
    assert {1: [1]} == by_mismatch(gaps, [[9, 9], [9, 9], [9, 9]], 6)  # one at least
    assert {} == by_mismatch([], [], 6)


def test_responses_of_a_prompt_that_are_not_on_the_page_are_counted():
    (group,) = RESPONSES.groups
    cut = RESPONSES.model_copy(update={"groups": (group.model_copy(update={"left_out": 7}),)})

    assert 7 == data(page(responses=cut))["responses"]["groups"][0]["left_out"]


def test_a_monitor_has_a_curve_and_its_fall_against_a_rise_stands_at_the_top():
    falls = [
        step(n, **{"monitor/form": 1.0 - 0.1 * n, "monitor/abstained/form": 1.0})
        for n in range(1, 9)
    ]
    text = render("rl/one of x", "running", falls, RESPONSES, num_steps=10, running=True)

    assert "monitor form falls (0.750 to 0.350)" in text
    assert "Monitor: form" in text
    assert "Monitor: abstained" not in text
    calm = [step(n, **{"monitor/form": 0.5}) for n in range(1, 9)]
    assert "falls" not in render("x", "running", calm, RESPONSES, num_steps=10, running=True)


def test_the_score_that_counts_is_of_the_newest_step_and_of_all():
    """Four seconds each: 100 of 200 accepted tokens fresh, then none of 50."""
    counts = ({"tokens/accepted": 200.0, "tokens/freshness": 0.5}, {"tokens/accepted": 50.0})
    views = [step(n, **({"tokens/freshness": 0.0} | count)) for n, count in enumerate(counts, 1)]

    text = render("x", "running", views, RESPONSES, num_steps=10, running=True)

    assert '["fresh accepted tokens per s", "0.0"]' in text.replace('","', '", "')
    assert '["fresh accepted tokens per s, all steps", "12.5"]' in text.replace('","', '", "')
    assert "fresh accepted" not in page()
