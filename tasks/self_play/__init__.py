"""The study of self-play: the gate before it, and its table."""
