"""The Flyte shells of all stages, one file per group: unpack, call, record, return."""
