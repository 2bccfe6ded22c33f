"""The effect of each feature of RL: one phase per disabled feature, on equal tokens."""
