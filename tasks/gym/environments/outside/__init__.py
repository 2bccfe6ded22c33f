"""Environments of other libraries, each played in a process of its own."""
