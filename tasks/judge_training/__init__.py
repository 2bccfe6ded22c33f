"""A ternary judge trained on human comparisons, compared with a Bradley-Terry head."""
