"""Replay of an RL step from its snapshot, with its own loss or another one."""
