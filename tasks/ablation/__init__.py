"""What each feature of RL is worth: one phase per feature switched off, on equal tokens."""
