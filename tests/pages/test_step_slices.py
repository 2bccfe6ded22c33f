"""Steps by language, as the report sums them up."""

from dataclasses import replace

from data_schemas.reports import STEPS_FILE, StepReport
from tasks.pages.page import write_report
from tasks.pages.step_slices import phase_slices, slice_lines


def step(number, **slices):
    metrics = {
        f"slices/{name.replace('_of_', '/')}": value
        for name, value in {"language_of_th/length_tokens": 10.0 * number, **slices}.items()
    }
    metrics["reward/mean"] = 0.5
    shares = {"truncated_share": 0.25, "abstained_share": 0.0}
    metrics |= {f"slices/language/th/{name}": value for name, value in shares.items()}
    return StepReport(step=number, policy_version=number, metrics=metrics)


def test_a_language_has_the_first_and_the_last_fifth_of_its_steps_by_hand():
    reports = [
        step(number, **{"language_of_th/reward": number / 10, "language_of_th/k3": 1e-4})
        for number in range(1, 11)
    ]

    (line,) = slice_lines(reports)

    assert ("th", 10) == (line.label, line.steps)
    assert "0.15 \N{RIGHTWARDS ARROW} 0.95" == line.reward
    assert "15.0 \N{RIGHTWARDS ARROW} 95.0" == line.tokens
    assert ("25.0\N{NO-BREAK SPACE}%", "0.0\N{NO-BREAK SPACE}%") == (line.cut, line.abstained)
    assert "1.0e-04" == line.k3


def test_a_language_without_a_verdict_has_no_reward_and_no_mismatch():
    (line,) = slice_lines([step(1)])

    assert ("\N{EN DASH}", "\N{EN DASH}") == (line.reward, line.k3)


def test_the_page_has_every_phase_whose_steps_have_slices(run, tmp_path):
    phase = tmp_path / "phase"
    phase.mkdir()
    (phase / STEPS_FILE).write_text(step(1).model_dump_json() + "\n")

    html = write_report(replace(run, phases={"rl/one": phase}), tmp_path).read_text()

    assert "rl/one by language and task family" in html
    assert [] == [*phase_slices({})]
