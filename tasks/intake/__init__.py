"""Where every workflow begins: its store, its execution, and what the command line overrides."""
