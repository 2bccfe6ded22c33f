"""How often scripted shoppers buy what a customer with hidden wishes wants, as a file for pages.

python -m tests.bench.shoppers 1 100 --out tests/bench/shoppers.json
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tasks.gym.environments.shopping.catalogue import Shop
from tasks.gym.environments.shopping.metrics import metrics
from tasks.gym.environments.shopping.shoppers import SHOPPERS, buy
from tasks.gym.environments.shopping.world import generate
from tasks.lab.study import evidence_file
from tasks.platform.command_line import run
from tasks.store.files import write_bytes

MODULE = "tasks.gym.environments.shopping.shoppers"


def measure(seed: int, customers: int) -> Mapping[str, Mapping[str, float]]:
    """Return the metrics of each shopper that are one number, over the shop of a seed."""
    shop = Shop(generate(seed, customers))
    played = {
        name: metrics([buy(shop, one, shopper)[0] for one in shop.customers.values()])
        for name, shopper in SHOPPERS.items()
    }
    return {
        name: {metric: value for metric, value in one.items() if not isinstance(value, dict)}
        for name, one in played.items()
    }


def main(arguments: Sequence[str]) -> None:
    """Play and write."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.shoppers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("seed", type=int, help="of the shop")
    parser.add_argument("customers", type=int)
    parser.add_argument("--out", type=Path, required=True, help="a JSON file of the numbers")
    options = parser.parse_args(arguments)
    command = f"python -m tests.bench.shoppers {options.seed} {options.customers}"
    content = {
        **evidence_file.origin(command, MODULE),
        "shoppers": measure(options.seed, options.customers),
    }
    write_bytes(options.out, (json.dumps(content, indent=1) + "\n").encode())


if __name__ == "__main__":
    run(main)
