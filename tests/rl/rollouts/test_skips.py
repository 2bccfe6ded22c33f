"""Skips by a draw: what is trained in expectation, and what a phase remembers of it."""

import math

import numpy as np
import pytest

from data_schemas.ledgers import GroupOutcome
from data_schemas.pass_rates import Band, GradedProblem
from data_schemas.rl_settings import EngineSettings, RLSettings, SkipSettings, ZeroVarianceSettings
from data_schemas.rows import Domain
from tasks.algorithms.phase_choices import require_fit
from tasks.algorithms.skips.draw import SkipDraw
from tasks.algorithms.skips.protocol import Prospect, inverse_sampling
from tasks.algorithms.skips.threshold import SkipThreshold
from tasks.engines.chat import load_tokenizer
from tasks.engines.embedded.rollout import HFRolloutEngine
from tasks.errors import SettingsError
from tasks.rl.collector import Collector, skip_by_rule, weigh_kept
from tasks.rl.prompts import PromptStream
from tasks.rl.turns import check_turns
from tests.records import problem_of

SHARES = {Domain.MATHS: 3.0, Domain.CODE: 1.0}
DRAW = ZeroVarianceSettings(skip=SkipSettings(mode="draw"))


def offered(domain, language, number):
    return problem_of(
        "?",
        "{}",
        id=f"{domain.value}/{language}/{number}",
        domain=domain,
        language=language,
        verifier="choice",
        source="s",
        source_row="0",
    )


ROWS = [
    offered(domain, language, number)
    for domain in SHARES
    for language in ("en", "th", "vi")
    for number in range(8)
]


def slice_of(problem):
    return problem.domain.value, problem.language


def flat_chance(problem):
    """Maths, and Thai in it, is often solved always or never."""
    number = int(problem.id.rpartition("/")[2])
    high = 0.5 if problem.domain is Domain.MATHS else 0.1
    return min(0.94, high + 0.05 * number + 0.1 * (problem.language == "th"))


def gradient(problem):
    """Any number: what its group would add."""
    return (
        math.sin(3.0 * len(problem.domain) + ord(problem.language[0])) + 1.0 - flat_chance(problem)
    )


def means_by_slice(skip, steps, seed, prompts=12):
    """Sums of weight x gradient and of weight over a step's prompts, by slice: [steps, slices]."""
    slices = sorted({slice_of(row) for row in ROWS})
    stream, found = PromptStream(ROWS, SHARES, seed), np.zeros((2, steps, len(slices)))
    for step in range(steps):
        draw = stream.take(
            prompts,
            skip
            and (lambda row: skip_by_rule(skip, Prospect(flat_chance(row)), seed, stream.position)),
        )
        kept = weigh_kept(skip or SkipThreshold(), draw)
        for problem, one in zip(draw.problems, kept, strict=True):
            place = slices.index(slice_of(problem))
            found[0, step, place] += one.weight * gradient(problem) / prompts
            found[1, step, place] += one.weight / prompts
    return found


def check_the_expectation(steps):
    """By domain and language, within 4.5 standard errors of the difference of two means."""
    with_skips, without = (means_by_slice(one, steps, 5) for one in (SkipDraw(), None))
    error = np.sqrt((with_skips.var(axis=1) + without.var(axis=1)) / steps)
    difference = np.abs(with_skips.mean(axis=1) - without.mean(axis=1))
    assert (difference <= 4.5 * error).all(), (difference / error).round(1)
    by_threshold = means_by_slice(SkipThreshold(), steps, 5)
    moved = np.abs(by_threshold.mean(axis=1) - without.mean(axis=1))
    assert (moved > 4.5 * error).any()


def test_what_a_draw_trains_is_what_was_asked_for_by_domain_and_language():
    check_the_expectation(steps=250)


@pytest.mark.slow
def test_what_a_draw_trains_is_what_was_asked_for_over_many_draws():
    check_the_expectation(steps=20_000)


def test_a_draw_that_ends_with_its_last_kept_prompt_divides_by_those_offered_before():
    """Two of four: a third. The mean of (r - 1) / (N - 1) is the probability; that of r / N not."""
    assert inverse_sampling(2, 2) == pytest.approx(1 / 3)
    assert inverse_sampling(24, 0) == 1.0
    assert inverse_sampling(1, 3) == 0.25

    chance = [(n - 1) * 0.5**n for n in range(2, 200)]  # of N offered until two are kept, each 1/2
    expected = sum(p * inverse_sampling(2, n - 2) for n, p in enumerate(chance, start=2))
    assert expected == pytest.approx(0.5)


def test_a_prompt_is_kept_with_the_root_of_its_chance_of_contrast_and_weighs_the_inverse():
    rule = SkipDraw()

    assert rule.keep_probability(Prospect(0.75)) == pytest.approx(0.5)
    assert rule.weight(0.5) == 2.0
    assert rule.weight(0.1) == rule.cap == 5.0
    assert rule.keep_probability(Prospect(0.0)) == 1.0
    assert SkipThreshold().weight(1.0) == 1.0


@pytest.fixture
def collector(settings, problems, tiny_moe, scorer):
    """Half of the prompts are predicted to be always solved."""
    rows = [
        GradedProblem(
            **row.model_copy(update={"level": number % 2}).model_dump(),
            pass_rate=(0.5, 1.0)[number % 2],
            mean_tokens=5.0,
            band=Band.MEDIUM,
        )
        for number, row in enumerate(problems)
    ]

    def build(start=None, **changes):
        changed = settings.model_copy(update={"zero_variance": DRAW, **changes})
        tokenizer = load_tokenizer(tiny_moe)
        return Collector(changed, HFRolloutEngine(tiny_moe), tokenizer, scorer(), rows, start)

    return build


def kept_of(step):
    return [(one.group.problem.id, one.kept) for one in step.groups]


def test_a_phase_that_goes_on_draws_the_same_skips_and_weights(collector):
    whole = collector()
    steps = [whole.collect(step) for step in (1, 2, 3)]
    half = collector()
    half.collect(1)

    again = collector(half.state())
    for straight, resumed in zip(steps[1:], (again.collect(2), again.collect(3)), strict=True):
        assert straight.skipped == resumed.skipped
        assert kept_of(straight) == kept_of(resumed)
    skipped = [one for step in steps for one in step.skipped]
    assert {GroupOutcome.SKIPPED_ZERO_VARIANCE} == {one.outcome for one in skipped}
    assert all(0.0 < one.keep_probability < 1.0 for one in skipped)


def test_a_response_that_ends_in_a_later_step_keeps_the_weight_of_its_draw(collector):
    cut = collector(engines=EngineSettings(segment_tokens=2))
    steps = [cut.collect(step) for step in (1, 2, 3, 4)]

    begun = {one.group.key: one.group.kept for step in steps for one in step.in_flight}
    ended = {
        one.group.rollouts[0].rollout.problem_id: one.kept for step in steps for one in step.groups
    }
    assert begun.keys() & ended.keys()
    assert all(begun[key] == ended[key] for key in begun.keys() & ended.keys())
    assert len({kept.weight for kept in ended.values()}) > 1


def test_group_sizes_follow_the_pass_rates_at_the_tokens_of_one_size(collector):
    step = collector(
        group_bounds=(2, 8),
        advantage={"kind": "rloo"},
        zero_variance=ZeroVarianceSettings(skip=SkipSettings.model_validate({"above": 1.0})),
        prompts_per_step=12,
    ).collect(1)

    sizes = {one.group.problem.level: set() for one in step.groups}
    for one in step.groups:
        sizes[one.group.problem.level].add(len(one.group.rollouts))
    assert min(sizes[0]) > max(sizes[1])  # half solved against always solved
    assert 12 * 4 == sum(len(one.group.rollouts) for one in step.groups)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"group_bounds": (4, 16)}, r"depends on the size; use 'rloo'"),
        ({"group_bounds": (4, 16), "advantage": "rloo"}, r"the smaller they are; leave it out"),
        ({"group_bounds": (9, 16)}, r"two sizes around group_size 8"),
        ({"zero_variance": {"skip_above": 0.6}}, r"skip: \{mode: threshold, above: 0\.6\}"),
        ({"zero_variance": {"skip": {"mode": "draw", "above": 0.4}}}, r"but of threshold"),
        ({"zero_variance": {"skip": {"mode": "drawn"}}}, r"draw"),
    ],
)
def test_skips_and_sizes_that_do_not_fit_are_refused_with_the_fix(changes, reason):
    with pytest.raises((ValueError, SettingsError), match=reason):
        require_fit(RLSettings.model_validate({"domains": {"maths": 1.0}, **changes}))


@pytest.mark.parametrize(
    "changes", [{"zero_variance": DRAW}, {"group_bounds": (2, 8)}], ids=["skip", "group_bounds"]
)
def test_turns_of_other_agents_have_no_weight_of_a_prompt(settings, changes):
    with pytest.raises(SettingsError, match=next(iter(changes)).removeprefix("zero_variance.")):
        check_turns(settings.model_copy(update=changes))


def test_group_dro_goes_with_a_draw_which_leaves_the_shares_alone():
    both = {"domains": {"maths": 1.0, "code": 1.0}, "group_dro": 2.0}
    drawn = {"zero_variance": {"skip": {"mode": "draw"}}}

    require_fit(RLSettings.model_validate(both | drawn))
    with pytest.raises(SettingsError, match="both move the shares"):
        require_fit(RLSettings.model_validate(both))
