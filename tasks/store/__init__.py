"""Artifacts by content: one Store, on disk or in S3."""
