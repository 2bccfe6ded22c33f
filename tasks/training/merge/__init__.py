"""Stage 3: merge of the two SFT parents."""
