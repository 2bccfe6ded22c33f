"""When a fine-tuning commits its state."""

import pytest

from tasks.sft.progress import Committer, Progress


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
