"""General questions: a day or a month before or after another, with options."""

import random

from data_schemas.prompts import Domain
from tasks.marketplace.items import Item

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIRST = ("January", "February", "March", "April", "May", "June")
_SECOND = ("July", "August", "September", "October", "November", "December")
_MONTHS = (*_FIRST, *_SECOND)


def draw_general(rng: random.Random, level: int) -> Item:
    """Draw a question on the calendar: months from level 3 on, more steps and options."""
    names = _DAYS if level < 3 else _MONTHS
    distance = rng.randint(1, 1 + level)
    step = rng.choice((-1, 1))
    start = rng.randrange(len(names))
    path = [names[(start + step * count) % len(names)] for count in range(distance + 1)]
    right, near = path[-1], names[(start - step * distance) % len(names)]
    others = [name for name in names if name not in (right, path[0])]
    wrong = near if near in others else rng.choice(others)
    rest = rng.sample([name for name in others if name != wrong], min(level, 3) - 1)
    options = [right, wrong, *rest]
    rng.shuffle(options)
    unit = "day" if level < 3 else "month"
    count = f"{distance} {unit}{'s' if distance > 1 else ''}"
    return Item(
        domain=Domain.GENERAL,
        language="en",
        level=level,
        prompt=f"{count} {'after' if step == 1 else 'before'} {path[0]}? {', '.join(options)}",
        verifier="choice",
        answer={"correct": [right], "others": [[name] for name in options if name != right]},
        steps=", ".join(path),
        shortcut=count,
        solution=right,
        blunder_steps=path[0],
        blunder=wrong,
    )
