#!/usr/bin/env bash
# Expected: of two models of which one wins all ten comparisons, Bradley-Terry scores put the winner
# first: the more games, the further, and with no bound. Seen: both have the score 0.000001, after two
# iterations. One model that never lost makes all scores equal, also those of others that won and lost
# against each other: what is no number any more is replaced by the tolerance, and the next iteration
# counts as converged. With one game lost, or one tie, the order is there. No warning. Versions: evalica
# 0.4.2, pandas 3.1.1. Matters: leagues of few games, of a judge, or with a weak base, in which
# somebody stays unbeaten: a best checkpoint that is picked by the highest score is the first of the table.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check evalica==0.4.2 pandas==3.1.1 numpy==2.4.6
cat > show.py <<'PYTHON'
import warnings

from evalica import Winner, bradley_terry

warnings.simplefilter("error")  # it says nothing
TWO = [("b", "c", Winner.X)] * 6 + [("b", "c", Winner.Y)] * 4
LEAGUES = {
    "9 of 10 games": [("a", "b", Winner.X)] * 9 + [("a", "b", Winner.Y)],
    "10 of 10 games": [("a", "b", Winner.X)] * 10,
    "b and c, 6 to 4": TWO,
    "b and c, and a beats both": TWO + [("a", "b", Winner.X), ("a", "c", Winner.X)] * 5,
    "the same, and one tie of a": TWO + [("a", "b", Winner.X), ("a", "c", Winner.X)] * 5 + [("a", "b", Winner.Draw)],
}
for solver in ("pyo3", "naive"):
    for league, games in LEAGUES.items():
        result = bradley_terry(*zip(*games, strict=True), solver=solver)
        scores = result.scores.round(6).to_dict()
        print(f"{solver}, {league}: {dict(sorted(scores.items()))} after {result.iterations} iterations")
        if league in ("10 of 10 games", "b and c, and a beats both"):
            assert set(scores.values()) == {1e-06} and result.iterations == 2
        else:
            assert sorted(scores, key=scores.get, reverse=True) == sorted(scores)
            assert len(set(scores.values())) == len(scores)
PYTHON
HOME=$folder venv/bin/python show.py
