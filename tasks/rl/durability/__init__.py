"""What survives a crash: state, rollouts in flight, step snapshots, uploads."""
