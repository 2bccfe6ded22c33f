"""Compass-Gym: one verifier per file, each usable by itself as `verify(problem, response)`."""
