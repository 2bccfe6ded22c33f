"""Stage 1: turn raw rows into typed problems, demonstrations and held-out suites."""
