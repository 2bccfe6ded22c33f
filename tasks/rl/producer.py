"""When rollouts are generated: before their step, or while an earlier step trains.

Echo's two modes (arXiv 2508.05387). Staleness 0, sequential pull: a step's rollouts come from the
newest policy. Staleness s, asynchronous push: while step n trains, the rollouts of step n + s are
generated with the weights that step n started from, so a step never trains on rollouts of a policy
more than s updates older than its own.

The background thread runs between two weight syncs and is joined before a step is committed, so
the rollouts and their weights do not depend on the speed of either side.
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from tasks.errors import EngineError
from tasks.rl.collector import Collector, StepRollouts


class Producer:
    """Returns one Collected per step, in order."""

    def __init__(
        self,
        collector: Collector,
        *,
        staleness: int,
        last_step: int,
        waiting: Sequence[StepRollouts] = (),
    ) -> None:
        self._collector = collector
        self._staleness = staleness
        self._last_step = last_step
        self._waiting = deque(waiting)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rollouts")
        self._running: Future[StepRollouts] | None = None

    @property
    def waiting(self) -> tuple[StepRollouts, ...]:
        """Rollouts generated for later steps; valid only between `settle` and `take`."""
        return tuple(self._waiting)

    def take(self, step: int) -> StepRollouts:
        """Return the rollouts of a step; in asynchronous mode, start those of a later step.

        Raises:
            EngineError: the rollouts are older than the bound.
        """
        for ahead in range(step + len(self._waiting), step + max(1, self._staleness)):
            if ahead <= self._last_step:
                self._waiting.append(self._collector.collect(ahead))
        collected = self._waiting.popleft()
        if step - 1 - collected.policy_version > self._staleness:
            raise EngineError(
                f"step {step} received rollouts of policy {collected.policy_version}; "
                f"at most {self._staleness} versions behind are allowed"
            )
        ahead = step + self._staleness
        if self._staleness > 0 and ahead <= self._last_step:
            self._running = self._thread.submit(self._collector.collect, ahead)
        return collected

    def settle(self) -> None:
        """Wait for rollouts in progress, before a weight sync or a commit."""
        if self._running is not None:
            self._waiting.append(self._running.result())
            self._running = None

    def close(self) -> None:
        """End the thread; a rollout in progress is finished first."""
        self._thread.shutdown(wait=True)
