"""Stage 0: the embedded base model and the workflow that reproduces it."""
