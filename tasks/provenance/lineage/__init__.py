"""Lineage: statements on disk, and their catalogue in MLflow."""
