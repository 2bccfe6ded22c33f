"""The experts of a layer: products over rows sorted by expert, and adjugate experts."""
