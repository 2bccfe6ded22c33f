"""When a fine-tuning commits its state."""

import pytest

from data_schemas.rows import Domain
from tasks.training.sft.progress import Committer, Progress, after_update


class Trainer:
    """Takes as many seconds to save as it is told."""

    def __init__(self) -> None:
        self.now, self.takes_s = 100.0, 0.0

    def save(self, folder) -> None:
        (folder / "trainer.pt").write_text("")
        self.now += self.takes_s


@pytest.mark.parametrize(("share", "wait_s"), [(0.05, 190.0), (0.5, 10.0)])
def test_commits_take_no_more_than_their_share_of_the_time(tmp_path, share, wait_s):
    trainer = Trainer()
    committer = Committer(tmp_path, share, clock=lambda: trainer.now)
    assert committer.is_due()
    trainer.takes_s = 10.0
    committer.commit(Progress(updates=1), trainer)

    assert not committer.is_due()
    trainer.now += wait_s - 1.0
    assert not committer.is_due()
    trainer.now += 1.0
    assert committer.is_due()


def test_a_share_of_one_commits_after_every_update(tmp_path):
    trainer = Trainer()
    trainer.takes_s = 10.0
    committer = Committer(tmp_path, 1.0, clock=lambda: trainer.now)
    committer.commit(Progress(updates=1), trainer)

    assert committer.is_due()


def test_updates_of_an_epoch_are_summed_and_those_that_overflow_counted():
    packed = {"packed_rows": 40.0, "padding_rows": 4.0}
    rows = [(Domain.MATHS, 6), (Domain.CODE, 2), (Domain.MATHS, 2)]
    plain = {"loss": 0.5, **packed}
    skipped = {"loss": 1.0, "overflow_updates": 1.0, **packed}

    once = after_update(Progress(), plain, {Domain.MATHS: 0.4, Domain.CODE: 0.1}, rows)
    twice = after_update(once, skipped, {Domain.CODE: 1.0}, [(Domain.CODE, 10)])

    assert (1, 0) == (once.updates, once.skipped)
    assert (2, 1) == (twice.updates, twice.skipped)
    assert (20, 15.0) == (twice.tokens, twice.loss_sum)
    assert {Domain.MATHS: 8, Domain.CODE: 12} == twice.domain_tokens
    assert {Domain.MATHS: 4.0, Domain.CODE: 11.0} == twice.loss_sums
    assert (80, 8) == (twice.rows, twice.padding)
