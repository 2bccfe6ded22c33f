#!/usr/bin/env bash
# Expected: in a game in which one of two facts has to be guessed, the final message counts as one
# guess, or as none if it names both. Seen: it wins if the true fact is among those that it names.
# "[Fact 1]" wins half of twelve seeded games, "Not [Fact 1] but [Fact 2]" all twelve, and both players
# get their rewards of 1 and -1 for it. Other games take the first move in brackets: of "<think>[0] loses,
# so [4].</think> [4]" the tic-tac-toe plays 0. Version: textarena 0.7.4. Matters: rewards of RL in this
# environment: a guesser learns within a few steps to name both, and a thought that weighs a move makes
# it; hand over the part behind the thought, and with one move.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check textarena==0.7.4
cat > show.py <<'PYTHON'
import textarena

GAMES = range(12)


def reward(guess, seed):
    game = textarena.make("TruthAndDeception-v0-raw")
    game.reset(num_players=2, seed=seed)
    done = False
    while not done:
        game.get_observation()
        last = game.state.turn == game.state.max_turns - 1
        done, _ = game.step(guess if last else "Tell me more.")
    rewards, _ = game.close()
    assert rewards[0] == -rewards[1]
    return rewards[1]


for guess, wins in {
    "[Fact 1]": 6,
    "[Fact 2]": 6,
    "[Fact 1] or [Fact 2]": 12,
    "Not [Fact 1] but [Fact 2]": 12,
}.items():
    number = sum(reward(guess, seed) == 1 for seed in GAMES)
    print(f"{guess}: {number} of {len(GAMES)} games are won")
    assert number == wins, guess
game = textarena.make("TicTacToe-v0-raw")
game.reset(num_players=2, seed=1)
game.step("<think>[0] loses, so [4].</think> [4]")
print("tic-tac-toe after a move to 4:", game.state.game_state["board"])
assert game.state.game_state["board"][0][0] and not game.state.game_state["board"][1][1]
PYTHON
HOME=$folder venv/bin/python -W ignore show.py
