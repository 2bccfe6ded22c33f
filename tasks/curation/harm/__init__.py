"""Harmful content, as a guard model or a text classifier that the user names calls it."""
