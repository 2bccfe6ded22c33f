"""The terminal summary and HTML report of a run."""
