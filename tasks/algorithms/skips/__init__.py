"""Rules by which a prompt is not rolled out: a file for each."""
