"""Problems that need a judge where none is set: refused before anything is trained for them."""

from collections.abc import Iterable

from data_schemas.prompts import Problem
from data_schemas.rl_settings import JudgeKind, JudgeSettings
from tasks.errors import SettingsError
from tasks.gym.protocol import JUDGED


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
