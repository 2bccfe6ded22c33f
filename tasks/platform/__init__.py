"""What Flyte sees: machines, shells, retries, processes, cache versions, decks, progress."""
