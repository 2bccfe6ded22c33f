"""Responses that have ended while others of their step still decode, kept for the next attempt.

A step may decode for half an hour, in which most of its responses are ended long before the last
one. They are written once a minute, and when the phase is broken off, with their routes:

    ended/000012-<sha256>/    state.npz and its signature, of the policy after step 12

The next attempt takes from them what it would have asked for in the same words, and generates the
rest. What was kept has the bytes that it was drawn with; the rest is generated in another batch, so
its log-probabilities are the same up to the order of summation. That is as far as engines promise
that go on in other processes (engines/protocols.py). The embedded engine promises a resumed step
with the same bytes: it has nothing kept, and a step of its takes seconds to minutes.
"""

import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from data_schemas.machine_settings import RolloutKind
from data_schemas.rl_settings import RLSettings
from data_schemas.rollouts import Rollout
from tasks.durability import states
from tasks.engines.protocols import EngineCounters, Request, RolloutEngine, Sampling
from tasks.provenance.lineage.signatures.working import seal, unseal
from tasks.rl import codec, state
from tasks.store.files import (
    canonical_json,
    install_folder,
    scratch_folder,
    sha256_bytes,
    sha256_file,
)

EVERY_S = 60.0
"""Between two writes: so much decoding is lost at most."""
logger = logging.getLogger(__name__)


class DurableRolloutEngine:
    """A RolloutEngine of which what has ended outlives the process.

    Calls that end early or cut responses (`enough`, `segment_tokens`) are passed on: what a group
    has of them depends on when the others ended.

    Args:
        engine: generates.
        folder: of the phase.
        every_s: between two writes.
    """

    def __init__(self, engine: RolloutEngine, folder: Path, every_s: float = EVERY_S) -> None:
        self._engine, self._folder, self._every_s = engine, folder, every_s
        self._taken = EngineCounters()
        self._version = -1
        self._kept: dict[str, Rollout] = {}
        self._new: dict[str, Rollout] = {}
        self._written_at = time.monotonic()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ended")
        self._writing: Future[None] | None = None

    @property
    def policy_version(self) -> int:
        """Version of the installed weights."""
        return self._engine.policy_version

    @property
    def num_experts(self) -> int:
        """Experts per MoE layer."""
        return self._engine.num_experts

    def slots(self, tokens: float) -> int:
        """Number of sequences decoded concurrently."""
        return self._engine.slots(tokens)

    @property
    def counters(self) -> EngineCounters:
        """Work done, by the attempts before as well: each kept token was generated once."""
        taken = asdict(self._taken)
        return EngineCounters(
            **{name: value + taken[name] for name, value in asdict(self._engine.counters).items()}
        )

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> Iterator[Rollout]:
        """Yield what was kept of these requests, then the rest as it ends."""
        if sampling.segment_tokens or sampling.enough:
            yield from self._engine.generate(requests, sampling)
            return
        if self._version != self._engine.policy_version:
            self._begin(self._engine.policy_version)
        names = {
            (request.problem_id, sample): name_of(request, sample, sampling)
            for request in requests
            for sample in range(request.first_sample, request.first_sample + request.num_samples)
        }
        missing = [part for request in requests for part in self._without_kept(request, names)]
        taken = [self._kept.pop(name) for name in names.values() if name in self._kept]
        self._count(taken)
        yield from taken
        if not missing:
            return
        for rollout in self._engine.generate(missing, sampling):
            self._new[names[rollout.problem_id, rollout.sample]] = rollout
            if time.monotonic() - self._written_at >= self._every_s:
                self._write()
            yield rollout

    def score_logprobs(self, tokens: Sequence[NDArray[np.int32]]) -> list[NDArray[np.float32]]:
        """Score with the installed weights."""
        return self._engine.score_logprobs(tokens)

    def load_weights(self, weights: Iterator[tuple[str, torch.Tensor]], version: int) -> str:
        """Install new weights; return their digest."""
        return self._engine.load_weights(weights, version)

    def sleep(self) -> None:
        """Release GPU memory until the next weight sync."""
        self._engine.sleep()

    def close(self) -> None:
        """Free all resources; what has ended since the last time is written."""
        try:
            self._write()
            self._settle()
        finally:
            self._thread.shutdown(wait=True)
            self._engine.close()

    def _begin(self, version: int) -> None:
        """Read what is kept of this policy; what there was of another one is of no more use."""
        self._settle()
        self._version, self._new = version, {}
        self._kept = read_ended(self._folder, version)
        if self._kept:
            logger.warning(
                "step %d goes on with %d responses that had ended", version + 1, len(self._kept)
            )

    def _without_kept(
        self, request: Request, names: dict[tuple[str, int], str]
    ) -> Iterator[Request]:
        """Divide a request into those for its samples that were not kept, in order."""
        samples = range(request.first_sample, request.first_sample + request.num_samples)
        for is_kept, run in groupby(
            samples, lambda sample: names[request.problem_id, sample] in self._kept
        ):
            if is_kept:
                continue
            first, *others = run
            yield replace(request, first_sample=first, num_samples=1 + len(others))

    def _count(self, taken: Sequence[Rollout]) -> None:
        self._taken = replace(
            self._taken,
            sequences=self._taken.sequences + len(taken),
            generated_tokens=self._taken.generated_tokens
            + sum(rollout.num_sampled for rollout in taken),
        )

    def _settle(self) -> None:
        """Wait for what is being written; raises what stopped it."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def _write(self) -> None:
        """Begin to write what has ended since the last time."""
        self._settle()
        new, self._new, self._written_at = self._new, {}, time.monotonic()
        if new:
            self._writing = self._thread.submit(write_ended, self._folder, self._version, new)


def keeping_ended(engine: RolloutEngine, settings: RLSettings, folder: Path) -> RolloutEngine:
    """Return an engine of a phase that keeps what has ended; the embedded one stays as it is."""
    return (
        engine
        if settings.engines.rollout is RolloutKind.HF
        else DurableRolloutEngine(engine, folder)
    )


def name_of(request: Request, sample: int, sampling: Sampling) -> str:
    """Name a response by everything that it was asked for with: the same name, the same tokens."""
    inputs = {
        "problem": request.problem_id,
        "sample": sample,
        "prompt": sha256_bytes(request.prompt_tokens.tobytes()),
        "response": sha256_bytes(request.response_tokens.tobytes()),
        "sampling": asdict(sampling),
    }
    return sha256_bytes(canonical_json(inputs))


def write_ended(folder: Path, version: int, ended: dict[str, Rollout]) -> None:
    """Keep responses; nothing is kept of a policy that no committed state has.

    Args:
        folder: of the phase.
        version: of the policy, which is its step.
        ended: by name.
    """
    if states.newest(folder) != version:
        return
    arrays, rows = codec.rollout_arrays(list(ended.values()))
    meta = {"names": list(ended), "rollouts": rows}
    parent = folder / states.ENDED
    with scratch_folder(parent, ".new.") as staged:
        with (staged / state.INFLIGHT_FILE).open("wb") as stream:
            codec.pack_into(stream, arrays, meta)
        signed = state.identity(folder, version + 1, sha256_file(staged / state.INFLIGHT_FILE))
        signature = seal(states.ENDED, states.signed_name(folder.name, version), signed)
        (staged / states.SIGNATURE).write_bytes(signature)
        install_folder(staged, parent / f"{version:06d}-{sha256_bytes(signature)[:16]}")


def read_ended(folder: Path, version: int) -> dict[str, Rollout]:
    """Read the responses that were kept of a policy, by name.

    What is damaged or of other weights is dropped, and all of it if the gate stopped the next step:
    an engine that computes with other weights is not believed a second time.

    Raises:
        TamperError: one was not signed for this phase.
    """
    rollouts: dict[str, Rollout] = {}
    for path in sorted((folder / states.ENDED).glob(f"{version:06d}-*")):
        part = None if state.was_stopped(folder, version + 1) else _read(folder, path, version)
        if part is None:
            logger.warning("%s is damaged, or was stopped: its responses are drawn again", path)
            shutil.rmtree(path)
        else:
            rollouts |= part
    return rollouts


def _read(folder: Path, path: Path, version: int) -> dict[str, Rollout] | None:
    data, signature = path / state.INFLIGHT_FILE, path / states.SIGNATURE
    if not (data.exists() and signature.exists()):
        return None
    name = states.signed_name(folder.name, version)
    signed = unseal(states.ENDED, name, signature.read_bytes(), str(path))
    content = data.read_bytes()
    if signed != state.identity(folder, version + 1, sha256_bytes(content)):
        return None
    arrays, meta = codec.unpack(content)
    rollouts = codec.rollouts_of(arrays, meta["rollouts"])
    return dict(zip(meta["names"], rollouts, strict=True))
