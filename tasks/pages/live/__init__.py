"""The page of a running phase of RL: curves, step times, use of tokens, and its responses."""
