"""Judges of open text: backends, prompts, parsing of replies and conversion to rewards."""
