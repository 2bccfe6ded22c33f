"""Discrete events of RL steps: seconds, idle shares, staleness and cost by layout and policy."""
