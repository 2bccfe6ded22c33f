"""Merge methods: a file for each family, on task vectors of one tensor at a time."""
