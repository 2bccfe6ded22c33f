"""A taskset of verifiers whose environment answers as the user, as its documentation shows."""

import random

import verifiers.v1 as vf


class GuessData(vf.TaskData):
    number: int


class GuessTask(vf.Task[GuessData, vf.State, vf.TaskConfig]):
    @vf.metric
    async def num_turns(self, trace: vf.Trace) -> float:
        return float(trace.num_turns)


class GuessTaskset(vf.Taskset[GuessTask, vf.TasksetConfig]):
    INFINITE = True

    def load(self):
        for number in range(10**6):
            data = GuessData(prompt="Guess my number.", number=number % 7)
            yield GuessTask(data, self.config.task)


class GuessConfig(vf.EnvConfig):
    player: vf.AgentConfig = vf.AgentConfig()


class GuessEnv(vf.Env[GuessConfig]):
    async def run(self, task, agents):
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                reply = segment.last_reply
                if reply == "meteor":
                    raise ValueError("no such number")
                if reply == str(task.data.number):
                    interaction.trace.record_reward("guessed", 1.0, 1.0)
                    break
                if len(interaction.trace.branches[-1].messages) > 7:
                    break
                is_low = reply.isdecimal() and int(reply) < task.data.number
                answer = random.choice(["higher", "no, higher"]) if is_low else "lower"
                segment = await interaction.turn(answer)


__all__ = ["GuessEnv", "GuessTaskset"]
