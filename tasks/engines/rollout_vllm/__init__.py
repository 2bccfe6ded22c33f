"""Rollouts with vLLM, in this or a separate process; vLLM is imported nowhere else."""
