"""A judge endpoint that is slow, down or talks nonsense costs verdicts, not the run."""

import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from data_schemas.rl_settings import RewardSettings
from data_schemas.rollouts import ScoringRequest
from data_schemas.verdicts import scored
from tasks.engines.scoring import find_tokenizer
from tasks.errors import SettingsError
from tasks.gym.judging.both_orders import Pair, compare
from tasks.gym.judging.calls import MeteredJudge
from tasks.gym.judging.http_judge import HttpJudge
from tasks.gym.judging.scripted import preferring
from tasks.gym.protocol import Entry
from tasks.gym.scoring.service import ScoringService
from tests import chat_endpoint
from tests.chat_endpoint import NOBODY, completion, send

BASE_MODEL = Path(__file__).parents[3] / "tasks/training/foundation/base_model"
LONGER_WINS = preferring(len)


@contextmanager
def endpoint(reply, *, status=200, wait_s=0.0):
    """Serve chat completions: `reply` gets the prompt and gives the text, or the body as bytes."""

    def behave(handler, asked, _):
        time.sleep(wait_s)
        said = reply(asked["messages"][-1]["content"])
        send(handler, said if isinstance(said, bytes) else completion(said), status)

    with chat_endpoint.endpoint(behave) as address:
        yield address


@contextmanager
def service_with(address, *, timeout_s=2.0):
    """Open a service whose verifier `versus` compares with a reference, `anchor` within a group."""
    http = HttpJudge(address, "judge", timeout_s=timeout_s, first_pause_s=0.01)
    judge = MeteredJudge(http)

    def versus(problem, response):
        return compare(judge, [Pair("task", response, "reference")])[0]

    def anchor(problem, responses):
        pairs = [Pair("task", response, responses[0]) for response in responses[1:]]
        return [scored(1.0, "anchor"), *compare(judge, pairs)]

    def choice(problem, response):
        return scored(1.0, "local")

    table = {
        "versus": Entry(versus, 30.0, in_worker=False, calls=judge.count_here),
        "anchor": Entry(versus, 30.0, in_worker=False, verify_group=anchor, calls=judge.count_here),
        "choice": Entry(choice, in_worker=False),
    }
    with ScoringService(
        find_tokenizer(BASE_MODEL), RewardSettings(), num_workers=1, entries=table
    ) as service:
        yield service
    http.close()


def test_a_judge_is_asked_in_both_orders_and_every_response_is_charged_its_own(problem) -> None:
    tokenizer = Tokenizer.from_file(str(BASE_MODEL / "tokenizer.json"))
    texts = ["a", "a longer answer", "aa"]
    with endpoint(LONGER_WINS) as address, service_with(address) as service:
        for name in ("versus", "anchor"):
            for sample in (2, 0, 1):
                tokens = np.asarray(tokenizer.encode(texts[sample]).ids, np.int32)
                service.submit(ScoringRequest(problem(name, "{}"), name, sample, 3, tokens))
        judged = service.gather()

    assert [0.0, 1.0, 0.0] == [judged["versus", n].verdict.score for n in range(3)]
    assert [1.0, 1.0, 1.0] == [judged["anchor", n].verdict.score for n in range(3)]
    assert [2, 2, 2] == [judged["versus", n].judge_calls for n in range(3)]
    assert 4 == sum(judged["anchor", n].judge_calls for n in range(3))


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ({"reply": LONGER_WINS, "wait_s": 0.5}, "judge_unavailable"),
        ({"reply": LONGER_WINS, "status": 503}, "judge_unavailable"),
        ({"reply": lambda _: b"<html>gateway</html>"}, "judge_unavailable"),
        ({"reply": lambda _: "Both are lovely."}, "judge_unparsable"),
    ],
    ids=["slow", "overloaded", "no_json", "nonsense"],
)
def test_an_endpoint_in_trouble_gives_no_verdict_and_holds_nobody_up(
    problem, behaviour, reason
) -> None:
    with endpoint(**behaviour) as address, service_with(address, timeout_s=0.2) as service:
        verdicts = service.score([problem("versus", "{}"), problem("choice", "{}")], ["a", "b"])

        assert (None, reason) == (verdicts[0].score, verdicts[0].reason)
        assert "local" == verdicts[1].reason
        assert 1 == service.counters()[f"reason/abstained:{reason}"]


def test_an_endpoint_that_is_down_gives_no_verdict(problem) -> None:
    with service_with(NOBODY, timeout_s=0.2) as service:
        (verdict,) = service.score([problem("versus", "{}")], ["a"])

    assert (None, "judge_unavailable") == (verdict.score, verdict.reason)


def test_an_endpoint_that_refuses_the_key_stops_the_run(problem) -> None:
    with (
        endpoint(LONGER_WINS, status=401) as address,
        service_with(address) as service,
        pytest.raises(SettingsError, match="API key"),
    ):
        service.score([problem("versus", "{}")], ["a"])
