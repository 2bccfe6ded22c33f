"""Recipes: which turns of other agents follow a group."""
