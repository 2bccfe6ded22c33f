"""What the rollouts of another trainer say."""
