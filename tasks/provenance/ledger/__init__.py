"""Cost and contribution of every prompt over whole phases of RL, read from their ledgers."""
