"""The scoring service: any order, any number of workers, and verifiers that do their worst."""

import threading
import time
from pathlib import Path

import hostile
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_schemas.rl_settings import RewardSettings
from data_schemas.rollouts import ScoringRequest
from tasks.engines.chat import load_tokenizer
from tasks.engines.scoring import find_tokenizer
from tasks.errors import EngineError, SettingsError
from tasks.gym import table
from tasks.gym.protocol import Entry
from tasks.gym.scoring.service import ScoringService
from tests.slices import sliced

BASE_MODEL = Path(__file__).parents[3] / "tasks/training/foundation/base_model"
TIMEOUT_S = 1.0
ENTRIES = {
    "honest": Entry(hostile.honest),
    "slow": Entry(hostile.slow),
    "waits": Entry(hostile.waits_for_a_file, 60.0),
    "waits_here": Entry(hostile.waits_for_a_file, 0.2, in_worker=False),
    "honest_here": Entry(hostile.honest, in_worker=False),
    "raises_here": Entry(hostile.raises, in_worker=False),
    "nonsense_here": Entry(hostile.gives_nonsense, in_worker=False),
    "user_here": Entry(hostile.needs_the_user, in_worker=False),
    "longest": Entry(hostile.honest, in_worker=False, verify_group=hostile.longest),
    "too_few": Entry(hostile.honest, in_worker=False, verify_group=hostile.too_few),
    "prints": Entry(hostile.prints_a_gigabyte, 20.0),
    "forks": Entry(hostile.forks),
    "extraction": Entry(hostile.always_right),
    **{
        name: Entry(verify, TIMEOUT_S)
        for name, verify in {
            "raises": hostile.raises,
            "leaves": hostile.leaves,
            "hangs": hostile.hangs,
            "breaks_on_bombs": hostile.breaks_on_bombs,
            "waits_inside": hostile.waits_inside,
            "eats_memory": hostile.eats_memory,
            "forks_and_dies": hostile.forks_and_dies,
            "kills": hostile.kills_its_worker,
            "nonsense": hostile.gives_nonsense,
            "user": hostile.needs_the_user,
        }.items()
    },
}


def open_service(num_workers: int = 2, **options: int) -> ScoringService:
    return ScoringService(
        find_tokenizer(BASE_MODEL),
        RewardSettings(),
        num_workers=num_workers,
        entries=ENTRIES,
        **options,
    )


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(BASE_MODEL)


@pytest.fixture(scope="module")
def service():
    with open_service() as one:
        yield one


@pytest.fixture(scope="module")
def finished(problem, tokenizer):
    """Build a finished response of a verifier from its text."""

    def build(verifier, text, *, group="g", sample=0, size=1):
        tokens = np.asarray([*tokenizer(text)["input_ids"], tokenizer.eos_token_id], np.int32)
        return ScoringRequest(problem(verifier, "{}"), group, sample, size, tokens)

    return build


@pytest.mark.parametrize(
    ("verifier", "reason"),
    sliced(
        [
            ("raises", "verifier_error:raises:ZeroDivisionError"),
            ("raises_here", "verifier_error:raises_here:ZeroDivisionError"),
            ("leaves", "verifier_error:leaves:SystemExit"),
            ("hangs", "verifier_timeout:hangs"),
            ("waits_inside", "verifier_starved:waits_inside"),
            ("eats_memory", "verifier_error:eats_memory:MemoryError"),
            ("forks_and_dies", "verifier_error:forks_and_dies:WorkerDied"),
            ("kills", "verifier_error:kills:WorkerDied"),
            ("nonsense", "verifier_error:nonsense:TypeError"),
            ("nonsense_here", "verifier_error:nonsense_here:TypeError"),
        ],
        lambda verifier, _: (
            verifier in ("raises", "raises_here", "hangs", "kills", "nonsense", "nonsense_here")
        ),
    ),
)
def test_a_hostile_verifier_costs_its_own_response_the_verdict(
    service, problem, verifier, reason
) -> None:
    before = service.counters().get(f"reason/abstained:{reason}", 0)
    names = ["honest", "honest", verifier, "honest"]
    first, second, bad, last = service.score([problem(name, "{}") for name in names], ["ab"] * 4)

    assert (None, reason) == (bad.score, bad.reason)
    assert [0.5] * 3 == [first.score, second.score, last.score]
    assert before + 1 == service.counters()[f"reason/abstained:{reason}"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("response", "score", "reason"),
    [
        ("raise", 0.0, "response_fault:verifier_error:breaks_on_bombs:IndexError"),
        ("hang", 0.0, "response_fault:verifier_timeout:breaks_on_bombs"),
        ("die", 0.0, "response_fault:verifier_error:breaks_on_bombs:WorkerDied"),
        ("disk", None, "verifier_error:breaks_on_bombs:OSError"),
    ],
)
def test_a_response_that_breaks_its_verifier_scores_zero_and_a_neighbour_does_not(
    service, problem, response, score, reason
) -> None:
    one = problem("breaks_on_bombs", "{}")
    first, bomb, last = service.score([one] * 3, ["fine", response, "fine"])

    assert (score, reason) == (bomb.score, bomb.reason)
    assert [0.5, 0.5] == [first.score, last.score]


def test_a_service_without_a_tokenizer_judges_texts_and_refuses_tokens(problem, finished) -> None:
    with ScoringService(None, RewardSettings(), num_workers=1, entries=ENTRIES) as service:
        assert 0.5 == service.score([problem("honest", "{}")], ["ab"])[0].score
        service.submit(finished("honest_here", "ab"))
        with pytest.raises(EngineError, match="has no tokenizer"):
            service.gather()


def test_responses_to_one_problem_in_a_row_are_a_group(service, problem) -> None:
    one = problem("longest", "{}")
    verdicts = service.score([one] * 3, ["a", "abc", "ab"])

    assert [0.0, 1.0, 0.0] == [verdict.score for verdict in verdicts]


def test_a_verifier_that_prints_a_gigabyte_is_not_heard(service, problem, capfd) -> None:
    (verdict,) = service.score([problem("prints", "{}")], ["x"])

    assert (1.0, "printed") == (verdict.score, verdict.reason)
    assert ("", "") == capfd.readouterr()


def test_what_a_verifier_has_forked_neither_answers_nor_outlives_the_service(
    problem, tmp_path
) -> None:
    note = tmp_path / "child"
    with open_service(1) as service:
        verdicts = service.score(
            [problem("forks", str(note)), *[problem("honest", "{}")] * 20],
            ["x", *(f"{'a' * n}b" for n in range(20))],
        )
    child = Path(f"/proc/{note.read_text()}")
    deadline = time.monotonic() + 60
    while child.exists() and _state(child) != "Z" and time.monotonic() < deadline:
        time.sleep(0.02)

    assert "forked" == verdicts[0].reason
    assert [n / (n + 1) for n in range(20)] == [verdict.score for verdict in verdicts[1:]]
    assert not child.exists() or _state(child) == "Z"


def _state(process: Path) -> str:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def test_a_thread_that_runs_too_long_is_abandoned(service, problem, tmp_path) -> None:
    end = tmp_path / "end"
    problems = [problem("waits_here", "{}"), problem("honest_here", "{}")]
    late, quick = service.score(problems, [str(end), "ab"])
    end.touch()

    assert (None, "verifier_timeout:waits_here") == (late.score, late.reason)
    assert 0.5 == quick.score


@pytest.mark.parametrize("verifier", ["user", "user_here"])
def test_what_the_user_has_to_repair_stops_the_step(problem, finished, verifier) -> None:
    with open_service() as service:
        service.submit(finished(verifier, "x"))
        with pytest.raises(SettingsError, match="install it"):
            service.gather()
        service.submit(finished("honest", "a"))

        assert 1.0 == service.gather()["g", 0].verdict.score


@pytest.fixture(scope="module")
def services(service):
    """Services with one, two and three workers."""
    with open_service(1) as one, open_service(3) as three:
        yield {1: one, 2: service, 3: three}


@settings(max_examples=20)
@given(
    st.permutations(range(10)),
    st.integers(1, 3),
    st.lists(st.integers(0, 20), min_size=5, max_size=5),
)
def test_neither_order_nor_workers_nor_durations_change_a_verdict(
    finished, services, order, workers, durations
) -> None:
    service = services[workers]
    items = [
        *(finished("slow", str(ms), group="slow", sample=n) for n, ms in enumerate(durations)),
        *(finished("honest", "ab" * n, group="fast", sample=n) for n in range(2)),
        *(finished("longest", "a" * n, group="whole", sample=n, size=3) for n in range(3)),
    ]
    for place in order:
        service.submit(items[place])
    scored = service.gather()

    assert sorted(scored) == list(scored)
    assert [str(ms) for ms in durations] == [scored["slow", n].verdict.detail for n in range(5)]
    assert [0.0, 0.5] == [scored["fast", n].verdict.score for n in range(2)]
    assert [0.0, 0.0, 1.0] == [scored["whole", n].verdict.score for n in range(3)]


def test_the_service_agrees_with_serial_scoring(problem) -> None:
    cases = [
        ("choice", {"correct": ["a bag"]}, "a bag"),
        ("choice", {}, "x"),
        ("final_answer", {"value": "1/2"}, r"\boxed{\frac{2}{4}}"),
        ("final_answer", {"value": "x^2-1"}, r"\boxed{(x-1)(x+1)}"),
        ("final_answer", {"value": "2"}, "The answer is 3."),
        ("rule_answer", {"value": "2x"}, r"\boxed{x+x}"),
        ("extraction", {"fields": {"a": 1}}, '{"a": 1}'),
        ("code_tests", {"mode": "asserts", "tests": ["assert f() == 1"]}, "def f(): return 1"),
        ("reference_text", {"reference": "red shoes"}, "red bags"),
    ] * 2
    problems = [problem(verifier, gold) for verifier, gold, _ in cases]
    responses = [response for _, _, response in cases]
    with ScoringService(find_tokenizer(BASE_MODEL), RewardSettings(), num_workers=1) as service:
        ours = service.score(problems, responses)

    assert table.score_batch(problems, responses) == ours
    table.close()


def test_texts_from_workers_and_threads_are_those_of_the_tokenizer(
    service, finished, tokenizer
) -> None:
    texts = ["a b ", "<think>ก</think> 7", "đáp án", "", " .", "a\ufffd"]
    for name in ("honest", "longest"):
        for sample, text in enumerate(texts):
            service.submit(finished(name, text, group=name, sample=sample, size=len(texts)))
    scored = service.gather()

    for name in ("honest", "longest"):
        assert texts == [scored[name, sample].text for sample in range(len(texts))]


def test_submit_waits_while_the_queue_is_full(finished, tmp_path) -> None:
    gate, begun = tmp_path / "gate", tmp_path / "gate.begun"
    with open_service(1, max_waiting=2) as service:
        service.submit(finished("waits", str(gate), sample=0))
        while not begun.exists():
            time.sleep(0.01)
        done = []

        def submit_more():
            for sample in range(1, 5):
                service.submit(finished("honest", "a", sample=sample))
                done.append(sample)

        thread = threading.Thread(target=submit_more)
        thread.start()
        while len(done) < 2:
            time.sleep(0.01)
        thread.join(0.2)  # time enough to submit more, if it could
        held_back = list(done)
        gate.touch()
        thread.join()

        assert [1, 2] == held_back
        assert 5 == len(service.gather())
        assert 2 == service.counters()["queue_high_water"]


def test_an_incomplete_group_and_a_sample_that_comes_twice_are_refused(finished) -> None:
    with open_service() as service:
        service.submit(finished("longest", "a", sample=0, size=2))
        with pytest.raises(EngineError, match="sample 0 of group g came twice"):
            service.submit(finished("longest", "a", sample=0, size=2))
        with pytest.raises(EngineError, match="1 of 2 samples of g were"):
            service.gather()
        service.submit(finished("longest", "a", sample=0, size=1))

        assert 1 == len(service.gather())


def test_a_group_verifier_that_forgets_somebody_judges_nobody(service, finished) -> None:
    for sample in range(2):
        service.submit(finished("too_few", "a", sample=sample, size=2))

    reasons = {item.verdict.reason for item in service.gather().values()}
    assert {"verifier_error:too_few:ValueError"} == reasons


def test_an_unknown_verifier_is_refused_before_anything_is_scored(service, finished) -> None:
    with pytest.raises(SettingsError, match="verifier 'nobody' does not exist"):
        service.submit(finished("nobody", "a"))
    assert {} == service.gather()


@pytest.mark.parametrize("verifier", ["generative_judge", "rubric"])
def test_a_problem_that_needs_a_judge_is_refused_where_there_is_none(finished, verifier) -> None:
    with (
        ScoringService(find_tokenizer(BASE_MODEL), RewardSettings()) as service,
        pytest.raises(SettingsError, match=r"needs a judge\. Set RewardSettings\.judge"),
    ):
        service.submit(finished(verifier, "a"))


def test_a_canary_that_is_judged_wrong_stops_the_run(service) -> None:
    with pytest.raises(EngineError, match=r"extraction scored .* must not be solved"):
        service.check_canaries()


def test_only_the_verifiers_in_use_are_checked(service) -> None:
    before = service.counters()["verdicts"]

    service.check_canaries({"honest", "choice"})  # 'extraction' is wrong here

    assert before == service.counters()["verdicts"]  # canaries are not counted


@pytest.mark.slow  # daily, without a service: gym/test_alone.py
def test_the_product_judges_its_canaries_right() -> None:
    with ScoringService(find_tokenizer(BASE_MODEL), RewardSettings(), num_workers=1) as service:
        service.check_canaries()

        assert 0 == service.counters()["abstained"]


def test_a_worker_imports_no_model_library(problem) -> None:
    with ScoringService(find_tokenizer(BASE_MODEL), RewardSettings(), num_workers=1) as service:
        service.score([problem("choice", {"correct": ["a"]})], ["a"])
        loaded = service._pool.run(hostile.loaded, (), 5.0)

    assert not {"torch", "transformers", "sympy", "math_verify"} & set(loaded)
