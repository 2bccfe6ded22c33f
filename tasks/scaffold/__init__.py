"""RuscaRL's scaffold measured: the gate before it, its comparisons, and a defence against hacks."""
