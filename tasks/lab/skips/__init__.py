"""Rules of skips that no preset uses, named by reference in settings."""
