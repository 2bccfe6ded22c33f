"""Terms that no preset uses, with what was measured of each; settings name them by reference."""
