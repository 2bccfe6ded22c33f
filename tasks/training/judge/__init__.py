"""Train a ternary judge on human comparisons and compare it with a Bradley-Terry head."""
