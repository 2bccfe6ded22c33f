"""A step of RL repeated from its snapshot, and what two numerics do to one policy."""
