"""What each prompt cost and contributed, over whole phases of RL: read from their ledgers."""
