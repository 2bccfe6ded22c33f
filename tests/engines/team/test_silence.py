"""Two machines of one stage, of which one is lost: network namespaces with a cable between them."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("flytekitplugins.kfpytorch")
pytestmark = pytest.mark.engines

ROOT = Path(__file__).parents[3]
MACHINES = {"a": "10.213.7.1", "b": "10.213.7.2"}
STAGE = """
    import os
    from functools import partial
    from pathlib import Path

    import torch
    from flytekit import task, workflow

    from tasks.engines.protocols import TokenBatch
    from tasks.engines.team.controller import current
    from tasks.engines.team.trainer import TeamTrainer
    from tasks.platform.elastic import Team, in_team
    from tests.engines.team.half_trainer import HalfTrainer, token_sum

    def endless(model: str, running: str) -> str:
        trainer = TeamTrainer(current(), partial(HalfTrainer, Path(model)))
        tokens_NT, lengths_N = torch.arange(6).reshape(2, 3), torch.full((2,), 3)
        batch = TokenBatch(tokens_NT, lengths_N, torch.ones(2, 3, dtype=torch.bool), None, {})
        while Path(model).exists():
            trainer.update(batch, token_sum, temperature=1.0, learning_rate=0.0, auxiliary=None)
            Path(running).write_text(str(os.getpid()))
        return "the model is gone"

    team = Team(nnodes=2, nproc_per_node=1, monitor_interval=1, increase_shared_mem=False)
    train = task(in_team(endless), task_config=team)

    @workflow
    def trained(model: str, running: str) -> str:
        return train(model=model, running=running)
"""


def limit_s() -> float:
    """A minute; longer where processes wait for a core, and take seconds to end."""
    return 60.0 if os.getloadavg()[0] < 2 * (os.cpu_count() or 1) else 90.0


@dataclass
class Machines:
    """Two of them; each runs the agent of one rank. Rank 0 is on machine a."""

    folder: Path
    agents: dict[str, subprocess.Popen] = field(default_factory=dict)

    def name(self, machine: str) -> str:
        return f"eachprompt-{os.getpid()}-{machine}"

    def start(self, model: Path, rendezvous: str) -> int:
        """Start the stage; return the process of rank 0 once it trains."""
        running = self.folder / "running"
        for machine in MACHINES:
            script = (
                f"hostname machine-{machine}; mount --bind {self.folder}/hosts /etc/hosts; "
                f"exec {Path(sys.executable).with_name('pyflyte')} -v run stage.py trained "
                f"--model {model} --running {running}"
            )
            environment = {
                "HOME": str(self.folder / machine),
                "PYTHONPATH": f"{ROOT}:{self.folder}",
                "PET_NNODES": "2",
                "PET_RDZV_ENDPOINT": f"machine-{rendezvous}:29400",
                "GLOO_SOCKET_IFNAME": "cable",
            }
            inside = ["ip", "netns", "exec", self.name(machine), "unshare", "--uts", "--mount"]
            with (self.folder / machine / "said").open("w") as said:
                self.agents[machine] = subprocess.Popen(
                    [*inside, "sh", "-c", script],
                    cwd=self.folder,
                    env=os.environ | environment,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        until = time.monotonic() + 300.0
        while not running.exists() or not running.read_text():
            ended = [agent.poll() is not None for agent in self.agents.values()]
            assert not any(ended), self.said("a") + self.said("b")
            assert time.monotonic() < until
            time.sleep(0.1)
        return int(running.read_text())

    def pull_cable(self) -> None:
        subprocess.run(["ip", "-n", self.name("b"), "link", "set", "cable", "down"], check=True)

    def kill(self, machine: str) -> None:
        """Kill all processes of a machine; its kernel ends their connections."""
        with suppress(ProcessLookupError):
            os.killpg(self.agents[machine].pid, signal.SIGKILL)

    def seconds_until_end(self, machine: str) -> float:
        begun = time.monotonic()
        self.agents[machine].wait(timeout=120.0)
        return time.monotonic() - begun

    def said(self, machine: str) -> str:
        text = (self.folder / machine / "said").read_text()
        return " ".join(text.replace("│", " ").split())


@pytest.fixture
def machines(tmp_path) -> Iterator[Machines]:
    made = Machines(tmp_path)
    if os.geteuid() or not shutil.which("ip"):
        pytest.skip("only root may make network namespaces")
    (tmp_path / "stage.py").write_text(textwrap.dedent(STAGE))
    hosts = [f"{address} machine-{machine}\n" for machine, address in MACHINES.items()]
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n" + "".join(hosts))
    try:
        for machine in MACHINES:
            (tmp_path / machine).mkdir()
            subprocess.run(["ip", "netns", "add", made.name(machine)], check=True)
        ends = [["cable", "netns", made.name(machine)] for machine in MACHINES]
        cable = ["ip", "link", "add", *ends[0], "type", "veth", "peer", "name", *ends[1]]
        subprocess.run(cable, check=True)
        for machine, address in MACHINES.items():
            inside = ["ip", "-n", made.name(machine)]
            subprocess.run([*inside, "link", "set", "lo", "up"], check=True)
            subprocess.run([*inside, "addr", "add", f"{address}/24", "dev", "cable"], check=True)
            subprocess.run([*inside, "link", "set", "cable", "up"], check=True)
        yield made
    finally:
        for machine, agent in made.agents.items():
            made.kill(machine)
            agent.wait()
        for machine in MACHINES:
            subprocess.run(["ip", "netns", "del", made.name(machine)], check=False)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rendezvous", MACHINES)
def test_without_network_both_machines_end_within_a_minute(machines, tiny_moe, rendezvous):
    machines.start(tiny_moe, rendezvous)

    machines.pull_cable()
    seconds = [machines.seconds_until_end(machine) for machine in MACHINES]

    assert sum(seconds) < limit_s(), seconds
    for machine in MACHINES:
        assert "USER:Recoverable" in machines.said(machine)
        assert "EngineError" in machines.said(machine)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_controller_that_is_stopped_ends_the_other_machine_within_a_minute(machines, tiny_moe):
    controller = machines.start(tiny_moe, "a")

    os.kill(controller, signal.SIGSTOP)

    assert machines.seconds_until_end("b") < limit_s()
    assert "EngineError: rank 0 has given no sign of life for 45 s" in machines.said("b")


@pytest.mark.timeout(400)
def test_a_machine_whose_processes_are_all_killed_ends_the_other_at_once(machines, tiny_moe):
    machines.start(tiny_moe, "a")

    machines.kill("a")

    # With what a rank returns that is not rank 0: the failure is that of machine a.
    assert machines.seconds_until_end("b") < 20
