"""Science items: quantities with a unit, which the answer must not contradict."""

import random
from collections.abc import Callable

from data_schemas.rows import Domain
from tasks.curation.marketplace.items import MarketItem
from tasks.curation.marketplace.maths import addition, change_of_hundred


def draw_science(rng: random.Random, level: int) -> MarketItem:
    """Draw a question on a quantity: distance, mass, power, temperature, conversion of units.

    The hasty teacher calculates wrongly or, in one of three cases, names a wrong unit.
    """
    prompt, steps, result, unit, slip, wrong_unit = _SCIENCE[level - 1](rng)
    blunder = f"{result} {wrong_unit}" if rng.random() < 1 / 3 else f"{slip} {unit}"
    return MarketItem(
        domain=Domain.SCIENCE,
        language="en",
        level=level,
        prompt=prompt,
        verifier="final_answer",
        answer={"value": str(result), "unit": unit},
        steps=steps,
        shortcut=unit,
        solution=f"{result} {unit}",
        blunder_steps=unit,
        blunder=blunder,
    )


_Quantity = tuple[str, str, int, str, int, str]
"""Prompt, careful steps, result, its unit, a wrong result, and a wrong unit."""


def _distance(rng: random.Random) -> _Quantity:
    speed, hours = rng.randint(2, 9), rng.randint(2, 9)
    result = speed * hours
    vehicle = rng.choice(("cart", "boat", "van", "bike"))
    prompt = f"A {vehicle} at {speed} km/h for {hours} h. Distance?"
    return prompt, f"{speed}*{hours}={result}", result, "km", speed + hours, "h"


def _mass(rng: random.Random) -> _Quantity:
    left, right = rng.randint(11, 79), rng.randint(11, 79)
    first, second = rng.sample(("box", "crate", "parcel", "bag"), 2)
    prompt = f"A {first} of {left} kg and a {second} of {right} kg. Mass?"
    return prompt, addition(left, right), left + right, "kg", left + right + 10, "g"


def _power(rng: random.Random) -> _Quantity:
    count, each, other = rng.randint(2, 9), rng.randint(2, 9), rng.randint(11, 60)
    part = count * each
    device = rng.choice(("fan", "heater", "motor"))
    prompt = f"{count} lamps of {each} W and a {device} of {other} W. Power?"
    steps = f"{count}*{each}={part}; {addition(part, other)}"
    return prompt, steps, part + other, "W", each + other, "V"


def _temperature(rng: random.Random) -> _Quantity:
    start, liquid = rng.randint(11, 89), rng.choice(("Water", "Tea", "Soup", "Milk"))
    prompt = f"{liquid} warms from {start} to 100 °C. Rise?"
    return prompt, change_of_hundred(start), 100 - start, "°C", 110 - start, "kg"


def _conversion(rng: random.Random) -> _Quantity:
    large, small = rng.randint(2, 9), rng.randint(101, 899)
    name, big, unit = rng.choice(
        (("Mass", "kg", "g"), ("Length", "km", "m"), ("Volume", "L", "mL"))
    )
    result = 1000 * large + small
    prompt = f"{large} {big} and {small} {unit}. {name} in {unit}?"
    return (
        prompt,
        f"{large}*1000={1000 * large}; +{small}={result}",
        result,
        unit,
        large + small,
        big,
    )


_SCIENCE: tuple[Callable[[random.Random], _Quantity], ...] = (
    _distance,
    _mass,
    _power,
    _temperature,
    _conversion,
)
