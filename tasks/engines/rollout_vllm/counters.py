# pyright: reportMissingImports=false
"""Counters of the engine's work, and its seconds divided into prefill and decoding."""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from vllm import RequestOutput
from vllm.v1.metrics.stats import RequestStateStats

from data_schemas.rollouts import Rollout
from tasks.engines.protocols import EngineCounters

LOGGER = logging.getLogger(__name__)
Span = tuple[float, float]


class WorkCounters:
    """Counters of one engine."""

    def __init__(self) -> None:
        self.counters = EngineCounters()

    def rollout(self, rollout: Rollout, fed_first: int) -> None:
        """Count a rollout.

        Args:
            fed_first: tokens of its prompt and earlier response; 0 if already counted.
        """
        self.counters = replace(
            self.counters,
            sequences=self.counters.sequences + 1,
            generated_tokens=self.counters.generated_tokens + len(rollout.response_tokens),
            prompt_tokens=self.counters.prompt_tokens + fed_first,
        )

    def timed(
        self, answers: Iterator[tuple[int, RequestOutput]]
    ) -> Iterator[tuple[int, RequestOutput]]:
        """Yield outputs and count the seconds that the caller waited for them.

        vLLM prefills some sequences while it decodes others: seconds in which any sequence was
        between its first step and its first token count as prefill, known only at the end.
        """
        spans: list[Span] = []
        waited, preemptions = 0.0, 0
        started = time.perf_counter()
        for answer in answers:
            waited += self._decoded(started)
            if isinstance(answer[1].metrics, RequestStateStats):
                spans.append((answer[1].metrics.scheduled_ts, answer[1].metrics.first_token_ts))
                preemptions += answer[1].metrics.num_preemptions
            yield answer
            started = time.perf_counter()
        waited += self._decoded(started)
        prefill = min(waited, union_length(spans))
        if preemptions:
            LOGGER.warning(
                "vLLM's cache was full: sequences were preempted %d times and prefilled again; "
                "raise layout.rollout_memory or layout.rollout_tensor",
                preemptions,
            )
        self.counters = replace(
            self.counters,
            preemptions=self.counters.preemptions + preemptions,
            prefill_seconds=self.counters.prefill_seconds + prefill,
            decode_seconds=self.counters.decode_seconds - prefill,
        )

    def _decoded(self, started: float) -> float:
        seconds = time.perf_counter() - started
        self.counters = replace(
            self.counters, decode_seconds=self.counters.decode_seconds + seconds
        )
        return seconds


def union_length(spans: Sequence[Span]) -> float:
    """Length of the union of intervals; 0 for none."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
