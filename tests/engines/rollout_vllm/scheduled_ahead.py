"""vLLM's asynchronous scheduling on its CPU build, whose platform turns it off.

Streams and events of CUDA do nothing here: on a CPU every copy is finished when it is started.
"""

import contextlib
from collections.abc import Iterator

import pytest
import torch


class Nothing:
    """A stream or an event."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __getattr__(self, _: str):
        return lambda *_, **__: None


@contextlib.contextmanager
def scheduled_ahead() -> Iterator[None]:
    """Turn it on for engines that are opened and used within; the first engine is opened before."""
    from vllm.platforms.cpu import CpuPlatform  # after the engine has prepared the environment

    with pytest.MonkeyPatch.context() as patch:
        update = CpuPlatform.check_and_update_config

        def keep_async(_, config) -> None:
            update(config)
            config.scheduler_config.async_scheduling = True

        patch.setattr(CpuPlatform, "check_and_update_config", classmethod(keep_async))
        for name in ("Stream", "Event"):
            patch.setattr(torch.cuda, name, Nothing)
        patch.setattr(torch, "Event", Nothing)
        patch.setattr(torch.cuda, "stream", lambda _: contextlib.nullcontext())
        patch.setattr(torch.cuda, "current_stream", lambda *_: Nothing())
        yield
