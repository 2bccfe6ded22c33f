"""A step folds over its terms: their order, what each leaves, and how they are named."""

import inspect
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tasks
from data_schemas.ledgers import TokenUse
from data_schemas.rl_settings import MOVED, RLSettings
from tasks.algorithms.losses.surrogate import unclipped
from tasks.algorithms.phase_choices import require_fit
from tasks.algorithms.router_shift import SHIFT
from tasks.algorithms.terms.fold import (
    acting_in_order,
    auxiliary_of,
    fold_step,
    fold_update,
    lost_tokens,
)
from tasks.algorithms.terms.protocol import StepEffect, Term, UpdateEffect, UpdateSignal
from tasks.algorithms.terms.rl_zvp import RLZVP
from tasks.algorithms.terms.table import TERMS, find_terms
from tasks.algorithms.terms.tis import TIS
from tasks.errors import DataError, SettingsError
from tests.algorithms.signals import signal_of, terms_of

ROOT = Path(tasks.__file__).parents[1]
LAB = {
    "clip_cov": "ClipCov",
    "kl_cov": "KLCov",
    "router_shift": "RouterShift",
    "geometric_band": "GeometricBand",
    "token_band": "TokenBand",
}
NAMES = {kind: f"{model.__module__}:{model.__qualname__}" for kind, model in TERMS.items()}
NAMES |= {
    f"tasks/lab/terms/{file}.py:{name}": f"tasks.lab.terms.{file}:{name}"
    for file, name in LAB.items()
}
"""Every term as settings name it, and the same object by another reference."""
OWN = {"tokens_per_response": 2.5, "share": 0.3, "weight": 0.1, "cap": 1.2, "above_nats": 0.1}


def random_signal():
    generator = torch.Generator().manual_seed(1)
    mask_NT = torch.arange(6) < torch.tensor([[6], [3], [1]])

    def draw():
        return torch.randn(3, 6, generator=generator) * mask_NT

    names = ("old_NT", "rollout_prompt_NT", "rollout_NT", "reference_NT", "advantages_NT")
    return signal_of(mask_NT, **{name: draw() for name in names})


def effects_of(term):
    """What a term does before the first update and in one, as tensors by name."""
    signal = random_signal()
    before = term.weigh(signal)
    plan = unclipped(signal.response_NT, signal.plan.weights_NT)
    shift_NT = -signal.rollout_prompt_NT.abs()
    columns = {**plan.columns(), **before.held, SHIFT: shift_NT}
    logprobs_NT = (1.3 * signal.old_NT).requires_grad_()
    update = UpdateSignal(
        logprobs_NT=logprobs_NT,
        ratio_NT=logprobs_NT,
        old_NT=signal.old_NT,
        advantages_NT=signal.advantages_NT,
        weights_NT=plan.weights_NT,
        columns=columns,
        num_sequences=3.0,
    )
    during = term.adjust(update)
    return (
        [str(getattr(effect, one.name)) for effect in (before, during) for one in fields(effect)],
        term.report([{"tokens": 4.0, "clipped_falling_tokens": 1.0, **during.counts}]),
        auxiliary_of([term]),
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_term_acts_to_the_bit_alike_by_name_and_by_reference(name):
    torch.set_printoptions(precision=10, profile="full")
    found = []
    for kind in (name, NAMES[name]):
        (plain,) = find_terms(terms_of({"kind": kind}))
        own = {key: value for key, value in OWN.items() if key in type(plain).model_fields}
        (term,) = find_terms(terms_of({"kind": kind, **own}))
        flags = [
            getattr(term, flag)
            for flag in vars(Term)
            if flag.startswith(("needs_", "acts_", "engine_", "off_"))
        ]
        found.append((type(term).__name__, dict(term), flags, effects_of(term)))
    torch.set_printoptions(profile="default")

    assert found[0] == found[1]


class Double(Term):
    """Every weight twice."""

    def weigh(self, step):
        return StepEffect(weights_NT=torch.full(step.kept_NT.shape, 2.0))

    def adjust(self, update):
        return UpdateEffect(advantages_NT=2.0 * update.advantages_NT)


class LeaveOutAbove(Term):
    """What weighs more than 1.5 is left out."""

    def weigh(self, step):
        return StepEffect(weights_NT=(step.weights_NT <= 1.5).float())

    def adjust(self, update):
        return UpdateEffect(counts={"large": float((update.advantages_NT > 1.5).sum())})


def test_the_order_of_the_list_is_the_order_in_which_terms_act(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "import torch\nfrom tasks.algorithms.terms.protocol import *\n"
    (tmp_path / "two.py").write_text(
        text + inspect.getsource(Double) + inspect.getsource(LeaveOutAbove)
    )
    both = [{"kind": "two.py:Double"}, {"kind": "two.py:LeaveOutAbove"}]
    mask_NT = torch.ones(1, 2, dtype=torch.bool)
    update = UpdateSignal(
        *(torch.zeros(1, 2) for _ in range(3)), torch.ones(1, 2), torch.ones(1, 2), {}, 1.0
    )
    weights, counts = [], []
    for listed in (both, both[::-1]):
        phase = RLSettings.model_validate({"domains": {"maths": 1.0}, "terms": listed})
        terms = find_terms(phase.terms)
        weights.append(fold_step(terms, signal_of(mask_NT)).weights_NT.tolist())
        counts.append([one.counts.get("large") for one in fold_update(terms, update)[1]])

    assert [[[0.0, 0.0]], [[2.0, 2.0]]] == weights
    assert [[None, 2.0], [0.0, None]] == counts


class Marked(Term):
    """Acts as it is given, without settings."""

    weights: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    use: TokenUse = TokenUse.REGULARISED
    marks: tuple[int, ...] = ()

    def weigh(self, step):
        def mask(numbers):
            return torch.tensor(numbers, dtype=torch.bool).view(step.kept_NT.shape)

        return StepEffect(
            weights_NT=mask(self.weights).float(),
            kept_NT=mask(self.kept),
            uses={self.use: mask(self.marks)},
        )


BITS = st.tuples(*[st.integers(0, 1)] * 8)
MARKED = st.builds(
    Marked,
    weights=BITS,
    kept=BITS,
    use=st.sampled_from([TokenUse.REGULARISED, TokenUse.MASKED, TokenUse.DROPPED]),
    marks=BITS,
)


@given(terms=st.lists(MARKED, max_size=3), response=BITS, signed=BITS, planned=BITS, alone=BITS)
def test_every_token_of_a_response_has_one_use_whatever_the_terms_do(
    terms, response, signed, planned, alone
):
    mask_NT, advantages_NT, weights_NT, alone_NT = (
        torch.tensor(bits).view(2, 4) for bits in (response, signed, planned, alone)
    )
    mask_NT, alone_NT = mask_NT.bool(), alone_NT.bool()
    plan = unclipped(mask_NT, weights_NT.float() * mask_NT)
    signal = fold_step(terms, signal_of(mask_NT, advantages_NT=advantages_NT * mask_NT, plan=plan))

    lost = lost_tokens(signal, alone_NT)

    times_N2 = sum((marks_NT.int() for marks_NT in lost.values()), torch.zeros(2, 4))
    assert int(times_N2.max()) <= 1
    assert not times_N2[~mask_NT].any()
    assert torch.equal(lost[TokenUse.CUT], mask_NT & ~signal.kept_NT)
    surrogate_NT = signal.advantages_NT * signal.weights_NT * signal.plan.weights_NT
    trains_NT = signal.kept_NT & (surrogate_NT != 0) & ~alone_NT
    marked_NT = sum((marks_NT for marks_NT in signal.uses.values()), torch.zeros(2, 4)) != 0
    # With weight, and named by no term: trained. Signed and not trained: it has a reason.
    assert not times_N2[trains_NT & ~marked_NT].any()
    assert times_N2[(signal.advantages_NT != 0) & mask_NT & ~trains_NT].all()


class Holding(Term):
    """Holds a column."""

    def weigh(self, step):
        return StepEffect(held={"mine": step.old_NT})


def test_two_terms_that_hold_a_column_of_one_name_are_refused():
    with pytest.raises(DataError, match="two of the terms hold a column 'mine', the second Hol"):
        fold_step([Holding(), Holding()], random_signal())


def test_what_the_trainer_adds_is_the_sum_of_the_terms():
    terms = find_terms(terms_of({"kind": "entropy", "weight": 0.5}, {"kind": "balance"}))

    found = auxiliary_of(terms)

    assert (0.5, 1e-5, 0.0) == (found.entropy, found.balance, found.router_z)
    assert replace(found, entropy=0.0) == auxiliary_of(terms[1:])


def test_what_corrects_a_step_above_the_bound_weighs_by_the_ratio():
    mismatch = {"corrected_by": {"kind": "stale"}}

    with pytest.raises(SettingsError, match=r"corrected_by\.kind is 'stale', which does not"):
        require_fit(phase_with(engines={"mismatch": mismatch}))


def phase_with(*terms, **changes):
    return RLSettings.model_validate({"domains": {"maths": 1.0}, "terms": [*terms], **changes})


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([{"kind": "kll"}], r"terms\[0\].kind is 'kll'; did you mean `kl`\?"),
        (
            [{"kind": "kl", "wieght": 1.0}],
            r"\.wieght is not a setting; did you mean `weight`",
        ),
        ([{"kind": "kl"}, {"kind": "kl"}], "terms has 'kl' 2 times; list it once"),
        ([{"kind": "kl", "weight": 0.0}], r"terms\[0\].weight"),
    ],
)
def test_terms_that_are_none_or_act_twice_or_do_nothing_are_refused(terms, message):
    with pytest.raises(SettingsError, match=message):
        require_fit(phase_with(*terms))


@pytest.mark.parametrize("name", MOVED)
def test_a_setting_that_is_a_term_is_refused_with_the_term(name):
    of_loss = name in list(MOVED)[: list(MOVED).index("auxiliary") + 1]
    group = {"loss": {name: 1}} if of_loss else {"engines": {"mismatch": {name: 1}}}

    with pytest.raises(ValueError, match=rf"\.{name} is a term of the phase.*terms: \[{{kind: "):
        RLSettings.model_validate({"domains": {"maths": 1.0}, **group})


@pytest.mark.parametrize("name", MOVED)
def test_the_term_that_a_refusal_shows_is_one(name):
    import yaml

    shown = yaml.safe_load(MOVED[name].partition(", and")[0].partition(" or ")[0])

    require_fit(phase_with(shown))


def test_the_terms_of_the_laboratory_say_what_was_measured():
    for file in LAB:
        text = (ROOT / f"tasks/lab/terms/{file}.py").read_text()

        assert "\nMeasured: " in text


def test_a_lesson_acts_behind_the_terms_that_give_advantages_and_before_all_others():
    lesson, giving, weighing = object(), RLZVP(), TIS()

    assert [giving, lesson, weighing] == acting_in_order([weighing, giving], lesson)
    assert [giving, weighing] == acting_in_order([weighing, giving], None)
