"""Turns of several agents: one policy in several roles, each in a group of its own."""

from pydantic import BaseModel, ConfigDict, Field

from data_schemas.prompts import Problem

SOLVER = "solver"
"""The role in which the policy answers a prompt of the stream; a recipe names the others."""


class AgentTurn(BaseModel):
    """An input that was made from a response of the agent before.

    Its responses are one group, like those to a prompt of the stream, which is a solver's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str = Field(description="the role in which the policy answers")
    number: int = Field(ge=1, description="place in the chain; 1 = first of a turn")
    root: str = Field(description="id of the problem that the chain is about")
    parent: str = Field(description="key of the group whose response it was made from")
    parent_sample: int = Field(ge=0)
    parent_response: str
    parent_solved: bool
    parent_abstained: bool = Field(description="then its own responses have no verdict either")
    problem: Problem = Field(description="what is asked, with its verifier and gold")
    size: int = Field(default=0, ge=0, description="responses; 0 = those of any group")

    @property
    def key(self) -> str:
        """Name its group: unique in a phase, and the same whenever the turn is taken."""
        return turn_key(self.parent, self.agent, self.parent_sample)


def account_of(problem_id: str, agent: str) -> str:
    """Name what a problem's groups of one agent are charged to; the solver's to the problem."""
    return problem_id if agent == SOLVER else f"{problem_id}#{agent}"


def turn_key(parent: str, agent: str, sample: int) -> str:
    """Name the group of a turn."""
    return f"{parent}/{agent}.{sample}"
