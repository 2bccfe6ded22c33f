"""One holder at a time, on disk and in S3; whoever dies holds nothing."""

import logging
import multiprocessing
import os
import signal
import threading
import time

import boto3
import pytest

from tasks.errors import EngineError, PreemptionError
from tasks.store import lease as leases
from tasks.store.files import canonical_json
from tasks.store.interface import store_at
from tasks.store.lease import Holder, lease

LONG_S = 60.0
"""More than a loaded machine needs for anything here."""


@pytest.fixture
def uri(place, monkeypatch) -> str:
    monkeypatch.setattr(leases, "POLL_S", 0.01)
    return f"{place}/leases/rl"


def wait_until(condition) -> None:
    deadline = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_second_is_told_who_holds_it_since_when_and_what_to_do(uri):
    with (
        lease(uri, "retrain-1, rl/one"),
        pytest.raises(EngineError) as refused,
        lease(uri, "retrain-2, rl/one", patience_s=0.0),
    ):
        pass

    said = str(refused.value)
    assert f"{uri} is held by retrain-1, rl/one (process " in said
    assert time.strftime("since %Y-") in said
    assert "Wait until that run ends, or stop it, then run again" in said


def test_the_second_waits_for_the_first_and_says_so_once(uri, caplog):
    order = []
    entered = threading.Event()

    def second() -> None:
        entered.set()
        with lease(uri, "second"):
            order.append("second")

    waiting = threading.Thread(target=second)
    with caplog.at_level(logging.WARNING), lease(uri, "first"):
        waiting.start()
        entered.wait(LONG_S)
        wait_until(lambda: "is held by first" in caplog.text)
        order.append("first")
    waiting.join(LONG_S)

    assert ["first", "second"] == order
    assert 1 == caplog.text.count("is held by first")


@pytest.mark.slow
def test_many_holders_never_overlap(uri):
    inside, most, done = [], [], []

    def work(number: int) -> None:
        with lease(uri, f"run {number}") as held:
            inside.append(number)
            most.append(len(inside))
            held.confirm()
            inside.remove(number)
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)

    assert [1] * 6 == most
    assert 6 == len(done)


def test_a_block_that_fails_gives_its_lease_back(uri):
    with pytest.raises(ValueError, match="it failed"), lease(uri, "first"):
        raise ValueError("it failed")
    with lease(uri, "second", patience_s=0.0):
        pass


def hold(uri: str, started) -> None:
    with lease(uri, "a process that is killed"):
        started.set()
        time.sleep(LONG_S)


def test_a_killed_process_holds_nothing_on_disk(tmp_path):
    uri = str(tmp_path / "store/leases/rl")
    context = multiprocessing.get_context("fork")
    started = context.Event()
    process = context.Process(target=hold, args=(uri, started))
    process.start()
    assert started.wait(LONG_S)
    with (
        pytest.raises(EngineError, match="held by a process that is killed"),
        lease(uri, "next", patience_s=0.0),
    ):
        pass
    process.kill()
    process.join()

    with lease(uri, "next", patience_s=0.0):
        pass


def dead(uri: str) -> Holder:
    """Leave the object of a holder that no longer renews it."""
    holder = Holder(owner="dead", host="far", process=1, since=2e9, token="t")
    store_at(uri).write_bytes(holder.model_dump_json().encode())
    return holder


def test_in_s3_a_dead_holder_is_waited_for_one_term_whatever_its_clock_says(
    bucket, monkeypatch, caplog
):
    monkeypatch.setattr(leases, "POLL_S", 0.01)
    uri = "s3://bucket/leases/rl"
    dead(uri)
    with (
        pytest.raises(EngineError, match=r"held by dead \(process 1 on far\) since 2033-"),
        lease(uri, "early", patience_s=0.05),
    ):
        pass
    monkeypatch.setattr(leases, "TERM_S", 0.2)

    with lease(uri, "next"):
        assert "next" == Holder.model_validate_json(store_at(uri).read_bytes()).owner
    assert "no sign of life" in caplog.text


def test_in_s3_a_holder_that_is_alive_renews(bucket, monkeypatch):
    monkeypatch.setattr(leases, "RENEW_S", 0.01)
    uri = "s3://bucket/leases/rl"

    def renewed() -> int:
        return Holder.model_validate_json(store_at(uri).read_bytes()).renewed

    with lease(uri, "first"):
        wait_until(lambda: renewed() >= 3)


FASTER = 6.0
"""Than the clock of a cluster: a term is then still longer than a loaded machine sleeps."""


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.timeout(900)
def test_in_s3_the_next_pod_waits_out_the_whole_grace_of_one_that_is_stopping(
    bucket, monkeypatch, caplog
):
    """Thirty terms, as many as there are in the 1800 s that a stopped pod may take."""
    monkeypatch.setattr(leases, "RENEW_S", leases.RENEW_S / FASTER)
    monkeypatch.setattr(leases, "TERM_S", leases.TERM_S / FASTER)
    uri, entered = "s3://bucket/leases/rl", threading.Event()

    def next_attempt() -> None:
        with lease(uri, "second"):
            entered.set()

    waiting = threading.Thread(target=next_attempt, daemon=True)
    with lease(uri, "first") as held:
        waiting.start()
        assert not entered.wait(1800.0 / FASTER)
        held.confirm()
    waiting.join(LONG_S)

    assert entered.is_set()
    assert "held by first" in caplog.text
    assert "no sign of life" not in caplog.text


def stop_this_process(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def is_free(uri: str) -> bool:
    """Whether the next holder need not wait."""
    return Holder.model_validate_json(store_at(uri).read_bytes()).released


def test_in_s3_a_holder_that_is_told_to_stop_gives_its_lease_back(bucket):
    with pytest.raises(PreemptionError), lease("s3://bucket/rl.lease", "rl/one"):
        stop_this_process()

    assert is_free("s3://bucket/rl.lease")
    assert signal.SIG_DFL == signal.getsignal(signal.SIGTERM)


@pytest.mark.parametrize("moment", ["after-call", "before-parameter-build"])
def test_in_s3_nobody_waits_for_a_holder_that_was_told_to_stop_while_it_took_or_gave(
    bucket, moment
):
    boto3.setup_default_session()
    signals = []

    def stop(params=None, **_: object) -> None:
        taken = params is None  # the answer to the first write
        if not signals and (taken or b'"released":true' in params["Body"]):
            signals.append(moment)
            stop_this_process()

    boto3.DEFAULT_SESSION.events.register(f"{moment}.s3.PutObject", stop)
    try:
        with pytest.raises(PreemptionError), lease("s3://bucket/rl.lease", "rl/one"):
            pass
    finally:
        boto3.setup_default_session()

    assert [moment] == signals
    assert is_free("s3://bucket/rl.lease")


def test_a_handler_of_somebody_else_hears_that_the_process_is_to_stop(bucket):
    heard = []
    previous = signal.signal(signal.SIGTERM, lambda *_: heard.append("SIGTERM"))
    try:
        with lease("s3://bucket/rl.lease", "rl/one"):
            stop_this_process()
    finally:
        signal.signal(signal.SIGTERM, previous)

    assert ["SIGTERM"] == heard


def test_in_s3_a_holder_that_was_overtaken_stops_by_name(bucket, monkeypatch):
    monkeypatch.setattr(leases, "RENEW_S", 0.01)
    uri = "s3://bucket/leases/rl"
    with lease(uri, "slow") as held:
        other = dead(uri)

        def is_lost() -> bool:
            try:
                held.check()
            except EngineError as error:
                return "was taken over by dead (process 1 on far)" in str(error)
            return False

        wait_until(is_lost)
        with pytest.raises(EngineError, match="was taken over by dead"):
            held.confirm()

    # The one that overtook it still holds it.
    assert other == Holder.model_validate_json(store_at(uri).read_bytes())


def test_in_s3_an_outage_alone_loses_no_lease(bucket, monkeypatch):
    uri = "s3://bucket/leases/rl"
    with lease(uri, "first") as held:
        with monkeypatch.context() as away:
            away.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
            away.setenv("AWS_MAX_ATTEMPTS", "1")
            with pytest.raises(EngineError, match=f"{uri}: "):
                held.confirm()
            held.check()
        held.confirm()


def test_in_s3_a_write_whose_answer_was_lost_is_recognised(bucket):
    uri = "s3://bucket/leases/rl"
    with lease(uri, "first") as held:
        now = Holder.model_validate_json(store_at(uri).read_bytes())
        renewed = canonical_json(now.model_copy(update={"renewed": now.renewed + 1}))
        store_at(uri).write_bytes(renewed)  # the client's own write, which it then repeats

        held.confirm()
        held.confirm()
