"""Row lineage: which rows trained which checkpoints and releases, and the way back."""
