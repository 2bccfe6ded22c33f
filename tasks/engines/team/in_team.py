"""Runs a stage in every process of a team."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tasks.engines.team.controller import controlling
from tasks.engines.team.member import read_rank_info
from tasks.engines.team.worker import serve

Args = ParamSpec("Args")
Result = TypeVar("Result")


def in_team(function: Callable[Args, Result]) -> Callable[Args, Result | None]:
    """Run a stage in rank 0 and have the other ranks serve its engines; they return None."""

    @functools.wraps(function)
    def run(*args: Args.args, **kwargs: Args.kwargs) -> Result | None:
        if read_rank_info().size == 1:
            return function(*args, **kwargs)
        if not read_rank_info().is_controller:
            serve()
            return None
        with controlling():
            return function(*args, **kwargs)

    return run
