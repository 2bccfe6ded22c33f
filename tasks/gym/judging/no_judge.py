"""Where no judge is set: what stands for it, and problems that need one.

Such problems are refused before anything is trained for them.
"""

from collections.abc import Sequence

from data_schemas.rows import Message
from tasks.errors import SettingsError
from tasks.gym.judging.protocol import JudgeCalls

NO_JUDGE = (
    "this problem needs a judge and rewards.judge.kind is none. Set it to 'http' with address and "
    "model of an endpoint (vllm serve), or to 'model' with a model directory as address; or leave "
    "problems with verifier generative_judge or rubric out."
)


class NoJudge:
    """Placeholder if no judge is set, so that only problems that need one are refused."""

    @property
    def name(self) -> str:
        """Return the name of the placeholder."""
        return "none"

    @property
    def calls(self) -> JudgeCalls:
        """Return zero calls."""
        return JudgeCalls()

    def ask(self, prompts: Sequence[Sequence[Message]]) -> list[str | None]:
        """Refuse every prompt.

        Raises:
            SettingsError: always.
        """
        raise SettingsError(NO_JUDGE)
