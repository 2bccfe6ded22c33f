"""Artifacts by content: one Store, in a folder or in S3, and the files they are made of."""
