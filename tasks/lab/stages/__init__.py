"""Flyte tasks of studies and of the mismatch measurement."""
