"""A phase of vLLM and Megatron-core in two processes, killed.

    python killed_real_team.py MODEL OUT MODE

See test_killed_real_team.py.
"""

import json
import sys
from pathlib import Path

from data_schemas.machine_settings import LayoutSettings, RolloutKind, TrainerKind
from data_schemas.rl_settings import EngineSettings
from tasks.engines.chat import load_tokenizer
from tasks.engines.rollout_vllm import engine
from tasks.rl.phase import Phase, train
from tests.rl.killed_in_team import NO_FAULT, Fault, Struck, outcome, phase_of, pod
from tests.rl.phase_in_team import conftest

engine.SLOTS = 2  # so that most responses wait in the shared queue
ENGINES = EngineSettings(
    rollout=RolloutKind.VLLM, trainer=TrainerKind.MEGATRON, layout=LayoutSettings(expert=2)
)
MODES = {
    "whole responses": ENGINES,
    "free-running": ENGINES.model_copy(update={"segment_tokens": "free", "staleness": 2}),
}


class Engine(Struck, engine.VllmRolloutEngine):
    """vLLM, which may strike."""


engine.VllmRolloutEngine = Engine  # in every rank, because all of them are forked


def trained(phase: Phase) -> None:
    """Train to the last step, or to the fault."""
    list(train(phase, conftest().RuleScorer(load_tokenizer(phase.start))))


def struck(fault: Fault, phase: Phase) -> int:
    """Run the phase to its end or to the fault; say which step it has committed."""
    Engine.fault = fault
    return pod(trained, phase)


def main(model: Path, folder: Path, mode: str) -> None:
    engines = MODES[mode]
    whole, killed = (
        phase_of(model, folder / name, {"engines": engines}) for name in ("whole", "killed")
    )
    struck(NO_FAULT, whole)
    newest = [
        struck(Fault("rollout", 1, 1, pod=True), killed),
        struck(Fault("weights", 2, 0), killed),
        struck(NO_FAULT, killed),
    ]
    found = {"newest": newest, "whole": outcome(whole), "killed": outcome(killed)}
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
