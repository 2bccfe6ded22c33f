"""PromptCoT 2.0: a model writes problems from concepts, and another one learns from them."""
