"""RuscaRL's scaffold measured: the gate before it, and its comparisons."""
