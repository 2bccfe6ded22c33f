from data_schemas.settings import EvaluationSettings
from tasks.ablation.picture import curves, mean_by_step
from tasks.ablation.report import report_of
from tasks.ablation.variants import select_variants


def test_a_curve_is_the_mean_of_the_steps_that_every_seed_has():
    assert [2.0, 4.0] == mean_by_step([(1.0, 3.0, 9.0), (3.0, 5.0)])
    assert [] == mean_by_step([(1.0,), ()])


def test_the_curves_show_what_the_steps_trained(make_cell):
    def drawn(tokens):
        steps = [{"policy/trained_tokens": number} for number in tokens]
        cells = [make_cell(name, 0, steps=steps) for name in ("full", "grpo", "grpo_c3po")]
        start = {"p0": 1.0, "p1": 0.0}
        settings = EvaluationSettings(samples=2)
        chosen = select_variants("grpo_c3po")
        return curves(report_of(settings, chosen, cells, start, max_tokens=1))

    assert drawn((10.0, 90.0)) == drawn((10.0, 90.0))
    assert drawn((10.0, 90.0)) != drawn((50.0, 50.0))
