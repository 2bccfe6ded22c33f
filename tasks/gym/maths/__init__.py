"""Final answers of mathematics."""
