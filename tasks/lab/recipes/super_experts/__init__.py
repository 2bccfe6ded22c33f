"""Super Experts: the few experts of a mixture whose loss ruins it."""
