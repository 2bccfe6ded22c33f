"""Workflows of the laboratory: studies, recipes, mismatch."""
