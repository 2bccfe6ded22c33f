"""Stage 3: TIES merge of the two SFT parents."""
