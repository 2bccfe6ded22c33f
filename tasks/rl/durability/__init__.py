"""Recovery after a crash: saved state, rollouts in flight, step snapshots, uploads."""
