"""Recorded routes that cannot be replayed are refused."""

from data_schemas.rl_settings import RLSettings, RouterReplay
from data_schemas.rollouts import Rollout
from tasks.algorithms.routing import check_trace
from tasks.errors import DataError, EngineError


def check_routes(settings: RLSettings, rollout: Rollout, num_experts: int) -> None:
    """Refuse routes that cannot be replayed before anything is trained on them.

    Raises:
        EngineError: R3 is on and the engine recorded no routes or impossible ones.
    """
    if settings.router_replay is not RouterReplay.R3:
        return
    if rollout.trace is None:
        raise EngineError("router_replay is r3 but the rollout engine recorded no routes")
    length = len(rollout.prompt_tokens) + len(rollout.response_tokens)
    try:
        check_trace(rollout.trace, length, num_experts)
    except DataError as error:
        raise EngineError(f"the rollout engine recorded impossible routes: {error}") from error
