"""Rollout engine and trainer in this process, on torch and transformers alone."""
