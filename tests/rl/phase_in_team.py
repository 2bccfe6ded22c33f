"""A phase of RL in two processes: python phase_in_team.py MODEL FOLDER. See test_team.py."""

import importlib.util
import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

from torch.distributed.launcher.api import LaunchConfig, elastic_launch
from transformers import Qwen3MoeForCausalLM  # noqa: F401 - once, and not in every rank

from data_schemas.rl_settings import RLSettings
from tasks.durability import states
from tasks.engines.chat import load_tokenizer
from tasks.engines.team.in_team import in_team
from tasks.errors import PreemptionError
from tasks.rl.phase import Phase, finish, train
from tasks.store.files import sha256_file


def conftest():
    """Load the fakes of conftest.py, which otherwise only pytest imports."""
    path = Path(__file__).with_name("conftest.py")
    spec = importlib.util.spec_from_file_location("rl_conftest", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def phase_in(model: Path, folder: Path, steps: int = 3) -> Phase:
    """A few steps on the tiny model; the same work whoever runs it."""
    fakes = conftest()
    settings = RLSettings(
        domains={fakes.Domain.MATHS: 1.0},
        steps=steps,
        prompts_per_step=3,
        group_size=4,
        max_new_tokens=6,
        learning_rate=1e-3,
    )
    problems = tuple(fakes.problem(number) for number in range(12))
    return Phase(settings, model, problems, folder / "state", "code-a")


def run(phase: Phase, folder: Path) -> dict:
    """Train, export, and say what the model is."""
    scorer = conftest().RuleScorer(load_tokenizer(phase.start))
    list(train(phase, scorer))
    (folder / "model").mkdir(parents=True)
    facts = finish(phase, folder / "model", folder / "report")
    return {"model": sha256_file(folder / "model/model.safetensors"), "facts": facts}


def cut(phase: Phase) -> str:
    """SIGTERM to this process after the first step, as the agent of a pod sends it to all."""
    try:
        for _ in train(phase, conftest().RuleScorer(load_tokenizer(phase.start))):
            os.kill(os.getpid(), signal.SIGTERM)
    except PreemptionError as error:
        return str(error)
    return "not stopped"


def long(phase: Phase, folder: Path) -> None:
    """Train until stopped; write the error message."""
    try:
        list(train(phase, conftest().RuleScorer(load_tokenizer(phase.start))))
    except PreemptionError as error:
        (folder / "said").write_text(str(error))
        raise


def agent_is_told(model: Path, folder: Path) -> dict:
    """SIGTERM to the agent of a long phase, as a pod gets it that is to go."""
    folder.mkdir()
    arguments = (long, phase_in(model, folder, steps=10_000), folder)
    agent = multiprocessing.get_context("fork").Process(target=launched, args=arguments)
    agent.start()
    while not (folder / "state/committed/000002").exists():
        assert agent.is_alive()
        time.sleep(0.1)
    agent.terminate()
    started = time.monotonic()
    agent.join()
    return {
        "said": (folder / "said").read_text(),
        "seconds": time.monotonic() - started,
        "newest": states.newest(folder / "state"),
    }


def launched(function, *arguments) -> object:
    """Run a stage in two processes; return what rank 0 says."""
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        run_id="phase",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        monitor_interval=0.2,
        start_method="fork",
    )
    return elastic_launch(config, in_team(function))(*arguments)[0]


def main(model: Path, folder: Path) -> None:
    """Two processes; then two that are cut off and two that go on."""
    told = agent_is_told(model, folder / "d")
    whole = launched(run, phase_in(model, folder / "a"), folder / "a")
    phase = phase_in(model, folder / "b")
    stopped = launched(cut, phase)
    resumed = launched(run, phase, folder / "b")
    # Last: threads of a process that computed do not survive a fork.
    alone = run(phase_in(model, folder / "c"), folder / "c")
    found = {
        "whole": whole,
        "stopped": stopped,
        "resumed": resumed,
        "alone": alone,
        "told": told,
    }
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
