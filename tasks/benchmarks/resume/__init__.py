"""A small RL job that is killed and goes on, in this project and in TRL."""
