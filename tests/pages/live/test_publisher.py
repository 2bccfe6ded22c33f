"""When the page of a running phase is written."""

import pytest

from tasks.pages.publisher import SHARE, Publisher, page_name
from tasks.store.files import sha256_bytes


class Clock:
    """Seconds that pass only while a page is rendered, or when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def shown():
    return list[str]()


@pytest.fixture
def publisher(tmp_path, clock, shown):
    return Publisher(str(tmp_path / "store"), page_name("20260101", "rl/one"), shown.append, clock)


def page(clock: Clock, text: str, seconds: float = 1.0):
    """A page that takes this long."""

    def render() -> str:
        clock.now += seconds
        return text

    return render


def test_the_first_page_is_written_at_once_where_a_person_finds_it(
    publisher, clock, tmp_path, shown
):
    assert publisher.publish(page(clock, "one"))

    assert (tmp_path / "store/live/20260101/rl-one.html").read_text() == "one"
    assert ["one"] == shown


def test_only_the_page_that_is_there_has_a_statement(publisher, clock, tmp_path):
    for text in ("one", "two", "two"):
        publisher.publish(page(clock, text), last=True)

    (statement,) = (tmp_path / "store/pages/live/20260101/rl-one.html").iterdir()
    assert sha256_bytes(b"two") == statement.stem


def test_pages_take_two_per_cent_of_the_time(publisher, clock):
    written = 0
    for _ in range(1000):
        clock.now += 1.0  # a step
        written += publisher.publish(page(clock, "page"))

    assert SHARE * clock.now == pytest.approx(written, rel=0.1)


def test_the_last_page_is_always_written(publisher, clock, shown):
    publisher.publish(page(clock, "one"))

    assert not publisher.publish(page(clock, "two"))
    assert publisher.publish(page(clock, "three"), last=True)
    assert ["one", "three"] == shown


def test_a_store_that_cannot_be_written_costs_the_page_and_not_the_phase(
    clock, shown, tmp_path, caplog
):
    (tmp_path / "store").write_text("a file where the store should be")
    publisher = Publisher(str(tmp_path / "store"), "x/rl-one", shown.append, clock)

    publisher.publish(page(clock, "one"))

    assert ["one"] == shown
    assert "is not written" in caplog.text
