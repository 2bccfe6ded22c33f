"""The first tasks of every workflow: its store, its execution, and command line overrides."""
