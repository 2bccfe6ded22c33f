"""A step of RL repeated from its capsule, and what two numerics do to one policy."""
