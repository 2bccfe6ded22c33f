"""Processes that verifiers run in."""
