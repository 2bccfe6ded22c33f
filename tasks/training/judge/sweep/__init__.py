"""The judge against the Bradley-Terry head under other training comparisons."""
