"""Terms: what acts on the tokens of a step beside the loss, one file per idea."""
