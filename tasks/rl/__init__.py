"""Stages 4 and 5: reinforcement learning; the phase is a setting."""
