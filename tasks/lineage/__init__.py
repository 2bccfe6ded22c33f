"""Who made what from what: statements on disk, and their catalogue in MLflow."""
