"""Entry points of the recipes, one file each."""
