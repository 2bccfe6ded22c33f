"""A server of OpenEnv with one environment: say numbers downwards from the seed to 0."""

import sys

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app


class Say(Action):
    number: int


class Heard(Observation):
    text: str


class Countdown(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._left = 0

    def reset(self, seed=None, episode_id=None, **_):
        self._left = seed or 0
        return Heard(text=f"Count down from {self._left}.")

    def step(self, action, **_):
        if action.number == 99:
            raise RuntimeError("99 breaks it")
        if action.number != self._left:
            return Heard(text="wrong", done=True, reward=0.0)
        self._left -= 1
        return Heard(text="go on", done=self._left < 0, reward=1.0 if self._left < 0 else 0.0)

    @property
    def state(self):
        return State(step_count=0)


if __name__ == "__main__":
    app = create_fastapi_app(Countdown, Say, Heard)  # room for one session
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
