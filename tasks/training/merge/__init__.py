"""The merge of two checkpoints onto their common base."""
