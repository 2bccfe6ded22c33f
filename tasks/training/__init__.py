"""Stages that make a model other than by RL: base model, fine-tuning, merge, judge."""
