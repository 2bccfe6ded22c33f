"""Stage 0: the embedded base model and the command that reproduces it."""
