"""Where no judge is set: what stands for it, and problems that need one.

Such problems are refused before anything is trained for them.
"""

from collections.abc import Iterable, Sequence

from data_schemas.rl_settings import JudgeKind, JudgeSettings
from data_schemas.rows import Message, Problem
from tasks.errors import SettingsError
from tasks.gym.judging.protocol import JudgeCalls
from tasks.gym.protocol import JUDGED

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


def require_judge(judge: JudgeSettings, where: str, problems: Iterable[Problem]) -> None:
    """Refuse problems that only a judge can score.

    Args:
        judge: that scores them.
        where: name of its settings, in the message.
        problems: that will be scored.

    Raises:
        SettingsError: some need a judge, and none is set.
    """
    if judge.kind is not JudgeKind.NONE:
        return
    lacking = [problem for problem in problems if problem.verifier in JUDGED]
    if lacking:
        first = lacking[0]
        raise SettingsError(
            f"{where}.kind is none, but {len(lacking)} problems need a judge, first {first.id} "
            f"(verifier {first.verifier}). Set it to 'http' with address and model of an endpoint, "
            f"or to 'model' with a model directory; or leave out the source {first.source}"
        )
