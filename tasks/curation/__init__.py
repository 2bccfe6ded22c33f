"""Stage 1: raw rows to typed problems, demonstrations and held-out suites."""
