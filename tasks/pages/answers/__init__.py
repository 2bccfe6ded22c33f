"""The page of an evaluation: every answer of every model, and where models differ."""
