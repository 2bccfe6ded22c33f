"""Calls of tools."""
