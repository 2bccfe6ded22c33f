"""A taskset of the v1 interface of verifiers, written as its documentation shows."""

import random

import verifiers.v1 as vf

STOCK = {"mug": 4, "kite": 0}


class StockData(vf.TaskData):
    answer: str


class Stock(vf.Toolset[vf.ToolsetConfig]):
    @vf.tool
    async def stock(self, item: str) -> str:
        """Say how many of an item there are."""
        if item == "meteor":
            raise ValueError("no such item")
        return str(STOCK.get(item, 0))

    @vf.tool
    async def roll(self, sides: int) -> str:
        """Roll a die."""
        return str(random.randint(1, sides))


class StockTask(vf.Task[StockData, vf.State, vf.TaskConfig]):
    @classmethod
    def toolsets(cls, config):
        return [Stock(vf.ToolsetConfig())]

    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        return float(trace.last_reply.strip() == self.data.answer)


class WordConfig(vf.TasksetConfig):
    items: int = 2
    image: str | None = None


class WordTasks(vf.Taskset[StockTask, WordConfig]):
    def load(self):
        for name in list(STOCK)[: self.config.items]:
            yield StockTask(
                StockData(
                    prompt=f"How many {name}s?",
                    system_prompt="You keep a shop.",
                    answer=str(STOCK[name]),
                    image=self.config.image,
                ),
                self.config.task,
            )


__all__ = ["WordTasks"]

if __name__ == "__main__":
    Stock.run()
