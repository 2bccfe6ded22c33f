"""Worker processes for verifiers."""
