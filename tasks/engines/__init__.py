"""Machines behind Protocols: rollout engines, trainers, text models. They choose no algorithm."""
