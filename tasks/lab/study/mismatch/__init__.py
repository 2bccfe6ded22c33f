"""Rollout engine against trainer: log-probabilities, routes, and their drift over RL."""
