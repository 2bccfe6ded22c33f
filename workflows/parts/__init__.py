"""Chains of stages, of which every entry point wires the part that it needs."""
