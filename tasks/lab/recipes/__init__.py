"""One folder a recipe: what reproduces one more paper, on the seams that anybody may use."""
