"""Settings of self-distillation."""

from typing import Self

from pydantic import Field, model_validator

from data_schemas.rl_settings import RecipeSettings
from data_schemas.rows import Domain


class SelfDistillationSettings(RecipeSettings):
    """What the policy sees as its own teacher, and what the update makes of it."""

    implementation: str = "tasks.lab.recipes.self_distillation.teacher:open_teacher"

    weight: float = Field(
        default=0.1,
        gt=0.0,
        le=1.0,
        description="of the teacher's advantages on taught responses; SDPO for small models 0.1, "
        "SRPO 1: they alone",
    )
    bound: float = Field(
        default=5.0, gt=0.0, description="largest advantage of the teacher, nats [no paper's]"
    )
    by_entropy: bool = Field(
        default=False,
        description="weigh the teacher's advantages with exp(-H) of its entropy H, at a mean of 1 "
        "over the taught tokens of a step (SRPO 2604.02288)",
    )
    solved_sibling: bool = Field(
        default=True, description="show a solved response of the same group"
    )
    reason: bool = Field(default=True, description="show what the verifier says of the response")
    max_prompt_tokens: int = Field(
        default=1024, ge=1, description="of the teacher; behind longer ones nothing is taught"
    )
    teachers: dict[Domain, str] = Field(
        default={},
        description="other models that teach in place of the policy, one for each domain of the "
        "phase: folders or addresses in the store; they see the prompt alone and teach every "
        "response (MOPD 2606.30406)",
    )
    control: bool = Field(
        default=False,
        description="no teacher: advantage -1/2 on the least probable fifth of the same tokens "
        "(2608.31046)",
    )

    @model_validator(mode="after")
    def _shows_something(self) -> Self:
        if self.teachers and self.control:
            raise ValueError("control asks no teacher; leave teachers out")
        if self.by_entropy and self.control:
            raise ValueError("control asks no teacher; leave by_entropy out")
        if not self.teachers and not (self.solved_sibling or self.reason):
            raise ValueError(
                "solved_sibling and reason are both off: a teacher that sees nothing more says "
                "what the policy says. Set one of them"
            )
        return self
