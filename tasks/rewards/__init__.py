"""Compass-Gym: one verifier per file, each usable alone as `verify(problem, response)`."""
