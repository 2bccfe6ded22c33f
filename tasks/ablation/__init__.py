"""Ablation study: one RL phase per disabled feature, with equal numbers of tokens."""
