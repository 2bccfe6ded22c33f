"""Verifiable instructions in eleven languages."""
