"""Stage 6: held-out suites, intervals, comparisons."""
