"""Rollouts with vLLM, in this process or in one of its own; vLLM is imported nowhere else."""
