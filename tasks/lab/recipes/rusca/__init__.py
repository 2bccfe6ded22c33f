"""RuscaRL (arXiv 2508.16949) with Rubicon: criteria of a rubric in some prompts, for a while."""
