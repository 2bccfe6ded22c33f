"""Stage 7: the gate, the manifest, the card, the registry."""
