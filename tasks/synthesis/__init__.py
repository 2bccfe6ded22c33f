"""Problems written by a model: concepts, then a rationale, then the problem (PromptCoT 2.0)."""
