"""The page of a curated set: what its tables say, and how it is shown."""
