"""A ternary judge taught from human comparisons, and how it stands to a Bradley-Terry head."""
