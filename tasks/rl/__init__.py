"""Stages 4 and 5: reinforcement learning. Both phases run the same code with other settings."""
